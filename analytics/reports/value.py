"""Report: is critical work protected, and does valuable work have the valuable GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.capability import TIERS, with_capability
from analytics.inputs import conform
from analytics.inventory import known_devices
from analytics.protection import (
    START_OBJECTIVE_S,
    critical_waits,
    interruptions,
    protection,
    starts,
)
from analytics.reports.grouping import asking
from analytics.reports.measured import stored_inputs
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, table, total
from analytics.value import (
    declared,
    lower_while_critical_waits,
    occupancy,
    scopes,
    with_level,
)
from steward.period import Period

_VALUES, _STANDING, _TRANSITIONS = "state.business_value", "workload_standing", "transition_history"
_LEDGER, _HOLDS, _CAPABILITY = "ledger", "allocation_history", "state.capability"
Frames = Mapping[str, pl.DataFrame]


def build(frames: Frames, question: Question) -> Report:
    """Return the protection of critical work, and value beside occupancy."""
    period = question.period
    said = declared(conform(_VALUES, frames[_VALUES]), period)
    levelled = with_level(conform(_STANDING, frames[_STANDING]), said)
    transitions = conform(_TRANSITIONS, frames[_TRANSITIONS])
    started = starts(transitions, levelled, period)
    interrupted = interruptions(transitions, levelled, period)
    ledger = conform(_LEDGER, frames[_LEDGER])
    held = occupancy(ledger, said, _tiers(frames, ledger["model"]))
    lower = _lower(frames, levelled, started=started, period=period)
    protected = protection(started, interrupted)
    return Report(
        name=DEFINITION.name,
        title="Value",
        period=period,
        figures=_figures(protected, lower, has_transitions=not transitions.is_empty()),
        tables=(
            _protection_table(protected),
            _interruptions_table(interrupted),
            _occupancy_table(held),
            _lower_table(lower),
        ),
        findings=_findings(said, protected, lower),
    )


def _tiers(frames: Frames, models: pl.Series) -> pl.DataFrame:
    """Return the tier of each model: model, capability_tier str | null, ascending."""
    names = models.drop_nulls().unique().sort().to_frame("model")
    known = with_capability(names, conform(_CAPABILITY, frames[_CAPABILITY]))
    return known.rename({"capability": "capability_tier"})


def _lower(
    frames: Frames, levelled: pl.DataFrame, *, started: pl.DataFrame, period: Period
) -> pl.DataFrame:
    """Return GPU-hours of lower work on the strongest tier there is while critical work waited."""
    inputs = stored_inputs(frames)
    homes = known_devices(inputs.devices, inputs.nodes)
    tiers = _tiers(frames, homes["model"])
    strength = pl.col("capability_tier").replace_strict(
        TIERS, range(len(TIERS)), default=None, return_dtype=pl.Int64
    )
    top = tiers.filter(strength == strength.min())
    worth = levelled.select("cluster", "workload_uid", "value_level")
    held = (
        inputs.allocations.filter(pl.col("unheld_reason").is_null())
        .join(homes.select("device_uuid", "model"), on="device_uuid")
        .join(top, on="model")
        .join(worth, on=["cluster", "workload_uid"])
    )
    found = lower_while_critical_waits(held, critical_waits(started, period), period)
    return found.join(tiers, on="model", how="left", maintain_order="left")


def _figures(
    protected: pl.DataFrame, lower: pl.DataFrame, *, has_transitions: bool
) -> tuple[Figure, ...]:
    critical = protected.row(0, named=True)
    hits = critical["evicted_count"] + critical["preempted_count"]
    known = critical["decided_count"], critical["workload_count"]
    facts: tuple[tuple[str, str, float | None, str, str], ...] = (
        ("critical_started_in_time_ratio", "Critical work started in time", critical["met_ratio"],
         "ratio", "Share of critical workloads, created in the period, that met their objective."),
        ("critical_workload_count", "Critical workloads",
         critical["workload_count"] if has_transitions else None, "count",
         "Created in the period; declared critical, else by priority class or class."),
        ("critical_interruption_count", "Critical work interrupted",
         hits if has_transitions else None, "count",
         "Evictions and preemptions of critical workloads in the period."),
        ("lower_while_critical_waits_gpu_hours", "Lower work on top GPUs meanwhile",
         total(lower, "gpu_hours") if has_transitions else None, "GPU-hours",
         "Held by normal and low work on the strongest GPUs while critical work waited for them."),
    )  # fmt: skip
    coverage = known[0] / known[1] if known[1] else None
    return tuple(
        figure(
            key, title, value=value, unit=unit, definition=definition, rows=_TRANSITIONS,
            coverage_ratio=coverage if unit == "ratio" else None,
        )
        for key, title, value, unit, definition in facts
    )  # fmt: skip


def _protection_table(protected: pl.DataFrame) -> Table:
    columns = (
        column("value_level", "Value", "text"),
        column("workload_count", "Workloads", "count", "created in the period"),
        column("declared_count", "Declared", "count", "the rest by priority class or class"),
        column("decided_count", "Decided", "count", "started, or past their objective"),
        column("met_count", "Started in time", "count"),
        column("met_ratio", "Of decided", "ratio"),
        column("evicted_count", "Evictions", "count"),
        column("preempted_count", "Preemptions", "count"),
    )
    return table(
        "protection", "Started in time, and interrupted", frame=protected, columns=columns,
        rows=_TRANSITIONS,
        note=f"Objective as declared, else {START_OBJECTIVE_S // 60} minutes from creation.",
    )  # fmt: skip


def _interruptions_table(interrupted: pl.DataFrame) -> Table:
    columns = (
        column("value_level", "Value", "text"),
        column("transition", "What happened", "text"),
        column("reason", "Reason", "text"),
        column("interruption_count", "Times", "count"),
        column("workload_count", "Workloads", "count"),
    )
    return table(
        "interruptions", "Interruptions by value", frame=interrupted, columns=columns,
        rows=_TRANSITIONS,
    )  # fmt: skip


def _occupancy_table(held: pl.DataFrame) -> Table:
    columns = (
        column("value_level", "Value", "text"),
        column("capability_tier", "GPU tier", "text", "S strongest; empty: unknown model"),
        column("held_gpu_hours", "Held", "GPU-hours"),
        column("share_of_tier_ratio", "Share of tier", "ratio", "of what is held of it"),
        column("used_gpu_hours", "Used", "GPU-hours"),
        column("used_ratio", "Used of known", "ratio"),
        column("declared_ratio", "Declared", "ratio", "of held time; the rest by class"),
    )
    return table(
        "occupancy", "Value and the GPUs it holds", frame=held, columns=columns, rows=_LEDGER
    )


def _lower_table(lower: pl.DataFrame) -> Table:
    columns = (
        column("tenant_id", "Team", "text"),
        column("model", "GPU model", "text"),
        column("capability_tier", "GPU tier", "text"),
        column("gpu_hours", "Held meanwhile", "GPU-hours"),
    )
    return table(
        "lower_on_top", "Lower work on the strongest GPUs while critical work waited",
        frame=lower, columns=columns, rows=_HOLDS,
        note="Only where the waiting work may use that model.",
    )  # fmt: skip


def _findings(said: pl.DataFrame, protected: pl.DataFrame, lower: pl.DataFrame) -> tuple[str, ...]:
    told = []
    critical = protected.row(0, named=True)
    if critical["met_ratio"] is not None and critical["met_ratio"] < 1:
        late = critical["decided_count"] - critical["met_count"]
        told.append(
            f"{late} critical workloads did not start within their objective: "
            f"{percent(critical['met_ratio'])} did."
        )
    hours = total(lower, "gpu_hours")
    if hours >= WORTH_TELLING_GPU_HOURS:
        told.append(f"Normal and low work held {hours:,.1f} GPU-hours of the strongest GPUs while "
                    "critical work waited for them.")  # fmt: skip
    if said.is_empty():
        told.append("No business value is declared: value follows priority class and class.")
    return tuple(told)


WORTH_TELLING_GPU_HOURS: Final = 1.0
"""Less than one GPU for one hour is the ordinary time that a start takes."""


def asks(state: Frames, question: Question) -> Asks:
    """Return what the report reads of the ledger: what value is declared for, or follows from."""
    said = declared(conform(_VALUES, state[_VALUES]), question.period)
    told = ("priority_class", "workload_class", *scopes(said).values())
    return {"ledger": asking("is_held", "model", *told)}


DEFINITION = ReportDefinition(
    name="value",
    summary="whether critical work is protected, and valuable work has the valuable GPUs",
    inputs=(
        _VALUES,
        _STANDING,
        _TRANSITIONS,
        _LEDGER,
        _CAPABILITY,
        "node_history",
        "device_history",
        "device_event_history",
        _HOLDS,
    ),
    build=build,
    asks=asks,
)
