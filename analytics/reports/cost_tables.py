"""The tables of the cost report; amounts are decimal texts that add up as printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import polars as pl

from analytics.cost.bills import UNATTRIBUTED, Bills, GroupBill
from analytics.cost.costing import Costing
from analytics.cost.printing import printed_groups, printed_leaves, printed_series
from analytics.cost.rounding import minor_text
from analytics.cost.statement import rate_text
from analytics.cost.trend import Trend
from analytics.reports.grouping import Grouping
from analytics.reports.model import Column, Table
from analytics.reports.shape import column, ratio, table
from analytics.reports.usage_tables import LEAF_TITLES
from analytics.usage import ALLOCATED
from steward.units import TICKS_PER_GPU_HOUR

LEDGER, PRICE = "ledger", "state.price"
NOT_DISTRIBUTED = "not distributed"
"""The row of what no group can be given."""
_BILL_COLUMNS = (
    column("gpu_hours", "Held", "GPU-hours", "device-time it held"),
    column("direct_cost", "Direct", "currency", "cost of what it held"),
    column("used_cost", "Used", "currency", "of direct"),
    column("allocated_idle_cost", "Held idle", "currency", "of direct"),
    column("unknown_use_cost", "Unknown", "currency", "of direct: use not observed"),
    column("idle_cost", "Idle share", "currency", "of what nobody held of the same model"),
    column("shared_cost", "Shared", "currency", "of costs that benefit all"),
    column("total_cost", "Total", "currency", "direct + idle share + shared"),
    column("share_ratio", "Share", "ratio", "of the total"),
    column("used_of_known_ratio", "Effective", "ratio", "used / direct where use is known"),
    column("priced_ratio", "Priced", "ratio", "share of its device-time that has a price"),
)


def leaves_table(costing: Costing) -> Table:
    """Return GPU-hours and cost by leaf; both add up to the whole."""
    whole, code = costing.whole, costing.currency or ""
    minors = printed_leaves(whole, code)
    known = whole.is_priced and costing.currency is not None
    rows = [
        {
            "leaf": title,
            "gpu_hours": whole.ticks[name] / TICKS_PER_GPU_HOUR,
            "cost": minor_text(minors[name], code)
            if known and whole.is_leaf_priced(name)
            else None,
            "share_ratio": share(Fraction(whole.parts[name]), whole.capacity),
            "priced_ratio": ratio(whole.priced[name], whole.ticks[name]),
            "meaning": meaning,
        }
        for name, (title, meaning) in LEAF_TITLES.items()
    ]
    columns = (
        column("leaf", "Leaf", "text"),
        column("gpu_hours", "GPU-hours", "GPU-hours", "all device-time, with a price or without"),
        column("cost", "Cost", "currency"),
        column("share_ratio", "Share", "ratio", "of the capacity cost"),
        column("priced_ratio", "Priced", "ratio", "share of the leaf that has a price"),
        column("meaning", "Meaning", "text"),
    )
    return _table("leaves", titled("Where the money went", code), rows=rows, columns=columns)


def groups_table(costing: Costing, bills: Bills, grouping: Grouping) -> Table:
    """Return what each group bears, most first; all rows sum to the total as printed."""
    code = costing.currency or ""
    minors, left = printed_groups(bills, code)
    total = sum((one.full for one in bills.groups), bills.idle_left + bills.shared_left)
    found = list(zip(bills.groups, minors, strict=True))
    found.sort(key=lambda pair: -pair[1]["full"])
    rows = [_bill_row(one, minor, grouping, code=code, total=total) for one, minor in found]
    if any(left.values()):
        rest = {grouping.key: NOT_DISTRIBUTED, "share_ratio": share(
            bills.idle_left + bills.shared_left, total)}  # fmt: skip
        amounts = {"idle_cost": left["idle"], "shared_cost": left["shared"],
                   "total_cost": sum(left.values())}  # fmt: skip
        rows.append({**rest, **{name: minor_text(one, code) for name, one in amounts.items()}})
    idle = "holders share the idle of what they hold"
    if not grouping.is_of_holder:
        idle = "idle is the place's own"
    return _table(
        f"by_{grouping.table_key}",
        titled(f"Cost by {grouping.title}", code),
        rows=rows,
        columns=(*grouping.columns(), *_BILL_COLUMNS),
        note=f"Totals add up to the total cost; {idle}.",
    )


def daily_table(costing: Costing, trend: Trend) -> Table:
    """Return cost by day; days add up to the capacity cost as printed."""
    code = costing.currency or ""
    accounts = list(trend.daily.values())
    minors = printed_series([one.capacity for one in accounts], code)
    rows = [
        {
            "day": day.isoformat(),
            "is_whole": day in trend.whole,
            "cost": minor_text(minor, code) if one.is_priced and code else None,
            "apparent_cost_ratio": share(one.allocated, one.capacity),
            "effective_cost_ratio": share(Fraction(one.parts["used"]), one.capacity),
            "priced_ratio": ratio(one.priced_ticks, one.wall_ticks),
        }
        for (day, one), minor in zip(trend.daily.items(), minors, strict=True)
    ]
    columns = (
        column("day", "Day", "text"),
        column("is_whole", "Whole", "text", "known from start to end"),
        column("cost", "Capacity cost", "currency"),
        column("apparent_cost_ratio", "Apparent", "ratio", "allocated / capacity cost"),
        column("effective_cost_ratio", "Effective", "ratio", "used / capacity cost"),
        column("priced_ratio", "Priced", "ratio"),
    )
    return _table("daily", titled("Cost by day", code), rows=rows, columns=columns)


def prices_table(costing: Costing) -> Table:
    """Return the prices that were in force in the period."""
    rows = [
        {
            "gpu_model": row["gpu_model"],
            "cluster": row["cluster"],
            "tenant_id": row["tenant_id"],
            "purchase_type": row["purchase_type"],
            "rate": rate_text(row["rate_micros"]),
            "currency": row["currency"],
            "valid_from_at": row["valid_from_at"],
            "valid_until_at": row["valid_until_at"],
            "source": row["source"],
            "price_id": row["price_id"],
        }
        for row in costing.book.iter_rows(named=True)
    ]
    columns = (
        column("gpu_model", "GPU model", "text"),
        column("cluster", "Cluster", "text"),
        column("tenant_id", "Tenant", "text", "empty: everybody without a price of its own"),
        column("purchase_type", "Type", "text"),
        column("rate", "Per GPU-hour", "text", "exact"),
        column("currency", "Currency", "text"),
        column("valid_from_at", "From", "text", "cut to the period"),
        column("valid_until_at", "Until", "text", "cut to the period"),
        column("source", "Source", "text"),
        column("price_id", "Price", "count", "row of the price book"),
    )
    note = f"Price book {costing.book_version}." if costing.book_version else ""
    return _table("prices", "Prices in force", rows=rows, columns=columns, note=note, of_rows=PRICE)


def unpriced_table(costing: Costing, places: pl.DataFrame) -> Table:
    """Return device-time without a price by cluster and model, most first.

    Args:
        costing: the priced ledger.
        places: its rows, with their node where any has no price.
    """
    rows = []
    counts = _node_counts(places.filter(~is_priced(costing)))
    for (cluster, model), one in costing.accounts("cluster", "model").items():
        ticks = one.wall_ticks - one.priced_ticks
        if ticks:
            row = {"cluster": cluster, "model": model, "gpu_hours": ticks / TICKS_PER_GPU_HOUR,
                   "node_count": counts.get((cluster, model))}  # fmt: skip
            rows.append(row)
    rows.sort(key=lambda row: -float(str(row["gpu_hours"])))
    columns = (
        column("cluster", "Cluster", "text"),
        column("model", "GPU model", "text", "empty: not recorded"),
        column("gpu_hours", "Without a price", "GPU-hours"),
        column("node_count", "Nodes", "count"),
    )
    return _table("unpriced", "Without a price", rows=rows, columns=columns)


def _node_counts(unpriced: pl.DataFrame) -> dict[tuple[object, object], int]:
    """Return how many nodes there are, by cluster and model."""
    if unpriced.is_empty():
        return {}
    nodes = unpriced.group_by("cluster", "model").agg(node_count=pl.col("node").n_unique())
    return {(cluster, model): count for cluster, model, count in nodes.iter_rows()}


def is_priced(costing: Costing) -> pl.Expr:
    """Tell which rows of the ledger have a price that can be converted; never null."""
    return pl.col("currency").is_in(sorted(costing.factors)).fill_null(value=False)


def titled(title: str, code: str) -> str:
    """Return the title with the currency that its amounts are in."""
    return f"{title} ({code})" if code else title


def share(part: Fraction, whole: Fraction) -> float | None:
    """Return part / whole for people, None where there is no whole."""
    return float(part / whole) if whole > 0 else None


def _bill_row(
    one: GroupBill, minor: dict[str, int], grouping: Grouping, *, code: str, total: Fraction
) -> dict[str, object]:
    account = one.account
    of_time = {"direct": "direct", **{name: name for name in ALLOCATED}}
    of_others = {"idle": "idle", "shared": "shared", "total": "full"}
    is_told = {name: bool(code) and account.is_priced for name in of_time}
    is_told |= {name: bool(code) and (account.is_priced or one.full != 0) for name in of_others}
    names = dict(zip(grouping.keys, one.key, strict=True))
    if grouping.is_of_holder and names[grouping.key] is None:
        names[grouping.key] = UNATTRIBUTED
    used = Fraction(account.parts["used"])
    return {
        **names,
        "gpu_hours": account.allocated_ticks / TICKS_PER_GPU_HOUR,
        **{
            f"{name}_cost": minor_text(minor[key], code) if is_told[name] else None
            for name, key in {**of_time, **of_others}.items()
        },
        "share_ratio": share(one.full, total),
        "used_of_known_ratio": share(used, used + account.parts["allocated_idle"]),
        "priced_ratio": ratio(account.priced_ticks, account.wall_ticks),
    }


def _table(
    key: str,
    title: str,
    *,
    rows: Sequence[Mapping[str, object]],
    columns: tuple[Column, ...],
    note: str = "",
    of_rows: str = LEDGER,
) -> Table:
    return table(key, title, frame=framed(rows, columns), columns=columns, rows=of_rows, note=note)


_TYPES = {"GPU-hours": pl.Float64, "ratio": pl.Float64, "J": pl.Float64}
_EMPTY_TYPES = {"count": pl.Int64}


def framed(rows: Sequence[Mapping[str, object]], columns: Sequence[Column]) -> pl.DataFrame:
    """Return rows as a frame of the columns' types; texts may be instants or truths."""
    series = []
    for one in columns:
        values = [row.get(one.name) for row in rows]
        is_empty = all(value is None for value in values)
        kind = _TYPES.get(one.unit, _EMPTY_TYPES.get(one.unit, pl.String) if is_empty else None)
        is_text = one.unit == "currency" or kind is pl.String
        series.append(pl.Series(one.name, values, dtype=pl.String if is_text else kind))
    return pl.DataFrame(series)
