"""Recorded history, one instant after the other, each seen as it could be seen then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from analytics.evidence.found import readings
from analytics.evidence.stored import CELLED
from enforcer.history import LOOK_BACK, History
from steward.period import Period

if TYPE_CHECKING:
    import polars as pl

CHUNK: Final = timedelta(hours=12)
"""History that is held in memory at once, beside what lies before it."""
_STARTS: Final = {
    "evidence_sample": "first_at",
    "evidence_process": "sampled_at",
    "evidence_pod": "observed_at",
    "allocation_history": "started_at",
    "device_history": "observed_at",
    "node_history": "observed_at",
    "quota_use": "observed_at",
    "transition_history": "occurred_at",
}
"""By query, the instant from which a row could be known; the others tell what holds."""

_HELD: Final = "allocation_history"

Load = Callable[[Period], History]
"""Returns what was stored, with readings of the period."""


def instants(period: Period, every: timedelta) -> Iterator[datetime]:
    """Yield the period's start and each later multiple of ``every`` in it."""
    at = period.from_at
    while at < period.until_at:
        yield at
        at += every


def as_seen(told: History, at: datetime, *, back: timedelta = LOOK_BACK) -> History:
    """Return the history with only those readings that a round at an instant asks for."""
    span = Period(at - back, at)
    frames = {name: _narrowed(name, frame, span) for name, frame in told.frames.items()}
    return replace(
        told,
        period=span,
        frames=frames,
        readings=readings(frames, cell_s=told.readings.cell_s),
    )


def _narrowed(name: str, frame: pl.DataFrame, span: Period) -> pl.DataFrame:
    """Return the rows that the query of this span would have given."""
    if name not in _STARTS:
        return frame
    kept = frame.filter(frame[_STARTS[name]] < span.until_at)
    if name in CELLED:
        return kept.filter(kept[_STARTS[name]] >= span.from_at)
    if name == _HELD:
        return kept.filter(kept["ended_at"].is_null() | (kept["ended_at"] > span.from_at))
    return kept


def replayed(
    load: Load, period: Period, *, every: timedelta, back: timedelta = LOOK_BACK
) -> Iterator[tuple[datetime, History]]:
    """Yield each instant with what could be seen then.

    Args:
        load: asked for a stretch of ``CHUNK`` at a time, so that memory does not grow with the
            period.
        period: of the instants.
        every: between them.
        back: how far back readings are looked at.
    """
    told: History | None = None
    for at in instants(period, every):
        if told is None or at > told.period.until_at:
            until_at = min(at + CHUNK, period.until_at)
            told = load(Period(at - back, max(until_at, at)))
        yield at, as_seen(told, at, back=back)
