"""Long stretches in which held devices rested, or looked busy without working."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT
from analytics.segments import Segments
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR, SECONDS_PER_MINUTE

IDLE_SPELL_MIN_S: Final = 10 * SECONDS_PER_MINUTE
STUCK_SPELL_MIN_S: Final = 15 * SECONDS_PER_MINUTE
MEMORY_GROWTH_BYTES: Final = 1_048_576
"""Memory in use growing by this much or more inside a spell is a sign of work."""

_STRETCH: Final = ("slice_id", "start_us", "end_us", "memory_first_bytes", "memory_last_bytes")
_OWNER: Final = ("device_uuid", "instance_id", "workload_uid", "pod")


def idle_spells(resting: pl.DataFrame, segments: Segments) -> pl.DataFrame:
    """Return stretches of at least ten minutes in which a holder's device did nothing.

    Args:
        resting: rows of ``observation.stretches``.
        segments: who held what when.

    Returns:
        one row per spell and holder, most GPU-hours first
            device_uuid, instance_id, tenant_id, workload_uid, pod, started_at, ended_at,
            length_s f64, gpu_hours f64 (length x share held)
        A reading that is not idle or says nothing, unobserved time and a change of holder each
        end a spell. Spells in which memory in use grew are left out.
    """
    return _spells(resting.filter("is_idle"), segments, min_s=IDLE_SPELL_MIN_S)


def stuck_spells(resting: pl.DataFrame, segments: Segments) -> pl.DataFrame:
    """Return stretches of at least 15 minutes that look busy with no pipe and no memory working.

    Power is not consulted, so these are suspects. Columns and order as ``idle_spells``.
    """
    return _spells(resting.filter("is_stuck"), segments, min_s=STUCK_SPELL_MIN_S)


def _spells(resting: pl.DataFrame, segments: Segments, *, min_s: int) -> pl.DataFrame:
    runs = _runs(resting, segments)
    growth = pl.col("memory_growth_bytes").fill_null(0)
    long = (pl.col("length_s") >= min_s) & (growth < MEMORY_GROWTH_BYTES)
    return (
        runs.with_columns(
            length_s=(pl.col("end_us") - pl.col("start_us")) / MICROS_PER_SECOND,
            started_at=pl.col("start_us").cast(INSTANT),
            ended_at=pl.col("end_us").cast(INSTANT),
        )
        .filter(long)
        .sort("gpu_hours", *_OWNER, "started_at", descending=[True] + [False] * 5, nulls_last=True)
        .select(
            "device_uuid",
            "instance_id",
            "tenant_id",
            "workload_uid",
            "pod",
            "started_at",
            "ended_at",
            "length_s",
            "gpu_hours",
        )
    )


def _runs(resting: pl.DataFrame, segments: Segments) -> pl.DataFrame:
    held = segments.holders.join(segments.slices, on="slice_id").with_columns(
        share=pl.col("held_ratio") * pl.col("weight_ratio")
    )
    held_rest = resting.select(_STRETCH).join(
        held.filter(~pl.col("is_lost")).drop("start_us", "end_us"), on="slice_id"
    )
    breaks = (
        (pl.col("start_us") > pl.col("end_us").shift(1))
        | (pl.struct(_OWNER) != pl.struct(_OWNER).shift(1))
    ).fill_null(value=True)
    return (
        held_rest.sort(*_OWNER, "tenant_id", "start_us", nulls_last=True)
        .with_columns(run_id=breaks.cum_sum())
        .group_by("run_id")
        .agg(_run_columns())
    )


def _run_columns() -> list[pl.Expr]:
    length = (pl.col("end_us") - pl.col("start_us")) / MICROS_PER_SECOND
    growth = pl.col("memory_last_bytes").last() - pl.col("memory_first_bytes").first()
    return [
        *[pl.col(name).first() for name in (*_OWNER, "tenant_id")],
        pl.col("start_us").first(),
        pl.col("end_us").last(),
        growth.alias("memory_growth_bytes"),
        (length * pl.col("share")).sum().alias("gpu_hours") / SECONDS_PER_HOUR,
    ]
