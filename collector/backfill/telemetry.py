"""From past scrapes to rows, by the same normalisation that reads exporters directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa

from collector.backfill.scrapes import PastScrape
from collector.backfill.series_labels import TargetKey, likely_url
from collector.normalize import NormalizedScrape, NormalizeState, normalize
from collector.normalize.claims import DeviceClaims
from collector.scrape_outcome import ScrapeOutcome
from collector.sources.exposition import Exposition

UP_IS_ZERO: Final = "up_is_0"
"""``scrape.reason`` of a failed past scrape: the server kept that it failed, not why."""
TWIN_FOR_MS: Final = 600_000
"""How long an address stays with the job that scraped it first."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastReading:
    """What one past scrape gave."""

    rows: Sequence[tuple[str, pa.Table]]
    """By table, without the scrape's own row."""
    outcome: ScrapeOutcome | None
    """None where the scrape is left out."""
    normalized: NormalizedScrape | None
    """None where the target did not answer."""


NOTHING: Final = PastReading(rows=(), outcome=None, normalized=None)


@dataclass(slots=True, kw_only=True)
class PastTelemetry:
    """What is remembered of each target from scrape to scrape."""

    cluster: str
    states: dict[TargetKey, NormalizeState] = field(default_factory=dict)
    claims: DeviceClaims = field(default_factory=DeviceClaims)
    """Which target's rows are kept where several show one device."""
    firsts: dict[str, tuple[TargetKey, int]] = field(default_factory=dict)
    """By address that several jobs scrape, the job that is kept and when it was last seen."""
    urls: Mapping[TargetKey, str] = field(default_factory=dict)
    """Addresses of targets that are still scraped; any other is taken to answer on /metrics."""

    def __post_init__(self) -> None:
        """Let all targets share the claims, also those of a checkpoint."""
        for state in self.states.values():
            state.claims = self.claims

    def read(self, scrape: PastScrape, *, target_labels: Mapping[str, str]) -> PastReading:
        """Return what a scrape gives.

        Args:
            scrape: of one target; for each target in the order of time.
            target_labels: what discovery had given the target: its node and its own pod.
        """
        if self._is_twin(scrape):
            return NOTHING
        if not scrape.is_ok:
            return PastReading(rows=(), outcome=self._failed(scrape), normalized=None)
        normalized = normalize(
            _exposition(scrape),
            target=self._url(scrape.target),
            cluster=self.cluster,
            scraped_at=_instant(scrape.at_ms),
            state=self._state(scrape.target, target_labels),
        )
        said = scrape.health.get("scrape_samples_scraped")
        counted = normalized if said is None else replace(normalized, sample_count=round(said))
        outcome = counted.outcome(
            duration_s=scrape.health.get("scrape_duration_seconds", 0.0),
            body_bytes=round(scrape.health.get("scrape_body_size_bytes", 0.0)),
        )
        return PastReading(rows=tuple(normalized.batches()), outcome=outcome, normalized=normalized)

    def _state(self, target: TargetKey, labels: Mapping[str, str]) -> NormalizeState:
        state = self.states.get(target)
        if state is None:
            state = self.states[target] = NormalizeState(
                node=labels.get("node"), own_pod=labels.get("pod"), claims=self.claims
            )
        return state

    def _is_twin(self, scrape: PastScrape) -> bool:
        """Tell whether another job scrapes the same address: its rows would come twice."""
        url = self.urls.get(scrape.target)
        if url is None:
            return False
        first, seen_ms = self.firsts.get(url, (scrape.target, scrape.at_ms))
        if first != scrape.target and scrape.at_ms - seen_ms <= TWIN_FOR_MS:
            return True
        self.firsts[url] = (scrape.target, scrape.at_ms)
        return False

    def _url(self, target: TargetKey) -> str:
        return self.urls.get(target) or likely_url(target)

    def _failed(self, scrape: PastScrape) -> ScrapeOutcome:
        return ScrapeOutcome(
            scraped_at=_instant(scrape.at_ms),
            cluster=self.cluster,
            target=self._url(scrape.target),
            reason=UP_IS_ZERO,
            duration_s=scrape.health.get("scrape_duration_seconds", 0.0),
            body_bytes=0,
        )


def _exposition(scrape: PastScrape) -> Exposition:
    """Return what a scrape said; a server keeps neither comments nor lines it could not read."""
    return Exposition(samples=scrape.samples, types={}, helps={}, dropped={}, dropped_examples=())


def _instant(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)
