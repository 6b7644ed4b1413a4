"""Report: how much idle GPU capacity the expected work cannot use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics.capacity import free_capacity
from analytics.fragmentation import CATEGORIES, fragmentation, free_nodes
from analytics.gangs import gang_slots, largest_node_gang, partial_leftover_milli
from analytics.inputs import conform
from analytics.reports.measured import stored_inputs
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table
from analytics.shapes import request_shapes, target_workload
from steward.period import Period
from steward.units import GPU_MILLI

_NODES, _SHAPES = "device_history", "workload_current"
BOUND_WORTH_TELLING_RATIO = 0.5
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Fragmentation and what it was measured on."""

    free: pl.DataFrame
    shapes: pl.DataFrame
    nodes: pl.DataFrame
    """Rows of ``fragmentation`` beside their node; nodes without known CPU are left out."""

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
    """Return fragmentation at the period's end."""
    workloads = conform(_SHAPES, frames[_SHAPES])
    free = free_capacity(stored_inputs(frames), workloads, period)
    known = free.filter(pl.col("cpu_free_milli").is_not_null())
    shapes = target_workload(workloads)
    parts = fragmentation(free_nodes(known), shapes)
    nodes = known.drop("idle_milli").hstack(parts)
    return Measured(free=free, shapes=shapes, nodes=nodes)


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return fragmentation and gang room at the period's end."""
    period = question.period
    found = measure(frames, period)
    asked = request_shapes(conform(_SHAPES, frames[_SHAPES]))
    return Report(
        name=DEFINITION.name,
        title="Fragmentation",
        period=period,
        figures=figures(found),
        tables=(
            _categories_table(found),
            gangs_table(found),
            _nodes_table(found),
            _shapes_table(found),
        ),
        findings=findings(found, asked),
    )


def figures(found: Measured) -> tuple[Figure, ...]:
    """Return F with both of its ratios, named apart, and the room for gangs."""
    capacity = float(found.free["gpu_count"].sum()) * GPU_MILLI
    known = ratio(found.known_idle_milli, found.idle_milli)
    fragment = found.fragment_milli
    gangs = gang_slots(found.free)
    of_idle = None if fragment is None else ratio(fragment, found.known_idle_milli)
    of_total = None if fragment is None else ratio(fragment, capacity)
    facts = (
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


def _nodes_table(found: Measured) -> Table:
    columns = (
        column("node", "Node", "text"),
        column("gpu_model", "GPU model", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("whole_idle_count", "Whole idle", "GPU"),
        column("idle_milli", "Idle", "milli-GPU"),
        column("fragment_milli", "Fragmented", "milli-GPU"),
        column("cpu_free_milli", "Free CPU (milli)", "count"),
    )
    worst = found.nodes.sort("fragment_milli", "node", descending=[True, False]).head(20)
    return table("nodes", "Most fragmented nodes (20)", frame=worst, columns=columns, rows=_NODES)


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
        note="The most frequent shapes that make up 95 % of requests.",
    )


DEFINITION = ReportDefinition(
    name="fragmentation",
    summary="idle GPU capacity that the expected work cannot use, and room for gangs",
    inputs=(
        "node_history",
        "device_history",
        "device_event_history",
        "allocation_history",
        "workload_current",
    ),
    build=build,
)
