"""Apparent and effective utilisation over time and devices, one row per tier.

Tiers are never averaged together: each row says how it was known, and how much of the group's
GPU-hours it speaks for.
"""

from __future__ import annotations

import polars as pl

from analytics.observation import MEASURES
from analytics.segments import Segments
from steward.units import SECONDS_PER_HOUR

PUBLISH_COVERAGE_RATIO = 0.8
"""A mean that speaks for less of the time than this is marked in findings."""


def observed_slices(segments: Segments, observed: pl.DataFrame) -> pl.DataFrame:
    """Return observations weighted by board share, with the slice they belong to.

    Returns:
        one row per slice and tier: the columns of both; times in GPU-seconds (a board counts 1)
    """
    times = [name for name in observed.columns if name.endswith("_s")]
    slices = segments.slices.select(
        "slice_id", "device_uuid", "instance_id", "weight_ratio", "is_lost"
    )
    return (
        observed.join(slices, on="slice_id", maintain_order="left")
        .with_columns(pl.col(name) * pl.col("weight_ratio") for name in times)
        .drop("weight_ratio")
    )


def held_slices(weighted: pl.DataFrame, segments: Segments) -> pl.DataFrame:
    """Return observations of held device-time only, one row per slice, tier and holder.

    A device shared by several holders is split by the share each holds.
    """
    times = [name for name in weighted.columns if name.endswith("_s")]
    return weighted.join(segments.holders, on="slice_id").with_columns(
        pl.col(name) * pl.col("held_ratio") for name in times
    )


def means(rows: pl.DataFrame, wall: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return time-weighted means.

    Args:
        rows: weighted observations with the keys as columns.
        wall: keys and wall_gpu_hours, the device-time of each group, observed or not.
        keys: what to group by; none gives the whole.

    Returns:
        one row per combination of keys and tier, ascending (nulls last)
            keys, tier i8, observed_gpu_hours f64, coverage_ratio f64 (observed / wall),
            apparent_ratio, apparent_source, effective_ratio, gap_ratio, sm_active_ratio,
            dram_active_ratio
        Each mean is null where nothing was known; its weight is the time it was known.
    """
    by_tier = _by_tier(rows, keys)
    joined = (
        by_tier.join(wall, on=keys, how="left", nulls_equal=True)
        if keys
        else by_tier.join(wall, how="cross")
    )
    hours = pl.col("observed_s") / SECONDS_PER_HOUR
    return (
        joined.with_columns(
            observed_gpu_hours=hours,
            coverage_ratio=share(hours, pl.col("wall_gpu_hours")),
            apparent_source=_source(),
            **{f"{m}_ratio": share(pl.col(f"{m}_s"), pl.col(f"{m}_known_s")) for m in MEASURES},
        )
        .sort(*keys, "tier", nulls_last=True)
        .select(
            *keys,
            "tier",
            "observed_gpu_hours",
            "coverage_ratio",
            "apparent_ratio",
            "apparent_source",
            "effective_ratio",
            "gap_ratio",
            "sm_active_ratio",
            "dram_active_ratio",
        )
    )


def _by_tier(rows: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
    sums = [
        pl.col(name).sum()
        for measure in MEASURES
        for name in (f"{measure}_s", f"{measure}_known_s")
    ]
    return (
        rows.filter(pl.col("tier").is_not_null())
        .group_by(*keys, "tier")
        .agg(
            pl.col("observed_s").sum(),
            pl.col("busy_source_s").sum(),
            pl.col("graphics_source_s").sum(),
            *sums,
        )
    )


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Return part / whole, null where there is no whole."""
    return pl.when(whole > 0).then(part / whole)


def _source() -> pl.Expr:
    busy, graphics = pl.col("busy_source_s") > 0, pl.col("graphics_source_s") > 0
    return (
        pl.when(busy & graphics)
        .then(pl.lit("mixed"))
        .when(busy)
        .then(pl.lit("busy"))
        .when(graphics)
        .then(pl.lit("graphics"))
    )
