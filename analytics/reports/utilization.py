"""Report: apparent and effective utilisation, and where the GPU-hours went."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics import utilization
from analytics.ledger import CLASSES, by_class
from analytics.reports.measured import DEVICE_TIME_INPUTS, DeviceTime, device_time
from analytics.reports.model import Column, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total, value_of
from analytics.tiers import TIER_PIPES, TIER_POWER, TIER_SM
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

ROWS = "utilization_sample"
_MEANS = (
    column("tier", "Tier", "count", "1 measured, 2 upper bound, 3 power proxy, 4 apparent only"),
    column("observed_gpu_hours", "Observed", "GPU-hours", "device-time known at this tier"),
    column("coverage_ratio", "Coverage", "ratio", "observed / wall clock of the group"),
    column("apparent_ratio", "Apparent", "ratio", "time mean of busy, else graphics activity"),
    column("apparent_source", "Apparent from", "text", "the two are not comparable"),
    column("effective_ratio", "Effective", "ratio", "time mean; null where only apparent is known"),
    column("gap_ratio", "Gap", "ratio", "time mean of apparent - effective"),
    column("sm_active_ratio", "SM active", "ratio", "time mean"),
    column("dram_active_ratio", "DRAM active", "ratio", "time mean"),
)
CLASS_TITLES: Mapping[str, tuple[str, str]] = {
    "effective_gpu_hours": ("Effective", "held, active, and working: measured"),
    "effective_estimated_gpu_hours": ("Effective, estimated", "the same, by an upper bound"),
    "ineffective_gpu_hours": ("Ineffective", "held and active, but not working"),
    "idle_gpu_hours": ("Held idle", "held, and doing nothing"),
    "unknown_gpu_hours": ("Unknown", "held, use not observed; or nothing tells of holders"),
    "unattributed_busy_gpu_hours": ("Busy, no holder", "at work, and no source names a holder"),
    "unallocated_gpu_hours": ("Free", "held by nobody"),
    "unconfigured_gpu_hours": ("Unconfigured", "no MIG instance covers it"),
    "down_gpu_hours": ("Down", "lost, or free on a cordoned node"),
}
_CLASS_COLUMNS = tuple(
    column(name, title, "GPU-hours", meaning) for name, (title, meaning) in CLASS_TITLES.items()
)


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return utilisation over the period."""
    period = question.period
    time = device_time(frames, period)
    return Report(
        name=DEFINITION.name,
        title="Utilisation",
        period=period,
        figures=headline(time),
        tables=(
            leaves_table(time),
            whole_table(time),
            group_table(time, "model", "GPU model"),
            tenant_table(time),
            holder_means_table(time, "tenant_id", "Tenant"),
            holder_means_table(time, "workload_class", "Workload class"),
            group_table(time, "node", "Node"),
        ),
        findings=findings(time),
    )


def headline(time: DeviceTime) -> tuple[Figure, ...]:
    """Return the figures a person reads first."""
    totals = by_class(time.rows)
    wall = total(totals, "wall_gpu_hours")
    held = total(time.rows.filter("is_held"), "wall_gpu_hours") if time.has_holders else None
    idle = value_of(totals, "idle_gpu_hours") if time.has_holders else None
    return (
        _hours("capacity_gpu_hours", "Capacity", wall, "Wall clock x devices in the inventory."),
        _hours("allocated_gpu_hours", "Allocated", held, "Device-time held, by share."),
        apparent_figure(time, wall),
        *effective_figures(time, wall),
        _hours(
            "allocated_idle_gpu_hours",
            "Held idle",
            idle,
            "Held device-time with SM (or graphics, or busy) and DRAM activity below 1 %.",
            coverage_ratio=held_coverage(time),
        ),
        _hours(
            "unknown_gpu_hours",
            "Unknown",
            value_of(totals, "unknown_gpu_hours"),
            "Held device-time whose use was not observed; never counted as idle.",
        ),
        _hours(
            "unattributed_busy_gpu_hours",
            "Busy without holder",
            unattributed_busy_hours(time),
            "Device-time at work while no holder was recorded: its own class where the collector "
            "told it so, else inside free time.",
        ),
    )


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


def apparent_figure(time: DeviceTime, wall_gpu_hours: float) -> Figure:
    """Return apparent utilisation of all observed devices, whatever the tier."""
    sums = time.weighted.select(pl.col("apparent_s", "apparent_known_s").sum())
    known = value_of(sums, "apparent_known_s") or 0.0
    return figure(
        "apparent_ratio",
        "Apparent utilisation",
        value=ratio(value_of(sums, "apparent_s") or 0.0, known),
        unit="ratio",
        definition="Time mean over observed devices of busy time, else graphics engine activity.",
        rows=ROWS,
        coverage_ratio=ratio(known / SECONDS_PER_HOUR, wall_gpu_hours),
    )


def effective_figures(time: DeviceTime, wall_gpu_hours: float) -> tuple[Figure, ...]:
    """Return effective utilisation, one figure per tier that occurs; tier 1 always."""
    titles = {
        TIER_PIPES: ("effective_ratio", "Effective utilisation", "Measured from pipes and DRAM"),
        TIER_SM: ("effective_bound_ratio", "Effective, upper bound", "SM activity alone"),
        TIER_POWER: ("effective_proxy_ratio", "Effective, proxy", "Power between idle and limit"),
    }  # fmt: skip
    figures = []
    for tier, (key, title, basis) in titles.items():
        rows = time.weighted.filter(pl.col("tier") == tier)
        known = total(rows, "effective_known_s")
        if known == 0 and tier != TIER_PIPES:
            continue
        figures.append(
            figure(
                key,
                title,
                value=ratio(total(rows, "effective_s"), known),
                unit="ratio",
                definition=f"{basis}; time mean over the devices observed so (tier {tier}).",
                rows=ROWS,
                coverage_ratio=ratio(known / SECONDS_PER_HOUR, wall_gpu_hours),
            )
        )
    return tuple(figures)


def held_coverage(time: DeviceTime) -> float | None:
    """Return the share of held device-time whose use is known."""
    held = by_class(time.rows.filter("is_held" if time.has_holders else pl.lit(value=False)))
    wall = total(held, "wall_gpu_hours")
    known = wall - total(held, "unknown_gpu_hours") - total(held, "down_gpu_hours")
    return ratio(max(known, 0.0), wall)


def unattributed_busy_hours(time: DeviceTime) -> float | None:
    """Return device-time seen active while nobody was recorded as holder."""
    if not time.has_holders:
        return None
    told = total(time.rows, "unattributed_busy_gpu_hours")
    held = time.segments.holders.select("slice_id")
    known = pl.concat([held, time.segments.unheld.select("slice_id")]).unique()
    free = time.weighted.join(known, on="slice_id", how="anti")
    seen_s = total(free, "active_effective_s") + total(free, "active_ineffective_s")
    return told + seen_s / SECONDS_PER_HOUR


def span_gpu_hours(spans: pl.DataFrame) -> float:
    """Return the GPU-hours that rows of ``allocation_spans`` hold, each by its share."""
    length_us = pl.col("end_us") - pl.col("start_us")
    held_us = spans.select((length_us * pl.col("gpu_share_ratio")).sum()).item()
    return float(held_us) / MICROS_PER_SECOND / SECONDS_PER_HOUR


def leaves_table(time: DeviceTime) -> Table:
    """Return GPU-hours by class; they add up to wall clock x devices."""
    totals = by_class(time.rows)
    wall = pl.col("gpu_hours").sum()
    frame = pl.DataFrame(
        {
            "leaf": [name.removesuffix("_gpu_hours") for name in CLASSES],
            "title": [CLASS_TITLES[name][0] for name in CLASSES],
            "gpu_hours": [total(totals, name) for name in CLASSES],
            "meaning": [CLASS_TITLES[name][1] for name in CLASSES],
        }
    ).with_columns(share_ratio=utilization.share(pl.col("gpu_hours"), wall))
    columns = (
        column("leaf", "Class", "text"),
        column("gpu_hours", "GPU-hours", "GPU-hours"),
        column("share_ratio", "Share", "ratio", "of wall clock x devices"),
        column("meaning", "Meaning", "text"),
    )
    return table(
        "leaves",
        "Where the GPU-hours went",
        frame=frame,
        columns=columns,
        rows=ROWS,
        note="Every device-second is in exactly one class; they add up to wall clock x devices.",
    )


def whole_table(time: DeviceTime) -> Table:
    """Return means over all devices, and over held device-time, one row per tier."""
    wall = time.rows.select(pl.col("wall_gpu_hours").sum())
    held_wall = time.rows.filter("is_held").select(pl.col("wall_gpu_hours").sum())
    held = utilization.held_slices(time.weighted, time.segments)
    parts = [
        utilization.means(rows, walls).with_columns(scope=pl.lit(name))
        for name, rows, walls in (
            ("all devices", time.weighted, wall),
            ("held device-time", held, held_wall),
        )
    ]
    columns = (column("scope", "Over", "text"), *_MEANS)
    return table("by_tier", "Means by tier", frame=pl.concat(parts), columns=columns, rows=ROWS)


def group_table(time: DeviceTime, key: str, title: str) -> Table:
    """Return means over all device-time by a property of the device, one row per tier."""
    wall = time.rows.group_by(key).agg(pl.col("wall_gpu_hours").sum())
    frame = utilization.means(time.weighted, wall, key)
    return _means_table(
        f"by_{key}", f"Means by {title}", frame=frame, first=column(key, title, "text")
    )


def holder_means_table(time: DeviceTime, key: str, title: str) -> Table:
    """Return means over held device-time by a property of the holder, one row per tier."""
    held = utilization.held_slices(time.weighted, time.segments)
    wall = time.rows.filter("is_held").group_by(key).agg(pl.col("wall_gpu_hours").sum())
    frame = utilization.means(held, wall, key)
    name = f"means_by_{key.removesuffix('_id')}"
    return _means_table(name, f"Means by {title}", frame=frame, first=column(key, title, "text"))


def _means_table(key: str, title: str, *, frame: pl.DataFrame, first: Column) -> Table:
    return table(key, title, frame=frame, columns=(first, *_MEANS), rows=ROWS)


def tenant_table(time: DeviceTime, *, key: str = "tenant_id", title: str = "Tenant") -> Table:
    """Return GPU-hours held, by class, most first."""
    held = time.rows.filter("is_held")
    known = pl.col("wall_gpu_hours") - pl.col("unknown_gpu_hours") - pl.col("down_gpu_hours")
    effective = pl.col("effective_gpu_hours") + pl.col("effective_estimated_gpu_hours")
    frame = (
        by_class(held, key)
        .with_columns(
            effective_share_ratio=utilization.share(effective, known),
            coverage_ratio=utilization.share(known, pl.col("wall_gpu_hours")),
        )
        .sort("wall_gpu_hours", key, descending=[True, False], nulls_last=True)
    )
    free_classes = {
        "unattributed_busy_gpu_hours",
        "unallocated_gpu_hours",
        "unconfigured_gpu_hours",
    }
    columns = (
        column(key, title, "text", "null: not recorded"),
        column("wall_gpu_hours", "Held", "GPU-hours"),
        *[each for each in _CLASS_COLUMNS if each.name not in free_classes],
        column("effective_share_ratio", "Effective share", "ratio", "of held time of known use"),
        column("coverage_ratio", "Coverage", "ratio", "known / held"),
    )
    return table(
        f"by_{key.removesuffix('_id').removeprefix('workload_')}",
        f"GPU-hours held by {title}",
        frame=frame,
        columns=columns,
        rows=ROWS,
    )


def findings(time: DeviceTime) -> tuple[str, ...]:
    """Return sentences on what is unknown or unexpected."""
    said = []
    if time.rows.height and not time.has_holders:
        said.append(
            "No holder is recorded in this period: all device-time without a loss is unknown, "
            "not free."
        )
    coverage = held_coverage(time)
    if coverage is not None and coverage < utilization.PUBLISH_COVERAGE_RATIO:
        said.append(
            f"Only {percent(coverage)} of held GPU-hours were observed: means are not yet "
            "fit to publish."
        )
    if time.stray_device_count:
        said.append(
            f"{time.stray_device_count} devices send readings but are not in the inventory."
        )
    if time.indistinct_device_count:
        said.append(
            f"{time.indistinct_device_count} devices share their id with a device of another "
            "cluster: their readings cannot be told apart and count as unknown."
        )
    unplaced = time.segments.unplaced
    if unplaced.height:
        said.append(
            f"{unplaced.height} allocations ({span_gpu_hours(unplaced):,.1f} GPU-hours) name a GPU "
            "or MIG instance that was not in the inventory: they are in no class."
        )
    return tuple(said)


DEFINITION = ReportDefinition(
    name="utilization",
    summary="apparent and effective utilisation by tier, and where the GPU-hours went",
    inputs=DEVICE_TIME_INPUTS,
    build=build,
)
