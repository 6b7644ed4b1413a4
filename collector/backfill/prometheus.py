"""Reads a Prometheus server's past hour by hour and yields it as batches.

One hour at a time: first what became of the cluster's objects in it, then the scrapes of its
devices, then what was gone by its end. A checkpoint is written once all its batches are stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow as pa

from collector.backfill.allocations import USUAL_POLL_S, PastAllocations, interval_s
from collector.backfill.api import PrometheusApi, TooMuchError
from collector.backfill.checkpoint import Checkpoint, write_checkpoint
from collector.backfill.hour_batches import HourBatches
from collector.backfill.kubernetes.past import KubePast
from collector.backfill.kubernetes.series import NAMES, KubeHour, read_hour
from collector.backfill.scrapes import Assembler, PastScrape
from collector.backfill.series_labels import TargetKey, scrape_urls
from collector.backfill.spans import SpanReader
from collector.backfill.telemetry import PastTelemetry
from collector.backfill.windows import HOUR, SpanLength, hours_of
from collector.batches import Batch
from collector.lifecycle.output import Output, PodEnd
from collector.lifecycle.ownership_rules import OwnershipRules
from collector.normalize import NormalizedScrape
from collector.normalize.dictionary import METRICS, SPLIT_BY, without_prefix
from collector.tables import rows_table
from steward.errors import SourceError
from steward.ids import ClusterName
from steward.period import Period

KNOWN_PREFIXES: Final = ("steward_gpu_",)
"""Names that are asked for beside those of the dictionary: all of the node agent's."""
_Rows = Iterator[tuple[str, pa.Table]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is imported; what does not change it is not in it."""

    url: str
    cluster: ClusterName
    matchers: str
    period: Period
    """Of whole hours."""

    def identity(self) -> str:
        """Return what, beside the hour, makes the rows: an hour of it is stored once."""
        return json.dumps([self.url, self.cluster, self.matchers])


@dataclass(slots=True, kw_only=True)
class PrometheusPast:
    """One import on its way through the hours."""

    question: Question
    api: PrometheusApi
    checkpoint_path: Path
    span: InitVar[SpanLength]
    rules: InitVar[OwnershipRules]
    known: InitVar[Checkpoint]
    """What was remembered when the import was cut short, or nothing yet."""
    reader: SpanReader = field(init=False)
    telemetry: PastTelemetry = field(init=False)
    cluster: KubePast = field(init=False)
    allocations: PastAllocations | None = field(init=False, default=None)
    last_batch_id: str | None = field(init=False)
    _early_ends: list[PodEnd] = field(init=False, default_factory=list)
    """Ends of pods that were told before the first scrape."""
    _early_scrapes: list[PastScrape] = field(init=False, default_factory=list)
    """All that were seen before their interval was known."""
    _unpolled: list[tuple[TargetKey, NormalizedScrape]] = field(init=False, default_factory=list)
    """Scrapes whose holders are not told yet."""
    _known: Checkpoint = field(init=False)

    def __post_init__(self, span: SpanLength, rules: OwnershipRules, known: Checkpoint) -> None:
        """Go on from what was remembered."""
        name = self.question.cluster
        self.reader = SpanReader(
            api=self.api,
            matchers=self.question.matchers,
            span=span,
            assembler=Assembler(waiting=known.waiting),
            jobs=set(known.jobs),
            first_samples_at=known.first_samples_at,
        )
        self.telemetry = PastTelemetry(
            cluster=name,
            states=known.states,
            claims=known.claims,
            firsts=known.firsts,
            urls=scrape_urls(self.api.targets()),
        )
        self.cluster = KubePast(cluster=name, rules=rules, memory=known.lifecycle)
        self.last_batch_id = known.last_batch_id
        self._known = known
        if known.poll_s is not None:
            self._begin_allocations(known.poll_s)

    def batches(self, period: Period, *, on_hour: Callable[[], None]) -> Iterator[Batch]:
        """Yield the batches of all hours; a batch asked for means that all before are stored.

        Raises:
            SourceError: the server fails for good, or holds an hour that cannot be read.
        """
        if period.from_at > self.question.period.from_at:
            self._prime(Period(period.from_at - HOUR, period.from_at))
        for hour in hours_of(period):
            out = HourBatches(identity=self.question.identity(), hour=hour)
            yield from out.add(self._rows(hour))
            yield from out.finish()
            self.last_batch_id = out.last_id or self.last_batch_id
            write_checkpoint(self.checkpoint_path, self._checkpoint(hour.until_at))
            on_hour()

    def _rows(self, hour: Period) -> _Rows:
        """Yield an hour's rows."""
        names = self.api.names(hour)
        objects = self._objects(names, hour)
        if objects is not None:
            yield from self._told(self.cluster.begin(objects, hour))
        asked = device_names(names)
        if asked or self.reader.jobs:
            known = self.telemetry.states.keys()
            for scrapes in self.reader.scrapes(asked, hour, known=known):
                yield from self._device_rows(scrapes)
        if self._unpolled:
            yield from self._polled(USUAL_POLL_S)
        if objects is not None:
            yield from self._told(self.cluster.end())
        if self.allocations is not None:
            yield from _allocation_table(self.allocations.finish(hour.until_at))

    def _device_rows(self, scrapes: list[PastScrape]) -> _Rows:
        own: list[Mapping[str, object]] = []
        for scrape in scrapes:
            labels = self.reader.assembler.interner.target_labels.get(scrape.target, {})
            reading = self.telemetry.read(scrape, target_labels=labels)
            yield from reading.rows
            if reading.outcome is not None:
                own.append(reading.outcome.row())
            if reading.normalized is not None:
                self._unpolled.append((scrape.target, reading.normalized))
        if own:
            yield "scrape", rows_table("scrape", own)
        self._early_scrapes += scrapes if self.allocations is None else []
        yield from self._polled(interval_s(self._early_scrapes))

    def _polled(self, poll_s: float | None) -> _Rows:
        """Yield what the scrapes say of holders, once their interval is known."""
        if self.allocations is None and poll_s is not None:
            self._begin_allocations(poll_s)
            self._early_scrapes.clear()
        if self.allocations is not None:
            for target, normalized in self._unpolled:
                yield from _allocation_table(self.allocations.observe(target, normalized))
            self._unpolled.clear()

    def _told(self, outputs: Iterable[Output]) -> _Rows:
        for output in outputs:
            yield from output.tables()
            if self.allocations is None:
                self._early_ends.extend(output.ended_pods)
            else:
                self.allocations.expect(output.ended_pods)

    def _objects(self, names: list[str], hour: Period) -> KubeHour | None:
        if NAMES.isdisjoint(names):
            return None
        try:
            return read_hour(self.api, names, hour, matchers=self.question.matchers)
        except TooMuchError as error:
            raise error.error from error

    def _prime(self, hour: Period) -> None:
        """Know the cluster again as it was at the end of the last hour that is stored."""
        objects = self._objects(self.api.names(hour), hour)
        if objects is not None:
            self.cluster.prime(objects, hour)

    def _begin_allocations(self, poll_s: float) -> None:
        self.allocations = PastAllocations(
            cluster=self.question.cluster,
            owners=self.cluster.lifecycle,
            memory=self._known.allocations,
            poll_s=poll_s,
            sources=self._known.sources,
        )
        self.allocations.expect(self._early_ends)
        self._early_ends.clear()

    def _checkpoint(self, next_at: datetime) -> Checkpoint:
        held = self.allocations
        return Checkpoint(
            identity=self.question.identity(),
            from_at=self.question.period.from_at,
            next_at=next_at,
            last_batch_id=self.last_batch_id,
            first_samples_at=self.reader.first_samples_at,
            states=self.telemetry.states,
            claims=self.telemetry.claims,
            firsts=self.telemetry.firsts,
            waiting=self.reader.assembler.waiting,
            jobs=sorted(self.reader.jobs),
            lifecycle=self.cluster.remembered,
            allocations={} if held is None else held.remembered,
            sources={} if held is None else held.sources,
            poll_s=None if held is None else held.poll_s,
        )


def _allocation_table(rows: list[dict[str, object]]) -> _Rows:
    if rows:
        yield "allocation", rows_table("allocation", rows)


def device_names(names: list[str]) -> list[str]:
    """Return the names that normalisation understands."""
    return [
        name
        for name in names
        if name in METRICS
        or without_prefix(name) in METRICS
        or without_prefix(name) in SPLIT_BY
        or name.startswith(KNOWN_PREFIXES)
    ]


def refuse_without_devices(names: list[str], *, question: Question) -> None:
    """Raise SourceError where a server holds no GPU series in the period at all."""
    if device_names(names):
        return
    count = f"{len(names):,} other metric names" if names else "no samples at all"
    raise SourceError(
        f"{question.url} holds no GPU metrics in {question.period}: {count}",
        hint="look whether the server scrapes GPU exporters, and how far back it keeps samples",
    )


def hours_missing(first_at: datetime | None, period: Period) -> int:
    """Return how many whole hours at the beginning of the period the server has nothing of."""
    return 0 if first_at is None else (first_at - period.from_at) // HOUR
