"""SIGTERM and SIGINT as an event of the loop: the first ends orderly, the second at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals_set(stop: asyncio.Event) -> Iterator[list[signal.Signals]]:
    """Set the event at the first signal; yield a list that then holds which it was."""
    events, told = asyncio.get_running_loop(), list[signal.Signals]()
    watched = (signal.SIGTERM, signal.SIGINT)

    def hear(which: signal.Signals) -> None:
        told.append(which)
        stop.set()
        for each in watched:
            events.remove_signal_handler(each)

    for each in watched:
        events.add_signal_handler(each, hear, each)
    try:
        yield told
    finally:
        for each in watched:
            events.remove_signal_handler(each)
