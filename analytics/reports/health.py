"""Report: the first page a person reads, composed of the other measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics.inputs import conform
from analytics.inventory import current_devices, device_models
from analytics.reports import fragmentation, inventory, queue, utilization
from analytics.reports.measured import DEVICE_TIME_INPUTS, DeviceTime, device_time
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, value_of
from analytics.spells import idle_spells, stuck_spells
from analytics.tiers import TIER_PIPES
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

_TOP = 10
GAP_WORTH_TELLING_RATIO = 0.05
"""A smaller share of time that was apparent only is no finding."""
_SPELL_COLUMNS = (
    column("tenant_id", "Tenant", "text"),
    column("pod", "Pod", "text"),
    column("workload_uid", "Workload", "text"),
    column("device_uuid", "GPU", "text"),
    column("instance_id", "Instance", "count"),
    column("started_at", "From", "text"),
    column("ended_at", "Until", "text"),
    column("length_s", "Length", "s"),
    column("gpu_hours", "GPU-hours", "GPU-hours", "length x share held"),
)
_QUEUE_KEYS = (
    "wait_p50_s",
    "wait_p90_s",
    "km_wait_p50_s",
    "km_wait_p90_s",
    "never_scheduled_count",
)
_FRAGMENT_KEYS = ("fragmentation_ratio", "largest_gang_gpu_count")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Everything the page is composed of."""

    time: DeviceTime
    attempts: pl.DataFrame
    fragments: fragmentation.Measured
    idle: pl.DataFrame
    stuck: pl.DataFrame
    scrapes: pl.DataFrame
    events: pl.DataFrame


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the health of the cluster over the period."""
    period = question.period
    time = device_time(frames, period)
    found = _Measured(
        time=time,
        attempts=queue.attempt_rows(frames, period),
        fragments=fragmentation.measure(frames, period),
        idle=idle_spells(time.resting, time.segments),
        stuck=stuck_spells(time.resting, time.segments),
        scrapes=conform("scrape_health", frames["scrape_health"]),
        events=time.inputs.events.filter(pl.col("occurred_at") >= period.from_at),
    )
    return Report(
        name=DEFINITION.name,
        title="Health",
        period=period,
        figures=_figures(found),
        tables=_tables(found),
        findings=_findings(found, period),
    )


def _figures(found: _Measured) -> tuple[Figure, ...]:
    devices = current_devices(found.time.inputs.devices, found.time.inputs.nodes)
    waits = {each.key: each for each in queue.figures(found.attempts)}
    room = {each.key: each for each in fragmentation.figures(found.fragments)}
    kinds = found.events["kind"]
    return (
        figure(
            "gpu_count",
            "GPUs",
            value=devices.height,
            unit="GPU",
            definition="Physical GPUs in the inventory.",
            rows="device_history",
        ),
        *utilization.headline(found.time),
        _gap_figure(found.time),
        *[waits[key] for key in _QUEUE_KEYS],
        *[room[key] for key in _FRAGMENT_KEYS],
        _event_figure("xid_event_count", "XID events", int((kinds == "xid").sum())),
        _event_figure("lost_event_count", "GPUs lost", int((kinds == "lost").sum())),
        _coverage_figure(found),
        _scrape_figure(found.scrapes),
    )


def _gap_figure(time: DeviceTime) -> Figure:
    rows = time.weighted.filter(pl.col("tier") == TIER_PIPES)
    known = float(rows["gap_known_s"].sum())
    wall = float(time.rows["wall_gpu_hours"].sum())
    return figure(
        "gap_ratio",
        "Apparent but not effective",
        value=ratio(float(rows["gap_s"].sum()), known),
        unit="ratio",
        definition="Time mean of apparent - effective where both are measured (tier 1).",
        rows=utilization.ROWS,
        coverage_ratio=ratio(known / SECONDS_PER_HOUR, wall),
    )


def _event_figure(key: str, title: str, value: int) -> Figure:
    return figure(
        key,
        title,
        value=value,
        unit="count",
        definition="Events recorded in the period.",
        rows="device_event_history",
    )


def _coverage_figure(found: _Measured) -> Figure:
    observed = float(found.time.weighted["observed_s"].sum()) / SECONDS_PER_HOUR
    wall = float(found.time.rows["wall_gpu_hours"].sum())
    rest = float(found.time.rows["unconfigured_gpu_hours"].sum())
    return figure(
        "telemetry_coverage_ratio",
        "Telemetry coverage",
        value=ratio(observed, wall - rest),
        unit="ratio",
        definition="Device-time with readings at the usual cadence / wall clock x devices.",
        rows=utilization.ROWS,
    )


def _scrape_figure(scrapes: pl.DataFrame) -> Figure:
    tried = int(scrapes["scrape_count"].sum())
    return figure(
        "failed_scrape_count",
        "Failed scrapes",
        value=int(scrapes["failed_count"].sum()) if tried else None,
        unit="count",
        definition=f"Readings of a target that failed, of {tried:,} tried.",
        rows="scrape_health",
    )


def _tables(found: _Measured) -> tuple[Table, ...]:
    time = found.time
    devices = current_devices(time.inputs.devices, time.inputs.nodes)
    return (
        utilization.leaves_table(time),
        utilization.whole_table(time),
        inventory.models_table(device_models(devices)),
        utilization.group_table(time, "model", "GPU model"),
        utilization.tenant_table(time),
        utilization.tenant_table(time, key="workload_class", title="Workload class"),
        queue.scope_table(found.attempts.filter("is_in_period")),
        fragmentation.gangs_table(found.fragments),
        _spell_table("idle_spells", "Longest held idle", found.idle, note=_IDLE_NOTE),
        _spell_table("stuck_spells", "Suspected stuck", found.stuck, note=_STUCK_NOTE),
        _events_table(found.events),
        _scrapes_table(found.scrapes),
    )


_IDLE_NOTE = "Held and idle for at least 10 minutes without a gap; the ten with most GPU-hours."
_STUCK_NOTE = "Looks at least 95 % busy for 15 minutes while nothing works; power is not consulted."


def _spell_table(key: str, title: str, spells: pl.DataFrame, *, note: str) -> Table:
    return table(
        key,
        title,
        frame=spells.head(_TOP),
        columns=_SPELL_COLUMNS,
        rows=utilization.ROWS,
        note=note,
    )


def _events_table(events: pl.DataFrame) -> Table:
    frame = (
        events.group_by("kind", "code")
        .agg(
            event_count=pl.len().cast(pl.Int64),
            gpu_count=pl.col("device_uuid").n_unique().cast(pl.Int64),
            last_at=pl.col("occurred_at").max(),
        )
        .sort("kind", "code", nulls_last=True)
    )
    columns = (
        column("kind", "Event", "text"),
        column("code", "Code", "text", "XID number"),
        column("event_count", "Events", "count"),
        column("gpu_count", "GPUs", "GPU"),
        column("last_at", "Last at", "text"),
    )
    return table(
        "events", "Device events", frame=frame, columns=columns, rows="device_event_history"
    )


def _scrapes_table(scrapes: pl.DataFrame) -> Table:
    faults = pl.sum_horizontal("failed_count", "dropped_line_count", "duplicate_count")
    frame = (
        scrapes.with_columns(faults=faults)
        .filter(pl.col("faults") > 0)
        .sort("faults", "target", descending=[True, False])
        .head(_TOP)
    )
    columns = (
        column("target", "Target", "text"),
        column("scrape_count", "Scrapes", "count"),
        column("failed_count", "Failed", "count"),
        column("dropped_line_count", "Dropped lines", "count"),
        column("duplicate_count", "Duplicates", "count"),
        column("unknown_metric_count", "Unknown metrics", "count"),
        column("last_scraped_at", "Last at", "text"),
    )
    return table(
        "scrapes", "Targets with faults", frame=frame, columns=columns, rows="scrape_health"
    )


def _findings(found: _Measured, period: Period) -> tuple[str, ...]:
    lists = (
        utilization.findings(found.time),
        _idle_findings(found),
        _gap_findings(found.time),
        queue.findings(found.attempts, period),
        _room_findings(found),
        _fault_findings(found),
    )
    return tuple(text for each in lists for text in each)


def _idle_findings(found: _Measured) -> list[str]:
    said = []
    held = found.time.rows.filter("is_held")
    by_tenant = (
        held.group_by("tenant_id")
        .agg(pl.col("idle_gpu_hours", "wall_gpu_hours").sum())
        .sort("idle_gpu_hours", "tenant_id", descending=[True, False], nulls_last=True)
    )
    for row in by_tenant.head(3).iter_rows(named=True):
        if row["idle_gpu_hours"] > 0:
            share = percent(ratio(row["idle_gpu_hours"], row["wall_gpu_hours"]))
            said.append(
                f"{row['tenant_id'] or 'An unknown tenant'} held {row['idle_gpu_hours']:,.1f} "
                f"GPU-hours idle, {share} of what it held."
            )
    if found.stuck.height:
        said.append(
            f"{found.stuck['workload_uid'].n_unique()} workloads look busy with nothing working, "
            f"for 15 minutes or more at a time ({float(found.stuck['gpu_hours'].sum()):,.1f} "
            "GPU-hours): suspected stuck, power not consulted."
        )
    return said


def _gap_findings(time: DeviceTime) -> list[str]:
    sums = time.weighted.filter(pl.col("tier") == TIER_PIPES).select(
        pl.col("gap_s", "gap_known_s", "apparent_s", "apparent_known_s").sum()
    )
    gap = ratio(value_of(sums, "gap_s") or 0.0, value_of(sums, "gap_known_s") or 0.0)
    apparent = ratio(value_of(sums, "apparent_s") or 0.0, value_of(sums, "apparent_known_s") or 0.0)
    if gap is None or apparent is None or gap < GAP_WORTH_TELLING_RATIO:
        return []
    said = (
        f"GPUs look {percent(apparent)} busy, but {percent(gap)} of their time was apparent only: "
        "occupied without working near a limit."
    )
    return [said]


def _room_findings(found: _Measured) -> list[str]:
    room = {each.key: each.value for each in fragmentation.figures(found.fragments)}
    fragmented = room["fragmentation_ratio"]
    if not isinstance(fragmented, float) or found.fragments.idle_milli == 0:
        return []
    said = (
        f"{percent(fragmented)} of {found.fragments.idle_milli / 1000:,.1f} idle GPUs are of no "
        f"use to the expected work; the largest gang on one node is "
        f"{room['largest_gang_gpu_count']} GPUs."
    )
    return [said]


def _fault_findings(found: _Measured) -> list[str]:
    kinds, scrapes = found.events["kind"], found.scrapes
    counts = (
        (int((kinds == "xid").sum()), "XID errors were reported"),
        (int((kinds == "lost").sum()), "times a GPU was lost"),
        (int(scrapes["failed_count"].sum()), "scrapes failed"),
        (int(scrapes["dropped_line_count"].sum()), "exporter lines could not be read"),
        (int(scrapes["duplicate_count"].sum()), "duplicate series were dropped"),
    )
    return [f"{count:,} {what} in this period." for count, what in counts if count]


DEFINITION = ReportDefinition(
    name="health",
    summary="the page to read first: capacity, use, waits, room and faults",
    inputs=(
        *DEVICE_TIME_INPUTS,
        "transition_history",
        "workload_current",
        "scrape_health",
    ),
    build=build,
)
