"""What ``steward collect`` does: targets in, rows out, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final

from collector.backlog import BacklogLimits
from collector.delivery import Delivery, DeliveryWorker
from collector.loop import LoopPlan, ScrapeLoop
from collector.reading import Reading
from collector.scrape import FetchLimits
from collector.self_metrics import metrics_server
from collector.spool import Spool, spool_path
from collector.summary import print_summary
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import (
    INTERRUPTED_EXIT_CODE,
    OwnedElsewhereError,
    SourceError,
    UnreachableError,
    WarehouseError,
)
from steward.ids import ClusterName
from steward.ports import Warehouse
from steward.settings import Settings

log = logging.getLogger(__name__)

GRACE_S: Final = 10.0
"""What the last delivery may take once the collector was told to stop."""
TOLD_FAILURES: Final = 10
"""Failed targets that an error names; the table has all of them."""
_SPARE_FILES: Final = 256
_NO_LIMIT: Final = sys.maxsize


def collect(
    urls: Sequence[str], *, context: Context, is_once: bool, metrics_port: int | None
) -> int:
    """Scrape these targets; return the exit code.

    Raises:
        UsageError: there is no such port.
        SourceError: with ``is_once``, a target could not be read; the others are stored.
        WarehouseError: rows could not be delivered.
        PortInUseError: the port for metrics is taken.
    """
    settings = context.settings
    allow_open_files(len(urls) + _SPARE_FILES)

    def open_for_a_round() -> AbstractContextManager[Warehouse]:
        return open_warehouse(settings)

    plan = plan_of(urls, settings=settings, is_once=is_once)
    if is_once:
        delivery = Delivery(open_for_a_round)
        return _collect_once(ScrapeLoop(plan, offer=delivery.offer, clock=context.clock), delivery)
    with closing(_spool(settings)) as spool:
        delivery = Delivery(open_for_a_round, store=spool)
        loop = ScrapeLoop(plan, offer=delivery.offer, clock=context.clock)
        _probe(delivery)
        with metrics_server(metrics_port, loop=loop, delivery=delivery):
            return _collect_until_told(loop, delivery, plan=plan)


def _spool(settings: Settings) -> Spool:
    """Open the place where rows wait, and say what an earlier collector left there."""
    path = spool_path(settings.data_dir, ClusterName(settings.cluster))
    limits = BacklogLimits(row_limit=_NO_LIMIT, byte_limit=settings.collect.spool_limit_bytes)
    spool = Spool(path, limits=limits)
    if spool.row_count:
        log.info("%d rows of an earlier run wait in %s", spool.row_count, path)
    return spool


def plan_of(urls: Sequence[str], *, settings: Settings, is_once: bool) -> LoopPlan:
    """Return the plan: in a loop no deadline is longer than the interval."""
    chosen = settings.collect
    timeout_s = chosen.timeout_s if is_once else min(chosen.timeout_s, chosen.interval_s)
    return LoopPlan(
        urls=urls,
        cluster=ClusterName(settings.cluster),
        interval_s=chosen.interval_s,
        limits=FetchLimits(timeout_s=timeout_s, body_limit_bytes=chosen.body_limit_bytes),
    )


def allow_open_files(file_count: int) -> None:
    """Let this process open so many files, as far as its hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = file_count if hard == resource.RLIM_INFINITY else min(file_count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _collect_once(loop: ScrapeLoop, delivery: Delivery) -> int:
    readings = asyncio.run(loop.once())
    delivery.seal()
    delivery.round()
    print_summary(readings)
    if delivery.tally.rejected_rows:
        raise WarehouseError(
            f"the warehouse refused {delivery.tally.rejected_rows.total()} rows",
            hint="see the log; bring collector and warehouse to the same version",
        )
    _raise_for_failed(readings)
    return 0


def _raise_for_failed(readings: Sequence[Reading]) -> None:
    refusals = [reading.refusal for reading in readings if reading.refusal is not None]
    if len(refusals) == 1:
        raise refusals[0].error()
    if refusals:
        told = [refusal.message for refusal in refusals[:TOLD_FAILURES]]
        if len(refusals) > TOLD_FAILURES:
            told.append(f"and {len(refusals) - TOLD_FAILURES} more, see the table")
        raise SourceError(
            f"{len(refusals)} of {len(readings)} targets could not be read: {'; '.join(told)}",
            hint="; ".join(sorted({refusal.hint for refusal in refusals})),
        )


def _probe(delivery: Delivery) -> None:
    """Fail at once on what waiting does not heal: a newer schema, a refused token."""
    try:
        delivery.probe()
    except (UnreachableError, OwnedElsewhereError) as error:
        log.warning("warehouse is away, rows will wait: %s (%s)", error, error.hint)


def _collect_until_told(loop: ScrapeLoop, delivery: Delivery, *, plan: LoopPlan) -> int:
    log.info("collecting from %d targets every %g s", len(plan.urls), plan.interval_s)
    worker = DeliveryWorker(delivery)
    try:
        told = asyncio.run(_run_until_told(loop, worker))
    finally:
        left = worker.stop(grace_s=GRACE_S)
        stored, lost = delivery.tally.delivered_rows.total(), delivery.losable_rows
        log.info("stopped: %d rows delivered, %d wait on disk", stored, left - lost)
    if lost:
        raise WarehouseError(
            f"{lost} rows could neither be delivered nor kept on disk, and are lost",
            hint="see the log for what is wrong with the warehouse and the spool",
        )
    return INTERRUPTED_EXIT_CODE if told is signal.SIGINT else 0


async def _run_until_told(loop: ScrapeLoop, worker: DeliveryWorker) -> signal.Signals | None:
    """Run the loop until SIGTERM or SIGINT and return which; a second one ends the process."""
    stop = asyncio.Event()
    with _signals_set(stop) as told:
        await loop.run(stop, flush=worker.flush)
    return told[0] if told else None


@contextmanager
def _signals_set(stop: asyncio.Event) -> Iterator[list[signal.Signals]]:
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
