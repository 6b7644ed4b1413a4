"""The headline numbers of the cost report."""

from __future__ import annotations

from fractions import Fraction

from analytics.cost.account import Account
from analytics.cost.costing import Costing
from analytics.cost.printing import printed_leaves
from analytics.cost.rounding import minor_text, minor_units, money_text
from analytics.cost.trend import Trend
from analytics.reports.model import Figure
from analytics.reports.shape import figure, ratio
from analytics.reports.usage_tables import LEAF_TITLES
from analytics.usage import ALLOCATED
from steward.units import TICKS_PER_GPU_HOUR

LEDGER, PRICE, SHARED = "ledger", "state.price", "state.shared_cost"
_OF_LEAF = {
    "used": "device-time held and working",
    "allocated_idle": "device-time held and not working",
    "unknown_use": "device-time held whose use was not observed",
    "down": "device-time lost, or free on a cordoned node",
    "stranded": "free device-time that no expected work can use",
    "reserved_unused": "free device-time under a guarantee that nobody used",
    "free_idle": "free device-time ready for work",
}


def money_figures(costing: Costing) -> tuple[Figure, ...]:
    """Return cost by leaf and as a whole; null where nothing has a price."""
    whole, code = costing.whole, costing.currency or ""
    is_known = whole.is_priced and costing.currency is not None
    total = minor_units(whole.capacity + costing.shared_total, code)
    shared = figure(
        "shared_cost",
        _titled("Shared cost", code),
        value=money_text(costing.shared_total, code) if costing.currency else None,
        unit="currency",
        definition="Costs that benefit all, spread evenly over the time each is valid for.",
        rows=SHARED,
    )
    return (
        *(
            _money(key, title, value if is_known else None, code=code, definition=text, known=known)
            for key, title, value, known, text in _leaf_facts(whole, code)
        ),
        _unattributed(costing, is_known=is_known, code=code),
        shared,
        _money(
            "total_cost",
            "Total cost",
            total if is_known else None,
            code=code,
            definition="Capacity cost and shared cost: what all bills together add up to.",
            known=ratio(whole.priced_ticks, whole.wall_ticks),
        ),
    )


def _leaf_facts(whole: Account, code: str) -> list[tuple[str, str, int | None, float | None, str]]:
    """Return key, title, minor units, coverage and definition of capacity, allocated and leaves."""
    leaves = printed_leaves(whole, code)
    held = sum(whole.ticks[name] for name in ALLOCATED)
    held_priced = sum(whole.priced[name] for name in ALLOCATED)
    allocated = sum(leaves[name] for name in ALLOCATED) if held_priced or not held else None
    priced = ratio(whole.priced_ticks, whole.wall_ticks)
    return [
        ("capacity_cost", "Capacity cost", sum(leaves.values()), priced,
         "Every second of every GPU at the price in force at that second."),
        ("allocated_cost", "Allocated cost", allocated, ratio(held_priced, held),
         "Capacity cost of device-time that somebody held: used, allocated idle and unknown use."),
        *((f"{name}_cost", LEAF_TITLES[name][0],
           leaves[name] if whole.is_leaf_priced(name) else None,
           ratio(whole.priced[name], whole.ticks[name]),
           f"Capacity cost of {_OF_LEAF[name]}.") for name in leaves),
    ]  # fmt: skip


def ratio_figures(costing: Costing) -> tuple[Figure, ...]:
    """Return utilisation by money, cost of a used GPU-hour, and what is not known."""
    whole, code = costing.whole, costing.currency or ""
    known_use = whole.priced["used"] + whole.priced["allocated_idle"]
    use_coverage = ratio(known_use, sum(whole.priced[name] for name in ALLOCATED))
    hours = Fraction(whole.priced["used"], TICKS_PER_GPU_HOUR)
    told = tuple(
        figure(
            key, title, value=value, unit=unit, definition=text, rows=LEDGER, coverage_ratio=known
        )
        for key, title, value, unit, text, known in _ratio_facts(whole, use_coverage)
    )  # fmt: skip
    cost = figure(
        "cost_per_used_gpu_hour",
        _titled("Cost per used GPU-hour", code),
        value=money_text(whole.capacity / hours, code) if hours and code else None,
        unit="currency",
        definition="Capacity cost / GPU-hours used: what an hour of work costs, idle included.",
        rows=LEDGER,
        coverage_ratio=use_coverage,
    )
    return (*told, cost)


def _ratio_facts(
    whole: Account, use_coverage: float | None
) -> list[tuple[str, str, float | None, str, str, float | None]]:
    """Return key, title, value, unit, definition and coverage."""
    capacity, unpriced = whole.capacity, whole.wall_ticks - whole.priced_ticks
    return [
        ("apparent_cost_ratio", "Apparent utilisation by money", _share(whole.allocated, capacity),
         "ratio", "Allocated cost / capacity cost.", ratio(whole.priced_ticks, whole.wall_ticks)),
        ("effective_cost_ratio", "Effective utilisation by money",
         _share(Fraction(whole.parts["used"]), capacity), "ratio",
         "Cost of used device-time / capacity cost; unknown use counts as not used.", use_coverage),
        ("used_of_known_ratio", "Used of allocated, where known", _used_of_known(whole), "ratio",
         "Cost used / (cost used + cost allocated and idle): unknown use is left out.",
         use_coverage),
        ("unpriced_gpu_hours", "GPU-hours without a price", unpriced / TICKS_PER_GPU_HOUR,
         "GPU-hours",
         "Device-time for which no price, or no exchange rate, was in force: in no sum of money.",
         None),
    ]  # fmt: skip


def forecast_figures(costing: Costing, trend: Trend) -> tuple[Figure, ...]:
    """Return what the month will have cost at its end, by both methods, with a range."""
    found, code = trend.forecast, costing.currency or ""
    is_known = found is not None and costing.whole.is_priced and costing.currency is not None
    known = ratio(found.days_done, found.days_in_month) if found is not None else None
    month = f" {trend.month:%Y-%m}" if trend.month else ""
    facts = (
        ("month_spent_cost", "Spent{month}", "spent",
         "Capacity cost of the month's whole days so far; null unless its first day is known."),
        ("month_end_cost", "Forecast{month}", "run_rate",
         "Run rate: spent + days left x mean of the last 7 whole days."),
        ("month_end_linear_cost", "Forecast{month}, linear", "linear",
         "Month to date: spent / whole days so far x days of the month."),
        ("month_end_low_cost", "Forecast{month}, low", "low",
         "Run rate - 1.2816 deviations of the sum of the days left: 8 of 10 months lie in range."),
        ("month_end_high_cost", "Forecast{month}, high", "high",
         "Run rate + 1.2816 deviations of the sum of the days left: 8 of 10 months lie in range."),
    )  # fmt: skip
    return tuple(
        figure(
            key,
            _titled(title.format(month=month), code),
            value=money_text(getattr(found, name), code) if is_known else None,
            unit="currency",
            definition=text,
            rows=LEDGER,
            coverage_ratio=known,
        )
        for key, title, name, text in facts
    )


def _unattributed(costing: Costing, *, is_known: bool, code: str) -> Figure:
    teams = costing.accounts("tenant_id", rows=costing.rows)
    lost = teams.get((None,), Account()).only(ALLOCATED)
    return figure(
        "unattributed_cost",
        _titled("Unattributed cost", code),
        value=money_text(lost.allocated, code) if is_known else None,
        unit="currency",
        definition="Allocated cost whose team nobody recorded, or of which no holder is known.",
        rows=LEDGER,
        coverage_ratio=ratio(lost.priced_ticks, lost.wall_ticks),
    )


def _money(
    key: str, title: str, minor: int | None, *, code: str, definition: str, known: float | None
) -> Figure:
    return figure(
        key,
        _titled(title, code),
        value=None if minor is None else minor_text(minor, code),
        unit="currency",
        definition=definition,
        rows=LEDGER,
        coverage_ratio=known,
    )


def _titled(title: str, code: str) -> str:
    return f"{title} ({code})" if code else title


def _share(part: Fraction, whole: Fraction) -> float | None:
    return float(part / whole) if whole > 0 else None


def _used_of_known(whole: Account) -> float | None:
    used = Fraction(whole.parts["used"])
    return _share(used, used + whole.parts["allocated_idle"])
