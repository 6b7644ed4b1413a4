"""GPUs asked for in vain beside GPUs held by nobody, over one time axis."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import bounds, micros
from analytics.queue.free import GPU_UNITS, WHOLE, Free, free_levels
from analytics.schemas.columns import INSTANT
from analytics.waits import asked_gpus
from steward.period import Period
from steward.units import MICROS_PER_SECOND

POINT_COUNT: Final = 168
"""Points on the axis: hours, in a week."""


def waiting_beside_free(attempts: pl.DataFrame, free: Free, period: Period) -> pl.DataFrame:
    """Return waiting and free GPUs at regular instants.

    Args:
        attempts: rows of ``waits.attempts``.
        free: of the period.
        period: divided into equal steps.

    Returns:
        one row per instant, ascending
            at, waiting_gpu_count f64 (work whose request is unknown is left out),
            idle_gpu_count f64 | null (usable and held by nobody, parts counted as parts),
            idle_whole_gpu_count f64 | null (of these, boards offered whole of which nothing is
            held: the rest are leftovers); null where no holder is recorded
    """
    grid = axis(period)
    points = grid.with_columns(waiting_gpu_count=_level(grid, _waiting(attempts, period)))
    if not free.has_holders:
        unknown = pl.lit(None, dtype=pl.Float64)
        return points.with_columns(idle_gpu_count=unknown, idle_whole_gpu_count=unknown)
    return points.with_columns(
        idle_gpu_count=_level(grid, _idle(free)),
        idle_whole_gpu_count=_level(grid, _idle(_only_whole(free))),
    )


def axis(period: Period) -> pl.DataFrame:
    """Return the instants: at, in whole microseconds; none where the period has no length."""
    from_us, until_us = bounds(period)
    steps = pl.Series([step * (until_us - from_us) // POINT_COUNT for step in range(POINT_COUNT)])
    at = (steps + from_us).unique().sort()
    return at.filter(at < until_us).cast(INSTANT).to_frame("at")


def _waiting(attempts: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the GPUs waited for after each change: at_us i64, level f64."""
    wait_us = (pl.col("wait_s") * MICROS_PER_SECOND).round().cast(pl.Int64)
    spans = attempts.filter(pl.col("created_at") < period.until_at).select(
        start_us=micros(pl.col("created_at")),
        end_us=micros(pl.col("created_at")) + wait_us,
        amount=asked_gpus.fill_null(0.0),
    )
    changes = pl.concat(
        [
            spans.select(at_us="start_us", change="amount"),
            spans.select(at_us="end_us", change=-pl.col("amount")),
        ]
    )
    return (
        changes.group_by("at_us")
        .agg(pl.col("change").sum())
        .sort("at_us")
        .select("at_us", level=pl.col("change").cum_sum())
    )


def _only_whole(free: Free) -> Free:
    boards = free.boards.filter(pl.col("offer") == WHOLE)
    is_whole = pl.col("free_units") == GPU_UNITS
    changes = free.changes.join(boards, on="board_id", how="semi")
    return Free(
        boards=boards,
        changes=changes.with_columns(pl.when(is_whole).then("free_units").otherwise(0)),
        has_holders=free.has_holders,
    )


def _idle(free: Free) -> pl.DataFrame:
    """Return the free GPUs after each change, all clusters together: at_us i64, level f64."""
    levels = free_levels(free)
    change = pl.col("free_units") - pl.col("free_units").shift(1, fill_value=0).over("cluster")
    return (
        levels.select("at_us", change=change)
        .group_by("at_us")
        .agg(pl.col("change").sum())
        .sort("at_us")
        .select("at_us", level=pl.col("change").cum_sum() / GPU_UNITS)
    )


def _level(grid: pl.DataFrame, changes: pl.DataFrame) -> pl.Series:
    found = grid.select(at_us=micros(pl.col("at"))).join_asof(changes, on="at_us")
    return found["level"].fill_null(0.0).round(6).clip(lower_bound=0)
