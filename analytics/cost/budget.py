"""Budgets: what a team, or everybody, may spend in a span of time, and how far it got."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction

import polars as pl

from analytics.cost import dated
from analytics.cost.rounding import parts_of
from steward.units import CURRENCY_MICROS


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What may be spent from one instant to another."""

    tenant_id: str | None
    """None: everybody together, idle and shared cost included."""
    currency: str
    amount: Fraction
    """In parts of the currency."""
    time_zone: str
    """Whose days it is told in."""
    from_at: datetime
    until_at: datetime
    thresholds: tuple[Fraction, ...]
    """Shares of the amount, ascending, at which somebody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """When spending reaches one threshold of a budget."""

    threshold: Fraction
    day: date | None
    """The first day by whose end it is reached; None: not within the budget's time."""
    is_forecast: bool
    """False: it is a fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far a budget is used."""

    budget: Budget
    spent: Fraction
    """Cost of the days that are known."""
    ratio: Fraction | None
    """spent / amount; None for a budget of nothing."""
    known_days: int
    """Days of the budget whose cost is known."""
    elapsed_days: int
    """Days of the budget up to the end of the data."""
    day_count: int
    expected: Fraction | None
    """Cost at the budget's end at the run rate; None where days are missing or too few."""
    crossings: tuple[Crossing, ...]


def budgets(rows: pl.DataFrame) -> list[Budget]:
    """Return the budgets that count: of those of one team that overlap, the last recorded.

    Args:
        rows: rows of ``state.budget``, any order. A budget whose time is cut by another is left
            out: nobody agreed to half of it.

    Returns:
        by tenant_id (everybody's first) and start.
    """
    current = dated.latest(rows, key=("tenant_id",), identity="budget_id")
    ends = ["budget_id", dated.FROM, dated.UNTIL]
    whole = current.join(rows.select(ends), on=ends)
    ordered = whole.sort("tenant_id", dated.FROM, nulls_last=False)
    return [_budget(row) for row in ordered.iter_rows(named=True)]


def standing(
    budget: Budget,
    spending: Sequence[tuple[date, Fraction]],
    *,
    days: Sequence[date],
    recent_daily_mean: Fraction | None,
) -> Standing:
    """Return how far a budget is used, and when it is forecast to reach its thresholds.

    Args:
        budget: in parts of one currency, as everything here.
        spending: cost by day, ascending, of days that are known and lie in the budget.
        days: all days of the budget, ascending.
        recent_daily_mean: what a day has cost of late; None: nothing is forecast.
    """
    spent = sum((cost for _, cost in spending), Fraction(0))
    last = spending[-1][0] if spending else None
    elapsed = sum(1 for day in days if last is not None and day <= last)
    is_whole = elapsed == len(spending)
    mean = recent_daily_mean if is_whole else None
    rest = days[elapsed:]
    return Standing(
        budget=budget,
        spent=spent,
        ratio=spent / budget.amount if budget.amount else None,
        known_days=len(spending),
        elapsed_days=elapsed,
        day_count=len(days),
        expected=None if mean is None else spent + mean * len(rest),
        crossings=tuple(
            _crossing(budget, threshold, spending=spending, rest=rest, mean=mean)
            for threshold in budget.thresholds
        ),
    )


def _crossing(
    budget: Budget,
    threshold: Fraction,
    *,
    spending: Sequence[tuple[date, Fraction]],
    rest: Sequence[date],
    mean: Fraction | None,
) -> Crossing:
    goal, reached = budget.amount * threshold, Fraction(0)
    for day, cost in spending:
        reached += cost
        if reached >= goal:
            return Crossing(threshold=threshold, day=day, is_forecast=False)
    for day in rest if mean else ():
        reached += mean or 0
        if reached >= goal:
            return Crossing(threshold=threshold, day=day, is_forecast=True)
    return Crossing(threshold=threshold, day=None, is_forecast=True)


def _budget(row: dict[str, object]) -> Budget:
    from_at, until_at = row[dated.FROM], row[dated.UNTIL]
    if not isinstance(from_at, datetime) or not isinstance(until_at, datetime):
        raise TypeError("a budget has two ends")
    tenant_id = row["tenant_id"]
    return Budget(
        tenant_id=None if tenant_id is None else str(tenant_id),
        currency=str(row["currency"]),
        amount=parts_of(Fraction(int(str(row["amount_micros"])), CURRENCY_MICROS)),
        time_zone=str(row["time_zone"]),
        from_at=from_at,
        until_at=until_at,
        thresholds=thresholds(str(row["thresholds_json"])),
    )


def thresholds(text: str) -> tuple[Fraction, ...]:
    """Return the shares of a JSON list, ascending, each read as the decimal it is written as.

    Raises:
        ValueError: it is no list of positive numbers.
    """
    values = json.loads(text, parse_float=str, parse_int=str)
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{text!r} is no JSON list of numbers")
    shares = sorted({Fraction(value) for value in values})
    if not all(share > 0 for share in shares):
        raise ValueError(f"{text!r} has a threshold that is not above 0")
    return tuple(shares)
