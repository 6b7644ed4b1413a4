"""From stored rows to the fleet and the work on it that could move; see ``defragmentation``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.capacity import open_allocations
from analytics.defragmentation import (
    MOVABLE_CLASSES,
    UNTOUCHABLE_PRIORITIES,
    Key,
    Node,
    Workload,
)
from analytics.lifetimes import DEVICE
from analytics.rooms import device_rooms, left_on_nodes
from analytics.segments import Inputs
from steward.period import Period
from steward.units import GPU_MILLI

_WORKLOAD: Final = ("cluster", "workload_uid")
_NEEDS: Final = ("cpu_milli", "memory_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Movable:
    """The nodes as they are, and who on them could be moved."""

    fleet: Mapping[Key, Node]
    workloads: tuple[Workload, ...]
    """Ascending by cluster and uid."""
    left_out_count: int
    """Workloads that could move, were it known how much CPU and memory they need."""


def movable(
    inputs: Inputs, *, standing: pl.DataFrame, places: pl.DataFrame, period: Period
) -> Movable:
    """Return the fleet at the period's end and the workloads on it that may move.

    Args:
        inputs: stored rows.
        standing: rows of ``workload_standing``.
        places: rows of ``node_place``.
        period: its end is the instant.
    """
    devices = device_rooms(inputs, period).filter(~pl.col("is_lost") & ~pl.col("is_partitioned"))
    left = left_on_nodes(inputs, standing=standing, places=places, period=period)
    held = _candidates(inputs, devices, standing=standing, period=period)
    is_known = pl.all_horizontal(pl.col(name).is_not_null() for name in _NEEDS)
    known = held.filter(is_known)
    return Movable(
        fleet=_fleet(devices, left),
        workloads=_workloads(known),
        left_out_count=held.height - known.height,
    )


def _fleet(devices: pl.DataFrame, left: pl.DataFrame) -> dict[Key, Node]:
    by_node = (
        devices.group_by("cluster", "node", maintain_order=True)
        .agg(
            pl.col("model").drop_nulls().first(),
            pl.col("is_schedulable").first(),
            pl.col(DEVICE),
            pl.col("free_milli"),
        )
        .join(left, on=["cluster", "node"], how="left", maintain_order="left")
    )
    return {
        (row["cluster"], row["node"]): Node(
            model=row["model"],
            is_schedulable=row["is_schedulable"],
            devices=dict(zip(row[DEVICE], row["free_milli"], strict=True)),
            cpu_milli=row["cpu_milli"],
            memory_bytes=row["memory_bytes"],
        )
        for row in by_node.iter_rows(named=True)
    }


def _candidates(
    inputs: Inputs, devices: pl.DataFrame, *, standing: pl.DataFrame, period: Period
) -> pl.DataFrame:
    """Return one row per workload that may move, with the lists of what it holds."""
    held = open_allocations(inputs.allocations, period).filter(pl.col("workload_uid").is_not_null())
    on_usable = held.join(devices.select(DEVICE), on=DEVICE, how="semi")
    elsewhere = held.join(devices.select(DEVICE), on=DEVICE, how="anti").select(_WORKLOAD)
    pieces = on_usable.group_by(*_WORKLOAD, "node", DEVICE).agg(
        milli=pl.col("gpu_share_ratio").sum() * GPU_MILLI
    )
    together = (
        pieces.sort(*_WORKLOAD, "node", DEVICE)
        .group_by(_WORKLOAD, maintain_order=True)
        .agg(
            node_count=pl.col("node").n_unique(),
            node=pl.col("node").first(),
            uuids=pl.col(DEVICE),
            milli=pl.col("milli"),
        )
        .filter(pl.col("node_count") == 1)
    )
    is_movable = pl.col("workload_class").is_in(MOVABLE_CLASSES) & ~pl.col("priority_class").is_in(
        UNTOUCHABLE_PRIORITIES
    ).fill_null(value=False)
    known = standing.filter(is_movable).drop("namespace")
    return (
        together.join(elsewhere, on=_WORKLOAD, how="anti", maintain_order="left")
        .join(known, on=_WORKLOAD, maintain_order="left")
        .sort(_WORKLOAD)
    )


def _workloads(known: pl.DataFrame) -> tuple[Workload, ...]:
    return tuple(
        Workload(
            key=(row["cluster"], row["node"]),
            uid=row["workload_uid"],
            name=row["name"],
            tenant_id=row["tenant_id"],
            pieces=tuple(zip(row["uuids"], row["milli"], strict=True)),
            cpu_milli=row["cpu_milli"],
            memory_bytes=row["memory_bytes"],
            models=tuple(row["gpu_models"].split("|")) if row["gpu_models"] else (),
        )
        for row in known.iter_rows(named=True)
    )
