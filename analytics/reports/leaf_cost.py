"""What leaves of the ledger cost, beside their GPU-hours: for reports that speak of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import polars as pl

from analytics.cost.book import price_book, price_instants
from analytics.cost.priced import priced
from analytics.cost.rounding import minor_text, printed
from analytics.inputs import conform
from analytics.reports.model import Question
from steward.period import Period

_PRICES: Final = "state.price"
_CLOSED: Final = "state.closed_period"
INPUTS: Final = (_PRICES, _CLOSED)
"""What prices are told by; as in the cost report, a closed period keeps the prices it had."""


def cuts(state: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
    """Return the instants inside the period at which a price may change."""
    prices, closed = (conform(name, state[name]) for name in INPUTS)
    return price_instants(prices, question.period, closed=closed)


def with_prices(
    ledger: pl.DataFrame, state: Mapping[str, pl.DataFrame], period: Period
) -> pl.DataFrame:
    """Return the ledger with its cost, currency null where no price was in force.

    Args:
        ledger: rows of ``ledger``, cut where ``cuts`` says.
        state: the ``INPUTS`` by name.
        period: what is priced; device-time outside it has no price.
    """
    prices, closed = (conform(name, state[name]) for name in INPUTS)
    book = price_book(
        prices,
        period,
        closed=closed,
        models=ledger["model"].drop_nulls().unique().sort().to_list(),
        clusters=ledger["cluster"].drop_nulls().unique().sort().to_list(),
    )
    return priced(ledger, book)


def printed_by(charged: pl.DataFrame, parts: str, keys: Sequence[str]) -> pl.DataFrame:
    """Return one leaf's cost by keys as decimal text whose rows sum to the printed total.

    Args:
        charged: rows of ``with_prices``.
        parts: ``stranded_parts`` or another of its columns.
        keys: columns to group by.

    Returns:
        one row per combination of keys and currency, ascending (nulls last)
            keys, currency str, cost str; device-time without a price has no row
    """
    known = charged.filter(pl.col("currency").is_not_null())
    sums = (
        known.group_by("currency", *keys)
        .agg(pl.col(parts).cast(pl.Int128).sum())
        .sort("currency", *keys, nulls_last=True)
    )
    rounded = [
        part.with_columns(cost=_texts(part[parts].to_list(), str(currency)))
        for (currency,), part in sums.group_by("currency", maintain_order=True)
    ]
    typed = sums.clear().with_columns(cost=pl.lit(None, dtype=pl.String))
    return pl.concat([typed, *rounded]).select(*keys, "currency", "cost")


def _texts(amounts: list[int], currency: str) -> pl.Series:
    whole = printed({f"{row:06}": amount for row, amount in enumerate(amounts)}, currency)
    return pl.Series([minor_text(amount, currency) for amount in whole.values()], dtype=pl.String)
