"""What device-time was used for: leaves, utilisation and means, summed over the ledger.

Effective utilisation is known in tiers (``analytics.tiers``); means give each tier its own row.
Shares whose denominator is 0 are null.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.schemas.usage import LEAVES, MEANS
from analytics.usage import TREE, allocated, gpu_hours, leaf, share, totals
from steward.units import SECONDS_PER_HOUR, TICKS_PER_SECOND

PUBLISH_COVERAGE_RATIO: Final = 0.8
"""A mean that speaks for less of the time than this is marked in findings."""
UNATTRIBUTED_TARGET_RATIO: Final = 0.02
"""More of allocated time than this without anybody to answer for it is marked in findings: a charge
that nobody answers for cannot be paid."""
LEAF_HOURS: Final = tuple(f"{name}_gpu_hours" for name in TREE)
COLUMN_HOURS: Final = tuple(f"{name.removesuffix('_ticks')}_gpu_hours" for name in LEAVES)


def leaves(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return what became of device-time.

    Args:
        rows: rows of ``ledger``.
        keys: columns to group by; none gives the whole, always one row.

    Returns:
        one row per combination of keys, ascending (nulls last)
            keys, wall_gpu_hours f64 = the sum of ``LEAF_HOURS`` = the sum of ``COLUMN_HOURS``,
            allocated_gpu_hours f64 (used + allocated_idle + unknown_use),
            occupancy_ratio (allocated / wall), used_of_capacity_ratio (used / wall),
            utilization_ratio (used / allocated time of known use),
            estimated_of_used_ratio (used by tiers 2 and 3 / used),
            coverage_ratio (allocated time of known use / allocated),
            stuck_gpu_hours f64 (looks busy while nothing works),
            idle_memory_bytes f64 (mean memory in use of a whole GPU at rest),
            memory_peak_bytes i64: each null where there is nothing to divide by, or not known
    """
    return of_sums(totals(rows, *keys), *keys)


def of_sums(sums: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return what ``leaves`` tells, of rows that are summed by their keys already, in their order.

    Args:
        sums: rows of ``ledger`` or of ``totals``, with stuck_s and idle_memory_byte_s.
        keys: columns to keep.
    """
    held, known = allocated(), allocated() - leaf("unknown_use")
    idle_s = pl.col("idle_ticks").cast(pl.Float64) / TICKS_PER_SECOND
    return sums.select(
        *keys,
        wall_gpu_hours=gpu_hours(pl.col("wall_ticks")),
        **{f"{name}_gpu_hours": gpu_hours(leaf(name)) for name in TREE},
        **{_hours_name(name): gpu_hours(pl.col(name)) for name in LEAVES if _is_own(name)},
        allocated_gpu_hours=gpu_hours(held),
        occupancy_ratio=share(held, pl.col("wall_ticks")),
        used_of_capacity_ratio=share(leaf("used"), pl.col("wall_ticks")),
        utilization_ratio=share(leaf("used"), known),
        estimated_of_used_ratio=share(pl.col("used_estimated_ticks"), leaf("used")),
        coverage_ratio=share(known, held),
        stuck_gpu_hours=pl.col("stuck_s") / SECONDS_PER_HOUR,
        idle_memory_bytes=share(pl.col("idle_memory_byte_s"), idle_s),
        memory_peak_bytes="memory_peak_bytes",
    )


def means(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return time-weighted means, each tier apart.

    Args:
        rows: rows of ``ledger``.
        keys: columns to group by; none gives the whole.

    Returns:
        one row per combination of keys and tier, ascending (nulls last)
            keys, tier i8 | null (null: time that nobody held, which is seen but is no use),
            observed_gpu_hours f64, coverage_ratio f64 (observed / wall clock of the group),
            apparent_ratio, apparent_source ("busy" | "graphics" | "mixed"), effective_ratio,
            gap_ratio, sm_active_ratio, dram_active_ratio
        Each mean is null where nothing was known; its weight is the time it was known.
    """
    says = pl.col("tier").is_not_null() | (pl.col("apparent_known_s") > 0)
    told = totals(rows.filter(says), *keys, "tier")
    walls = totals(rows, *keys).select(*keys, group_ticks="wall_ticks")
    joined = (
        told.join(walls, on=keys, how="left", nulls_equal=True)
        if keys
        else told.join(walls, how="cross")
    )
    observed = pl.col("observed_s") / SECONDS_PER_HOUR
    ratios = {f"{mean}_ratio": share(pl.col(f"{mean}_s"), pl.col(f"{mean}_known_s"))
              for mean in MEANS}  # fmt: skip
    return (
        joined.with_columns(
            observed_gpu_hours=observed,
            coverage_ratio=share(observed, gpu_hours(pl.col("group_ticks"))),
            apparent_source=_source(),
            **ratios,
        )
        .sort(*keys, "tier", nulls_last=True)
        .select(
            *keys,
            "tier",
            "observed_gpu_hours",
            "coverage_ratio",
            "apparent_ratio",
            "apparent_source",
            *[name for name in ratios if name != "apparent_ratio"],
        )
    )


def unattributed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of allocated time that nobody answers for.

    Those at work without a recorded holder, and those held by a holder of no known tenant.
    """
    busy = pl.col("reason") == "busy_without_holder"
    nameless = pl.col("is_held") & pl.col("tenant_id").is_null()
    return rows.filter(busy.fill_null(value=False) | nameless)


def _hours_name(ticks: str) -> str:
    return f"{ticks.removesuffix('_ticks')}_gpu_hours"


def _is_own(ticks: str) -> bool:
    """Tell whether the column of the ledger is not itself a leaf of the tree."""
    return _hours_name(ticks) not in LEAF_HOURS


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
