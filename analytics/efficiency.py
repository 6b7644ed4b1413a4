"""How much of what each job held did work, and which jobs wasted most."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics import utilization
from analytics.usage import share

JOB: Final = ("cluster", "workload_uid", "tenant_id", "owner", "workload_class")
"""What tells jobs apart; a workload that changed hands counts once for each holder."""

_OF_USE: Final = ("used_gpu_hours", "wasted_gpu_hours", "zero_gpu_hours")


def jobs(rows: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Return what each job held and used.

    Args:
        rows: rows of ``ledger``; only held time counts.
        devices: rows of ``inventory.known_devices``, for the memory of each model.

    Returns:
        one row per combination of ``JOB``, most wasted GPU-hours first (ties by its columns)
            the columns of ``JOB``, models str (joined by "|"), tiers str ("1" or "1+2": how use
            was known; empty: it was not), held_gpu_hours, used_gpu_hours, wasted_gpu_hours
            (allocated idle: at rest, or active without working), zero_gpu_hours (at rest),
            unknown_gpu_hours, stuck_gpu_hours f64,
            utilization_ratio f64 | null (used / held time of known use), coverage_ratio f64 | null
            (held time of known use / held), memory_peak_ratio f64 | null (peak memory in use on one
            device / its board's memory, null where either is not known), waste_rank i64 | null (1
            wasted most; equal waste shares a rank), efficiency_rank i64 | null (1 used the largest
            share of what it held)
        What was used and wasted is null, and without a rank, where no use is known at all.
    """
    held, is_known = rows.filter("is_held"), pl.col("utilization_ratio").is_not_null()
    parts = _with_peak(held, devices)
    # Most jobs are one row: grouping them by their names would cost far more than it tells.
    is_parted = parts.select(JOB).is_duplicated()
    measured = pl.concat([_whole(parts.filter(~is_parted)), _joined(parts.filter(is_parted))])
    return (
        measured.rename(
            {
                "wall_gpu_hours": "held_gpu_hours",
                "allocated_idle_gpu_hours": "wasted_gpu_hours",
                "idle_gpu_hours": "zero_gpu_hours",
            }
        )
        .with_columns(pl.when(is_known).then(pl.col(name)).alias(name) for name in _OF_USE)
        .with_columns(
            waste_rank=_rank("wasted_gpu_hours"), efficiency_rank=_rank("utilization_ratio")
        )
        .sort("wasted_gpu_hours", *JOB, descending=[True] + [False] * len(JOB), nulls_last=True)
        .select(
            *JOB,
            "models",
            "tiers",
            "held_gpu_hours",
            "used_gpu_hours",
            "wasted_gpu_hours",
            "zero_gpu_hours",
            "unknown_gpu_hours",
            "stuck_gpu_hours",
            "utilization_ratio",
            "coverage_ratio",
            "memory_peak_ratio",
            "waste_rank",
            "efficiency_rank",
        )
    )


def with_spells(found: pl.DataFrame, spells: pl.DataFrame) -> pl.DataFrame:
    """Return jobs with ``longest_idle_s`` and ``idle_spell_count``.

    0 spells where none was long; null where the use of a job is not known at all.

    Args:
        found: rows of ``jobs``.
        spells: rows of ``spells.idle_spells``.
    """
    job = ("cluster", "workload_uid", "tenant_id")
    longest = spells.group_by(job).agg(
        longest_idle_s=pl.col("length_s").max(), idle_spell_count=pl.len().cast(pl.Int64)
    )
    count = pl.col("idle_spell_count")
    none = pl.when(pl.col("utilization_ratio").is_not_null()).then(0)
    return found.join(
        longest, on=job, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(count.fill_null(none))


def holders(found: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return what the jobs of each holder held and wasted.

    Args:
        found: rows of ``jobs``.
        keys: what to group by, of ``JOB``.

    Returns:
        one row per combination of keys, most wasted GPU-hours first (ties by keys)
            keys, job_count i64, held_gpu_hours, used_gpu_hours, wasted_gpu_hours,
            zero_gpu_hours, unknown_gpu_hours f64, waste_share_ratio (of all waste),
            utilization_ratio, coverage_ratio: null where there is nothing to divide by
        What was used and wasted is null where the use of none of the jobs is known.
    """
    hours = [name for name in found.columns if name.endswith("_gpu_hours")]
    known = (pl.col("used_gpu_hours") + pl.col("wasted_gpu_hours")).fill_null(0.0)
    sums = [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()) for name in hours]
    return (
        found.group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("job_count"), *sums)
        .with_columns(
            waste_share_ratio=share(pl.col("wasted_gpu_hours"), pl.col("wasted_gpu_hours").sum()),
            utilization_ratio=share(pl.col("used_gpu_hours"), known),
            coverage_ratio=share(known, known + pl.col("unknown_gpu_hours")),
        )
        .sort("wasted_gpu_hours", *keys, descending=[True] + [False] * len(keys), nulls_last=True)
    )


def _rank(name: str) -> pl.Expr:
    """Return the rank by a column, the largest first; null is not ranked."""
    return pl.col(name).rank("min", descending=True).cast(pl.Int64)


def _whole(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what is told of jobs that are one row each."""
    told = rows.select(
        models=pl.col("model").fill_null(""),
        tiers=pl.when(_known_ticks() > 0).then(pl.col("tier").cast(pl.String)).fill_null(""),
        memory_peak_ratio="memory_peak_ratio",
    )
    return utilization.of_sums(rows, *JOB).hstack(told)


def _joined(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the same of jobs that are several rows."""
    tiers = pl.col("tier").filter(_known_ticks() > 0).drop_nulls().unique().sort()
    told = rows.group_by(JOB).agg(
        models=pl.col("model").drop_nulls().unique().sort().str.join("|"),
        tiers=tiers.cast(pl.String).str.join("+"),
        memory_peak_ratio=pl.col("memory_peak_ratio").max(),
    )
    return utilization.leaves(rows, *JOB).join(told, on=JOB, how="left", nulls_equal=True)


def _known_ticks() -> pl.Expr:
    return pl.sum_horizontal(
        "used_measured_ticks", "used_estimated_ticks", "ineffective_ticks", "idle_ticks"
    )


def _with_peak(rows: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Return rows with memory_peak_ratio; a model whose boards differ in size tells nothing."""
    size = pl.col("memory_total_bytes")
    boards = devices.group_by("cluster", "model").agg(
        board_bytes=pl.when(size.is_not_null().all() & (size.n_unique() == 1)).then(size.first())
    )
    peak = share(pl.col("memory_peak_bytes"), pl.col("board_bytes"))
    return rows.join(
        boards, on=("cluster", "model"), how="left", nulls_equal=True, maintain_order="left"
    ).select(pl.exclude("board_bytes"), memory_peak_ratio=peak)
