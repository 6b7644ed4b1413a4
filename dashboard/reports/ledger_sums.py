"""Sums of ledger rows as the ``ledger`` input wants them: whole ticks of 64 bits each.

A sum beyond 64 bits (58 GPUs of one node over a year) is shared out over several rows, whose leaves
still add up to their wall clock.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.schemas.usage import KEYS, LEAVES, OVERLAYS, SCHEMAS
from analytics.usage import totals

SPAN: Final = ("started_at", "ended_at")
TICK_COLUMNS: Final = ("wall_ticks", *LEAVES)
LARGEST_TICKS: Final = 2**62
"""Half of what 64 signed bits hold: a sum of leaves stays within them."""


def by_span(rows: pl.DataFrame) -> pl.DataFrame:
    """Return ledger rows summed by span and ``KEYS``, ascending, in the input's types.

    Args:
        rows: span, ``KEYS`` and sums in any integer width.
    """
    return narrowed(totals(rows, *SPAN, *KEYS))


def narrowed(sums: pl.DataFrame) -> pl.DataFrame:
    """Return sums in the types of ``ledger``, those beyond 64 bits in several rows.

    Args:
        sums: one row per span and ``KEYS``, ascending; ticks as whole decimals or integers,
            overlays f64; wall_ticks is the sum of the leaves.
    """
    largest = sums["wall_ticks"].max()
    count = 1 if largest is None else int(str(largest)) // LARGEST_TICKS + 1
    if count == 1:
        return sums.select(SCHEMAS["ledger"].names()).cast(SCHEMAS["ledger"])
    whole = sums.with_columns(pl.col(name).cast(pl.Int128) for name in TICK_COLUMNS)
    shares = [_share(whole, count, is_rest=index == 0) for index in range(count)]
    joined = pl.concat(shares).filter(pl.col("wall_ticks") > 0)
    return joined.sort(*SPAN, *KEYS, nulls_last=True, maintain_order=True)


def _share(sums: pl.DataFrame, count: int, *, is_rest: bool) -> pl.DataFrame:
    """Return one of equal shares; the first also holds what is left over, and the overlays."""
    each = {name: pl.col(name) // count for name in LEAVES}
    if is_rest:
        leaves = {name: pl.col(name) - (count - 1) * part for name, part in each.items()}
        overlays = {name: pl.col(name) for name in OVERLAYS}
    else:
        leaves = each
        overlays = {name: pl.lit(0.0) for name in OVERLAYS}
    shared = sums.with_columns(**leaves, **overlays)
    whole = shared.with_columns(wall_ticks=pl.sum_horizontal(LEAVES))
    return whole.select(SCHEMAS["ledger"].names()).cast(SCHEMAS["ledger"])
