"""Tables of the cost report that look at time to come, and at days that stand out."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.cost.bills import UNATTRIBUTED
from analytics.cost.budget import Crossing, Standing
from analytics.cost.costing import Costing
from analytics.cost.rounding import money_text
from analytics.cost.trend import Trend
from analytics.reports.cost_tables import framed, share, titled
from analytics.reports.model import Table
from analytics.reports.shape import column, ratio, table

EVERYBODY = "everybody"
BUDGET = "state.budget"
BUDGET_COLUMNS = (
    column("tenant_id", "Tenant", "text"),
    column("valid_from_at", "From", "text"),
    column("valid_until_at", "Until", "text"),
    column("budget_cost", "Budget", "currency"),
    column("spent_cost", "Spent", "currency", "on days that the period covers"),
    column("used_ratio", "Used", "ratio", "spent / budget"),
    column("elapsed_ratio", "Elapsed", "ratio", "days begun / days of the budget"),
    column("known_ratio", "Known", "ratio", "days that the period covers / days begun"),
    column("expected_cost", "Expected", "currency", "at the end, at the run rate"),
    column("expected_ratio", "Expected used", "ratio", "expected / budget"),
    column("thresholds", "Thresholds", "text", "first day by whose end each is reached"),
)


def budgets_table(costing: Costing, standings: Sequence[Standing]) -> Table:
    """Return each budget with what is spent of it and when it reaches its thresholds."""
    code = costing.currency or ""
    rows = [_budget_row(one, code) for one in standings]
    return table(
        "budgets",
        titled("Budgets", code),
        frame=framed(rows, BUDGET_COLUMNS),
        columns=BUDGET_COLUMNS,
        rows=BUDGET,
        note="A team's budget is for its direct cost, everybody's for the capacity cost.",
    )


def _budget_row(one: Standing, code: str) -> dict[str, object]:
    budget, expected = one.budget, one.expected
    return {
        "tenant_id": budget.tenant_id or EVERYBODY,
        "valid_from_at": budget.from_at,
        "valid_until_at": budget.until_at,
        "budget_cost": money_text(budget.amount, code),
        "spent_cost": money_text(one.spent, code),
        "used_ratio": share(one.spent, budget.amount),
        "elapsed_ratio": ratio(one.elapsed_days, one.day_count),
        "known_ratio": ratio(one.known_days, one.elapsed_days),
        "expected_cost": money_text(expected, code),
        "expected_ratio": None if expected is None else share(expected, budget.amount),
        "thresholds": "; ".join(map(_crossing, one.crossings)),
    }


def anomalies_table(costing: Costing, trend: Trend) -> Table:
    """Return the days on which a team's cost for a model stands out."""
    code = costing.currency or ""
    rows = [
        {
            "day": odd.found.day.isoformat(),
            "tenant_id": odd.tenant_id or UNATTRIBUTED,
            "model": odd.model,
            "cost": money_text(odd.found.cost, code),
            "usual_cost": money_text(odd.found.usual, code),
            "score": None if odd.found.score is None else f"{float(odd.found.score):.1f}",
            "workload_uid": odd.driver_uid,
            "change_cost": money_text(odd.driver_change, code),
        }
        for odd in trend.odd
    ]
    columns = (
        column("day", "Day", "text"),
        column("tenant_id", "Tenant", "text"),
        column("model", "GPU model", "text"),
        column("cost", "Cost", "currency", "direct cost of the day"),
        column("usual_cost", "Usual", "currency", "median of up to 28 whole days before"),
        column("score", "Score", "text", "0.6745 x change / median deviation; odd beyond 3.5"),
        column("workload_uid", "Driven by", "text", "the workload that moved most"),
        column("change_cost", "Its change", "currency", "against its own median"),
    )
    return table(
        "anomalies",
        titled("Days that stand out", code),
        frame=framed(rows, columns),
        columns=columns,
        rows="ledger",
        note="A day is judged once seven whole days lie before it.",
    )


def _crossing(one: Crossing) -> str:
    name = f"{float(one.threshold) * 100:g} %"
    if one.day is None:
        return f"{name}: not reached"
    return f"{name}: {'expected' if one.is_forecast else 'reached'} {one.day.isoformat()}"
