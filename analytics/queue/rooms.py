"""What each node has free at the period's end, for the words of those who wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.inputs import conform
from analytics.inventory import current_devices, current_nodes
from analytics.queue.free import GPU_UNITS, MIG, SHARED, WHOLE, Free
from analytics.waits import WORKLOAD
from steward.period import Period

_NODE: Final = ("cluster", "node")


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One node with GPUs."""

    cluster: str
    node: str
    model: str | None
    whole_count: int
    """Boards that are offered whole, usable or not."""
    free_count: int
    """Of these, those that nobody holds and that can be used."""
    mig_units: int
    """Free parts of boards that are offered as MIG instances, in units of ``free.GPU_UNITS``."""
    shared_units: int
    """Free parts of boards that are shared, likewise."""
    cpu_milli: float | None
    """Free; None: the node's CPU, or that of a holder, is not known."""
    memory_bytes: float | None
    """Free, likewise."""

    def slots(self, gpu_count: int, *, cpu_milli: float, memory_bytes: float) -> int:
        """Return how many workers of this request fit; what is not known does not hinder."""
        counts = [self.free_count // gpu_count]
        if self.cpu_milli is not None and cpu_milli > 0:
            counts.append(int(self.cpu_milli // cpu_milli))
        if self.memory_bytes is not None and memory_bytes > 0:
            counts.append(int(self.memory_bytes // memory_bytes))
        return max(0, min(counts))


def rooms(
    frames: Mapping[str, pl.DataFrame], *, free: Free, workloads: pl.DataFrame, period: Period
) -> tuple[Room, ...]:
    """Return each node with GPUs, ascending by cluster and name.

    Args:
        frames: the stored rows of nodes, devices and allocations.
        free: of the period.
        workloads: rows of ``workload_current``, for the CPU and memory that holders asked for.
        period: its end is the instant.
    """
    now = free.changes.unique("board_id", keep="last", maintain_order=True)
    nodes = conform("node_history", frames["node_history"])
    there = current_devices(conform("device_history", frames["device_history"]), nodes)
    boards = free.boards.join(now.select("board_id", "free_units"), on="board_id").join(
        there, on=["cluster", "device_uuid"], how="semi"
    )
    offer, units = pl.col("offer"), pl.col("free_units")
    is_free = (offer == WHOLE) & (units == GPU_UNITS)
    counted = boards.group_by(_NODE).agg(
        model=pl.col("model").drop_nulls().first(),
        whole_count=(offer == WHOLE).sum().cast(pl.Int64),
        free_count=is_free.sum().cast(pl.Int64),
        mig_units=units.filter(offer == MIG).sum(),
        shared_units=units.filter(offer == SHARED).sum(),
    )
    held = conform("allocation_history", frames["allocation_history"])
    sizes = current_nodes(nodes)
    left = (
        counted.join(sizes.select(*_NODE, "cpu_milli", "memory_bytes"), on=_NODE, how="left")
        .join(_taken(held, workloads, period), on=_NODE, how="left")
        .with_columns(_left("cpu_milli"), _left("memory_bytes"))
        .sort(_NODE)
    )
    fields = ("cluster", "node", "model", "whole_count", "free_count", "mig_units", "shared_units",
              "cpu_milli", "memory_bytes")  # fmt: skip
    return tuple(Room(**row) for row in left.select(fields).iter_rows(named=True))


def _left(what: str) -> pl.Expr:
    taken = pl.when(pl.col("is_held").is_null()).then(0.0).otherwise(pl.col(f"{what}_taken"))
    return (pl.col(what) - taken).clip(lower_bound=0.0).alias(what)


def open_holds(held: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the allocations held at the period's end."""
    return held.filter(
        (pl.col("started_at") < period.until_at)
        & (pl.col("ended_at").is_null() | (pl.col("ended_at") >= period.until_at))
    )


def _taken(held: pl.DataFrame, workloads: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Split what each workload asked for over its nodes by the GPU share it holds there."""
    shares = (
        open_holds(held, period)
        .group_by(*WORKLOAD, "node")
        .agg(share=pl.col("gpu_share_ratio").sum())
    )
    part = pl.col("share") / pl.col("share").sum().over(WORKLOAD)
    asked = workloads.select(*WORKLOAD, "cpu_milli", "memory_bytes")
    parts = shares.join(asked, on=WORKLOAD, how="left").with_columns(
        pl.col("cpu_milli", "memory_bytes") * part
    )
    return parts.group_by(_NODE).agg(
        *[
            pl.when(pl.col(name).is_not_null().all())
            .then(pl.col(name).sum())
            .alias(f"{name}_taken")
            for name in ("cpu_milli", "memory_bytes")
        ],
        is_held=pl.lit(value=True),
    )
