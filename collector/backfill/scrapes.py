"""Puts a span's samples back together into the scrapes that brought them.

All samples of one scrape carry the scrape's time, and so does the target's ``up``. Samples with a
time of their own (an exporter that writes times, such as npu-exporter) were brought by the first
scrape at or after it. Where a target has no ``up`` each distinct time is a scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.backfill.answers import RawSeries
from collector.backfill.series_labels import Interner, TargetKey, metric_name, target_key
from collector.sources.exposition import Sample
from steward.units import MILLIS_PER_SECOND

UP: Final = "up"
HEALTH: Final = (
    UP,
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "scrape_body_size_bytes",
)
"""What Prometheus writes down of each scrape; the last only where the server is told to."""
WAITING_LIMIT_MS: Final = 600_000
"""How long a sample with its own time waits for a scrape before it is taken by itself."""


@dataclass(slots=True, kw_only=True)
class PastScrape:
    """One scrape that another server did."""

    target: TargetKey
    at_ms: int
    health: dict[str, float]
    """By name of ``HEALTH``, as far as the server wrote it down; empty where there is no ``up``."""
    samples: list[Sample] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """Tell whether the target answered."""
        return self.health.get(UP, 1.0) > 0


class WaitingSample(NamedTuple):
    """A sample with its own time whose scrape is not known yet."""

    name: str
    labels: dict[str, str]
    value: float
    at_ms: int


_Scrapes = dict[TargetKey, dict[int, PastScrape]]


@dataclass(slots=True, kw_only=True)
class Assembler:
    """Turns series into scrapes, span after span; keep one for a whole import."""

    interner: Interner = field(default_factory=Interner)
    waiting: dict[TargetKey, list[WaitingSample]] = field(default_factory=dict)

    def take(
        self, series: Iterable[RawSeries], health: Iterable[RawSeries], *, until_ms: int
    ) -> list[PastScrape]:
        """Return the scrapes of a span, by time and target.

        Args:
            series: samples of device metrics.
            health: ``up`` and the other series of ``HEALTH``.
            until_ms: the end of the span.
        """
        found = self._scrapes_written_down(list(health))
        watched = frozenset(found) | frozenset(self.waiting)
        for each in sorted(series, key=_series_order):
            self._spread(each, found, is_watched=target_key(each.metric) in watched)
        self._deliver_waiting(found, until_ms=until_ms)
        self.interner.forget_unused()
        scrapes = [scrape for of_target in found.values() for scrape in of_target.values()]
        return sorted(scrapes, key=lambda scrape: (scrape.at_ms, scrape.target))

    def _scrapes_written_down(self, health: list[RawSeries]) -> _Scrapes:
        """Return a scrape for each ``up``, with what else is known of it."""
        found: _Scrapes = {}
        for each in health:
            if metric_name(each.metric) == UP:
                target = target_key(each.metric)
                self.interner.target_labels[target] = each.metric
                of_target = found.setdefault(target, {})
                for second, text in each.values:
                    at_ms = round(second * MILLIS_PER_SECOND)
                    of_target[at_ms] = PastScrape(
                        target=target, at_ms=at_ms, health={UP: float(text)}
                    )
        for each in health:
            of_target = found.get(target_key(each.metric), {})
            for second, text in each.values:
                scrape = of_target.get(round(second * MILLIS_PER_SECOND))
                if scrape is not None:
                    scrape.health[metric_name(each.metric)] = float(text)
        return found

    def _spread(self, series: RawSeries, found: _Scrapes, *, is_watched: bool) -> None:
        """Give each sample of a series to its scrape."""
        name, target = metric_name(series.metric), target_key(series.metric)
        labels = self.interner.labels(series.metric, target)
        of_target = found.setdefault(target, {})
        for second, text in series.values:
            at_ms, value = round(second * MILLIS_PER_SECOND), float(text)
            scrape = of_target.get(at_ms)
            if scrape is None and is_watched:
                sample = WaitingSample(name, dict(labels.pairs), value, at_ms)
                self.waiting.setdefault(target, []).append(sample)
                continue
            if scrape is None:
                scrape = of_target[at_ms] = PastScrape(target=target, at_ms=at_ms, health={})
            scrape.samples.append((name, labels, value, None))

    def _deliver_waiting(self, found: _Scrapes, *, until_ms: int) -> None:
        """Give samples with their own time to the first scrape that could bring them."""
        still: dict[TargetKey, list[WaitingSample]] = {}
        for target, samples in self.waiting.items():
            of_target = found.setdefault(target, {})
            times = sorted(of_target)
            for sample in samples:
                at_ms = _scrape_time(times, sample.at_ms, until_ms=until_ms)
                if at_ms is None:
                    still.setdefault(target, []).append(sample)
                    continue
                if at_ms not in of_target:
                    of_target[at_ms] = PastScrape(target=target, at_ms=at_ms, health={})
                labels = self.interner.labels(sample.labels, target)
                of_target[at_ms].samples.append((sample.name, labels, sample.value, sample.at_ms))
        self.waiting = still


def _scrape_time(times: list[int], at_ms: int, *, until_ms: int) -> int | None:
    """Return the time of the scrape that brought a sample; None while it may still come."""
    place = bisect_left(times, at_ms)
    if place < len(times):
        return times[place]
    return at_ms if at_ms < until_ms - WAITING_LIMIT_MS else None


def _series_order(series: RawSeries) -> tuple[str, list[tuple[str, str]]]:
    """Return what sorts series alike whatever the server: by name, then by labels."""
    return metric_name(series.metric), sorted(series.metric.items())
