"""The target workload: which shapes of work to expect, learnt from what was asked for."""

from __future__ import annotations

from typing import Final

import polars as pl

from steward.units import GPU_MILLI

POPULAR_SHARE_RATIO: Final = 0.95
"""Shapes are kept, most frequent first, until they make up this share of all requests."""
_SHAPE: Final = ("cpu_milli", "gpu_milli", "gpu_count", "gpu_models")


def target_workload(
    workloads: pl.DataFrame, *, popular_share_ratio: float = POPULAR_SHARE_RATIO
) -> pl.DataFrame:
    """Return the popular shapes with their shares.

    Args:
        workloads: rows of ``workload_current``; those with an unknown request are left out. Work
            without GPUs counts: idle GPUs are of no use to it.
        popular_share_ratio: see ``POPULAR_SHARE_RATIO``.

    Returns:
        one row per kept shape, most frequent first, ties by the shape itself descending
            cpu_milli, gpu_milli, gpu_count i64, gpu_models str ("" for any), request_count i64,
            share_ratio f64 (adds up to 1)
    """
    counted = request_shapes(workloads)
    before = pl.col("request_count").cum_sum() - pl.col("request_count")
    total = pl.col("request_count").sum()
    kept = counted.filter(before / total < popular_share_ratio)
    return kept.with_columns(share_ratio=pl.col("request_count") / total)


def request_shapes(workloads: pl.DataFrame) -> pl.DataFrame:
    """Return every shape asked for, most frequent first, ties by the shape itself descending.

    Returns:
        one row per shape: cpu_milli, gpu_milli, gpu_count, gpu_models, request_count
    """
    whole = pl.when(pl.col("gpu_count") > 0).then(GPU_MILLI).otherwise(0)
    milli = (
        pl.when(pl.col("gpu_count") == 0).then(0).otherwise(pl.col("gpu_milli").fill_null(whole))
    )
    return (
        workloads.filter(pl.col("cpu_milli").is_not_null() & pl.col("gpu_count").is_not_null())
        .select(
            "cpu_milli",
            milli.cast(pl.Int64).alias("gpu_milli"),
            "gpu_count",
            pl.col("gpu_models").fill_null(""),
        )
        .group_by(_SHAPE)
        .agg(request_count=pl.len().cast(pl.Int64))
        .sort("request_count", *_SHAPE, descending=True)
    )
