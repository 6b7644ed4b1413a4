"""Reads an hour of device series span by span, as short as the server's and our limits ask for."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

from collector.backfill.answers import RawSeries
from collector.backfill.api import PrometheusApi, TooMuchError
from collector.backfill.scrapes import HEALTH, Assembler, PastScrape
from collector.backfill.selectors import selector
from collector.backfill.series_labels import TargetKey, job_label, target_key
from collector.backfill.windows import SpanLength
from steward.period import Period
from steward.units import MILLIS_PER_SECOND


@dataclass(slots=True, kw_only=True)
class SpanReader:
    """Asks for spans and puts them back together into scrapes."""

    api: PrometheusApi
    matchers: str
    span: SpanLength
    assembler: Assembler = field(default_factory=Assembler)
    jobs: set[tuple[str, str]] = field(default_factory=set)
    """By label name, the jobs whose targets have devices: only their health is asked for."""
    first_samples_at: datetime | None = None

    def scrapes(
        self, names: list[str], hour: Period, *, known: AbstractSet[TargetKey]
    ) -> Iterator[list[PastScrape]]:
        """Yield an hour's scrapes by time and target, span after span.

        Args:
            names: device metrics that the server has in this hour.
            hour: the hour.
            known: targets that showed devices before, so that their failures count.

        Raises:
            SourceError: the server fails, or does not give even the shortest span.
        """
        at = hour.from_at
        while at < hour.until_at:
            span = self.span.next_span(at, hour=hour)
            try:
                series, health = self._read(names, span, known)
            except TooMuchError as error:
                if not self.span.halve(span):
                    raise error.error from error
                continue
            self.span.learn(sum(len(each.values) for each in series))
            until_ms = round(span.until_at.timestamp() * MILLIS_PER_SECOND)
            yield self.assembler.take(series, health, until_ms=until_ms)
            at = span.until_at

    def _read(
        self, names: list[str], span: Period, known: AbstractSet[TargetKey]
    ) -> tuple[list[RawSeries], list[RawSeries]]:
        """Return a span's device series, and what the server wrote down of their targets."""
        series: list[RawSeries] = []
        if names:
            series = self.api.samples(selector(names, matchers=self.matchers), span)
        if series and self.first_samples_at is None:
            self.first_samples_at = span.from_at
        self.jobs.update(job_label(each.metric) for each in series)
        seen = {target_key(each.metric) for each in series} | known
        health: list[RawSeries] = []
        for label in sorted({label for label, _ in self.jobs}):
            jobs = [job for name, job in self.jobs if name == label]
            asked = selector(HEALTH, matchers=self.matchers, **{label: jobs})
            health += self.api.samples(asked, span)
        return series, [each for each in health if target_key(each.metric) in seen]
