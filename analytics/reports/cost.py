"""Report: what the GPUs cost, who bears it, and what it will come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import polars as pl

from analytics.cost.bills import Bills, bills
from analytics.cost.budget import Standing
from analytics.cost.budgeting import BUDGET, budget_instants, standings
from analytics.cost.costing import INPUTS, Costing, cost_instants, costing
from analytics.cost.days import midnights
from analytics.cost.priced import priced
from analytics.cost.rounding import money_text
from analytics.cost.trend import Trend, odd_spans, trend
from analytics.inputs import conform
from analytics.reports.cost_figures import forecast_figures, money_figures, ratio_figures
from analytics.reports.cost_outlook import EVERYBODY, anomalies_table, budgets_table
from analytics.reports.cost_tables import (
    daily_table,
    groups_table,
    is_priced,
    leaves_table,
    prices_table,
    unpriced_table,
)
from analytics.reports.grouping import (
    CAPABILITY_INPUTS,
    Grouping,
    asking,
    grouping,
    with_capability,
    words,
)
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, View
from analytics.reports.shape import figure, percent, ratio
from steward.period import Period
from steward.units import TICKS_PER_GPU_HOUR

USUAL_GROUPING = "team"
MOST_GROUPS = 1_000
"""More groups than anybody reads; every row of every workload is in the FOCUS export."""
OTHERS = "others"
_OF_DAYS = ("cluster", "model", "is_held", "tenant_id")
_OF_NODES = ("cluster", "model", "node", "tenant_id")
MOST_TOLD = 3
"""Odd days told as findings, those of the largest change; the table has all of them."""
LARGE_IDLE_RATIO = 0.2
"""Share of the capacity cost from which allocated idle is told as a finding."""


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the cost of the period."""
    found = costing(frames, question.period, currency=question.currency)
    by = grouping(question.by or USUAL_GROUPING)
    groups, holders, places = (_view(frames, found, word) for word in ("group", "workload", "node"))
    divided = replace(found, rows=with_capability(groups, frames))
    borne = bills(_fewer_groups(divided, by), by.keys, is_of_holder=by.is_of_holder)
    days = trend(found, question.time_zone, holders=holders)
    stand = standings(frames, found)
    return Report(
        name=DEFINITION.name,
        title="Cost",
        period=question.period,
        figures=(
            *money_figures(found),
            *ratio_figures(found),
            _budget_figure(stand),
            *forecast_figures(found, days),
        ),
        tables=(
            groups_table(found, borne, by),
            leaves_table(found),
            budgets_table(found, stand),
            anomalies_table(found, days),
            daily_table(found, days),
            unpriced_table(found, places),
            prices_table(found),
        ),
        findings=tuple(_findings(found, borne, days, stand=stand)),
    )


def _view(frames: Mapping[str, pl.DataFrame], found: Costing, word: str) -> pl.DataFrame:
    """Return a view of the ledger at its prices; where there is none, the priced ledger."""
    name = f"ledger.{word}"
    return priced(conform("ledger", frames[name]), found.book) if name in frames else found.rows


def _fewer_groups(found: Costing, by: Grouping) -> Costing:
    """Return the costing with the groups of least device-time together in one, if there are many.

    Nothing is left out: the group ``OTHERS`` has the cost of all of them.
    """
    if found.rows.select(by.keys).unique().height <= MOST_GROUPS:
        return found
    sizes = by.scope(found.rows).group_by(by.keys).agg(pl.col("wall_ticks").cast(pl.Int128).sum())
    ordered = sizes.sort("wall_ticks", *by.keys, descending=[True] + [False] * len(by.keys))
    named = ordered.tail(-MOST_GROUPS).filter(pl.col(by.key).is_not_null())
    few = named.select(*by.keys, _is_few=pl.lit(value=True))
    marked = found.rows.join(few, on=by.keys, how="left", nulls_equal=True, maintain_order="left")
    renamed = (
        pl.when(pl.col("_is_few")).then(pl.lit(OTHERS)).otherwise(pl.col(key)).alias(key)
        for key in by.keys
    )
    return replace(found, rows=marked.with_columns(renamed).drop("_is_few"))


def cuts(frames: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
    """Return the instants at which prices change, days of the zone start, and budgets do."""
    period = question.period
    return (
        *cost_instants(frames, period),
        *midnights(period, question.time_zone),
        *budget_instants(frames, period),
    )


def _budget_figure(stand: Sequence[Standing]) -> Figure:
    """Return the use of everybody's budget, else of all teams' budgets together."""
    shared = [one for one in stand if one.budget.tenant_id is None]
    chosen = shared or list(stand)
    amount = sum(one.budget.amount for one in chosen)
    spent = sum(one.spent for one in chosen)
    known, elapsed = (sum(getattr(one, name) for one in chosen) for name in
                      ("known_days", "elapsed_days"))  # fmt: skip
    return figure(
        "budget_used_ratio",
        "Budget used",
        value=float(spent / amount) if amount else None,
        unit="ratio",
        definition="Spent / budget: everybody's budget where there is one, else all teams' budgets "
        "together, on the days that the period covers.",
        rows=BUDGET,
        coverage_ratio=ratio(known, elapsed),
    )


def _findings(found: Costing, borne: Bills, days: Trend, *, stand: Sequence[Standing]) -> list[str]:
    return [
        *_price_findings(found),
        *_budget_findings(found, stand),
        *_odd_findings(found, days),
        *_idle_findings(found),
        *(f"{warning[0].upper()}{warning[1:]}." for warning in borne.warnings),
    ]


def _price_findings(found: Costing) -> list[str]:
    whole, told = found.whole, []
    missing = whole.wall_ticks - whole.priced_ticks
    if missing:
        models = sorted(
            str(model) for (model,), one in found.accounts("model").items()
            if one.wall_ticks > one.priced_ticks
        )  # fmt: skip
        told.append(
            f"{missing / TICKS_PER_GPU_HOUR:,.1f} GPU-hours "
            f"({percent(ratio(missing, whole.wall_ticks))}) have no price: {', '.join(models)}. "
            "Set one with: steward price set --model MODEL --rate RATE --currency CODE --from TIME."
        )
    if found.unconverted:
        told.append(
            f"Amounts in {', '.join(found.unconverted)} are left out: no exchange rate to "
            f"{found.currency} is in force at the period's end. "
            "Record one with: steward price rate."
        )
    return told


def _budget_findings(found: Costing, stand: Sequence[Standing]) -> list[str]:
    told = []
    for one in stand:
        whose = one.budget.tenant_id or EVERYBODY
        reached = [each for each in one.crossings if each.day and not each.is_forecast]
        coming = [each for each in one.crossings if each.day and each.is_forecast]
        if reached:
            last = reached[-1]
            told.append(
                f"The budget of {whose} reached {float(last.threshold) * 100:g} % on {last.day}: "
                f"{spoken(one.spent, found)} is spent."
            )
        if coming:
            last = coming[-1]
            told.append(
                f"The budget of {whose} is expected to reach {float(last.threshold) * 100:g} % "
                f"on {last.day} at the mean of the last seven whole days."
            )
    return told


def _odd_findings(found: Costing, days: Trend) -> list[str]:
    ordered = sorted(days.odd, key=lambda odd: -abs(odd.found.cost - odd.found.usual))
    return [
        f"{odd.tenant_id or 'Unattributed work'} cost {spoken(odd.found.cost, found)} on "
        f"{odd.model or 'GPUs of no known model'} on {odd.found.day}; usual is "
        f"{spoken(odd.found.usual, found)}. "
        f"{odd.driver_uid or 'Work of no known name'} moved most."
        for odd in ordered[:MOST_TOLD]
    ]


def _idle_findings(found: Costing) -> list[str]:
    whole = found.whole
    idle = Fraction(whole.parts["allocated_idle"])
    part = ratio(float(idle), float(whole.capacity))
    if part is None or part < LARGE_IDLE_RATIO:
        return []
    told = f"{spoken(idle, found)} ({percent(part)} of the capacity cost)"
    return [f"{told} was held and did no work."]


def spoken(parts: Fraction, found: Costing) -> str:
    """Return an amount as a sentence says it: ``1,234.50 USD``."""
    return f"{Decimal(money_text(parts, found.currency or '') or 0):,} {found.currency}"


def asks(_state: Mapping[str, pl.DataFrame], _question: Question) -> Asks:
    """Return what the report reads of the ledger day by day."""
    return {"ledger": _OF_DAYS}


def follows(frames: Mapping[str, pl.DataFrame], question: Question) -> Mapping[str, View]:
    """Return what is not needed day by day, or not of every day.

    The groups, where holders and places alone do not tell them; the nodes of what has no price;
    and who held on the days by which those that stand out are judged.
    """
    found = costing(frames, question.period, currency=question.currency)
    ends = (question.period.from_at, *cost_instants(frames, question.period))
    spans = tuple(map(Period, ends, (*ends[1:], question.period.until_at)))
    keys = asking(*_OF_DAYS, words=(question.by or USUAL_GROUPING,))
    odd = odd_spans(found, question.time_zone)
    views = {
        "ledger.group": View(columns=keys, spans=spans) if keys != _OF_DAYS else None,
        "ledger.node": View(columns=_OF_NODES, spans=spans)
        if not found.rows.filter(~is_priced(found)).is_empty()
        else None,
        "ledger.workload": View(columns=(*_OF_DAYS, "workload_uid"), spans=odd) if odd else None,
    }
    return {name: one for name, one in views.items() if one is not None}


DEFINITION = ReportDefinition(
    name="cost",
    summary="what the GPUs cost, who bears it, and what the month will come to",
    inputs=(*INPUTS, BUDGET, *CAPABILITY_INPUTS),
    build=build,
    groupings=words(),
    cuts=cuts,
    asks=asks,
    follows=follows,
)
