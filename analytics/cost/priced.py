"""The ledger at the price book's prices: each team's own where it has some."""

from __future__ import annotations

import polars as pl

from analytics.cost.charge import charge


def priced(ledger: pl.DataFrame, book: pl.DataFrame) -> pl.DataFrame:
    """Return the ledger with its cost, team by team.

    Args:
        ledger: rows of ``ledger``, cut at ``book.price_instants``.
        book: what ``book.price_book`` returns.

    Returns:
        the rows of ``charge.charge``: those of teams with prices of their own come last. Time that
        is reserved for such a team has its price too.
    """
    own = book["tenant_id"].drop_nulls().unique().sort().to_list()
    is_own = pl.col("tenant_id").is_in(own).fill_null(value=False)
    general = charge(ledger.filter(~is_own), book.filter(pl.col("tenant_id").is_null()))
    parts = [general.rows]
    for team in own:
        of_team = pl.col("tenant_id") == team
        parts.append(charge(ledger.filter(of_team), book.filter(of_team)).rows)
    return pl.concat(parts)
