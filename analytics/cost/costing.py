"""Everything that a report or a statement says of cost is derived from this one computation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

import polars as pl

from analytics.cost.account import Account, Key, accounts, total
from analytics.cost.book import price_book, price_instants, recorded_until
from analytics.cost.charge import allocated_parts
from analytics.cost.currency import ExchangeRate, rate_between
from analytics.cost.priced import priced
from analytics.cost.rounding import Exact
from analytics.cost.shared import SharedCost, shared_costs
from analytics.inputs import conform
from steward.period import Period

INPUTS: Final = (
    "ledger",
    "state.price",
    "state.exchange_rate",
    "state.shared_cost",
    "state.closed_period",
)
"""What cost is computed from."""
TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costing:
    """The ledger with its cost, and what is needed to add it up."""

    period: Period
    currency: str | None
    """The currency everything is told in; None where there is no price at all."""
    factors: Mapping[str, Fraction]
    """What one unit of each currency is worth in it; others cannot be converted."""
    book: pl.DataFrame
    """Prices in force, as ``book.price_book`` returns them."""
    rows: pl.DataFrame
    """Rows of the ledger with their cost."""
    shared: tuple[SharedCost, ...]
    """Shared costs of the period in the currency; those that cannot be converted are left out."""
    unconverted: tuple[str, ...]
    """Currencies of prices and shared costs without a rate, ascending."""
    rates: tuple[ExchangeRate, ...]
    """All that are recorded."""

    def worth(self, currency: str) -> Fraction | None:
        """Return what one unit of a currency is worth in the told one; None without a rate."""
        if self.currency is None:
            return None
        at = self.period.until_at - TICK
        return rate_between(currency, self.currency, at=at, rates=self.rates)

    def accounts(self, *keys: str, rows: pl.DataFrame | None = None) -> dict[Key, Account]:
        """Return what each combination of keys costs, ascending."""
        return accounts(self.rows if rows is None else rows, keys, factors=self.factors)

    def allocated(self, *keys: str, rows: pl.DataFrame) -> dict[Key, Exact]:
        """Return only the cost of what was held, by keys: what ``accounts`` says, but sooner."""
        by = [*keys, "currency"]
        sums = rows.group_by(by).agg(allocated_parts().cast(pl.Int128).sum().alias("_parts"))
        found: dict[Key, Exact] = {}
        for *key, code, parts in sums.select(*by, "_parts").sort(by, nulls_last=True).iter_rows():
            factor = self.factors.get(code, 0)
            worth = parts if factor == 1 else parts * factor
            found[tuple(key)] = found.get(tuple(key), 0) + worth
        return found

    @property
    def whole(self) -> Account:
        """Return what everything costs, without shared costs."""
        return total(self.accounts().values())

    @property
    def shared_total(self) -> Fraction:
        """Return the shared costs of the period."""
        return sum((one.parts for one in self.shared), Fraction(0))

    @property
    def book_version(self) -> str | None:
        """Return the version of the prices in force; None without a price."""
        return None if self.book.is_empty() else str(self.book["book_version"][0])


def costing(
    frames: Mapping[str, pl.DataFrame], period: Period, *, currency: str | None = None
) -> Costing:
    """Return the cost of the period.

    Args:
        frames: the ``INPUTS`` by name, the ledger cut at ``cost_instants``.
        period: what the ledger covers.
        currency: what everything is told in; None: the currency in which most device-time has its
            price. One rate counts for the whole period: the one in force at its last instant.
    """
    ledger = conform("ledger", frames["ledger"])
    closed = conform("state.closed_period", frames["state.closed_period"])
    book = price_book(
        conform("state.price", frames["state.price"]),
        period,
        models=ledger["model"].drop_nulls().unique().to_list(),
        clusters=ledger["cluster"].drop_nulls().unique().to_list(),
        closed=closed,
    )
    rows, as_of = priced(ledger, book), recorded_until(period, closed)
    known = shared_costs(_recorded(frames, "state.shared_cost", as_of), period)
    rates = exchange_rates(_recorded(frames, "state.exchange_rate", as_of))
    told = currency or _usual(rows, known)
    met = sorted({*rows["currency"].drop_nulls(), *(one.currency for one in known)})
    factors = _factors(met, told, at=period.until_at - TICK, rates=rates)
    return Costing(
        period=period,
        currency=told,
        factors=factors,
        book=book,
        rows=rows,
        shared=tuple(one.converted(factors) for one in known if one.currency in factors),
        unconverted=tuple(code for code in met if code not in factors),
        rates=rates,
    )


def _recorded(
    frames: Mapping[str, pl.DataFrame], name: str, as_of: datetime | None
) -> pl.DataFrame:
    """Return the rows of a table that were recorded by an instant; None takes all."""
    rows = conform(name, frames[name])
    return rows if as_of is None else rows.filter(pl.col("recorded_at") <= as_of)


def cost_instants(frames: Mapping[str, pl.DataFrame], period: Period) -> tuple[datetime, ...]:
    """Return the instants inside the period at which the ledger must be cut, ascending."""
    closed = conform("state.closed_period", frames["state.closed_period"])
    return price_instants(conform("state.price", frames["state.price"]), period, closed=closed)


def exchange_rates(rows: pl.DataFrame) -> tuple[ExchangeRate, ...]:
    """Return the rows of ``state.exchange_rate`` as what ``currency`` computes with."""
    kept = rows.select(*ExchangeRate.__dataclass_fields__)
    return tuple(ExchangeRate(**row) for row in kept.iter_rows(named=True))


def _factors(
    currencies: Iterable[str], told: str | None, *, at: datetime, rates: Sequence[ExchangeRate]
) -> dict[str, Fraction]:
    if told is None:
        return {}
    worth = {code: rate_between(code, told, at=at, rates=rates) for code in currencies}
    return {code: rate for code, rate in worth.items() if rate is not None}


def _usual(rows: pl.DataFrame, shared: Sequence[SharedCost]) -> str | None:
    """Return the currency of most priced device-time, then the first of the shared costs."""
    by_currency = (
        rows.drop_nulls("currency")
        .group_by("currency")
        .agg(pl.col("wall_ticks").cast(pl.Int128).sum())
        .sort(pl.col("wall_ticks"), "currency", descending=[True, False])
    )
    if not by_currency.is_empty():
        return str(by_currency["currency"][0])
    return min((one.currency for one in shared), default=None)
