"""What each node has free at one instant: whole boards, or MIG instances of one profile."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import polars as pl

NODE: Final = ("cluster", "node")
_PIECE: Final = (*NODE, "device_uuid", "instance_id")


def rooms(
    devices: pl.DataFrame,
    *,
    nodes: pl.DataFrame,
    places: pl.DataFrame,
    held: pl.DataFrame,
    asked: pl.DataFrame,
    at: datetime,
) -> pl.DataFrame:
    """Return what each node has and what of it nobody holds.

    Args:
        devices: rows of ``device_history``.
        nodes: rows of ``node_history``.
        places: rows of ``node_place``.
        held: rows of ``standing.holdings`` at the same instant.
        asked: cluster, workload_uid, cpu_milli, memory_bytes, gpu_count of workloads: a holder
            takes a gpu_count-th of its processors and memory for each device or instance.
        at: the instant.

    Returns:
        one row per node that is part of its cluster, model and MIG profile, ascending
            cluster, node, model str | null, mig_profile str | null (whole boards), free_count,
            total_count i64, is_schedulable bool, nvlink_domain, rack str | null, free_cpu_milli,
            free_memory_bytes i64 | null (null: the node's own, or a holder's, is not known; work
            without GPUs is not seen)
        A board with instances has no room as a whole; a board that is shared has none once
        somebody holds a part of it.
    """
    pieces = _pieces(devices, at)
    taken = held.select(_PIECE).unique().with_columns(is_held=pl.lit(value=True))
    counted = (
        pieces.join(taken, on=_PIECE, how="left", nulls_equal=True)
        .group_by(*NODE, "model", "mig_profile")
        .agg(
            free_count=pl.col("is_held").is_null().sum().cast(pl.Int64),
            total_count=pl.len().cast(pl.Int64),
        )
    )
    return (
        counted.join(_nodes(nodes, at), on=NODE, how="inner")
        .join(places.select(*NODE, "rack", "nvlink_domain"), on=NODE, how="left")
        .join(_used(held, asked), on=NODE, how="left")
        .with_columns(
            free_cpu_milli=_left("cpu_milli", "cpu_used"),
            free_memory_bytes=_left("memory_bytes", "memory_used"),
        )
        .sort(*NODE, "model", "mig_profile")
    )


def _pieces(devices: pl.DataFrame, at: datetime) -> pl.DataFrame:
    """Return what can be held: instances, and boards without any."""
    newest = (
        devices.filter(pl.col("observed_at") <= at)
        .sort("observed_at")
        .unique(["cluster", "device_uuid", "instance_id"], keep="last", maintain_order=True)
    )
    models = newest.group_by("cluster", "device_uuid").agg(
        known_model=pl.col("model").drop_nulls().last()
    )
    present = newest.filter("is_present").join(models, on=["cluster", "device_uuid"], how="left")
    divided = present.filter(pl.col("instance_id").is_not_null())
    whole = present.filter(pl.col("instance_id").is_null()).join(
        divided, on=["cluster", "device_uuid"], how="anti"
    )
    return pl.concat([whole, divided]).select(*_PIECE, "mig_profile", model="known_model")


def _nodes(nodes: pl.DataFrame, at: datetime) -> pl.DataFrame:
    return (
        nodes.filter(pl.col("observed_at") <= at)
        .sort("observed_at")
        .unique(list(NODE), keep="last", maintain_order=True)
        .filter("is_present")
        .select(*NODE, "cpu_milli", "memory_bytes", pl.col("is_schedulable").fill_null(value=True))
    )


def _used(held: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """Return what holders take of each node; null where one did not tell what it asks for."""
    count = pl.when(pl.col("gpu_count") > 0).then("gpu_count")
    shares = asked.select(
        "cluster",
        "workload_uid",
        cpu=pl.col("cpu_milli") // count,
        memory=pl.col("memory_bytes") // count,
    )
    taking = held.join(shares, on=["cluster", "workload_uid"], how="left")
    return (
        taking.group_by(NODE)
        .agg(cpu_used=_sum_if_known("cpu"), memory_used=_sum_if_known("memory"))
        .with_columns(is_used=pl.lit(value=True))
    )


def _sum_if_known(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum())


def _left(has: str, used: str) -> pl.Expr:
    taken = pl.when(pl.col("is_used").is_null()).then(0).otherwise(pl.col(used))
    return (pl.col(has) - taken).clip(lower_bound=0)
