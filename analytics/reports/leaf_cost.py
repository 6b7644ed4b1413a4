"""What leaves of the ledger cost, beside their GPU-hours: for reports that speak of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import polars as pl

from analytics.cost.book import price_book
from analytics.cost.charge import price_instants
from analytics.cost.priced import priced
from analytics.cost.rounding import minor_text, printed
from analytics.inputs import conform
from analytics.reports.model import Question
from steward.period import Period

PRICES = "state.price"


def cuts(state: Mapping[str, pl.DataFrame], _question: Question) -> tuple[datetime, ...]:
    """Return the instants at which a price changes."""
    return price_instants(conform(PRICES, state[PRICES])) if PRICES in state else ()


def with_prices(ledger: pl.DataFrame, prices: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the ledger with its cost, currency null where no price was in force.

    Args:
        ledger: rows of ``ledger``, cut where ``cuts`` says.
        prices: rows of ``state.price``.
        period: what is priced.
    """
    book = price_book(
        prices,
        period,
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
