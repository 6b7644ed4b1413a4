"""Report: how much idle GPU capacity the expected work cannot use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.capacity import free_capacity
from analytics.fragmentation import CATEGORIES, fragmentation, free_nodes, stranded_reasons
from analytics.gangs import GANG_SIZES, gang_slots, largest_node_gang, partial_leftover_milli
from analytics.inputs import conform, empty
from analytics.reports import leaf_cost, room, room_now
from analytics.reports.measured import stored_inputs
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table
from analytics.rooms import device_rooms
from analytics.segments import Inputs
from analytics.shapes import TargetWorkload, expected_work, request_shapes
from steward.period import Period
from steward.units import GPU_MILLI

_NODES, _SHAPES, _TARGET = "device_history", "workload_current", "state.target_workload"
NODES_SHOWN: Final = 20
"""More than these nobody looks into one by one."""
BOUND_WORTH_TELLING_RATIO: Final = 0.5
"""Model constraints that make up more of the fragmentation than this are a finding."""
_MEANINGS = {
    "q1_lack_both": "the shape lacks GPUs and CPU on the node",
    "q2_lack_gpu": "the shape lacks GPUs, or leaves pieces too small for it",
    "q3_satisfied": "usable: not fragmented",
    "q4_lack_cpu": "the shape lacks CPU",
    "xl_satisfied": "the shape needs no GPU; its CPU fits",
    "xr_lack_cpu": "the shape needs no GPU; its CPU does not fit",
    "no_access": "the shape is bound to other GPU models",
}


GROUPINGS: Final = {"cluster": "cluster", "model": "gpu_model", "node": "node"}
"""Words of ``--by`` and the columns that they name."""
_TITLES: Final = {"cluster": "Cluster", "model": "GPU model", "node": "Node"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Fragmentation and what it was measured on."""

    free: pl.DataFrame
    """Rows of ``free_capacity``; boards cut into MIG instances are no whole idle GPUs."""
    target: TargetWorkload
    nodes: pl.DataFrame
    """Rows of ``fragmentation`` beside their node; nodes without known CPU are left out."""

    @property
    def shapes(self) -> pl.DataFrame:
        """Return the shapes of the target workload."""
        return self.target.shapes

    @property
    def idle_milli(self) -> float:
        """Return all idle milli-GPU, with and without known CPU."""
        return float(self.free["idle_milli"].sum())

    @property
    def fragment_milli(self) -> float | None:
        """Return F, None where there is no target workload."""
        return None if self.shapes.is_empty() else float(self.nodes["fragment_milli"].sum())

    @property
    def known_idle_milli(self) -> float:
        """Return the idle milli-GPU that F speaks of."""
        return float(self.nodes["idle_milli"].sum())


def measure(frames: Mapping[str, pl.DataFrame], period: Period) -> Measured:
    """Return fragmentation at the period's end.

    Args:
        frames: ``MEASURED_INPUTS`` by name; without ``state.target_workload`` the target workload
            is learnt from the period.
        period: its end is the instant.
    """
    workloads = conform(_SHAPES, frames[_SHAPES])
    inputs = stored_inputs(frames)
    free = _free(inputs, workloads, period)
    known = free.filter(pl.col("cpu_free_milli").is_not_null())
    stored = conform(_TARGET, frames.get(_TARGET, empty(_TARGET)))
    target = expected_work(workloads, period, stored=stored)
    parts = fragmentation(free_nodes(known), target.shapes)
    nodes = known.drop("idle_milli").hstack(parts)
    return Measured(free=free, target=target, nodes=nodes)


def _free(inputs: Inputs, workloads: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return free capacity in which a board cut into instances is no whole idle GPU."""
    free = free_capacity(inputs, workloads, period)
    is_cut = pl.col("is_partitioned") & ~pl.col("is_lost") & (pl.col("free_milli") >= GPU_MILLI)
    cut = device_rooms(inputs, period).filter(is_cut).group_by("cluster", "node").len("cut_count")
    cut_count = pl.col("cut_count").fill_null(0).cast(pl.Int64)
    return (
        free.join(cut, on=["cluster", "node"], how="left", maintain_order="left")
        .with_columns(whole_idle_count=pl.col("whole_idle_count") - cut_count)
        .drop("cut_count")
    )


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return fragmentation, room for gangs, and what would fit, at the period's end.

    Raises:
        UsageError: ``question.fits`` is no request.
    """
    period = question.period
    inputs = stored_inputs(frames)
    fits = room_now.fits(frames, inputs, period, text=question.fits)
    found = measure(frames, period)
    wanted = request_shapes(conform(_SHAPES, frames[_SHAPES]))
    stranded = room_now.stranded(frames, period)
    moves = room_now.moves(frames, inputs, period)
    groups = () if question.by is None else (_groups_table(found, question.by),)
    reasons = stranded_reasons(free_nodes(found.nodes), found.shapes)
    return Report(
        name=DEFINITION.name,
        title="Fragmentation",
        period=period,
        figures=(*fits.figures, *figures(found), *stranded.figures, *moves.figures),
        tables=(
            *fits.tables,
            _categories_table(found),
            *groups,
            gangs_table(found),
            *room_now.places(frames, found.free),
            room.stranded_table(found.nodes, reasons),
            *stranded.tables,
            *room_now.mig(frames, inputs),
            *moves.tables,
            _nodes_table(found),
            _shapes_table(found),
        ),
        findings=findings(found, wanted),
    )


def figures(found: Measured) -> tuple[Figure, ...]:
    """Return F with both of its ratios, named apart, and the room for gangs."""
    capacity = float(found.free["gpu_count"].sum()) * GPU_MILLI
    known = ratio(found.known_idle_milli, found.idle_milli)
    fragment = found.fragment_milli
    gangs = gang_slots(found.free)
    of_idle = None if fragment is None else ratio(fragment, found.known_idle_milli)
    of_total = None if fragment is None else ratio(fragment, capacity)
    version = None if found.shapes.is_empty() else found.target.version
    facts: tuple[tuple[str, str, float | str | None, str, str], ...] = (
        ("idle_milli", "Idle", found.idle_milli, "milli-GPU", "Idle on usable devices at the end."),
        ("fragment_milli", "Fragmented", fragment, "milli-GPU",
         "Idle capacity that the target workload cannot use, weighted by its shapes (FGD)."),
        ("fragmentation_ratio", "Fragmented of idle", of_idle, "ratio", "Fragmented / idle."),
        ("fragmentation_of_total_ratio", "Fragmented of total", of_total, "ratio",
         "Fragmented / all usable GPU capacity."),
        ("partial_leftover_milli", "Partial leftovers", partial_leftover_milli(found.free),
         "milli-GPU", "Idle on devices that are partly held."),
        ("largest_gang_gpu_count", "Largest gang, one node", largest_node_gang(found.free), "GPU",
         "Most whole idle GPUs on one node."),
        ("slots_of_8_count", "Slots for 8 GPUs", int(gangs["slot_count"][-1]), "count",
         "Workers of 8 whole GPUs that could start."),
        ("shapes_version", "Target workload", version, "text",
         "Hash of the expected shapes: figures of different versions do not compare."),
    )  # fmt: skip
    covered = {"fragment_milli", "fragmentation_ratio", "fragmentation_of_total_ratio"}
    return tuple(
        figure(
            key,
            title,
            value=value,
            unit=unit,
            definition=definition,
            rows=_NODES,
            coverage_ratio=known if key in covered else None,
        )
        for key, title, value, unit, definition in facts
    )


def findings(found: Measured, asked: pl.DataFrame) -> tuple[str, ...]:
    """Return what the measure cannot say, and what it says loudly."""
    said = []
    if found.shapes.is_empty():
        said.append("No request for work is recorded: fragmentation has no target workload.")
    kept = int(found.shapes["gpu_count"].max() or 0)  # type: ignore[arg-type]  # an i64 column
    most = int(asked["gpu_count"].max() or 0)  # type: ignore[arg-type]  # an i64 column
    if most > kept > 0:
        said.append(
            f"The target workload keeps shapes of up to {kept} GPU, while up to {most} were asked "
            "for: read the gang slots beside it."
        )
    unknown = found.free.height - found.nodes.height
    if unknown:
        said.append(f"{unknown} nodes have unknown CPU and are left out of fragmentation.")
    bound = float(found.nodes["no_access"].sum())
    if found.fragment_milli and bound / found.fragment_milli > BOUND_WORTH_TELLING_RATIO:
        share = percent(ratio(bound, found.known_idle_milli))
        said.append(f"Model constraints alone keep {share} of idle GPUs from the expected work.")
    return tuple(said)


def _categories_table(found: Measured) -> Table:
    idle = found.known_idle_milli
    values = [float(found.nodes[name].sum()) for name in CATEGORIES]
    is_known = not found.shapes.is_empty()
    frame = pl.DataFrame(
        {
            "category": CATEGORIES,
            "idle_milli": values if is_known else [None] * len(values),
            "share_ratio": [ratio(value, idle) if is_known else None for value in values],
            "meaning": [_MEANINGS[name] for name in CATEGORIES],
        },
        schema_overrides={"idle_milli": pl.Float64, "share_ratio": pl.Float64},
    )
    columns = (
        column("category", "Category", "text"),
        column("idle_milli", "Idle", "milli-GPU", "weighted by the target workload"),
        column("share_ratio", "Share of idle", "ratio"),
        column("meaning", "Meaning", "text"),
    )
    return table(
        "categories",
        "Idle GPU by use to the target workload",
        frame=frame,
        columns=columns,
        rows=_NODES,
        note="The categories add up to idle; all but q3_satisfied are fragments.",
    )


def gangs_table(found: Measured) -> Table:
    """Return room for workers of 1, 2, 4 and 8 whole GPUs."""
    columns = (
        column("gang_size", "GPUs per worker", "GPU"),
        column("slot_count", "Slots", "count", "workers that could start"),
        column("largest_gang_gpu_count", "Largest gang", "GPU", "slots x size"),
        column("stranded_gpu_count", "Stranded", "GPU", "whole idle GPUs left over"),
        column("external_fragmentation_ratio", "External fragmentation", "ratio",
               "1 - placeable / whole idle GPUs"),
    )  # fmt: skip
    return table(
        "gangs", "Room for gangs", frame=gang_slots(found.free), columns=columns, rows=_NODES
    )


def _groups_table(found: Measured, word: str) -> Table:
    """Return idle, fragments and slots by cluster, model or node, the most fragmented first."""
    key, fragments = GROUPINGS[word], pl.col("fragment_milli")
    keys = ["cluster", key] if word == "node" else [key]
    is_known = not found.shapes.is_empty()
    known = found.nodes.group_by(keys).agg(
        fragments.sum() if is_known else pl.lit(None, dtype=pl.Float64).alias("fragment_milli"),
        known_idle_milli=pl.col("idle_milli").sum(),
    )
    idle = pl.col("known_idle_milli")
    frame = (
        found.free.group_by(keys)
        .agg(
            pl.col("gpu_count").sum(),
            pl.col("whole_idle_count").sum(),
            pl.col("idle_milli").sum(),
            slots_of_8_count=(pl.col("whole_idle_count") // GANG_SIZES[-1]).sum(),
        )
        .join(known, on=keys, how="left", nulls_equal=True)
        .with_columns(fragmentation_ratio=pl.when(idle > 0).then(fragments / idle))
        .sort("fragment_milli", *keys, descending=[True, *[False] * len(keys)], nulls_last=True)
    )
    columns = (
        *[column(name, name.capitalize(), "text") for name in keys[:-1]],
        column(key, _TITLES[word], "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("whole_idle_count", "Whole idle", "GPU"),
        column("slots_of_8_count", "Slots for 8", "count"),
        column("idle_milli", "Idle", "milli-GPU"),
        column("fragment_milli", "Fragmented", "milli-GPU"),
        column("fragmentation_ratio", "Of idle", "ratio", "of nodes with known CPU"),
    )
    title = f"Fragmentation by {_TITLES[word]}"
    return table(f"by_{word}", title, frame=frame, columns=columns, rows=_NODES)


def _learnt(target: TargetWorkload) -> str:
    """Return where the target workload comes from, in words."""
    span = f"{target.learnt_from_at:%Y-%m-%d %H:%M} to {target.learnt_until_at:%Y-%m-%d %H:%M} UTC"
    return f"{'kept, ' if target.is_stored else ''}learnt from {span}"


def _nodes_table(found: Measured) -> Table:
    columns = (
        column("cluster", "Cluster", "text"),
        column("node", "Node", "text"),
        column("gpu_model", "GPU model", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("whole_idle_count", "Whole idle", "GPU"),
        column("idle_milli", "Idle", "milli-GPU"),
        column("fragment_milli", "Fragmented", "milli-GPU"),
        column("cpu_free_milli", "Free CPU (milli)", "count"),
    )
    order = ["fragment_milli", "cluster", "node"]
    worst = found.nodes.sort(order, descending=[True, False, False]).head(NODES_SHOWN)
    title = f"Most fragmented nodes ({NODES_SHOWN})"
    return table("nodes", title, frame=worst, columns=columns, rows=_NODES)


def _shapes_table(found: Measured) -> Table:
    columns = (
        column("cpu_milli", "CPU (milli)", "count"),
        column("gpu_count", "GPUs", "GPU"),
        column("gpu_milli", "Each", "milli-GPU"),
        column("gpu_models", "GPU models", "text", "empty: any"),
        column("request_count", "Requests", "count"),
        column("share_ratio", "Share", "ratio", "of the target workload"),
    )
    return table(
        "target",
        "Target workload",
        frame=found.shapes,
        columns=columns,
        rows=_SHAPES,
        note=f"Version {found.target.version}, {_learnt(found.target)}: the most frequent shapes "
        "that make up 95 % of requests.",
    )


MEASURED_INPUTS: Final = (
    "node_history",
    "device_history",
    "device_event_history",
    "allocation_history",
    "workload_current",
    _TARGET,
)
"""What ``measure`` reads."""


def asks(_state: Mapping[str, pl.DataFrame], _question: Question) -> Asks:
    """Return what the report reads of the ledger: why it was stranded, and whose prices count."""
    return {"ledger": ("cluster", "model", "tenant_id", "reason")}


DEFINITION = ReportDefinition(
    name="fragmentation",
    summary="idle GPU capacity that the expected work cannot use, and room for gangs",
    inputs=(
        *MEASURED_INPUTS,
        "node_place",
        "workload_standing",
        "quota_use",
        "latest_device_sample",
        "ledger",
        *leaf_cost.INPUTS,
    ),
    build=build,
    groupings=tuple(GROUPINGS),
    cuts=leaf_cost.cuts,
    asks=asks,
)
