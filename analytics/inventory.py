"""What there is: nodes and devices as last seen."""

from __future__ import annotations

import polars as pl

_NODE = ("cluster", "node")


def current_devices(devices: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the physical devices that there are: without those that left with their node.

    Returns:
        rows of ``known_devices``, without the devices whose node was removed and that were not
            seen after that
    """
    board = ["cluster", "device_uuid"]
    removed = current_nodes(nodes).filter(~pl.col("is_present"))
    sightings = devices.filter("is_present").group_by(board)
    seen = sightings.agg(seen_at=pl.col("observed_at").max())
    known = known_devices(devices, nodes)
    gone = (
        known.join(removed.select(*_NODE, left_at="observed_at"), on=_NODE)
        .join(seen, on=board, how="left")
        .filter(pl.col("seen_at").is_null() | (pl.col("seen_at") <= pl.col("left_at")))
    )
    return known.join(gone, on=board, how="anti", maintain_order="left")


def known_devices(devices: pl.DataFrame, nodes: pl.DataFrame) -> pl.DataFrame:
    """Return every physical device ever seen, as last seen, to look up its node and model.

    A device's model falls back to its node's. A device known only by its MIG instances counts too,
    with unknown memory.

    Returns:
        one row per device, ascending by cluster, node, device_uuid
            cluster, node, device_uuid, model str | null, memory_total_bytes i64 | null,
            is_present bool
    """
    is_board = pl.col("instance_id").is_null()
    latest = (
        devices.with_columns(
            is_board=is_board, memory_total_bytes=pl.when(is_board).then("memory_total_bytes")
        )
        .sort("is_board", "observed_at")
        .unique(["cluster", "device_uuid"], keep="last", maintain_order=True)
    )
    return (
        latest.join(node_models(nodes), on=["cluster", "node"], how="left")
        .with_columns(model=pl.coalesce("model", "gpu_model"))
        .select("cluster", "node", "device_uuid", "model", "memory_total_bytes", "is_present")
        .sort("cluster", "node", "device_uuid")
    )


def current_instances(devices: pl.DataFrame) -> pl.DataFrame:
    """Return the MIG instances present as last seen.

    Returns:
        one row per instance, ascending: device_uuid, instance_id, mig_profile str | null,
        sm_share_ratio f64 | null, memory_share_ratio f64 | null
    """
    return (
        devices.filter(pl.col("instance_id").is_not_null())
        .sort("observed_at")
        .unique(["cluster", "device_uuid", "instance_id"], keep="last", maintain_order=True)
        .filter("is_present")
        .select("device_uuid", "instance_id", "mig_profile", "sm_share_ratio", "memory_share_ratio")
        .sort("device_uuid", "instance_id")
    )


def current_nodes(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return nodes as last seen, also removed ones: one row per node, ascending, their columns."""
    return (
        nodes.sort("observed_at")
        .unique(list(_NODE), keep="last", maintain_order=True)
        .sort("cluster", "node")
    )


def node_models(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return the model that each node last told of: cluster, node, gpu_model; others are left out.

    A node that was removed tells none any more, and its devices keep theirs.
    """
    told = nodes.filter(pl.col("gpu_model").is_not_null())
    return current_nodes(told).select(*_NODE, "gpu_model")


def device_models(devices: pl.DataFrame) -> pl.DataFrame:
    """Return counts by model.

    Args:
        devices: rows of ``current_devices``.

    Returns:
        one row per model, most GPUs first (ties by name, unknown model null)
            model, node_count, gpu_count, absent_count i64 (of gpu_count), memory_bytes i64 | null
            (of present devices, null if any is unknown), memory_known_count i64
    """
    memory = pl.col("memory_total_bytes").filter("is_present")
    return (
        devices.group_by("model")
        .agg(
            node_count=pl.struct("cluster", "node").n_unique().cast(pl.Int64),
            gpu_count=pl.len().cast(pl.Int64),
            absent_count=(~pl.col("is_present")).sum().cast(pl.Int64),
            memory_bytes=pl.when(memory.is_not_null().all()).then(memory.sum()),
            memory_known_count=memory.is_not_null().sum().cast(pl.Int64),
        )
        .sort("gpu_count", "model", descending=[True, False], nulls_last=True)
    )
