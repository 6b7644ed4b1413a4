"""When each device and MIG instance existed, was lost, or was held.

Times are i64 microseconds, spans half-open and clipped to the period.
"""

from __future__ import annotations

import polars as pl

from analytics.intervals import bounds, micros
from steward.period import Period

DEVICE = "device_uuid"


def board_spans(devices: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the life of each physical device: from its first sighting to the period's end.

    Returns:
        one row per device, ascending: device_uuid str, start_us i64, end_us i64
        A device that goes absent stays in capacity; see ``lost_spans``.
    """
    _, until_us = bounds(period)
    return _clipped(
        devices.group_by(DEVICE)
        .agg(start_us=micros(pl.col("observed_at").min()))
        .with_columns(end_us=pl.lit(until_us)),
        period,
    ).sort(DEVICE)


def instance_spans(devices: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return when each MIG instance existed, with its shares of the board.

    Returns:
        one row per instance and span of presence, ascending
            device_uuid, instance_id i64, sm_share_ratio f64 | null, memory_share_ratio f64 | null,
            start_us, end_us
    """
    states = devices.filter(pl.col("instance_id").is_not_null()).sort(
        DEVICE, "instance_id", "observed_at"
    )
    spans = _until_next(states, period, at="observed_at", keys=[DEVICE, "instance_id"])
    columns = (DEVICE, "instance_id", "sm_share_ratio", "memory_share_ratio", "start_us", "end_us")
    return _clipped(spans.filter("is_present").select(columns), period)


def lost_spans(devices: pl.DataFrame, events: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return when each device was lost: from a loss or absence to the next sign of life.

    Returns:
        one row per span, ascending: device_uuid, start_us, end_us
    """
    seen = devices.filter(pl.col("instance_id").is_null()).select(
        DEVICE, at="observed_at", is_lost=~pl.col("is_present")
    )
    told = events.filter(pl.col("kind").is_in(["lost", "returned"])).select(
        DEVICE, at="occurred_at", is_lost=pl.col("kind") == "lost"
    )
    signs = pl.concat([seen, told]).sort(DEVICE, "at", "is_lost")
    spans = _until_next(signs, period, at="at", keys=[DEVICE]).filter("is_lost")
    return _clipped(spans.select(DEVICE, "start_us", "end_us"), period)


def allocation_spans(allocations: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return allocations as spans; an open one lasts to the period's end.

    Returns:
        the same columns without started_at and ended_at, with start_us and end_us added
    """
    _, until_us = bounds(period)
    end = pl.coalesce(micros(pl.col("ended_at")), pl.lit(until_us))
    spans = allocations.with_columns(start_us=micros(pl.col("started_at")), end_us=end)
    return _clipped(spans.drop("started_at", "ended_at"), period)


def _until_next(states: pl.DataFrame, period: Period, *, at: str, keys: list[str]) -> pl.DataFrame:
    """Turn states in time order into spans that last until the next state or the period's end."""
    _, until_us = bounds(period)
    following = micros(pl.col(at)).shift(-1).over(keys)
    return states.with_columns(
        start_us=micros(pl.col(at)), end_us=pl.coalesce(following, pl.lit(until_us))
    )


def _clipped(spans: pl.DataFrame, period: Period) -> pl.DataFrame:
    from_us, until_us = bounds(period)
    return spans.with_columns(
        pl.col("start_us").clip(from_us, until_us), pl.col("end_us").clip(from_us, until_us)
    ).filter(pl.col("start_us") < pl.col("end_us"))
