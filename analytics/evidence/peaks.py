"""What each device told within the window of its workload: peaks, changes, coverage."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.evidence import limits

_PEAKS: Final = {
    "profiling_peak_ratio": "profiling_ratio",
    "busy_peak_ratio": "busy_ratio",
    "disagreement_ratio": "disagreement_ratio",
    "own_busy_peak_ratio": "own_busy_ratio",
    "power_peak_w": "power_w",
    "memory_used_peak_bytes": "memory_used_bytes",
    "memory_total_bytes": "memory_total_bytes",
    "traffic_peak_bytes_per_s": "traffic_bytes_per_s",
    "process_count_peak": "process_count",
}


def device_evidence(holds: pl.DataFrame, rows: pl.DataFrame, *, until_us: int) -> pl.DataFrame:
    """Return what every device that is held now told.

    Args:
        holds: rows of ``all_holds``.
        rows: of ``signs.with_signs``.
        until_us: the end of the window.

    Returns:
        one row per device or instance held now of which anything was ever read, ascending by
            workload, uuid and instance
            cluster, workload_uid, hold, device_uuid, instance_id, node, is_shared,
            coverage_ratio f64, newest_us i64 | null, usual_us f64 | null, series i64 | null (the
            source that observed most, which keeps its clock), and the columns of
            ``DeviceEvidence`` of the same names, null where nothing was told in the window
    """
    now = rows.filter("is_now")
    sources = _by_source(now, until_us=until_us)
    best = (
        sources.sort("hold", "observed_us", "source_number", descending=[False, True, False])
        .group_by("hold", maintain_order=True)
        .agg(
            pl.col("series").first(),
            pl.col("observed_us").first(),
            pl.col("usual_us").first(),
            newest_us=pl.col("newest_us").max(),
        )
    )
    found = (
        holds.filter("is_now")
        .join(best, on="hold", how="inner")
        .join(_peaks(now, until_us=until_us), on="hold", how="left")
    )
    return (
        found.with_columns(coverage_ratio=_coverage(until_us))
        .sort("cluster", "workload_uid", "device_uuid", "instance_id")
        .drop("held_until_us", "is_now", "below_ratio", "power_margin_ratio", "device_key", "work")
    )


def _in_window(until_us: int) -> pl.Expr:
    return pl.col("at_us") > until_us - pl.col("window_us")


def _by_source(now: pl.DataFrame, *, until_us: int) -> pl.DataFrame:
    """Return what each source observed of each hold within the window."""
    start_us = pl.max_horizontal("start_us", until_us - pl.col("window_us"))
    seen_us = (pl.col("at_us") - start_us).clip(lower_bound=0) * pl.col("told_ratio")
    is_known = (~pl.col("is_shared") | pl.col("own_busy_ratio").is_not_null()) & _in_window(
        until_us
    )
    return now.group_by("hold", "series", "source_number").agg(
        observed_us=seen_us.filter(is_known).sum(),
        newest_us=pl.col("at_us").filter(pl.col("told_ratio") > 0).max(),
        usual_us=pl.col("usual_us").first(),
    )


def _peaks(now: pl.DataFrame, *, until_us: int) -> pl.DataFrame:
    told = now.filter(_in_window(until_us))
    return told.group_by("hold").agg(
        *[pl.col(name).max().alias(peak) for peak, name in _PEAKS.items()],
        memory_change_bytes=pl.col("memory_used_bytes").max() - pl.col("memory_low_bytes").min(),
        power_idle_w=pl.col("power_idle_w").min(),
    )


def _coverage(until_us: int) -> pl.Expr:
    """Return the observed share of the held part of the window.

    The first interval after a device was taken also tells of the holder before, and the newest
    reading is always a little old: neither counts as unobserved.
    """
    interval_us = pl.col("usual_us").fill_null(0)
    window_from_us = until_us - pl.col("window_us")
    taken_us = pl.col("held_from_us") + interval_us
    from_us = (
        pl.when(pl.col("held_from_us") > window_from_us).then(taken_us).otherwise(window_from_us)
    )
    is_fresh = until_us - pl.col("newest_us") <= limits.TAIL_INTERVALS * interval_us
    end_us = pl.when(is_fresh.fill_null(value=False)).then("newest_us").otherwise(until_us)
    length_us = end_us - from_us
    return (
        pl.when(length_us > 0)
        .then((pl.col("observed_us") / length_us).clip(0.0, 1.0))
        .otherwise(0.0)
    )
