"""Report: which jobs did work with what they held, and which wasted most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics import efficiency
from analytics.inputs import conform
from analytics.inventory import known_devices
from analytics.reports.grouping import Grouping, grouping
from analytics.reports.measured import USAGE_INPUTS, usage
from analytics.reports.model import Asks, Column, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total
from analytics.reports.usage_tables import ROWS
from analytics.schemas.usage import PEAK
from analytics.spells import idle_spells
from analytics.utilization import PUBLISH_COVERAGE_RATIO

_TOP: Final = 200
"""Jobs shown, those that wasted most; machine formats carry the same."""
_HOLDERS: Final = ("team", "user", "class")
LOW_UTILIZATION_RATIO: Final = 0.1
"""A job that used less of what it held than this is told by name."""
_WASTED = column("wasted_gpu_hours", "Wasted", "GPU-hours", "at rest, or active without working")
_ZERO = column("zero_gpu_hours", "At 0 %", "GPU-hours", "held and at rest")
_USED = column("utilization_ratio", "Utilisation", "ratio", "used / held time of known use")
_COVERAGE = column("coverage_ratio", "Coverage", "ratio", "held time of known use / held")
JOB_COLUMNS: Final = (
    column("waste_rank", "Waste rank", "count", "1 wasted most GPU-hours"),
    column("efficiency_rank", "Efficiency rank", "count", "1 used the largest share it held"),
    column("cluster", "Cluster", "text"),
    column("namespace", "Namespace", "text"),
    column("name", "Job", "text"),
    column("workload_uid", "Workload", "text"),
    column("tenant_id", "Tenant", "text"),
    column("owner", "User", "text"),
    column("workload_class", "Class", "text"),
    column("models", "GPU model", "text"),
    column("held_gpu_hours", "Held", "GPU-hours"),
    _WASTED,
    _ZERO,
    _USED,
    column("tiers", "Tier", "text", "1 measured, 2 upper bound, 3 power proxy, 4 apparent only"),
    _COVERAGE,
    column("memory_peak_ratio", "Peak memory", "ratio", "of one board, the largest reading"),
    column("stuck_gpu_hours", "Looks stuck", "GPU-hours", "busy while nothing works"),
    column("longest_idle_s", "Longest idle", "s", "spells of at least 10 minutes"),
    column("idle_spell_count", "Idle spells", "count"),
)


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the efficiency of the jobs that held device-time in the period.

    Raises:
        UsageError: the question names a grouping that the report does not take.
    """
    found = usage(frames)
    devices = known_devices(
        conform("device_history", frames["device_history"]),
        conform("node_history", frames["node_history"]),
    )
    jobs = efficiency.jobs(found.rows, devices)
    told = _named(efficiency.with_spells(jobs, idle_spells(found.rest)), frames)
    words = _HOLDERS if question.by is None else (question.by,)
    return Report(
        name=DEFINITION.name,
        title="Job efficiency",
        period=question.period,
        figures=_figures(jobs),
        tables=(
            _jobs_table(told),
            *[_holders_table(jobs, grouping(word, allowed=_HOLDERS)) for word in words],
        ),
        findings=_findings(told),
    )


def _named(jobs: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the jobs with the name and namespace that their workload was last seen with."""
    workloads = conform("workload_current", frames["workload_current"])
    names = workloads.select("cluster", "workload_uid", "namespace", "name")
    unique = names.unique(["cluster", "workload_uid"], keep="last", maintain_order=True)
    return jobs.join(unique, on=["cluster", "workload_uid"], how="left", maintain_order="left")


def _figures(jobs: pl.DataFrame) -> tuple[Figure, ...]:
    used, wasted = total(jobs, "used_gpu_hours"), total(jobs, "wasted_gpu_hours")
    known, unknown = used + wasted, total(jobs, "unknown_gpu_hours")
    coverage = ratio(known, known + unknown)
    zero = total(jobs, "zero_gpu_hours")
    facts = (
        ("job_count", "Jobs", jobs.height, "count", "Jobs that held device-time in the period."),
        ("held_gpu_hours", "Held", total(jobs, "held_gpu_hours"), "GPU-hours",
         "Device-time held by jobs, by share."),
        ("wasted_gpu_hours", "Wasted", wasted if known or not unknown else None, "GPU-hours",
         "Held at rest, or active without working; unknown use is no waste."),
        ("zero_gpu_hours", "Held at 0 %", zero if known or not unknown else None, "GPU-hours",
         "Held with SM (or graphics, or busy) and DRAM activity below 1 %."),
        ("utilization_ratio", "Utilisation, by GPU-hours", ratio(used, known), "ratio",
         "Used / held time of known use, over all jobs by GPU-hours."),
        ("job_p50_utilization_ratio", "Utilisation, median job", _median(jobs), "ratio",
         "Median over jobs of used / held time of known use: each job counts once."),
    )  # fmt: skip
    uncovered = {"job_count", "held_gpu_hours"}
    return tuple(
        figure(
            key,
            title,
            value=value,
            unit=unit,
            definition=definition,
            rows=ROWS,
            coverage_ratio=None if key in uncovered else coverage,
        )
        for key, title, value, unit, definition in facts
    )


def _median(jobs: pl.DataFrame) -> float | None:
    middle = jobs.select(pl.col("utilization_ratio").median()).item()
    return None if middle is None else float(middle)


def _jobs_table(told: pl.DataFrame) -> Table:
    shown = told.head(_TOP)
    cut = f"The {shown.height:,} of {told.height:,} jobs that wasted most. "
    return table(
        "jobs",
        "Jobs by wasted GPU-hours",
        frame=shown,
        columns=JOB_COLUMNS,
        rows=ROWS,
        note=(cut if shown.height < told.height else "")
        + "A small job of low efficiency wastes little: read both ranks.",
    )


def _holders_table(jobs: pl.DataFrame, by: Grouping) -> Table:
    columns: tuple[Column, ...] = (
        *by.columns(),
        column("job_count", "Jobs", "count"),
        column("held_gpu_hours", "Held", "GPU-hours"),
        _WASTED,
        _ZERO,
        column("waste_share_ratio", "Share of waste", "ratio", "of all wasted GPU-hours"),
        _USED,
        _COVERAGE,
    )
    return table(
        f"by_{by.table_key}",
        f"Job efficiency by {by.title}",
        frame=efficiency.holders(jobs, *by.keys),
        columns=columns,
        rows=ROWS,
    )


def _findings(told: pl.DataFrame) -> tuple[str, ...]:
    low = told.filter(
        (pl.col("utilization_ratio") < LOW_UTILIZATION_RATIO)
        & (pl.col("coverage_ratio") >= PUBLISH_COVERAGE_RATIO)
    )
    return tuple(
        f"{row['name'] or row['workload_uid'] or 'A job of no known name'} of "
        f"{row['tenant_id'] or 'an unknown tenant'} held {row['held_gpu_hours']:,.1f} GPU-hours "
        f"and used {percent(row['utilization_ratio'])} of them."
        for row in low.head(3).iter_rows(named=True)
    )


def asks(_state: Mapping[str, pl.DataFrame], _question: Question) -> Asks:
    """Return what the report reads of the ledger: jobs, whatever they are grouped by."""
    use = ("tier", "stuck_s", "idle_memory_byte_s", PEAK)
    return {"ledger": ("is_held", *efficiency.JOB, "model", *use)}


DEFINITION = ReportDefinition(
    name="efficiency",
    summary="which jobs did work with what they held, and which wasted most",
    inputs=(*USAGE_INPUTS, "workload_current", "device_history", "node_history"),
    build=build,
    groupings=_HOLDERS,
    asks=asks,
)
