"""Report: apparent and effective utilisation, and where the GPU-hours went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics import utilization as measures
from analytics.inputs import conform
from analytics.reports import grouping as by
from analytics.reports.measured import USAGE_INPUTS, Usage, usage
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, Table, view
from analytics.reports.shape import figure, percent, ratio, total, value_of
from analytics.reports.usage_tables import (
    LEAF_TITLES,
    ROWS,
    columns_table,
    hours_table,
    leaves_table,
    means_table,
    tiers_table,
)
from analytics.schemas.usage import OVERLAYS, PEAK, PLACE
from analytics.tiers import TIER_PIPES, TIER_POWER, TIER_SM
from analytics.usage import TREE, gpu_hours, totals
from steward.units import SECONDS_PER_HOUR

_HOURS_BY: Final = ("cluster", "model", "capability", "team", "class", "user", "workload")
_MEANS_BY: Final = ("model", "team", "class", "node")
_FINE: Final = ("user", "workload")
"""Groupings of so many groups that they have a view of the ledger of their own."""
_OF_HOURS: Final = ("stuck_s", "idle_memory_byte_s", PEAK)
"""What tables of GPU-hours read beside ticks."""
_TOP: Final = 20
"""Rows of a table that nobody asked for by ``--by``."""
_GIB_BYTES: Final = 1_073_741_824
GHOST_WORTH_TELLING_RATIO: Final = 0.01
"""A smaller share of held time that looks busy while nothing works is no finding."""
_REASONS: Final[Mapping[str | None, str]] = {
    "no_holder_recorded": "no holder is recorded",
    "share_unknown": "the share of a MIG instance is unknown",
    "unobserved": "no reading covers it",
    "busy_without_holder": "it was at work without a holder",
    None: "readings do not say what was used",
}


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return utilisation over the period, by the grouping asked for or by the usual ones.

    Raises:
        UsageError: the question names an unknown grouping.
    """
    found = usage(frames)
    return Report(
        name=DEFINITION.name,
        title="Utilisation",
        period=question.period,
        figures=(*headline(found), *leaf_figures(found), *rest_figures(found)),
        tables=(
            leaves_table(found.rows),
            columns_table(found.rows),
            tiers_table(found.spoken_for),
            *_group_tables(found, frames, question.by),
        ),
        findings=findings(found),
    )


def _group_tables(
    found: Usage, frames: Mapping[str, pl.DataFrame], word: str | None
) -> tuple[Table, ...]:
    rows, told = (by.with_capability(each, frames) for each in (found.rows, found.spoken_for))
    if word is not None:
        asked = by.grouping(word)
        return (hours_table(rows, asked), means_table(told, asked))
    fine = {each: conform(ROWS, view(frames, each)) for each in _FINE}
    return (
        *[hours_table(fine.get(each, rows), by.grouping(each), limit=_TOP) for each in _HOURS_BY],
        *[means_table(told, by.grouping(each), limit=_TOP) for each in _MEANS_BY],
    )


def headline(found: Usage) -> tuple[Figure, ...]:
    """Return the figures a person reads first."""
    whole = measures.leaves(found.rows)
    wall = total(whole, "wall_gpu_hours")
    is_told = found.has_holders
    coverage = value_of(whole, "coverage_ratio")
    allocated = value_of(whole, "allocated_gpu_hours") if is_told else None
    return (
        _hours("capacity_gpu_hours", "Capacity", wall, "Wall clock x devices in the inventory."),
        _hours("allocated_gpu_hours", "Allocated", allocated, "Device-time held, by share."),
        _share("occupancy_ratio", "Occupancy", value_of(whole, "occupancy_ratio"),
               "Allocated / capacity, whatever the work does.", is_told=is_told),
        apparent_figure(found.spoken_for),
        *effective_figures(found.spoken_for),
        _gap_figure(found.spoken_for),
        _share("utilization_ratio", "Utilisation of held time",
               value_of(whole, "utilization_ratio"),
               "Used / (allocated - unknown use), measured and estimated together.",
               coverage_ratio=coverage, is_told=is_told),
        _share("used_of_capacity_ratio", "Used of capacity",
               value_of(whole, "used_of_capacity_ratio"),
               "Used / capacity; unknown use counts as not used.",
               coverage_ratio=coverage, is_told=is_told),
        _share("estimated_of_used_ratio", "Estimated of used",
               value_of(whole, "estimated_of_used_ratio"),
               "Share of used GPU-hours known only by an upper bound or proxy (tiers 2 and 3)."),
    )  # fmt: skip


def leaf_figures(found: Usage) -> tuple[Figure, ...]:
    """Return the GPU-hours of each leaf; they add up to capacity."""
    whole = measures.leaves(found.rows)
    of_holders = {"used", "allocated_idle"}
    coverage = value_of(whole, "coverage_ratio")
    return tuple(
        _hours(
            f"{name}_gpu_hours",
            LEAF_TITLES[name][0],
            None
            if name in of_holders and not found.has_holders
            else value_of(whole, f"{name}_gpu_hours"),
            f"Device-time {LEAF_TITLES[name][1]}.",
            coverage_ratio=coverage if name in of_holders else None,
        )
        for name in TREE
    )


def rest_figures(found: Usage) -> tuple[Figure, ...]:
    """Return what rests while held, what looks busy in vain, and what nobody answers for."""
    whole = measures.leaves(found.rows)
    coverage = value_of(whole, "coverage_ratio")
    idle = value_of(whole, "idle_gpu_hours") if found.has_holders else None
    nameless = measures.leaves(measures.unattributed(found.rows))
    return (
        _hours("idle_gpu_hours", "Held idle", idle,
               "Held device-time with SM (or graphics, or busy) and DRAM activity below 1 %.",
               coverage_ratio=coverage),
        _hours("stuck_gpu_hours", "Looks stuck", value_of(whole, "stuck_gpu_hours"),
               "Held device-time that looks at least 95 % busy while no pipe and no memory works."),
        figure("idle_memory_bytes", "Memory held while idle",
               value=value_of(whole, "idle_memory_bytes"), unit="bytes",
               definition="Mean memory in use of a whole GPU that is held and at rest.", rows=ROWS),
        _hours("unattributed_gpu_hours", "Unattributed",
               value_of(nameless, "allocated_gpu_hours") if found.has_holders else None,
               "Allocated device-time of no known tenant, or at work without a holder."),
    )  # fmt: skip


def _hours(  # noqa: PLR0917  # reads as one line of a list of figures
    key: str,
    title: str,
    value: float | None,
    definition: str,
    *,
    coverage_ratio: float | None = None,
) -> Figure:
    return figure(
        key,
        title,
        value=value,
        unit="GPU-hours",
        definition=definition,
        rows=ROWS,
        coverage_ratio=coverage_ratio,
    )


def _share(  # noqa: PLR0917  # reads as one line of a list of figures
    key: str,
    title: str,
    value: float | None,
    definition: str,
    *,
    coverage_ratio: float | None = None,
    is_told: bool = True,
) -> Figure:
    return figure(
        key,
        title,
        value=value if is_told else None,
        unit="ratio",
        definition=definition,
        rows=ROWS,
        coverage_ratio=coverage_ratio,
    )


def apparent_figure(rows: pl.DataFrame) -> Figure:
    """Return apparent utilisation, whatever the tier."""
    sums = totals(rows)
    known_s = total(sums, "apparent_known_s")
    return _share(
        "apparent_ratio",
        "Apparent utilisation",
        ratio(total(sums, "apparent_s"), known_s),
        "Time mean over held device-time of busy time, else graphics engine activity.",
        coverage_ratio=_coverage(known_s, rows),
    )


def effective_figures(rows: pl.DataFrame) -> tuple[Figure, ...]:
    """Return effective utilisation, one figure per tier that occurs; tier 1 always."""
    titles = {
        TIER_PIPES: ("effective_ratio", "Effective utilisation", "Measured from pipes and DRAM"),
        TIER_SM: ("effective_bound_ratio", "Effective, upper bound", "SM activity alone"),
        TIER_POWER: ("effective_proxy_ratio", "Effective, proxy", "Power between idle and limit"),
    }  # fmt: skip
    figures = []
    for tier, (key, title, basis) in titles.items():
        sums = totals(rows.filter(pl.col("tier") == tier))
        known_s = total(sums, "effective_known_s")
        if known_s > 0 or tier == TIER_PIPES:
            value = ratio(total(sums, "effective_s"), known_s)
            told = f"{basis}; time mean over held device-time observed so (tier {tier})."
            coverage = _coverage(known_s, rows)
            figures.append(_share(key, title, value, told, coverage_ratio=coverage))
    return tuple(figures)


def _gap_figure(rows: pl.DataFrame) -> Figure:
    sums = totals(rows.filter(pl.col("tier") == TIER_PIPES))
    known_s = total(sums, "gap_known_s")
    return _share(
        "gap_ratio",
        "Apparent but not effective",
        ratio(total(sums, "gap_s"), known_s),
        "Time mean of apparent - effective over held time where both are measured.",
        coverage_ratio=_coverage(known_s, rows),
    )


def _coverage(known_s: float, rows: pl.DataFrame) -> float | None:
    wall = total(totals(rows).select(wall=gpu_hours(pl.col("wall_ticks"))), "wall")
    known = ratio(known_s / SECONDS_PER_HOUR, wall)
    return None if known is None else min(known, 1.0)


def findings(found: Usage) -> tuple[str, ...]:
    """Return sentences on what is unknown, unplaced or unexpected, most important first."""
    return (
        *_holder_findings(found),
        *_unknown_findings(found),
        *_placing_findings(found),
        *_unattributed_findings(found),
        *_rest_findings(found),
    )


def _holder_findings(found: Usage) -> list[str]:
    if found.has_holders or found.rows.is_empty():
        return []
    return [
        "No holder is recorded in this period: all device-time without a loss is unknown, not free."
    ]


def _unknown_findings(found: Usage) -> list[str]:
    coverage = value_of(measures.leaves(found.rows), "coverage_ratio")
    said = []
    if coverage is not None and coverage < measures.PUBLISH_COVERAGE_RATIO and found.has_holders:
        said.append(
            f"Only {percent(coverage)} of held GPU-hours were observed: means are not yet "
            "fit to publish."
        )
    by_reason = (
        totals(found.rows.filter(pl.col("unknown_ticks") > 0), "reason")
        .with_columns(hours=gpu_hours(pl.col("unknown_ticks")))
        .sort("hours", "reason", descending=[True, False], nulls_last=True)
    )
    parts = [
        f"{row['hours']:,.1f} because {_REASONS.get(row['reason'], row['reason'])}"
        for row in by_reason.iter_rows(named=True)
    ]
    if parts and found.has_holders:
        said.append(f"Use is unknown for {total(by_reason, 'hours'):,.1f} GPU-hours: "
                    f"{'; '.join(parts)}.")  # fmt: skip
    return said


def _placing_findings(found: Usage) -> list[str]:
    said = []
    if found.stray_device_count:
        said.append(
            f"{found.stray_device_count} devices send readings but are not in the inventory."
        )
    if found.indistinct_device_count:
        said.append(
            f"{found.indistinct_device_count} devices share their id with a device of another "
            "cluster: their readings cannot be told apart and count as unknown."
        )
    if found.unplaced_allocation_count:
        said.append(
            f"{found.unplaced_allocation_count} allocations ({found.unplaced_gpu_hours:,.1f} "
            "GPU-hours) name a GPU or MIG instance that was not in the inventory: they are in no "
            "leaf."
        )
    return said


def _unattributed_findings(found: Usage) -> list[str]:
    nameless = total(measures.leaves(measures.unattributed(found.rows)), "allocated_gpu_hours")
    held = total(measures.leaves(found.rows), "allocated_gpu_hours")
    if not found.has_holders or nameless <= held * measures.UNATTRIBUTED_TARGET_RATIO:
        return []
    said = (
        f"{nameless:,.1f} GPU-hours ({percent(ratio(nameless, held))} of allocated) are of no "
        "known tenant, or at work without a holder: nobody answers for them."
    )
    return [said]


def _rest_findings(found: Usage) -> list[str]:
    whole = measures.leaves(found.rows)
    stuck, held = total(whole, "stuck_gpu_hours"), total(whole, "allocated_gpu_hours")
    said = []
    if held > 0 and stuck / held >= GHOST_WORTH_TELLING_RATIO:
        said.append(
            f"{stuck:,.1f} GPU-hours ({percent(stuck / held)} of held) look busy while nothing "
            "works: suspected stuck, power not consulted."
        )
    memory = value_of(whole, "idle_memory_bytes")
    if memory:
        said.append(
            f"A GPU that is held and at rest keeps {memory / _GIB_BYTES:,.1f} GiB of its memory in "
            "use on average."
        )
    return said


def asks(_state: Mapping[str, pl.DataFrame], question: Question) -> Asks:
    """Return what the report reads of the ledger: the place always, since means are taken by it."""
    known = (*PLACE, "is_held", "tenant_id", "queue", "reason", "tier", *OVERLAYS, PEAK)
    if question.by is not None:
        return {"ledger": by.asking(*known, words=(question.by,))}
    fine = {f"ledger.{word}": by.asking(*_OF_HOURS, words=(word,)) for word in _FINE}
    return {"ledger": by.asking(*known, "workload_class"), **fine}


DEFINITION = ReportDefinition(
    name="utilization",
    summary="apparent and effective utilisation by tier, and where the GPU-hours went",
    inputs=(*USAGE_INPUTS, *by.CAPABILITY_INPUTS),
    build=build,
    groupings=by.words(),
    asks=asks,
)
