"""Spans: the period cut at borders. What is told of one span does not depend on the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import polars as pl

from analytics.intervals import bounds
from analytics.schemas.columns import INSTANT
from steward.period import Period

_HOUR = timedelta(hours=1)


def hour_borders(period: Period) -> tuple[datetime, ...]:
    """Return every full UTC hour strictly inside a period, ascending."""
    first = period.from_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + _HOUR
    count = max(0, -((first - period.until_at) // _HOUR))
    hours = (first + step * _HOUR for step in range(count))
    return tuple(hour for hour in hours if period.from_at < hour < period.until_at)


def span_frame(period: Period, borders: Sequence[datetime]) -> pl.DataFrame:
    """Return the spans of a period.

    Args:
        period: what is cut; an empty one has no span.
        borders: where; those outside it and repeats are ignored.

    Returns:
        one row per span, ascending and without gaps: span_id i64, start_us i64, end_us i64
    """
    from_us, until_us = bounds(period)
    instants = pl.Series(list(borders), dtype=INSTANT).dt.epoch("us").to_list()
    inside = sorted({at for at in instants if from_us < at < until_us})
    ends = [from_us, *inside, until_us] if from_us < until_us else []
    return (
        pl.DataFrame(
            {"start_us": ends[:-1], "end_us": ends[1:]},
            schema={"start_us": pl.Int64, "end_us": pl.Int64},
        )
        .with_row_index("span_id")
        .cast({"span_id": pl.Int64})
    )
