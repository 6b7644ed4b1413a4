"""The GPU-hour ledger: every second of every device in exactly one class.

The classes add up to wall clock x devices. Throttling and other overlays are not classes.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.segments import Segments
from analytics.tiers import TIER_PIPES
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

CLASSES: Final = (
    "effective_gpu_hours",
    "effective_estimated_gpu_hours",
    "ineffective_gpu_hours",
    "idle_gpu_hours",
    "unknown_gpu_hours",
    "unattributed_busy_gpu_hours",
    "unallocated_gpu_hours",
    "unconfigured_gpu_hours",
    "down_gpu_hours",
)
"""In this order: allocated and known (measured, then estimated by bound or proxy; active but
ineffective; idle), allocated or share unknown or not shown by anything, at work without a known
holder, free, free by MIG geometry, lost or cordoned."""
BUSY_WITHOUT_HOLDER: Final = "busy_without_holder"
UNOBSERVED: Final = "unobserved"
ROUNDING_RATIO: Final = 1e-9
"""Differences below this share of the wall clock are rounding, not time."""
_MEASURED: Final = CLASSES[:4]


def ledger(segments: Segments, observed: pl.DataFrame, *, has_holders: bool) -> pl.DataFrame:
    """Return GPU-hours by class.

    Args:
        segments: device-time in pieces.
        observed: rows of ``observation.observations``.
        has_holders: whether holders were recorded at all; if not, free time is unknown, since
            nobody knows who held the devices.

    Returns:
        one row per slice and holder, and one per slice for what nobody held, ascending
            slice_id, device_uuid, tenant_id, workload_class, workload_uid (null: nobody or
            unknown), is_held bool, wall_gpu_hours f64, the ``CLASSES`` f64 (never null)
        A loss comes before everything; a cordon only before free time, which work without a known
        holder is not.
    """
    slices = segments.slices.with_columns(wall_gpu_hours=_wall())
    known = slices.select("slice_id", "weight_ratio").join(
        _by_class(observed), on="slice_id", how="left"
    )
    weighted = known.with_columns(
        pl.col(name).fill_null(0.0) * pl.col("weight_ratio") for name in _MEASURED
    ).drop("weight_ratio")
    framed = slices.join(weighted, on="slice_id")
    told = framed.join(segments.unheld, on="slice_id", how="left")
    rows = [_held_rows(framed, segments.holders), _free_rows(told, segments.holders, has_holders)]
    return pl.concat(rows, how="diagonal").sort(
        "slice_id", "is_held", "tenant_id", "workload_uid", nulls_last=True
    )


def by_class(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return GPU-hours by class over any keys of the ledger.

    Returns:
        one row per combination of keys, ascending (nulls last): keys, wall_gpu_hours, ``CLASSES``
    """
    sums = [pl.col(name).sum() for name in ("wall_gpu_hours", *CLASSES)]
    if not keys:
        return rows.select(sums)
    return rows.group_by(keys).agg(sums).sort(keys, nulls_last=True)


def _wall() -> pl.Expr:
    hours = (pl.col("end_us") - pl.col("start_us")) / MICROS_PER_SECOND / SECONDS_PER_HOUR
    return hours * pl.col("weight_ratio")


def _by_class(observed: pl.DataFrame) -> pl.DataFrame:
    effective = pl.col("active_effective_s") / SECONDS_PER_HOUR
    is_measured = pl.col("tier") == TIER_PIPES
    return observed.group_by("slice_id").agg(
        effective_gpu_hours=effective.filter(is_measured).sum(),
        effective_estimated_gpu_hours=effective.filter(~is_measured).sum(),
        ineffective_gpu_hours=pl.col("active_ineffective_s").sum() / SECONDS_PER_HOUR,
        idle_gpu_hours=pl.col("idle_s").sum() / SECONDS_PER_HOUR,
    )


def _held_rows(framed: pl.DataFrame, holders: pl.DataFrame) -> pl.DataFrame:
    shares = framed.join(holders, on="slice_id").with_columns(
        pl.col(name) * pl.col("held_ratio") for name in ("wall_gpu_hours", *_MEASURED)
    )
    lost = pl.col("is_lost")
    known = pl.sum_horizontal(_MEASURED)
    rest = pl.col("wall_gpu_hours") - known
    unknown = pl.when(rest > pl.col("wall_gpu_hours") * ROUNDING_RATIO).then(rest).otherwise(0.0)
    return shares.select(
        "slice_id",
        "device_uuid",
        "tenant_id",
        "workload_class",
        "workload_uid",
        pl.lit(value=True).alias("is_held"),
        "wall_gpu_hours",
        *[pl.when(lost).then(0.0).otherwise(pl.col(name)).alias(name) for name in _MEASURED],
        pl.when(lost).then(0.0).otherwise(unknown).alias("unknown_gpu_hours"),
        pl.lit(0.0).alias("unattributed_busy_gpu_hours"),
        pl.lit(0.0).alias("unallocated_gpu_hours"),
        pl.lit(0.0).alias("unconfigured_gpu_hours"),
        pl.when(lost).then(pl.col("wall_gpu_hours")).otherwise(0.0).alias("down_gpu_hours"),
    )


def _free_rows(framed: pl.DataFrame, holders: pl.DataFrame, has_holders: bool) -> pl.DataFrame:  # noqa: FBT001  # private, one caller
    held = holders.group_by("slice_id").agg(held_ratio=pl.col("held_ratio").sum())
    free = framed.join(held, on="slice_id", how="left").with_columns(
        pl.col("wall_gpu_hours") * (1 - pl.col("held_ratio").fill_null(0.0)).clip(lower_bound=0)
    )
    wall = pl.col("wall_gpu_hours")
    return free.filter(wall > 0).select(
        "slice_id",
        "device_uuid",
        pl.lit(value=False).alias("is_held"),
        wall,
        *[pl.lit(0.0).alias(name) for name in _MEASURED],
        *[
            pl.when(_free_class(has_holders=has_holders) == name)
            .then(wall)
            .otherwise(0.0)
            .alias(name)
            for name in CLASSES[4:]
        ],
    )


def _free_class(*, has_holders: bool) -> pl.Expr:
    return (
        pl.when("is_lost")
        .then(pl.lit("down_gpu_hours"))
        .when(pl.col("unheld_reason") == BUSY_WITHOUT_HOLDER)
        .then(pl.lit("unattributed_busy_gpu_hours"))
        .when("is_cordoned")
        .then(pl.lit("down_gpu_hours"))
        .when(~pl.col("is_share_known") | (pl.col("unheld_reason") == UNOBSERVED))
        .then(pl.lit("unknown_gpu_hours"))
        .when("is_remainder")
        .then(pl.lit("unconfigured_gpu_hours"))
        .when(pl.lit(has_holders))
        .then(pl.lit("unallocated_gpu_hours"))
        .otherwise(pl.lit("unknown_gpu_hours"))
    )
