"""The export: usage and entries in the columns of the specification, adding up to what is charged.

Who provides, who is charged and which statement the rows belong to is told by ``Terms``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analytics.focus import internal, split
from analytics.focus.columns import Mode, Version, schema
from analytics.focus.entries import entry_rows
from analytics.focus.priced import Entry, lines, unpriced
from analytics.focus.terms import Terms, with_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One export."""

    frame: pl.DataFrame
    """Rows in the columns of ``columns.schema``, ordered by time and what is charged."""
    unpriced: pl.DataFrame
    """Device-time that is not in the frame for want of a price: rows of ``priced.unpriced``."""

    def total(self, currency: str) -> Decimal:
        """Return what the rows of one currency add up to."""
        costs = self.frame.filter(pl.col("BillingCurrency") == currency)["EffectiveCost"]
        return sum(costs, start=Decimal(0))


def export(
    priced: pl.DataFrame,
    *,
    terms: Terms,
    mode: Mode = "internal",
    version: Version = "1.2",
    entries: Sequence[Entry] = (),
) -> Export:
    """Return priced device-time and entries as rows of cost and usage.

    Args:
        priced: rows of ``priced.PRICED``, any order.
        terms: who provides, who is charged, which statement.
        mode: ``internal``: the platform provides, each team is a sub account. ``split``: the time
            of a node is the charge, and workloads get their shares of it (since 1.3).
        version: of the specification.
        entries: amounts beside usage, any order.

    Returns:
        the frame and what has no price. EffectiveCost, BilledCost and ContractedCost of the rows
        of one currency add up to its parts, rounded at the written scale, plus its entries.
    """
    is_split = mode == "split"
    make = split.usage_rows if is_split else internal.usage_rows
    usage = make(lines(priced, is_by_node=is_split))
    frame = pl.concat([usage, entry_rows(entries, is_split=is_split)], how="diagonal")
    columns = schema(version=version, mode=mode)
    named = with_terms(frame, terms)
    missing = [pl.lit(None).alias(name) for name in columns if name not in named.columns]
    typed = named.with_columns(missing).select(columns.keys()).cast(columns)
    return Export(frame=typed, unpriced=unpriced(priced))
