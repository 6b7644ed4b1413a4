"""Report: the page to read first: what to decide, and how each part of the fleet stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics import decisions, utilization
from analytics.inputs import conform
from analytics.inventory import current_devices, device_models
from analytics.placeable import placeable
from analytics.pressure import POINT_COUNT, axis
from analytics.queue.free import INPUTS as FREE_INPUTS
from analytics.queue.free import free_of
from analytics.reports import fragmentation, grouping, inventory, queue
from analytics.reports import utilization as usage_report
from analytics.reports.health_components import components_table
from analytics.reports.health_decisions import (
    PRICE_INPUTS,
    Priced,
    cuts,
    decisions_table,
    others_table,
    sentences,
    with_prices,
)
from analytics.reports.health_faults import (
    event_figures,
    events_table,
    fault_findings,
    scrape_figures,
    scrapes_table,
)
from analytics.reports.health_protection import PROTECTION_INPUTS, protection_figure
from analytics.reports.measured import USAGE_INPUTS, Usage, stored_inputs, usage
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total, value_of
from analytics.reports.usage_tables import (
    ROWS,
    hours_table,
    leaves_table,
    means_table,
    tiers_table,
)
from analytics.schemas.usage import ASKED
from analytics.segments import Inputs
from analytics.spells import idle_spells, stuck_spells
from analytics.stakes import Candidate, ranked
from analytics.usage import gpu_hours, totals
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

_TOP: Final = 10
GAP_WORTH_TELLING_RATIO: Final = 0.05
"""A smaller share of time that was apparent only is no finding."""
_SPELL_COLUMNS: Final = (
    column("tenant_id", "Tenant", "text"),
    column("namespace", "Namespace", "text"),
    column("pod", "Pod", "text"),
    column("workload_uid", "Workload", "text"),
    column("node", "Node", "text"),
    column("device_uuid", "GPU", "text"),
    column("instance_id", "Instance", "count"),
    column("started_at", "From", "text"),
    column("ended_at", "Until", "text"),
    column("length_s", "Length", "s"),
    column("gpu_hours", "GPU-hours", "GPU-hours", "length x share held"),
)
_QUEUE_KEYS: Final = (
    "wait_p50_s",
    "wait_p90_s",
    "km_wait_p50_s",
    "km_wait_p90_s",
    "never_scheduled_count",
)
_FRAGMENT_KEYS: Final = ("fragmentation_ratio", "largest_gang_gpu_count")
_IDLE_NOTE = "Held and idle for at least 10 minutes without a gap; the ten with most GPU-hours."
_STUCK_NOTE = "Looks at least 95 % busy for 15 minutes while nothing works; power is not consulted."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Everything the page is composed of."""

    usage: Usage
    priced: Priced
    inputs: Inputs
    attempts: pl.DataFrame
    points: pl.DataFrame
    fragments: fragmentation.Measured
    idle: pl.DataFrame
    stuck: pl.DataFrame
    scrapes: pl.DataFrame
    events: pl.DataFrame
    protected: Figure
    period: Period


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the health of the fleet over the period."""
    found = _measure(frames, question)
    figures = _figures(found)
    best = _ranked(found)
    currency = found.priced.currency
    return Report(
        name=DEFINITION.name,
        title="Health",
        period=question.period,
        figures=figures,
        tables=(
            decisions_table(best, currency),
            components_table({each.key: each for each in figures}),
            others_table(best, currency),
            *_tables(found),
        ),
        findings=(*sentences(best, currency), *_findings(found)),
    )


def _measure(frames: Mapping[str, pl.DataFrame], question: Question) -> _Measured:
    period, inputs, used = question.period, stored_inputs(frames), usage(frames)
    attempts = queue.attempt_rows(frames, period)
    return _Measured(
        usage=used,
        priced=with_prices(frames, question),
        inputs=inputs,
        attempts=attempts,
        points=placeable(axis(period)["at"], attempts, free_of(inputs, period)),
        fragments=fragmentation.measure(frames, period),
        idle=idle_spells(used.rest),
        stuck=stuck_spells(used.rest),
        scrapes=conform("scrape_health", frames["scrape_health"]),
        events=inputs.events.filter(pl.col("occurred_at") >= period.from_at),
        protected=protection_figure(frames, period),
        period=period,
    )


def _ranked(found: _Measured) -> tuple[Candidate, ...]:
    """Return what is worth deciding, most at stake first."""
    ledger = found.priced.ledger
    waited = found.attempts.filter(pl.col("wait_s") > 0)
    candidates = [
        decisions.reclaim(ledger, found.idle),
        decisions.stuck(ledger, found.stuck),
        *decisions.unstrand(ledger),
        decisions.lend(ledger),
        decisions.move_down(found.priced.above, ledger),
        decisions.place_waiting(
            ledger,
            found.points,
            step_s=found.period.length_s / POINT_COUNT,
            waiting_count=waited.height,
        ),
        decisions.know_use(ledger),
        decisions.record_prices(ledger),
    ]
    return ranked([one for one in candidates if one is not None], ledger.wall_ticks)


def _figures(found: _Measured) -> tuple[Figure, ...]:
    devices = current_devices(found.inputs.devices, found.inputs.nodes)
    waits = {each.key: each for each in queue.figures(found.attempts)}
    room = {each.key: each for each in fragmentation.figures(found.fragments)}
    return (
        figure(
            "gpu_count",
            "GPUs",
            value=devices.height,
            unit="GPU",
            definition="Physical GPUs in the inventory.",
            rows="device_history",
        ),
        *usage_report.headline(found.usage),
        *usage_report.leaf_figures(found.usage),
        *usage_report.rest_figures(found.usage),
        *_share_figures(found.usage),
        *[waits[key] for key in _QUEUE_KEYS if key in waits],
        *[room[key] for key in _FRAGMENT_KEYS if key in room],
        found.protected,
        *event_figures(found.events, is_watched=_is_watched(found)),
        _coverage_figure(found.usage),
        *scrape_figures(found.scrapes, found.period),
    )


def _is_watched(found: _Measured) -> bool:
    """Tell whether anything was read in the period: without it, no event is no good news."""
    return bool(found.events.height) or total(totals(found.usage.rows), "observed_s") > 0


def _share_figures(used: Usage) -> tuple[Figure, ...]:
    """Return what is unknown, at rest or unattributed, as shares of allocated device-time."""
    whole = utilization.leaves(used.rows)
    nameless = utilization.leaves(utilization.unattributed(used.rows))
    held = total(whole, "allocated_gpu_hours")
    known = held - total(whole, "unknown_use_gpu_hours")
    is_told = used.has_holders
    facts = (
        ("unknown_use_ratio", "Unknown of allocated",
         ratio(total(whole, "unknown_use_gpu_hours"), held),
         "Unknown use / allocated.", None),
        ("unattributed_ratio", "Unattributed of allocated",
         ratio(total(nameless, "allocated_gpu_hours"), held) if is_told else None,
         "Device-time of no known tenant, or at work without a holder / allocated.", None),
        ("idle_held_ratio", "Held idle of allocated",
         ratio(total(whole, "idle_gpu_hours"), known),
         "Held at rest / allocated device-time of known use.", ratio(known, held)),
    )  # fmt: skip
    return tuple(
        figure(
            key,
            title,
            value=value,
            unit="ratio",
            definition=definition,
            rows=ROWS,
            coverage_ratio=coverage,
        )
        for key, title, value, definition, coverage in facts
    )


def _coverage_figure(used: Usage) -> Figure:
    summed = totals(used.rows)
    uncovered = used.rows.filter(pl.col("reason") == "mig_geometry")
    walls = [
        total(totals(rows).select(hours=gpu_hours(pl.col("wall_ticks"))), "hours")
        for rows in (used.rows, uncovered)
    ]
    return figure(
        "telemetry_coverage_ratio",
        "Telemetry coverage",
        value=ratio(total(summed, "observed_s") / SECONDS_PER_HOUR, walls[0] - walls[1]),
        unit="ratio",
        definition="Device-time with readings at the usual cadence / wall clock x devices.",
        rows=ROWS,
    )


def _tables(found: _Measured) -> tuple[Table, ...]:
    rows = found.usage.rows
    devices = current_devices(found.inputs.devices, found.inputs.nodes)
    return (
        leaves_table(rows),
        tiers_table(found.usage.spoken_for),
        inventory.models_table(device_models(devices)),
        means_table(found.usage.spoken_for, grouping.grouping("model")),
        hours_table(rows, grouping.grouping("team")),
        hours_table(rows, grouping.grouping("class")),
        queue.scope_table(found.attempts.filter("is_in_period")),
        fragmentation.gangs_table(found.fragments),
        _spell_table("idle_spells", "Longest held idle", found.idle, note=_IDLE_NOTE),
        _spell_table("stuck_spells", "Suspected stuck", found.stuck, note=_STUCK_NOTE),
        events_table(found.events),
        scrapes_table(found.scrapes),
    )


def _spell_table(key: str, title: str, spells: pl.DataFrame, *, note: str) -> Table:
    return table(
        key, title, frame=spells.head(_TOP), columns=_SPELL_COLUMNS, rows="rest", note=note
    )


def _findings(found: _Measured) -> tuple[str, ...]:
    lists = (
        usage_report.findings(found.usage),
        _idle_findings(found.usage.rows),
        _gap_findings(found.usage.spoken_for),
        queue.findings(found.attempts, found.period),
        _room_findings(found.fragments),
        fault_findings(found.events, found.scrapes),
    )
    return tuple(text for each in lists for text in each)


def _idle_findings(rows: pl.DataFrame) -> list[str]:
    by_tenant = utilization.leaves(rows.filter("is_held"), "tenant_id").sort(
        "idle_gpu_hours", "tenant_id", descending=[True, False], nulls_last=True
    )
    said = []
    for row in by_tenant.head(3).iter_rows(named=True):
        if row["idle_gpu_hours"] > 0:
            share = percent(ratio(row["idle_gpu_hours"], row["wall_gpu_hours"]))
            said.append(
                f"{row['tenant_id'] or 'An unknown tenant'} held {row['idle_gpu_hours']:,.1f} "
                f"GPU-hours idle, {share} of what it held."
            )
    return said


def _gap_findings(rows: pl.DataFrame) -> list[str]:
    told = utilization.means(rows).filter(pl.col("tier") == 1)
    gap, apparent = value_of(told, "gap_ratio"), value_of(told, "apparent_ratio")
    if gap is None or apparent is None or gap < GAP_WORTH_TELLING_RATIO:
        return []
    said = (
        f"GPUs look {percent(apparent)} busy, but {percent(gap)} of their time was apparent only: "
        "occupied without working near a limit."
    )
    return [said]


def _room_findings(fragments: fragmentation.Measured) -> list[str]:
    room = {each.key: each.value for each in fragmentation.figures(fragments)}
    fragmented = room.get("fragmentation_ratio")
    if not isinstance(fragmented, float) or fragments.idle_milli == 0:
        return []
    said = (
        f"{percent(fragmented)} of {fragments.idle_milli / 1000:,.1f} idle GPUs are of no "
        f"use to the expected work; the largest gang on one node is "
        f"{room['largest_gang_gpu_count']} GPUs."
    )
    return [said]


def asks(_state: Mapping[str, pl.DataFrame], _question: Question) -> Asks:
    """Return what the page reads of the ledger: all but who owns a job, and its priority."""
    return {"ledger": tuple(name for name in ASKED if name not in {"owner", "priority_class"})}


DEFINITION = ReportDefinition(
    name="health",
    summary="the page to read first: three decisions with their money, then every component",
    inputs=tuple(
        dict.fromkeys(
            (
                *USAGE_INPUTS,
                *PRICE_INPUTS,
                *PROTECTION_INPUTS,
                queue.ROWS,
                *FREE_INPUTS,
                *fragmentation.MEASURED_INPUTS,
                "device_event_history",
                "workload_current",
                "scrape_health",
            )
        )
    ),
    build=build,
    cuts=cuts,
    asks=asks,
)
