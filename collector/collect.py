"""What ``steward collect`` does: targets and a cluster in, rows out, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from typing import Final

import uvloop

from collector.assembly import Collector, assembled, open_spool, target_sources
from collector.delivery import Delivery, DeliveryWorker
from collector.discovery_labels import SourceState
from collector.discovery_run import TargetDiscovery
from collector.loop import LoopPlan, ScrapeLoop
from collector.reading import Reading
from collector.scrape import FetchLimits
from collector.self_metrics import metrics_server
from collector.signals import signals_set
from collector.summary import print_summary
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import (
    INTERRUPTED_EXIT_CODE,
    OwnedElsewhereError,
    SourceError,
    UnreachableError,
    UsageError,
    WarehouseError,
)
from steward.ids import ClusterName
from steward.ports import OpenWarehouse, Warehouse
from steward.settings import Settings

log = logging.getLogger(__name__)

GRACE_S: Final = 10.0
"""What the last delivery may take once the collector was told to stop."""
TOLD_FAILURES: Final = 10
"""Failed targets that an error names; the table has all of them."""
MOST_TARGETS: Final = 65_536
"""Connections that one process may hold, as far as the machine allows."""


def collect(
    urls: Sequence[str], *, context: Context, is_once: bool, metrics_port: int | None
) -> int:
    """Collect until told to stop, or scrape once; return the exit code.

    Args:
        urls: targets named on the command line and in ``collect.targets``; more come from the
            settings' discovery, and from the watched cluster.
        context: settings and clock.
        is_once: scrape every target one time; a cluster is not watched.
        metrics_port: where to serve the collector's own metrics.

    Raises:
        UsageError: there is nothing to collect from, or no such port.
        SettingsError: rules or selections are wrong.
        SourceError: with ``is_once``, a target could not be read; the others are stored. Otherwise
            the description of the API server is missing or broken.
        WarehouseError: rows could neither be delivered nor kept.
        PortInUseError: the port for metrics is taken.
    """
    settings = context.settings
    allow_open_files(MOST_TARGETS)

    def open_for_a_round() -> AbstractContextManager[Warehouse]:
        return open_warehouse(settings)

    plan = plan_of(urls, settings=settings, is_once=is_once)
    if is_once:
        return _collect_once(plan, context=context, open_warehouse=open_for_a_round)
    with closing(open_spool(settings)) as spool:
        collector = assembled(
            plan,
            settings=settings,
            spool=spool,
            open_warehouse=open_for_a_round,
            clock=context.clock,
        )
        _probe(collector.delivery)
        with metrics_server(metrics_port, collector):
            return _collect_until_told(collector, plan=plan)


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


def _collect_once(plan: LoopPlan, *, context: Context, open_warehouse: OpenWarehouse) -> int:
    if context.settings.kubernetes.access != "off":
        raise UsageError(
            "--once scrapes targets that are named; it watches no cluster",
            hint="leave --once out, or kubernetes.access off; `steward collect doctor` looks at "
            "a cluster once",
        )
    delivery = Delivery(open_warehouse)
    loop = ScrapeLoop(plan, offer=delivery.offer, clock=context.clock)
    discovery = TargetDiscovery(target_sources(plan.urls, settings=context.settings, cluster=None))

    async def scrape() -> list[Reading]:
        loop.set_targets(await discovery.look())
        return await loop.once()

    readings = uvloop.run(scrape())
    delivery.seal()
    delivery.round()
    print_summary(readings)
    if delivery.tally.rejected_rows:
        raise WarehouseError(
            f"the warehouse refused {delivery.tally.rejected_rows.total()} rows",
            hint="see the log; bring collector and warehouse to the same version",
        )
    _raise_for_failed(readings)
    _raise_for_troubled(discovery.states())
    return 0


def _raise_for_troubled(states: Sequence[SourceState]) -> None:
    """Raise where a source of targets could not be read: some may not have been scraped."""
    troubled = [one for one in states if one.error is not None]
    if troubled:
        told = "; ".join(str(one.error) for one in troubled[:TOLD_FAILURES])
        hints = sorted({one.hint for one in troubled if one.hint is not None})
        raise SourceError(f"not all targets are known: {told}", hint="; ".join(hints))


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


def _collect_until_told(collector: Collector, *, plan: LoopPlan) -> int:
    watched = "" if collector.watch is None else " and a cluster"
    log.info("collecting from %d targets%s every %g s", len(plan.urls), watched, plan.interval_s)
    delivery = collector.delivery
    worker = DeliveryWorker(delivery)
    try:
        told = uvloop.run(_run_until_told(collector, worker))
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


async def _run_until_told(collector: Collector, worker: DeliveryWorker) -> signal.Signals | None:
    """Run everything until SIGTERM or SIGINT and return which; a second one ends the process."""
    stop, events = asyncio.Event(), asyncio.get_running_loop()

    def flush() -> None:
        collector.attribution.flush()
        worker.flush()

    with signals_set(stop) as told:
        if collector.watch is not None:
            collector.watch.start(on_end=_from_any_thread(events, stop))
        try:
            await _scrape_until(stop, collector, flush=flush)
        finally:
            if collector.watch is not None:
                await asyncio.to_thread(collector.watch.stop)
            collector.attribution.flush()
    return told[0] if told else None


def _from_any_thread(events: asyncio.AbstractEventLoop, stop: asyncio.Event) -> Callable[[], None]:
    def set_stop() -> None:
        if not events.is_closed():
            events.call_soon_threadsafe(stop.set)

    return set_stop


async def _scrape_until(
    stop: asyncio.Event, collector: Collector, *, flush: Callable[[], None]
) -> None:
    """Look for targets and scrape them; a failure of either ends both."""
    looking = asyncio.create_task(collector.discovery.run(stop, collector.set_targets))
    looking.add_done_callback(lambda _: stop.set())
    try:
        await collector.loop.run(stop, flush=flush)
    finally:
        stop.set()
        await looking
