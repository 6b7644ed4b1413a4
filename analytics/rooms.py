"""What each node has left at the end of a period, with what keeps the rest from new work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.capacity import open_allocations
from analytics.intervals import bounds
from analytics.inventory import current_devices, current_instances, current_nodes
from analytics.lifetimes import DEVICE, lost_spans
from analytics.mig_geometry import partitioned_boards
from analytics.segments import Inputs
from steward.period import Period
from steward.units import GPU_MILLI

_NODE: Final = ("cluster", "node")
_PARTS: Final = ("cpu_milli", "memory_bytes")
_FINEST_DECIMALS: Final = 6
"""Shares such as three sevenths add up to a whole GPU only after rounding to these decimals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoom:
    """What one node has left."""

    cluster: str
    node: str
    model: str | None
    is_schedulable: bool
    free_milli: tuple[float, ...]
    """Of each usable device that is not cut into MIG instances."""
    lost_count: int
    """Devices lost or absent."""
    cpu_free_milli: float | None
    """None: the node's processors or a holder's are unknown."""
    memory_free_bytes: float | None
    mig_boards: tuple[MigBoard, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MigBoard:
    """A usable board that is cut into instances."""

    profiles: tuple[str, ...]
    """Short names of all instances on it."""
    free_profiles: tuple[str, ...]
    """Names, as labelled, of those that nobody holds."""
    memory_gb: float | None


def device_rooms(inputs: Inputs, period: Period) -> pl.DataFrame:
    """Return what every device has free at the period's end.

    Returns:
        one row per physical device, ascending by cluster, node, device_uuid
            cluster, node, device_uuid, model str | null, memory_total_bytes i64 | null,
            free_milli f64 (0..1000), is_lost bool (lost or absent), is_schedulable bool (of its
            node; unknown counts as schedulable), is_partitioned bool (cut into MIG instances)
    """
    held = open_allocations(inputs.allocations, period)
    taken = held.group_by(DEVICE).agg(taken_ratio=pl.col("gpu_share_ratio").sum())
    spans = lost_spans(inputs.devices, inputs.events, period)
    _, until_us = bounds(period)
    lost = spans.filter(pl.col("end_us") == until_us)[DEVICE].unique()
    partitioned = current_instances(inputs.devices)[DEVICE].unique()
    free = (1 - pl.col("taken_ratio").fill_null(0.0)).clip(lower_bound=0) * GPU_MILLI
    schedulable = current_nodes(inputs.nodes).select(*_NODE, "is_schedulable")
    return (
        current_devices(inputs.devices, inputs.nodes)
        .join(taken, on=DEVICE, how="left")
        .join(schedulable, on=_NODE, how="left")
        .select(
            *_NODE, DEVICE, "model", "memory_total_bytes",
            free_milli=free.round(_FINEST_DECIMALS),
            is_lost=~pl.col("is_present") | pl.col(DEVICE).is_in(lost.implode()),
            is_schedulable=pl.col("is_schedulable").fill_null(value=True),
            is_partitioned=pl.col(DEVICE).is_in(partitioned.implode()),
        )
        .sort(*_NODE, DEVICE)
    )  # fmt: skip


def left_on_nodes(
    inputs: Inputs, *, standing: pl.DataFrame, places: pl.DataFrame, period: Period
) -> pl.DataFrame:
    """Return processors and memory that holders of GPUs leave on each node.

    Args:
        inputs: stored rows.
        standing: rows of ``workload_standing``; what a workload asked for is split over its nodes
            by the GPU share it holds there.
        places: rows of ``node_place``.
        period: its end is the instant.

    Returns:
        one row per node, ascending: cluster, node, cpu_milli, memory_bytes f64 | null (null: that
        of the node or of one of its holders is unknown)
        Work without GPUs is seen only where allocations are recorded for it.
    """
    held = open_allocations(inputs.allocations, period)
    workload = ["cluster", "workload_uid"]
    shares = held.group_by(*workload, *_NODE[1:]).agg(share=pl.col("gpu_share_ratio").sum())
    part = pl.col("share") / pl.col("share").sum().over(workload)
    asked = shares.join(standing.select(*workload, *_PARTS), on=workload, how="left")
    taken = (
        asked.with_columns(pl.col(name) * part for name in _PARTS)
        .group_by(_NODE)
        .agg(
            pl.when(pl.col(name).is_not_null().all())
            .then(pl.col(name).sum())
            .alias(f"{name}_taken")
            for name in _PARTS
        )
        .with_columns(is_held=pl.lit(value=True))
    )
    nodes = current_nodes(inputs.nodes).select(*_NODE, "cpu_milli")
    joined = nodes.join(places.select(*_NODE, "memory_bytes"), on=_NODE, how="left").join(
        taken, on=_NODE, how="left"
    )
    left = [_left(name).alias(name) for name in _PARTS]
    return joined.select(*_NODE, *left).sort(_NODE)


def _left(name: str) -> pl.Expr:
    taken = pl.when(pl.col("is_held")).then(f"{name}_taken").otherwise(0.0)
    return (pl.col(name) - taken).clip(lower_bound=0)


def node_rooms(
    inputs: Inputs, *, standing: pl.DataFrame, places: pl.DataFrame, period: Period
) -> tuple[NodeRoom, ...]:
    """Return every node that has devices, ascending by cluster and node.

    Args:
        inputs: stored rows.
        standing: rows of ``workload_standing``.
        places: rows of ``node_place``.
        period: its end is the instant.
    """
    devices = device_rooms(inputs, period)
    usable = ~pl.col("is_lost") & ~pl.col("is_partitioned")
    by_node = (
        devices.group_by(_NODE)
        .agg(
            model=pl.col("model").drop_nulls().first(),
            is_schedulable=pl.col("is_schedulable").first(),
            free_milli=pl.col("free_milli").filter(usable).sort(),
            lost_count=pl.col("is_lost").sum().cast(pl.Int64),
        )
        .join(
            left_on_nodes(inputs, standing=standing, places=places, period=period),
            on=_NODE,
            how="left",
        )
        .sort(_NODE)
    )
    boards = _mig_boards(inputs, devices.filter(~pl.col("is_lost")), period)
    return tuple(
        NodeRoom(
            cluster=row["cluster"],
            node=row["node"],
            model=row["model"],
            is_schedulable=row["is_schedulable"],
            free_milli=tuple(row["free_milli"]),
            lost_count=row["lost_count"],
            cpu_free_milli=row["cpu_milli"],
            memory_free_bytes=row["memory_bytes"],
            mig_boards=boards.get((row["cluster"], row["node"]), ()),
        )
        for row in by_node.iter_rows(named=True)
    )


Boards = Mapping[tuple[str, str], tuple[MigBoard, ...]]


def _mig_boards(inputs: Inputs, usable: pl.DataFrame, period: Period) -> Boards:
    instances = current_instances(inputs.devices)
    homes = current_devices(inputs.devices, inputs.nodes).join(
        usable.select(DEVICE), on=DEVICE, how="semi"
    )
    held = open_allocations(inputs.allocations, period).select(DEVICE, "instance_id").unique()
    free = instances.join(held, on=[DEVICE, "instance_id"], how="anti")
    names = dict(_lists(free.filter(pl.col("mig_profile").is_not_null())))
    found: dict[tuple[str, str], list[MigBoard]] = {}
    for row in partitioned_boards(instances, homes).iter_rows(named=True):
        board = MigBoard(
            profiles=tuple(row["profiles"]),
            free_profiles=names.get(row[DEVICE], ()),
            memory_gb=row["memory_gb"],
        )
        found.setdefault((row["cluster"], row["node"]), []).append(board)
    return {place: tuple(boards) for place, boards in found.items()}


def _lists(free: pl.DataFrame) -> Iterator[tuple[str, tuple[str, ...]]]:
    for (uuid,), part in free.group_by(DEVICE, maintain_order=True):
        yield str(uuid), tuple(part["mig_profile"].to_list())
