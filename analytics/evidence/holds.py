"""Who holds which device or instance now, and what each workload held before."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import micros
from steward.units import MICROS_PER_SECOND

WORKLOAD: Final = ("cluster", "workload_uid")
DEVICE: Final = ("device_key", "instance_id")
UNSHARED: Final = ("exclusive", "mig")
"""Modes in which a device, or an instance, has one holder at a time."""


def all_holds(
    allocations: pl.DataFrame, devices: pl.DataFrame, asks: pl.DataFrame, *, until_us: int
) -> pl.DataFrame:
    """Return what the workloads that are asked for hold at an instant, and held before it.

    Args:
        allocations: rows of ``allocation_history``; what ends later is still held.
        devices: rows of ``device_history``, which name the keys of readings.
        asks: rows of ``evidence_ask``.
        until_us: the instant; what begins later is not known yet.

    Returns:
        one row per workload, device or instance and whether it is held now, ascending
            hold i64 (its row number), work i64 (a number of its workload), cluster, workload_uid,
            node, device_uuid,
            device_key u64 | null (a device that was never told), instance_id i32 | null,
            held_from_us, held_until_us i64 (until the instant where it is held now; what was held
            before counts as one stretch), is_now bool, is_shared bool (by the mode of its
            allocation, or since others hold it too),
            window_us i64, below_ratio, power_margin_ratio f64
    """
    known = allocations.filter(micros(pl.col("started_at")) <= until_us).with_columns(
        pl.col("instance_id").cast(pl.Int32),
        held_from_us=micros(pl.col("started_at")),
        held_until_us=micros(pl.col("ended_at")).fill_null(until_us).clip(upper_bound=until_us),
        is_now=pl.col("ended_at").is_null() | (micros(pl.col("ended_at")) > until_us),
    )
    holders = pl.struct("workload_uid", "namespace", "pod")
    marked = known.with_columns(
        holder_count=pl.when("is_now")
        .then(holders)
        .n_unique()
        .over("cluster", "device_uuid", "instance_id", "is_now")
    )
    wanted = marked.join(asks, on=WORKLOAD, how="inner")
    return (
        wanted.group_by(*WORKLOAD, "device_uuid", "instance_id", "is_now")
        .agg(
            pl.col("node").last(),
            pl.col("held_from_us").min(),
            pl.col("held_until_us").max(),
            is_shared=~pl.col("sharing_mode").is_in(UNSHARED).all()
            | (pl.col("is_now") & (pl.col("holder_count") > 1)).any(),
            window_us=(pl.col("window_s").first() * MICROS_PER_SECOND).cast(pl.Int64),
            below_ratio=pl.col("below_ratio").first(),
            power_margin_ratio=pl.col("power_margin_ratio").first(),
        )
        .join(_keys(devices), on=["cluster", "device_uuid"], how="left")
        .sort(*WORKLOAD, "device_uuid", "instance_id", "is_now")
        .with_columns(
            hold=pl.int_range(pl.len(), dtype=pl.Int64),
            work=pl.struct(WORKLOAD).rle_id().cast(pl.Int64),
        )
    )


def _keys(devices: pl.DataFrame) -> pl.DataFrame:
    return (
        devices.filter(pl.col("device_key").is_not_null())
        .select("cluster", "device_uuid", "device_key")
        .unique(["cluster", "device_uuid"], keep="first", maintain_order=True)
    )
