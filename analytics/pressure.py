"""GPUs asked for in vain beside GPUs held by nobody, over one time axis."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from analytics import lifetimes
from analytics.inputs import INSTANT
from analytics.intervals import micros
from analytics.segments import Inputs
from steward.period import Period
from steward.units import GPU_MILLI

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
            at, waiting_gpu_count f64, idle_gpu_count f64 | null (devices not lost and held by
            nobody; null where no holder is recorded)
    """
    step = max(period.length / POINT_COUNT, timedelta(microseconds=1))
    grid = pl.select(
        at=pl.datetime_range(period.from_at, period.until_at, step, closed="left", time_unit="us")
    ).cast(INSTANT)
    waiting = _level(grid, _waiting_changes(attempts, period))
    points = grid.with_columns(waiting_gpu_count=waiting)
    if inputs.allocations.is_empty():
        return points.with_columns(idle_gpu_count=pl.lit(None, dtype=pl.Float64))
    return points.with_columns(idle_gpu_count=_level(grid, _free_changes(inputs, period)))


def _waiting_changes(attempts: pl.DataFrame, period: Period) -> pl.DataFrame:
    gpus = pl.col("gpu_count") * pl.col("gpu_milli").fill_null(GPU_MILLI) / GPU_MILLI
    wait = pl.duration(microseconds=(pl.col("wait_s") * 1_000_000).round().cast(pl.Int64))
    spans = attempts.filter(pl.col("created_at") < period.until_at).select(
        start_us=micros(pl.col("created_at")),
        end_us=micros(pl.col("created_at") + wait),
        amount=gpus.fill_null(0.0),
    )
    return _changes(spans)


def _free_changes(inputs: Inputs, period: Period) -> pl.DataFrame:
    one, less = pl.lit(1.0), pl.lit(-1.0)
    span = ("start_us", "end_us")
    boards = lifetimes.board_spans(inputs.devices, period).select(*span, amount=one)
    lost = lifetimes.lost_spans(inputs.devices, inputs.events, period).select(*span, amount=less)
    held = lifetimes.allocation_spans(inputs.allocations, period).select(
        *span, amount=-pl.col("gpu_share_ratio")
    )
    return _changes(pl.concat([boards, lost, held]))


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
