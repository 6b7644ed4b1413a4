"""What each cell says of its holder: that it worked, that it rested, or neither for certain."""

from __future__ import annotations

import polars as pl

from analytics.evidence import limits


def with_signs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return placed cells with their signs.

    Args:
        rows: of ``placed.of_one_holder`` and ``placed.of_shared``.

    Returns:
        the rows in the same order with activity_ratio f64 | null (of a shared device: of its own
        processes), is_active bool (some signal says that it worked), is_quiet bool (seen, every
        signal told says that it did not; never both), is_level bool (small activity and nothing
        else)
    """
    activity = (
        pl.when("is_shared")
        .then("own_busy_ratio")
        .otherwise(pl.max_horizontal("profiling_ratio", "busy_ratio").cast(pl.Float64))
    )
    level = pl.coalesce("own_busy_ratio", "profiling_ratio", "busy_ratio").cast(pl.Float64)
    signed = rows.with_columns(activity_ratio=activity, level_ratio=level).with_columns(
        is_active=(pl.col("activity_ratio") >= pl.col("below_ratio")).fill_null(value=False)
        | (~pl.col("is_shared") & (_draws_power() | _moves())),
        knows_rest=pl.col("is_shared")
        | pl.col("power_w").is_null()
        | pl.col("power_idle_w").is_not_null(),
        is_level=pl.col("level_ratio")
        .is_between(limits.LEVEL_FROM_RATIO, limits.LEVEL_BELOW_RATIO)
        .fill_null(value=False)
        & ~_moves(),
    )
    is_seen = pl.col("activity_ratio").is_not_null() & (pl.col("told_ratio") == 1)
    return signed.with_columns(is_quiet=is_seen & ~pl.col("is_active") & pl.col("knows_rest")).drop(
        "knows_rest"
    )


def _draws_power() -> pl.Expr:
    limit_w = pl.col("power_idle_w") * (1 + pl.col("power_margin_ratio"))
    return (pl.col("power_w") >= limit_w).fill_null(value=False)


def _moves() -> pl.Expr:
    """Tell whether data or memory in use moved."""
    traffic = pl.col("traffic_bytes_per_s") >= limits.TRAFFIC_ACTIVE_BYTES_PER_S
    memory = pl.col("memory_moved_bytes") >= limits.MEMORY_CHANGE_BYTES
    return traffic.fill_null(value=False) | memory.fill_null(value=False)
