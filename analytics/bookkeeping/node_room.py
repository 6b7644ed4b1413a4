"""What each node has left of processors and memory, from one change to the next."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.bookkeeping.material import Material
from analytics.bookkeeping.pieces import Pieces
from analytics.intervals import micros

NODE: Final = ("cluster", "node")
_ROOM: Final = ("cpu", "memory")
_MILLIONTHS: Final = 1_000_000
"""Processors are counted in these, so that a third of a request adds up the same in any order."""


def node_room(free: pl.DataFrame, cut_up: Pieces, stock: Material) -> pl.DataFrame:
    """Return the steps of every node that has something free.

    Args:
        free: slices with cluster, node, start_us and end_us; each starts and ends a step.
        cut_up: who holds what; a workload takes a gpu_count-th of its processors and memory for
            each device or instance it holds.
        stock: nodes and what workloads asked for.

    Returns:
        one row per node and step, ascending: step_id i64 (its row number), cluster, node,
            start_us, end_us, cpu_free_milli f64 | null, memory_free_bytes i64 | null
        Null where the node's own, or what a holder asked for, is unknown. Work without GPUs is
        not seen.
    """
    taken = _taken(cut_up, stock).join(free.select(NODE).unique(), on=NODE, how="semi")
    told = _told(stock.nodes)
    instants = pl.concat(
        [
            *[free.select(*NODE, at_us=end) for end in ("start_us", "end_us")],
            *[taken.select(*NODE, at_us=end) for end in ("start_us", "end_us")],
            told.select(*NODE, "at_us").join(free.select(NODE).unique(), on=NODE, how="semi"),
        ]
    )
    steps = instants.unique().sort(*NODE, "at_us")
    used = _running(taken)
    known = steps.join_asof(
        told, on="at_us", by=list(NODE), strategy="backward", check_sortedness=False
    ).join_asof(used, on="at_us", by=list(NODE), strategy="backward", check_sortedness=False)
    left = {name: _left(name) for name in _ROOM}
    return (
        known.with_columns(end_us=pl.col("at_us").shift(-1).over(NODE))
        .filter(pl.col("end_us").is_not_null())
        .select(
            *NODE,
            "end_us",
            start_us="at_us",
            cpu_free_milli=left["cpu"] / _MILLIONTHS,
            memory_free_bytes=left["memory"],
        )
        .sort(*NODE, "start_us")
        .with_columns(step_id=pl.int_range(pl.len(), dtype=pl.Int64))
    )


def _told(nodes: pl.DataFrame) -> pl.DataFrame:
    """Return what a node has, from when on; before the first word it is as in that word."""
    return (
        nodes.sort("observed_at", *NODE)
        .select(
            *NODE,
            at_us=pl.when(pl.int_range(pl.len()).over(NODE) == 0)
            .then(0)
            .otherwise(micros(pl.col("observed_at"))),
            cpu=pl.col("cpu_milli") * _MILLIONTHS,
            memory="memory_bytes",
        )
        .sort("at_us")
    )


def _taken(cut_up: Pieces, stock: Material) -> pl.DataFrame:
    """Return what holders take on the node of each slice they hold."""
    count = pl.when(pl.col("gpu_count") > 0).then("gpu_count")
    asked = stock.workloads.select(
        "cluster",
        "workload_uid",
        cpu=pl.col("cpu_milli") * _MILLIONTHS // count,
        memory=pl.col("memory_bytes") // count,
    )
    slices = cut_up.slices.select("slice_id", *NODE, "start_us", "end_us")
    return (
        cut_up.holders.select("slice_id", "workload_uid")
        .join(slices, on="slice_id")
        .join(asked, on=["cluster", "workload_uid"], how="left")
        .select(*NODE, "start_us", "end_us", *_ROOM)
    )


def _running(taken: pl.DataFrame) -> pl.DataFrame:
    """Return what is taken from each instant on, and by how many whose need is unknown."""
    amounts = [
        column
        for name in _ROOM
        for column in (
            pl.col(name).fill_null(0).alias(f"{name}_taken"),
            pl.col(name).is_null().cast(pl.Int64).alias(f"{name}_unknown"),
        )
    ]
    names = [f"{name}_{kind}" for name in _ROOM for kind in ("taken", "unknown")]
    begun = taken.select(*NODE, *amounts, at_us="start_us")
    over = taken.select(*NODE, *amounts, at_us="end_us").with_columns(-pl.col(*names))
    return (
        pl.concat([begun, over])
        .group_by(*NODE, "at_us")
        .agg(pl.col(*names).sum())
        .sort(*NODE, "at_us")
        .with_columns(pl.col(*names).cum_sum().over(NODE))
        .sort("at_us")
    )


def _left(name: str) -> pl.Expr:
    is_known = pl.col(f"{name}_unknown").fill_null(0) == 0
    left = pl.col(name) - pl.col(f"{name}_taken").fill_null(0)
    return pl.when(is_known).then(left.clip(lower_bound=0))
