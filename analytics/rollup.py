"""From MIG instances to the physical GPU: shares weigh, unconfigured slices rest.

Instance ratios are relative to the instance. SM-type ratios weigh by SM share, DRAM by memory
share; naive means and sums of rows are wrong.
"""

from __future__ import annotations

import polars as pl

from analytics.tiers import with_readings

_BOARD_VALUES = ("power_w", "energy_j", "temperature_celsius")


def device_readings(
    samples: pl.DataFrame, boards: pl.DataFrame, instances: pl.DataFrame
) -> pl.DataFrame:
    """Return the latest reading of each physical GPU.

    Args:
        samples: rows of ``latest_device_sample``.
        boards: rows of ``inventory.current_devices``.
        instances: rows of ``inventory.current_instances``.

    Returns:
        one row per device with a reading, ascending by node, device_uuid
            node, device_uuid, model, sampled_at, power_w, energy_j, temperature_celsius (board
            values, once), apparent_ratio, apparent_source, effective_ratio, gap_ratio,
            dram_active_ratio (over the whole GPU), tier (the weakest of its instances),
            configured_apparent_ratio (over configured slices), unconfigured_ratio (share of the
            board without instance), memory_used_bytes, instance_count
        A value is null when any configured instance lacks it.
    """
    slices = instance_readings(samples, instances)
    board = with_readings(samples.filter(pl.col("instance_id").is_null()))
    mig = _over_instances(pl.concat([slices, _unread(samples, slices, instances)], how="diagonal"))
    plain = board.with_columns(
        configured_apparent_ratio="apparent_ratio",
        unconfigured_ratio=pl.lit(0.0),
        instance_count=pl.lit(0, dtype=pl.Int64),
    ).join(mig, on="device_uuid", how="anti")
    boards_read = board.select("device_uuid", *_BOARD_VALUES, board_at="sampled_at")
    sliced = mig.join(boards_read, on="device_uuid", how="left").with_columns(
        sampled_at=pl.coalesce("sampled_at", "board_at")
    )
    names = boards.select("device_uuid", "node", "model")
    return (
        pl.concat([frame.select(_COLUMNS) for frame in (plain, sliced)], how="vertical_relaxed")
        .join(names, on="device_uuid", how="left")
        .select("node", "device_uuid", "model", pl.exclude("node", "device_uuid", "model"))
        .sort("node", "device_uuid", nulls_last=True)
    )


_COLUMNS = (
    "device_uuid", "sampled_at", *_BOARD_VALUES, "apparent_ratio", "apparent_source",
    "effective_ratio", "gap_ratio", "dram_active_ratio", "tier", "configured_apparent_ratio",
    "unconfigured_ratio", "memory_used_bytes", "instance_count",
)  # fmt: skip


def instance_readings(samples: pl.DataFrame, instances: pl.DataFrame) -> pl.DataFrame:
    """Return the latest reading of each MIG instance present.

    Returns:
        one row per instance, ascending: the columns of ``with_readings`` and of ``instances``;
        ratios are relative to the instance
    """
    return with_readings(
        samples.join(instances, on=["device_uuid", "instance_id"], how="inner")
    ).sort("device_uuid", "instance_id")


def _unread(samples: pl.DataFrame, slices: pl.DataFrame, instances: pl.DataFrame) -> pl.DataFrame:
    """Return the instances without a reading of their own, on devices that have any."""
    return instances.join(samples, on="device_uuid", how="semi").join(
        slices, on=["device_uuid", "instance_id"], how="anti"
    )


def _over_instances(slices: pl.DataFrame) -> pl.DataFrame:
    configured = pl.col("sm_share_ratio").sum()
    apparent = _weighted("apparent_ratio", "sm_share_ratio")
    sources = pl.col("apparent_source").drop_nulls().unique()
    return (
        slices.group_by("device_uuid")
        .agg(
            sampled_at=pl.col("sampled_at").max(),
            apparent_ratio=apparent,
            apparent_source=pl.when(sources.len() > 1)
            .then(pl.lit("mixed"))
            .otherwise(sources.sort().first()),
            effective_ratio=_weighted("effective_ratio", "sm_share_ratio"),
            gap_ratio=_weighted("gap_ratio", "sm_share_ratio"),
            dram_active_ratio=_weighted("dram_active_ratio", "memory_share_ratio"),
            tier=pl.when(pl.col("tier").is_not_null().all()).then(pl.col("tier").max()),
            configured_apparent_ratio=pl.when(configured > 0).then(apparent / configured),
            unconfigured_ratio=pl.when(pl.col("sm_share_ratio").is_not_null().all()).then(
                (1 - configured).clip(lower_bound=0)
            ),
            memory_used_bytes=pl.when(pl.col("memory_used_bytes").is_not_null().all()).then(
                pl.col("memory_used_bytes").sum()
            ),
            instance_count=pl.len().cast(pl.Int64),
        )
        .sort("device_uuid")
    )


def _weighted(name: str, share: str) -> pl.Expr:
    known = (pl.col(name).is_not_null() & pl.col(share).is_not_null()).all()
    return pl.when(known).then((pl.col(name) * pl.col(share)).sum())
