"""From the one computation of cost to what the export is made of: rows, entries, terms.

The rows stay in the currencies of their prices; nothing is converted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import polars as pl

from analytics.cost.bills import bills
from analytics.cost.costing import Costing
from analytics.cost.rounding import apportioned, exponent, minor_units
from analytics.focus.amounts import WRITTEN_DECIMALS, written
from analytics.focus.internal import UNATTRIBUTED
from analytics.focus.priced import PRICED, Entry
from steward.period import Period
from steward.units import PARTS_PER_CURRENCY_UNIT

_REST = "not distributed"
"""How statements name what nobody can be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A closed statement of exactly the exported period, with its corrections."""

    statement_id: str
    currency: str
    total: Decimal
    corrections: tuple[Entry, ...]


def priced_rows(costing: Costing) -> pl.DataFrame:
    """Return rows of ``PRICED``: the ledger at its prices, null where none was in force."""
    facts = costing.book.select("price_id", "sku", "list_rate_micros").unique("price_id")
    rows = costing.rows.join(facts, on="price_id", how="left", maintain_order="left")
    return rows.select(PRICED.keys())


def shared_entries(costing: Costing) -> tuple[Entry, ...]:
    """Return each team's part of shared costs, in the currency of the costing.

    They add up to the shared costs, rounded at the written scale.
    """
    if costing.currency is None:
        return ()
    found = bills(costing, ("tenant_id",), is_of_holder=True)
    amounts: dict[str, Fraction] = {}
    teams: dict[str, str | None] = {}
    for bill in found.groups:
        team = bill.key[0]
        name = f"team {'' if team is None else team}"
        amounts[name] = bill.shared
        teams[name] = UNATTRIBUTED if team is None else str(team)
    amounts[_REST], teams[_REST] = found.shared_left, None
    steps = apportioned({name: _steps(parts) for name, parts in amounts.items()})
    return tuple(
        Entry(
            kind="shared",
            tenant_id=teams[name],
            charged=costing.period,
            currency=costing.currency,
            amount=Decimal(count).scaleb(-WRITTEN_DECIMALS),
            description="Share of shared costs" if name != _REST else "Shared costs, no holder",
        )
        for name, count in steps.items()
        if count
    )


def rounding_entry(costing: Costing, shared: Sequence[Entry]) -> Entry | None:
    """Return what turns the written rows into the printed total, or None where nothing does.

    Where prices are in several currencies there is none: rows are not converted, totals are.

    Args:
        costing: whose total is printed.
        shared: what ``shared_entries`` returns.
    """
    currency = costing.currency
    if currency is None or costing.rows["currency"].drop_nulls().unique().to_list() != [currency]:
        return None
    usage = written(int(costing.rows["capacity_parts"].sum()))
    amount = printed_total(costing) - usage - sum((one.amount for one in shared), Decimal(0))
    if not amount:
        return None
    return Entry(
        kind="rounding",
        tenant_id=None,
        charged=costing.period,
        currency=currency,
        amount=amount,
        description="Rounding to the statement's smallest unit",
    )


def is_of(statement: Statement, costing: Costing) -> bool:
    """Tell whether the costing still says what the statement says."""
    total = printed_total(costing)
    return (statement.currency, statement.total) == (costing.currency, total)


def printed_total(costing: Costing) -> Decimal:
    """Return the total as a statement prints it; 0 where there is no price at all."""
    if costing.currency is None:
        return Decimal(0)
    minor = minor_units(costing.whole.capacity + costing.shared_total, costing.currency)
    return Decimal(minor).scaleb(-exponent(costing.currency))


def statement_of(closed: pl.DataFrame, period: Period) -> Statement | None:
    """Return the statement that was closed for exactly this period, with its corrections.

    Args:
        closed: rows of ``state.closed_period``, any order; of several statements the last counts.
        period: what is exported.
    """
    rows = closed.sort("closed_period_id").to_dicts()
    same = [row for row in rows if (row["from_at"], row["until_at"]) == _ends(period)]
    statements = [row for row in same if row["kind"] == "statement"]
    if not statements:
        return None
    last = statements[-1]
    corrections = [
        entry
        for row in rows
        if row["corrects_statement_id"] == last["statement_id"]
        for entry in _corrections(row, period)
    ]
    return Statement(
        statement_id=str(last["statement_id"]),
        currency=str(last["currency"]),
        total=Decimal(str(json.loads(last["statement_json"])["total"])),
        corrections=tuple(corrections),
    )


def _corrections(row: Mapping[str, object], period: Period) -> list[Entry]:
    document = json.loads(str(row["statement_json"]))
    recorded = row["recorded_at"]
    return [
        Entry(
            kind="correction",
            tenant_id=_account(bill["team"]),
            charged=period,
            currency=str(row["currency"]),
            amount=Decimal(str(bill["total"])),
            description=f"Correction of {row['corrects_statement_id']}",
            invoice_id=str(row["statement_id"]),
            issued_at=recorded if isinstance(recorded, datetime) else None,
        )
        for bill in document["bills"]
        if bill["total"] is not None and Decimal(str(bill["total"]))
    ]


def _account(team: str | None) -> str | None:
    """Return the account of a bill's team: None is the pool."""
    if team is None:
        return UNATTRIBUTED
    return None if team == _REST else team


def _ends(period: Period) -> tuple[datetime, datetime]:
    return period.from_at, period.until_at


def _steps(parts: Fraction) -> Fraction:
    return parts * 10**WRITTEN_DECIMALS / PARTS_PER_CURRENCY_UNIT
