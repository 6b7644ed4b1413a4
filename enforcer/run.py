"""The enforcer's process: the lease in a thread, rounds in their rhythm, an orderly end."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from enforcer.assembly import Replica, open_store, rehearsing, replica
from enforcer.controller import Controller, RoundReport
from enforcer.doctor import examined_kinds
from enforcer.lease import Elector, Keeper
from enforcer.metrics import EnforcerMetrics
from steward.command import Context
from steward.errors import INTERRUPTED_EXIT_CODE, ClusterError, FencedError, StewardError
from steward.settings import EnforceSettings

TEND_S: Final = 5.0
"""Seconds between two looks at open acts: a pod's end is seen soon."""
logger = logging.getLogger(__name__)


class Stop:
    """Set by the first signal, which it keeps."""

    def __init__(self) -> None:
        """Wait for one."""
        self.event = threading.Event()
        self.which: signal.Signals | None = None

    def hear(self, number: int, _frame: object) -> None:
        """Take a signal."""
        self.which = self.which or signal.Signals(number)
        self.event.set()


def serve(context: Context) -> int:
    """Do rounds whenever this replica leads, until SIGTERM or Ctrl-C; return the exit code.

    Raises:
        SettingsError: no cluster is named.
        PortInUseError: the port of the metrics is taken.
        WarehouseError: the warehouse cannot be opened.
    """
    own = context.settings.enforce
    metrics = EnforcerMetrics()
    with open_store(context.settings) as store, _signals() as stop:
        port = metrics.serve(own.metrics_host, own.metrics_port)
        parts = replica(context, store, metrics=metrics)
        logger.info("metrics on http://%s:%d/metrics", own.metrics_host, port)
        tell_permissions(parts.controller, own)
        with Keeper(parts.elector, length=parts.lease) as elector:
            go_on(parts.controller, elector, stop=stop.event, settings=own)
    return INTERRUPTED_EXIT_CODE if stop.which is signal.SIGINT else 0


def tell_permissions(controller: Controller, settings: EnforceSettings) -> None:
    """Log for each enabled kind what can be seen and done; what is missing is a warning.

    A server that gives no answer now is asked again by the first round.
    """
    try:
        found = examined_kinds(controller.hands.gateway, settings.kinds)
    except ClusterError as error:
        logger.warning("permissions are not known yet: %s (%s)", error.message, error.hint)
        return
    for one in found:
        level = logging.INFO if one.is_good else logging.WARNING
        logger.log(level, "%s: %s", one.subject, one.words)


def once(context: Context, *, is_dry_run: bool) -> RoundReport:
    """Do one round and wait until its acts have ended; return what it did.

    Raises:
        FencedError: another replica leads.
        StewardError: something could not be read or recorded.
    """
    with open_store(context.settings) as store, _signals() as stop:
        parts = replica(context, store, metrics=EnforcerMetrics())
        if is_dry_run:
            return rehearsing(parts.controller).rehearse()
        with Keeper(parts.elector, length=parts.lease) as elector:
            _wait_to_lead(elector, parts, stop.event)
            report = parts.controller.round()
            _wait_to_end(parts.controller, stop.event)
            return report


def _wait_to_lead(elector: Elector, parts: Replica, stop: threading.Event) -> None:
    """Wait for the lease of a leader that may have ended without letting it go."""
    until_s = time.monotonic() + 2 * parts.lease.total_seconds()
    while not elector.is_leading() and time.monotonic() < until_s:
        if stop.wait(0.2):
            break
    if not elector.is_leading():
        raise FencedError(
            "another replica leads: this one does no round",
            hint="use --dry-run to see what would be done, or stop the other one",
        )


def _wait_to_end(controller: Controller, stop: threading.Event) -> None:
    """Look at open acts until none is left: each ends by its time at the latest."""
    while controller.hands.ledger.entries().open() and not stop.wait(1.0):
        controller.try_tend()


def go_on(
    controller: Controller, elector: Elector, *, stop: threading.Event, settings: EnforceSettings
) -> None:
    """Do rounds while this replica leads, until told to stop."""
    next_s, was_leading = time.monotonic(), False
    while not stop.is_set():
        is_leading = elector.is_leading()
        controller.metrics.show_leading(is_leading=is_leading)
        if is_leading and not was_leading:
            next_s = time.monotonic()
            _say_leading(controller, elector)
        was_leading = is_leading
        if is_leading and time.monotonic() >= next_s:
            next_s += settings.interval_s
            controller.try_round()
            next_s = max(next_s, time.monotonic())
        elif is_leading:
            controller.try_tend()
        stop.wait(_pause_s(next_s, is_leading=is_leading))


def _pause_s(next_s: float, *, is_leading: bool) -> float:
    if not is_leading:
        return 1.0
    return min(TEND_S, max(0.05, next_s - time.monotonic()))


def _say_leading(controller: Controller, elector: Elector) -> None:
    ledger = controller.hands.ledger
    fence = elector.fence()
    logger.info("this replica leads as %s", fence)
    try:
        ledger.say("lead", ("cluster", ledger.cluster), {"fence": fence})
    except StewardError as error:
        logger.warning("leading could not be recorded: %s", error.message)


@contextmanager
def _signals() -> Iterator[Stop]:
    stop = Stop()
    before = {each: signal.signal(each, stop.hear) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
