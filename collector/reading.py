"""One scrape of one target: fetched, parsed, normalised; rows for the warehouse in any case.

A scrape that failed is a row too: ``is_ok`` false with its reason, and no samples.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import pyarrow as pa

from collector.exporter_client import ExporterClient
from collector.holdings import Holding
from collector.normalize import NormalizeState, PlannedScrape, Planner, normalize
from collector.scrape import FetchLimits, Page, Reason, Refusal, fetch
from collector.scrape_outcome import ScrapeOutcome
from collector.sources.exposition import Exposition, ExpositionParser
from steward.clock import Clock
from steward.errors import InputError
from steward.ids import ClusterName
from steward.units import MIB_BYTES

LONG_BODY_BYTES: Final = MIB_BYTES
"""From here on a text is parsed beside the loop, so that the others' deadlines hold."""
FORGET_AFTER_FAILURES: Final = 20
"""Failed scrapes in a row (five minutes by default) after which a target's label cache goes."""


@dataclass(slots=True, kw_only=True)
class Target:
    """One target and what is remembered of it between scrapes."""

    url: str
    cluster: ClusterName
    parser: ExpositionParser = field(default_factory=ExpositionParser)
    state: NormalizeState = field(default_factory=NormalizeState)
    planner: Planner = field(default_factory=Planner)
    failures_in_a_row: int = 0

    def count_failure(self) -> None:
        """Note a failed scrape; the label cache of a target that stays away is dropped."""
        self.failures_in_a_row += 1
        if self.failures_in_a_row == FORGET_AFTER_FAILURES:
            self.parser = ExpositionParser()
            self.planner.forget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one scrape gave."""

    url: str
    node: str | None
    """The target's node, where discovery knows it."""
    scraped_at: datetime
    outcome: ScrapeOutcome
    rows: Sequence[tuple[str, pa.Table]]
    """Rows by table, but for the scrape's own and those that were planned."""
    planned: PlannedScrape | None
    """Device samples, still as numbers; None where ``rows`` has them."""
    holdings: tuple[Holding, ...] | None
    """Who holds what; the same object for as long as nothing changed. None: the scrape failed."""
    is_full: bool
    """The text was read in full, not by plan."""
    kubelet_speaks: bool | None
    """Whether a node agent hears from its kubelet who holds what; None where it is no agent."""
    refusal: Refusal | None
    """Why there are no samples; None where the scrape succeeded."""

    @property
    def nodes(self) -> frozenset[str]:
        """Return the nodes of the devices that were read."""
        if self.planned is not None:
            return frozenset(self.planned.plan.rows.nodes)
        tables = [table for name, table in self.rows if name == "device_sample"]
        return frozenset(str(node) for table in tables for node in table["node"].to_pylist())


async def read_target(
    client: ExporterClient, target: Target, *, limits: FetchLimits, clock: Clock
) -> Reading:
    """Scrape the target once and return what it gave."""
    scraped_at, started_s = clock.now(), time.perf_counter()
    answer = await fetch(client, target.url, limits=limits)
    duration_s = time.perf_counter() - started_s
    if isinstance(answer, Page) and len(answer.body) > LONG_BODY_BYTES:
        return await asyncio.to_thread(
            reading_of, target, answer, scraped_at=scraped_at, duration_s=duration_s
        )
    return reading_of(target, answer, scraped_at=scraped_at, duration_s=duration_s)


def reading_of(
    target: Target, answer: Page | Refusal, *, scraped_at: datetime, duration_s: float
) -> Reading:
    """Return what the answer means, and remember in the target what the next one needs."""
    if isinstance(answer, Refusal):
        return _failed(target, answer, scraped_at=scraped_at, duration_s=duration_s)
    planned = target.planner.read(
        answer.body,
        target=target.url,
        cluster=target.cluster,
        scraped_at=scraped_at,
        state=target.state,
    )
    if planned is not None:
        target.failures_in_a_row = 0
        return _read_by_plan(target, answer, planned, scraped_at=scraped_at, duration_s=duration_s)
    exposition = exposition_of(target, answer)
    if isinstance(exposition, Refusal):
        return _failed(target, exposition, scraped_at=scraped_at, duration_s=duration_s)
    target.failures_in_a_row = 0
    return _read_in_full(target, answer, exposition, scraped_at=scraped_at, duration_s=duration_s)


def _read_by_plan(
    target: Target,
    page: Page,
    planned: PlannedScrape,
    *,
    scraped_at: datetime,
    duration_s: float,
) -> Reading:
    counts = planned.plan.counts
    processes = planned.processes(at=scraped_at)
    return Reading(
        url=target.url,
        node=target.state.node,
        scraped_at=scraped_at,
        outcome=ScrapeOutcome(
            scraped_at=scraped_at,
            cluster=target.cluster,
            target=target.url,
            reason=None,
            duration_s=duration_s,
            body_bytes=len(page.body),
            sample_count=counts.sample_count,
            duplicate_count=counts.duplicate_count,
            unknown_metric_count=counts.unknown_metric_count,
        ),
        rows=() if processes is None else [("device_process", processes)],
        planned=planned,
        is_full=False,
        holdings=planned.plan.holdings,
        kubelet_speaks=planned.plan.kubelet_speaks,
        refusal=None,
    )


def _read_in_full(
    target: Target,
    page: Page,
    exposition: Exposition,
    *,
    scraped_at: datetime,
    duration_s: float,
) -> Reading:
    trace = target.planner.trace()
    scrape = normalize(
        exposition,
        target=target.url,
        cluster=target.cluster,
        scraped_at=scraped_at,
        state=target.state,
        trace=trace,
    )
    planned = None
    if trace is not None:
        planned = target.planner.make(
            page.body,
            exposition,
            blocks=target.parser.remembered_blocks,
            trace=trace,
            scrape=scrape,
            state=target.state,
        )
    return Reading(
        url=target.url,
        node=target.state.node,
        scraped_at=scraped_at,
        outcome=scrape.outcome(duration_s=duration_s, body_bytes=len(page.body)),
        rows=list(scrape.batches() if planned is None else scrape.other_batches()),
        planned=planned,
        is_full=True,
        holdings=scrape.holdings,
        kubelet_speaks=scrape.kubelet_speaks,
        refusal=None,
    )


def exposition_of(target: Target, page: Page) -> Exposition | Refusal:
    """Return the parsed text; one that is none, or says nothing, is a refusal."""
    reason = Reason.NOT_EXPOSITION
    try:
        exposition = target.parser.parse(page.body, target=target.url)
    except InputError as error:
        message, hint = error.message, error.hint
    else:
        if exposition.samples:
            return exposition
        reason, message = Reason.EMPTY, f"{target.url} answers without a single sample"
        hint = "look whether the exporter sees its GPUs"
    return Refusal(reason=reason, message=message, hint=hint, body_bytes=len(page.body))


def _failed(
    target: Target, refusal: Refusal, *, scraped_at: datetime, duration_s: float
) -> Reading:
    target.count_failure()
    return Reading(
        url=target.url,
        node=target.state.node,
        scraped_at=scraped_at,
        outcome=ScrapeOutcome(
            scraped_at=scraped_at,
            cluster=target.cluster,
            target=target.url,
            reason=refusal.reason,
            duration_s=duration_s,
            body_bytes=refusal.body_bytes,
        ),
        rows=(),
        planned=None,
        is_full=True,
        holdings=None,
        kubelet_speaks=None,
        refusal=refusal,
    )
