"""Report: what there is, how demand grows against it, and what to buy, keep or retire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Final

import polars as pl

from analytics import renewal
from analytics.capability import TIERS, unknown_models, with_capability
from analytics.cost.costing import INPUTS as COST_INPUTS
from analytics.cost.costing import cost_instants, costing
from analytics.cost.days import midnights
from analytics.cost.rounding import money_text
from analytics.cost.rounding_frames import minor_as_text, with_minor
from analytics.demand import ALL, daily, wanted_tiers
from analytics.inputs import conform
from analytics.inventory import current_devices
from analytics.planning import LEAST_DAYS, METHOD, Range
from analytics.renewal import TierDemand, tier_demand
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, ratio, table
from analytics.waits import attempts
from steward.units import SECONDS_PER_DAY, TICKS_PER_GPU_HOUR

ROWS: Final = "ledger"
AHEAD_DAYS: Final = 30
"""How far ahead the forecast is told."""
_RANGE: Final = (("soonest", "low"), ("expected", "middle"), ("latest", "high"))
_COUNT_TITLES: Final = {
    "capacity_gpu_count": ("All", "mean of the day"),
    "usable_gpu_count": ("Usable", "not down"),
    "allocated_gpu_count": ("Held", "mean of the day"),
    "waiting_gpu_count": ("Waited for", "by work that names the tier; all: any work"),
    "demand_gpu_count": ("Demand", "held + waited for"),
}


_NOTHING: Final = TierDemand(
    capability=ALL,
    day_count=0,
    usable=None,
    demand=None,
    waiting=None,
    held_ratio=None,
    outlook=None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The measures behind the report."""

    devices: pl.DataFrame
    daily: pl.DataFrame
    tiers: Mapping[str, TierDemand]
    models: pl.DataFrame
    known_waits_ratio: float | None


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return inventory, demand and its outlook, and a verdict on each model."""
    found = _found(frames, question)
    return Report(
        name=DEFINITION.name,
        title="Capacity",
        period=question.period,
        figures=_figures(found),
        tables=(
            _inventory_table(found.devices),
            _demand_table(found.tiers),
            _models_table(found.models),
            _daily_table(found.daily, question.time_zone),
        ),
        findings=_findings(found),
    )


def cuts(state: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
    """Return the midnights of the zone, and the instants at which a price changes."""
    period = question.period
    return (*midnights(period, question.time_zone), *cost_instants(state, period))


def _found(frames: Mapping[str, pl.DataFrame], question: Question) -> _Found:
    period = question.period
    cost = costing(frames, period, currency=question.currency)
    overrides = conform("state.capability", frames["state.capability"])
    rows = with_capability(cost.rows, overrides)
    waits = attempts(
        conform("transition_history", frames["transition_history"]),
        conform("workload_current", frames["workload_current"]),
        period,
    )
    series = daily(rows, wanted_tiers(waits, overrides), period, zone=question.time_zone)
    tiers = tier_demand(series)
    devices = current_devices(
        conform("device_history", frames["device_history"]),
        conform("node_history", frames["node_history"]),
    )
    models = renewal.models(rows, length_s=period.length_s)
    return _Found(
        devices=with_capability(devices, overrides),
        daily=series,
        tiers=tiers,
        models=renewal.verdicts(models, tiers),
        known_waits_ratio=ratio(waits.height - waits["gpu_count"].null_count(), waits.height),
    )


def _inventory_table(devices: pl.DataFrame) -> Table:
    memory = pl.col("memory_total_bytes").filter("is_present")
    frame = (
        devices.group_by("capability", "model")
        .agg(
            node_count=pl.struct("cluster", "node").n_unique().cast(pl.Int64),
            gpu_count=pl.len().cast(pl.Int64),
            absent_count=(~pl.col("is_present")).sum().cast(pl.Int64),
            memory_bytes=pl.when(memory.is_not_null().all()).then(memory.sum()),
        )
        .sort(_rank(), "gpu_count", "model", descending=[False, True, False], nulls_last=True)
    )
    columns = (
        column("capability", "Tier", "text", "S strongest to D; empty: model not known"),
        column("model", "GPU model", "text"),
        column("node_count", "Nodes", "count"),
        column("gpu_count", "GPUs", "GPU", "present or not"),
        column("absent_count", "Absent", "GPU", "last seen as not present"),
        column("memory_bytes", "Memory", "bytes", "of present GPUs; unknown if any of them is"),
    )
    return table(
        "inventory", "Inventory by tier", frame=frame, columns=columns, rows="device_history"
    )


def _rank() -> pl.Expr:
    return pl.col("capability").replace_strict(
        TIERS, range(len(TIERS)), default=None, return_dtype=pl.Int64
    )


def _demand_table(tiers: Mapping[str, TierDemand]) -> Table:
    rows = [_demand_row(tier) for tier in tiers.values()]
    types: dict[str, type[pl.DataType]] = {
        "capability": pl.String,
        "basis": pl.String,
        "day_count": pl.Int64,
    }
    columns = (
        column("capability", "Tier", "text"),
        column("day_count", "Whole days", "count"),
        column("usable_gpu_count", "Usable", "GPU", "mean of the last 7 whole days"),
        column("demand_gpu_count", "Demand", "GPU", "held + waited for, likewise"),
        column("waiting_gpu_count", "Waited for", "GPU", "likewise"),
        column("weekly_change_gpu_count", "Change a week", "GPU", "of the trend"),
        *[column(f"ahead_{end}_gpu_count", f"In {AHEAD_DAYS} days, {end}", "GPU")
          for end in ("low", "middle", "high")],
        *[column(f"left_{word}_s", f"Until full, {word}", "s", "empty: not foreseen")
          for word, _ in _RANGE],
        column("short_gpu_count", "Short", "GPU", f"demand in {AHEAD_DAYS} days beyond usable"),
        column("basis", "Basis", "text"),
    )  # fmt: skip
    schema = {one.name: types.get(one.name, pl.Float64) for one in columns}
    return table(
        "demand",
        "Demand by tier and its outlook",
        frame=pl.DataFrame(rows, schema=schema, orient="row"),
        columns=columns,
        rows=ROWS,
        note=f"Method: {METHOD}.",
    )


def _demand_row(tier: TierDemand) -> dict[str, object]:
    known = tier.outlook
    row: dict[str, object] = {
        "capability": tier.capability,
        "day_count": tier.day_count,
        "usable_gpu_count": tier.usable,
        "demand_gpu_count": tier.demand,
        "waiting_gpu_count": tier.waiting,
        "basis": METHOD if known else f"needs {LEAST_DAYS} whole days, has {tier.day_count}",
    }
    if known is None or tier.usable is None:
        return row
    ahead, left = known.ahead(AHEAD_DAYS), known.days_until(tier.usable)
    middle = ahead.middle or 0.0
    return row | {
        "weekly_change_gpu_count": 7 * (known.slope.middle or 0.0),
        "ahead_low_gpu_count": ahead.low,
        "ahead_middle_gpu_count": ahead.middle,
        "ahead_high_gpu_count": ahead.high,
        **{f"left_{word}_s": _seconds(left, end) for word, end in _RANGE},
        "short_gpu_count": max(middle - tier.usable, 0.0),
    }


def _seconds(left: Range, end: str) -> float | None:
    days: float | None = getattr(left, end)
    return None if days is None else days * SECONDS_PER_DAY


def _models_table(models: pl.DataFrame) -> Table:
    columns = (
        column("cluster", "Cluster", "text"),
        column("model", "GPU model", "text"),
        column("capability", "Tier", "text"),
        column("gpu_count", "GPUs", "GPU", "mean over the period"),
        column("held_ratio", "Held", "ratio", "of time not down"),
        column("used_ratio", "Used", "ratio", "of held time of known use"),
        column("coverage_ratio", "Coverage", "ratio", "known use / held"),
        column("down_ratio", "Down", "ratio"),
        column("currency", "Currency", "text", "empty: no price, or several currencies"),
        column("cost", "Cost", "currency", "of all its time"),
        column("cost_per_used_gpu_hour", "Per used hour", "currency", "cost / used GPU-hours"),
        column("verdict", "Verdict", "text", "buy, keep, retire, or not judged"),
        column("reason", "Reason", "text"),
    )
    return table(
        "models",
        "Buy, keep or retire",
        frame=with_costs(models),
        columns=columns,
        rows=ROWS,
        note="Age is not recorded: the generation of a model is in `steward report tiers`.",
    )


def with_costs(models: pl.DataFrame) -> pl.DataFrame:
    """Return models with cost and cost_per_used_gpu_hour as decimal text, null where unknown.

    Printed costs of one currency add up to its total.
    """
    per_hour: list[str | None] = []
    for currency, parts, ticks in models.select("currency", "cost_parts", "used_ticks").iter_rows():
        is_used = currency is not None and ticks > 0
        each = Fraction(parts * TICKS_PER_GPU_HOUR, ticks) if is_used else None
        per_hour.append(money_text(each, currency) if is_used else None)
    return with_minor(models, parts="cost_parts", ties=("cluster", "model")).with_columns(
        pl.Series("cost_per_used_gpu_hour", per_hour, dtype=pl.String),
        cost=minor_as_text("cost_minor"),
    )


def _daily_table(series: pl.DataFrame, zone: str) -> Table:
    columns = (
        column("day", "Day", "text"),
        column("capability", "Tier", "text"),
        column("is_whole", "Whole", "text", "the period has all of the day"),
        *[column(name, title, "GPU", note) for name, (title, note) in _COUNT_TITLES.items()],
    )
    return table(
        "daily",
        f"GPUs by day ({zone}) and tier",
        frame=series.sort("day", "capability"),
        columns=columns,
        rows=ROWS,
    )


def _figures(found: _Found) -> tuple[Figure, ...]:
    whole = found.tiers.get(ALL, _NOTHING)
    known, limit = whole.outlook, whole.usable
    left = known.days_until(limit) if known is not None and limit is not None else None
    facts: list[tuple[str, str, float | None, str, str]] = [
        ("whole_day_count", "Whole days", whole.day_count, "count",
         f"Whole days of the period; a forecast needs {LEAST_DAYS}."),
        ("usable_gpu_count", "Usable GPUs", whole.usable, "GPU",
         "Mean GPUs not down over the last 7 whole days."),
        ("demand_gpu_count", "Demand", whole.demand, "GPU",
         "Mean GPUs held and waited for over the last 7 whole days."),
        ("waiting_gpu_count", "Waited for", whole.waiting, "GPU",
         "Mean GPUs waited for over the last 7 whole days, of work whose request is known."),
    ]  # fmt: skip
    facts += [
        (f"left_{word}_s", f"Until full, {word}", None if left is None else _seconds(left, end),
         "s", f"Time until demand meets usable GPUs ({METHOD}); empty where it is not foreseen.")
        for word, end in _RANGE
    ]  # fmt: skip
    covered = {"demand_gpu_count", "waiting_gpu_count"}
    return tuple(
        figure(
            key,
            title,
            value=value,
            unit=unit,
            definition=definition,
            rows=ROWS,
            coverage_ratio=found.known_waits_ratio if key in covered else None,
        )
        for key, title, value, unit, definition in facts
    )


def _findings(found: _Found) -> tuple[str, ...]:
    said = [
        f"{row['verdict'].capitalize()} {row['model']} in {row['cluster']}: {row['reason']}."
        for verdict in (renewal.BUY, renewal.RETIRE)
        for row in found.models.filter(pl.col("verdict") == verdict).iter_rows(named=True)
    ]
    whole = found.tiers.get(ALL, _NOTHING)
    if whole.outlook is None:
        count = whole.day_count
        said.append(f"A forecast needs {LEAST_DAYS} whole days, the period has {count}.")
    unknown = unknown_models(found.devices)
    if unknown:
        said.append(
            f"No tier is known of {', '.join(unknown)}: record one with `steward capability set`."
        )
    return tuple(said)


def asks(_state: Mapping[str, pl.DataFrame], _question: Question) -> Asks:
    """Return what the report reads of the ledger: models, and whose prices count."""
    return {"ledger": ("cluster", "model", "tenant_id")}


DEFINITION = ReportDefinition(
    name="capacity",
    summary="what there is by tier, how demand grows against it, what to buy or retire",
    inputs=(
        *COST_INPUTS,
        "state.capability",
        "device_history",
        "node_history",
        "transition_history",
        "workload_current",
    ),
    build=build,
    cuts=cuts,
    asks=asks,
)
