"""From readings to observed time: which span each reading stands for.

A reading closes the interval since the one before it. Of a longer silence only the last
2.5 median cadences count as observed; the rest is unobserved, not idle.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from steward.period import Period

CADENCES_OBSERVED: Final = 2.5
"""Of a gap between two readings, this many median cadences before the later one are observed."""
SERIES: Final = "series_id"
"""Numbers a device-slice: a whole board or one MIG instance."""


def micros(instant: pl.Expr) -> pl.Expr:
    """Return an instant as microseconds since 1970, i64."""
    return instant.dt.epoch("us")


def bounds(period: Period) -> tuple[int, int]:
    """Return both ends of a period as microseconds since 1970."""
    ends = pl.Series([period.from_at, period.until_at], dtype=pl.Datetime("us", "UTC"))
    first, last = ends.dt.epoch("us").to_list()
    return int(first), int(last)


def observed_intervals(samples: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the observed span of each reading, clipped to the period.

    Args:
        samples: one row per device-slice and reading, any order, with series_id,
            sampled_at and any other columns. Readings outside the period should be given where
            they exist: they set the cadence and close the intervals across the ends.
        period: what lies outside it is cut off.

    Returns:
        one row per reading with a positive observed span, ascending by series and time
            start_us i64, end_us i64 (half-open span), and every column but sampled_at
        A reading without one before it (the first, or a repeat) observes nothing.
    """
    from_us, until_us = bounds(period)
    gap = pl.col("end_us") - pl.col("previous_us")
    cadence = gap.filter(gap > 0).median().over(SERIES)
    seen = pl.min_horizontal(gap, (cadence * CADENCES_OBSERVED).round().cast(pl.Int64))
    start = pl.max_horizontal(pl.col("end_us") - seen, pl.lit(from_us))
    return (
        samples.with_columns(end_us=micros(pl.col("sampled_at")))
        .drop("sampled_at")
        .sort(SERIES, "end_us")
        .with_columns(previous_us=pl.col("end_us").shift(1).over(SERIES))
        .with_columns(start_us=start)
        .with_columns(pl.col("end_us").clip(upper_bound=until_us))
        .filter(pl.col("previous_us").is_not_null() & (pl.col("start_us") < pl.col("end_us")))
        .drop("previous_us")
    )
