"""GPUs asked for in vain beside GPUs held by nobody, over one time axis."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from analytics.intervals import micros
from analytics.schemas.columns import INSTANT
from analytics.segments import Inputs, segments
from analytics.waits import asked_gpus
from steward.period import Period
from steward.units import MICROS_PER_SECOND

POINT_COUNT: Final = 168
"""Points on the axis: hours, in a week."""


def waiting_and_free(attempts: pl.DataFrame, inputs: Inputs, period: Period) -> pl.DataFrame:
    """Return waiting and free GPUs at regular instants.

    Args:
        attempts: rows of ``waits.attempts``.
        inputs: stored rows of devices and holders.
        period: divided into equal steps.

    Returns:
        one row per instant, ascending
            at, waiting_gpu_count f64 (work whose request is unknown is left out),
            idle_gpu_count f64 | null (devices not lost and held by nobody; null where no holder
            is recorded)
    """
    step = max(period.length / POINT_COUNT, timedelta(microseconds=1))
    grid = pl.select(
        at=pl.datetime_range(period.from_at, period.until_at, step, closed="left", time_unit="us")
    ).cast(INSTANT)
    waiting = _level(grid, _waiting_changes(attempts, period))
    points = grid.with_columns(waiting_gpu_count=waiting)
    if inputs.allocations["unheld_reason"].null_count() == 0:
        return points.with_columns(idle_gpu_count=pl.lit(None, dtype=pl.Float64))
    return points.with_columns(idle_gpu_count=_level(grid, _free_changes(inputs, period)))


def _waiting_changes(attempts: pl.DataFrame, period: Period) -> pl.DataFrame:
    wait_us = (pl.col("wait_s") * MICROS_PER_SECOND).round().cast(pl.Int64)
    spans = attempts.filter(pl.col("created_at") < period.until_at).select(
        start_us=micros(pl.col("created_at")),
        end_us=micros(pl.col("created_at")) + wait_us,
        amount=asked_gpus.fill_null(0.0),
    )
    return _changes(spans)


def _free_changes(inputs: Inputs, period: Period) -> pl.DataFrame:
    cut = segments(inputs, period)
    held = cut.holders.group_by("slice_id").agg(pl.col("held_ratio").sum())
    free_ratio = (1 - pl.col("held_ratio").fill_null(0.0)).clip(lower_bound=0)
    usable = cut.slices.filter(~pl.col("is_lost")).join(held, on="slice_id", how="left")
    return _changes(usable.select("start_us", "end_us", amount=pl.col("weight_ratio") * free_ratio))


def _changes(spans: pl.DataFrame) -> pl.DataFrame:
    starts = spans.select(at_us="start_us", change="amount")
    ends = spans.select(at_us="end_us", change=-pl.col("amount"))
    return (
        pl.concat([starts, ends])
        .group_by("at_us")
        .agg(pl.col("change").sum())
        .sort("at_us")
        .select("at_us", level=pl.col("change").cum_sum())
    )


def _level(grid: pl.DataFrame, changes: pl.DataFrame) -> pl.Series:
    found = grid.select(at_us=micros(pl.col("at"))).join_asof(changes, on="at_us")
    return found["level"].fill_null(0.0).round(6).clip(lower_bound=0)
