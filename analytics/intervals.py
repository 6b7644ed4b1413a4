"""Instants in whole microseconds, and how long a reading stands for."""

from __future__ import annotations

from typing import Final

import polars as pl

from steward.period import Period

CADENCES_OBSERVED: Final = 2.5
"""Of a gap between two readings, this many usual gaps before the later one are observed."""


def micros(instant: pl.Expr) -> pl.Expr:
    """Return an instant as microseconds since 1970, i64."""
    return instant.dt.epoch("us")


def bounds(period: Period) -> tuple[int, int]:
    """Return both ends of a period as microseconds since 1970."""
    ends = pl.Series([period.from_at, period.until_at], dtype=pl.Datetime("us", "UTC"))
    first, last = ends.dt.epoch("us").to_list()
    return int(first), int(last)
