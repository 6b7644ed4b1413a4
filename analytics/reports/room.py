"""Tables about room: for gangs by place, for a request, on MIG boards, and after a few moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from analytics.defragmentation import SLOT_GPUS, Hint
from analytics.gangs import cells_behind_quota, largest_gangs, topology_gap
from analytics.mig_geometry import board_room, oversized
from analytics.placement import Fit
from analytics.reports.model import Column, Table
from analytics.reports.shape import column, table
from analytics.request import Request, text_of
from steward.units import GPU_MILLI

NODES_SHOWN: Final = 20
_DEVICES, _STANDING = "device_history", "workload_standing"
_BLOCKERS: Final = {
    "model": "another GPU model",
    "cordoned": "cordoned",
    "lost": "a GPU is lost or absent",
    "gpus": "too few free GPUs",
    "cpu": "too little CPU left",
    "memory": "too little memory left",
    "cpu_unknown": "free CPU is not known",
    "memory_unknown": "free memory is not known",
}


def places_table(placed: pl.DataFrame) -> Table:
    """Return the largest gang within one node, rack, NVLink domain and cluster."""
    columns = (
        column("place", "Within one", "text"),
        column("gang_size", "GPUs per worker", "GPU"),
        column("largest_gang_gpu_count", "Largest gang", "GPU"),
        column("largest_place", "Where", "text"),
        column("place_count", "Places", "count"),
        column("unknown_node_count", "Nodes of unknown place", "count"),
    )
    return table(
        "places", "Largest gang by place", frame=largest_gangs(placed), columns=columns,
        rows="node_place", note="Whole idle GPUs on nodes that take new work; a dash: not told.",
    )  # fmt: skip


def topology_table(placed: pl.DataFrame) -> Table:
    """Return gangs that fit across the cluster beside those that fit within one place."""
    frame = pl.concat([topology_gap(placed, place=each) for each in ("rack", "nvlink_domain")])
    columns = (
        column("place", "Within one", "text"),
        column("gang_gpu_count", "GPUs of the gang", "GPU"),
        column("across_count", "Fit across", "count", "gangs, if their workers may lie anywhere"),
        column("within_count", "Fit within", "count", "gangs that stay in one place"),
        column("gap_count", "Gap", "count", "gangs kept out by where the room is"),
    )
    return table(
        "topology", "Room across and within", frame=frame, columns=columns, rows="node_place",
        note="A node counts the smaller of whole idle GPUs and free CPU / 12 cores.",
    )  # fmt: skip


def cells_table(free: pl.DataFrame, quota: pl.DataFrame) -> Table:
    """Return queues whose unused guarantee is not there in whole nodes."""
    frame = cells_behind_quota(free, quota)
    columns = (
        column("cluster", "Cluster", "text"),
        column("queue", "Queue", "text"),
        column("tenant_id", "Team", "text"),
        column("gpu_model", "GPU model", "text"),
        column("quota_left_gpu_count", "Quota left", "GPU"),
        column("cell_gpu_count", "GPUs of a node", "GPU"),
        column("cells_of_quota_count", "Nodes it stands for", "count"),
        column("cells_free_count", "Nodes all idle", "count"),
    )
    return table(
        "cells", "Quota left, but not in whole nodes", frame=frame.filter("is_short"),
        columns=columns, rows="quota_use",
        note="The queue's guarantee covers more whole nodes than are entirely idle.",
    )  # fmt: skip


def stranded_table(nodes: pl.DataFrame, reasons: Sequence[str | None]) -> Table:
    """Return idle GPUs that no expected shape can use now, by reason."""
    told = {"cpu": "the node lacks CPU", "pieces": "idle pieces are too few or too small",
            "model": "no expected work may use the model"}  # fmt: skip
    frame = (
        nodes.select("idle_milli")
        .with_columns(reason=pl.Series(reasons, dtype=pl.String))
        .filter(pl.col("reason").is_not_null())
        .group_by("reason")
        .agg(
            node_count=pl.len().cast(pl.Int64),
            idle_gpu_count=pl.col("idle_milli").sum() / GPU_MILLI,
        )
        .sort("reason")
        .with_columns(meaning=pl.col("reason").replace_strict(told, return_dtype=pl.String))
    )
    columns = (
        column("reason", "Reason", "text"),
        column("node_count", "Nodes", "count"),
        column("idle_gpu_count", "Idle", "GPU"),
        column("meaning", "Meaning", "text"),
    )
    return table(
        "stranded_now", "Stranded now", frame=frame, columns=columns, rows=_DEVICES,
        note="Nodes with idle GPUs on which no shape of the target workload fits.",
    )  # fmt: skip


def fit_tables(found: Fit, others: Sequence[tuple[str, Request]]) -> tuple[Table, ...]:
    """Return where a request fits, what blocks the rest and what would fit instead."""
    return (_fit_nodes(found), _fit_blockers(found), _fit_instead(found, others))


def _fit_nodes(found: Fit) -> Table:
    rows = [
        {"cluster": room.cluster, "node": room.node, "model": room.model, "worker_count": count}
        for room, count in found.by_node[:NODES_SHOWN]
    ]
    columns = (
        column("cluster", "Cluster", "text"),
        column("node", "Node", "text"),
        column("model", "GPU model", "text"),
        column("worker_count", "Workers", "count"),
    )
    return _listed("fits", f"Where it would fit now ({NODES_SHOWN})", rows=rows, columns=columns)


def _fit_blockers(found: Fit) -> Table:
    blocked, lifted = dict(found.blocked), dict(found.if_lifted)
    rows = [
        {
            "blocker": name,
            "meaning": meaning,
            "node_count": blocked.get(name, 0),
            "more_worker_count": lifted.get(name, 0) if not name.endswith("unknown") else None,
        }
        for name, meaning in _BLOCKERS.items()
        if name in blocked or name in lifted
    ]
    columns = (
        column("blocker", "Blocker", "text"),
        column("meaning", "Meaning", "text"),
        column("node_count", "Nodes", "count", "that take no worker for this reason first"),
        column("more_worker_count", "Workers more if lifted", "count", "all else as it is"),
    )
    return _listed("fits_blocked", "What blocks the rest", rows=rows, columns=columns)


def _fit_instead(found: Fit, others: Sequence[tuple[str, Request]]) -> Table:
    rows = [{"change": what, "request": text_of(other)} for what, other in others]
    columns = (column("change", "Change", "text"), column("request", "Request", "text"))
    note = "" if rows else (
        "The request fits as it is." if found.worker_count >= found.request.worker_count
        else "Nothing near it fits now."
    )  # fmt: skip
    return _listed("fits_instead", "What would fit instead", rows=rows, columns=columns, note=note)


def _listed(
    key: str,
    title: str,
    *,
    rows: Sequence[Mapping[str, str | int | None]],
    columns: tuple[Column, ...],
    note: str = "",
) -> Table:
    types = {each.name: pl.String if each.unit == "text" else pl.Int64 for each in columns}
    frame = pl.DataFrame(rows, schema=pl.Schema(types))
    return table(key, title, frame=frame, columns=columns, rows=_DEVICES, note=note)


def mig_tables(
    boards: pl.DataFrame, instances: pl.DataFrame, readings: pl.DataFrame
) -> tuple[Table, ...]:
    """Return room for MIG profiles and instances larger than their need; none without MIG."""
    if instances.is_empty():
        return ()
    external = (
        column("model", "GPU model", "text"),
        column("profile", "Profile", "text"),
        column("board_count", "Boards cut", "count"),
        column("by_slice_count", "By free slices", "count", "if only their number mattered"),
        column("at_least_count", "Fit at least", "count", "if instances lie badly"),
        column("at_most_count", "Fit at most", "count", "if instances lie well"),
        column("blocked_count", "Boards blocked", "count", "free slices, but no legal start"),
        column("perhaps_blocked_count", "Perhaps blocked", "count", "depends on where they lie"),
    )
    internal = (
        column("mig_profile", "Profile", "text"),
        column("instance_count", "Instances", "count"),
        column("known_count", "With known memory", "count"),
        column("oversized_count", "Larger than need", "count", "memory would fit a smaller one"),
        column("excess_slice_count", "Slices beyond need", "count", "compute slices"),
    )
    return (
        table(
            "mig_room", "Room for more MIG instances", frame=board_room(boards),
            columns=external, rows=_DEVICES,
            note="Where instances lie is not recorded, so room has a lower and an upper bound. "
            "Boards that are not cut are not counted.",
        ),
        table(
            "mig_oversized", "MIG instances larger than their need",
            frame=oversized(instances, readings), columns=internal, rows="latest_device_sample",
            note="By memory in use at the last reading; a dash: not read.",
        ),
    )  # fmt: skip


def moves_table(found: Hint, *, left_out_count: int) -> Table:
    """Return the few moves that would free the most room, or none."""
    rows: list[dict[str, str | float | None]] = [
        {
            "workload": move.workload.name,
            "team": move.workload.tenant_id,
            "gpu_count": move.workload.gpu_count,
            "from_node": move.workload.key[1],
            "to_node": move.to[1],
            "cluster": move.to[0],
        }
        for move in found.moves
    ]
    columns = (
        column("workload", "Workload", "text"),
        column("team", "Team", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("from_node", "From", "text"),
        column("to_node", "To", "text"),
        column("cluster", "Cluster", "text"),
    )
    types = {each.name: pl.Float64 if each.unit == "GPU" else pl.String for each in columns}
    frame = pl.DataFrame(rows, schema=pl.Schema(types))
    note = (
        f"Slots for {SLOT_GPUS} GPUs: {found.slots_before_count} now, {found.slots_after_count} "
        "after these moves. Training and development on one node only; "
        f"{left_out_count} left out because CPU or memory is not known."
    )
    return table("moves", "Moves that would free the most room", frame=frame, columns=columns,
                 rows=_STANDING, note=note)  # fmt: skip
