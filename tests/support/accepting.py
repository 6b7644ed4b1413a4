"""Serves each connection of a listener in a thread of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def accepting(
    listener: socket.socket, serve: Callable[[socket.socket], None], *, closing: threading.Event
) -> Iterator[None]:
    """Serve for the length of the block; at its end set ``closing`` and wait for every thread."""
    workers: list[threading.Thread] = []

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            worker = threading.Thread(target=serve, args=(connection,), daemon=True)
            workers.append(worker)
            worker.start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield
    finally:
        closing.set()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (acceptor, *workers):
            thread.join(timeout=10)
