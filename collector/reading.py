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

import httpx
import pyarrow as pa

from collector.normalize import NormalizeState, normalize
from collector.scrape import FetchLimits, Page, Reason, Refusal, fetch
from collector.sources.exposition import Exposition, ExpositionParser
from collector.tables import rows_table
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
    failures_in_a_row: int = 0

    def count_failure(self) -> None:
        """Note a failed scrape; the label cache of a target that stays away is dropped."""
        self.failures_in_a_row += 1
        if self.failures_in_a_row == FORGET_AFTER_FAILURES:
            self.parser = ExpositionParser()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one scrape gave."""

    url: str
    rows: Sequence[tuple[str, pa.Table]]
    """Rows by table, the scrape's own among them."""
    refusal: Refusal | None
    """Why there are no samples; None where the scrape succeeded."""
    duration_s: float
    body_bytes: int
    sample_count: int
    dropped_line_count: int


async def read_target(
    client: httpx.AsyncClient, target: Target, *, limits: FetchLimits, clock: Clock
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
    exposition = _exposition(target, answer)
    if isinstance(exposition, Refusal):
        return _failed(target, exposition, scraped_at=scraped_at, duration_s=duration_s)
    target.failures_in_a_row = 0
    body_bytes = len(answer.body)
    scrape = normalize(
        exposition,
        target=target.url,
        cluster=target.cluster,
        scraped_at=scraped_at,
        state=target.state,
    )
    own_row = scrape.scrape_table(duration_s=duration_s, body_bytes=body_bytes)
    return Reading(
        url=target.url,
        rows=[*scrape.batches(), ("scrape", own_row)],
        refusal=None,
        duration_s=duration_s,
        body_bytes=body_bytes,
        sample_count=scrape.sample_count,
        dropped_line_count=scrape.dropped_line_count,
    )


def _exposition(target: Target, page: Page) -> Exposition | Refusal:
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
    row = {
        "scraped_at": scraped_at,
        "cluster": target.cluster,
        "target": target.url,
        "is_ok": False,
        "reason": refusal.reason,
        "duration_s": duration_s,
        "body_bytes": refusal.body_bytes,
        "sample_count": 0,
        "dropped_line_count": 0,
        "duplicate_count": 0,
        "unknown_metric_count": 0,
    }
    return Reading(
        url=target.url,
        rows=[("scrape", rows_table("scrape", [row]))],
        refusal=refusal,
        duration_s=duration_s,
        body_bytes=refusal.body_bytes,
        sample_count=0,
        dropped_line_count=0,
    )
