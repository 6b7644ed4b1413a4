"""Free capacity at the end of a period: what new work would find."""

from __future__ import annotations

import polars as pl

from analytics.intervals import bounds
from analytics.inventory import current_devices, current_nodes
from analytics.lifetimes import DEVICE, lost_spans
from analytics.segments import Inputs
from steward.period import Period
from steward.units import GPU_MILLI

_NODE = ("cluster", "node")


def open_allocations(allocations: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the allocations still held at the period's end, each by somebody."""
    return allocations.filter(
        pl.col("unheld_reason").is_null()
        & (pl.col("started_at") < period.until_at)
        & (pl.col("ended_at").is_null() | (pl.col("ended_at") >= period.until_at))
    )


def free_capacity(inputs: Inputs, workloads: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return what each node has free at the period's end.

    Args:
        inputs: stored rows up to the period's end.
        workloads: rows of ``workload_current``, for the CPU that holders of GPUs asked for.
        period: its end is the instant.

    Returns:
        one row per node with usable devices, ascending
            cluster, node, gpu_model str | null, gpu_count i64, gpu_free_milli list[f64] (one per
            usable device), idle_milli f64, whole_idle_count i64, cpu_free_milli f64 | null
            (null: the node's CPU or that of a holder is unknown)
        Lost or absent devices and cordoned nodes offer nothing and are left out. Work without
        GPUs is seen only where allocations are recorded for it.
    """
    held = open_allocations(inputs.allocations, period)
    taken = held.group_by(DEVICE).agg(taken_ratio=pl.col("gpu_share_ratio").sum())
    free = (1 - pl.col("taken_ratio").fill_null(0.0)).clip(lower_bound=0) * GPU_MILLI
    usable = _usable_devices(inputs, period).join(taken, on=DEVICE, how="left")
    by_node = (
        usable.with_columns(free_milli=free.round(6))
        .sort(*_NODE, DEVICE)
        .group_by(_NODE, maintain_order=True)
        .agg(
            gpu_model=pl.col("model").drop_nulls().first(),
            gpu_count=pl.len().cast(pl.Int64),
            gpu_free_milli=pl.col("free_milli"),
            idle_milli=pl.col("free_milli").sum(),
            whole_idle_count=(pl.col("free_milli") == GPU_MILLI).sum().cast(pl.Int64),
        )
    )
    cpus = current_nodes(inputs.nodes).select(*_NODE, "cpu_milli")
    taken_milli = pl.when(pl.col("is_held")).then("cpu_taken_milli").otherwise(0.0)
    left = (pl.col("cpu_milli") - taken_milli).clip(lower_bound=0)
    return (
        by_node.join(cpus, on=_NODE, how="left")
        .join(_cpu_taken(held, workloads), on=_NODE, how="left")
        .with_columns(cpu_free_milli=left)
        .drop("cpu_milli", "cpu_taken_milli", "is_held")
        .sort(_NODE)
    )


def _usable_devices(inputs: Inputs, period: Period) -> pl.DataFrame:
    cordoned = current_nodes(inputs.nodes).filter(~pl.col("is_schedulable")).select(_NODE)
    spans = lost_spans(inputs.devices, inputs.events, period)
    _, until_us = bounds(period)
    still_lost = spans.filter(pl.col("end_us") == until_us)
    return (
        current_devices(inputs.devices, inputs.nodes)
        .filter("is_present")
        .join(cordoned, on=_NODE, how="anti")
        .join(still_lost, on=DEVICE, how="anti")
    )


def _cpu_taken(held: pl.DataFrame, workloads: pl.DataFrame) -> pl.DataFrame:
    """Split each workload's CPU over its nodes by the GPU share it holds there.

    Returns:
        one row per node with holders: cluster, node, cpu_taken_milli f64 | null (null: a holder's
        CPU is unknown), is_held bool (true)
    """
    shares = held.group_by("workload_uid", *_NODE).agg(share=pl.col("gpu_share_ratio").sum())
    workload = ["cluster", "workload_uid"]
    part = pl.col("share") / pl.col("share").sum().over(workload)
    return (
        shares.join(workloads.select(*workload, "cpu_milli"), on=workload, how="left")
        .with_columns(cpu_part=pl.col("cpu_milli") * part)
        .group_by(_NODE)
        .agg(
            cpu_taken_milli=pl.when(pl.col("cpu_part").is_not_null().all()).then(
                pl.col("cpu_part").sum()
            ),
            is_held=pl.lit(value=True),
        )
    )
