"""Budgets against the priced ledger: what each team, or everybody, has spent by day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import polars as pl

from analytics.cost.budget import Budget, Standing, budgets, standing
from analytics.cost.costing import Costing
from analytics.cost.days import days, midnights, whole_days, with_day
from analytics.cost.forecast import recent_mean
from analytics.cost.trend import known_span
from analytics.inputs import conform
from steward.period import Period

BUDGET = "state.budget"


def standings(frames: Mapping[str, pl.DataFrame], costing: Costing) -> list[Standing]:
    """Return how far each budget that overlaps the period is used, by team and start.

    A team's budget is for its direct cost; everybody's is for the capacity cost. A budget in
    another currency than the report's is converted at the report's rate, or left out.
    """
    told = (_told_in(budget, costing) for budget in _current(frames, costing.period))
    return [_standing(costing, budget) for budget in told if budget is not None]


def budget_instants(frames: Mapping[str, pl.DataFrame], period: Period) -> tuple[datetime, ...]:
    """Return the instants at which budgets start and end, and at which their days do."""
    found: set[datetime] = set()
    zones = set()
    for budget in _current(frames, period):
        found |= {at for at in (budget.from_at, budget.until_at) if period.contains(at)}
        zones.add(budget.time_zone)
    for zone in zones:
        found |= set(midnights(period, zone))
    return tuple(sorted(found))


def _current(frames: Mapping[str, pl.DataFrame], period: Period) -> list[Budget]:
    rows = conform(BUDGET, frames[BUDGET])
    return [
        one
        for one in budgets(rows)
        if one.from_at < period.until_at and period.from_at < one.until_at
    ]


def _told_in(budget: Budget, costing: Costing) -> Budget | None:
    """Return the budget in the currency of the report; None without an exchange rate."""
    worth = costing.worth(budget.currency)
    if worth is None:
        return None
    return replace(budget, currency=str(costing.currency), amount=budget.amount * worth)


def _standing(costing: Costing, budget: Budget) -> Standing:
    span = Period(budget.from_at, budget.until_at)
    inside = (pl.col("started_at") >= budget.from_at) & (pl.col("started_at") < budget.until_at)
    rows = costing.rows
    if budget.tenant_id is not None:
        rows = rows.filter(pl.col("is_held") & (pl.col("tenant_id") == budget.tenant_id))
    by_day = _by_day(costing, rows.filter(inside), budget)
    known = known_span(costing.rows, costing.period)
    inner = None if known is None else known.intersection(span)
    told = [] if inner is None else days(inner, budget.time_zone)
    whole = [] if known is None else whole_days(known, budget.time_zone)
    recent = _by_day(costing, rows, budget) if inner is not None else {}
    return standing(
        budget,
        [(day, by_day.get(day, Fraction(0))) for day in told],
        days=days(span, budget.time_zone),
        recent_daily_mean=recent_mean([recent.get(day, Fraction(0)) for day in whole]),
    )


def _by_day(costing: Costing, rows: pl.DataFrame, budget: Budget) -> dict[date, Fraction]:
    dated = with_day(rows, costing.period, budget.time_zone)
    is_everybody = budget.tenant_id is None
    return {
        day: one.capacity if is_everybody else one.allocated
        for (day,), one in costing.accounts("day", rows=dated).items()
        if isinstance(day, date)
    }
