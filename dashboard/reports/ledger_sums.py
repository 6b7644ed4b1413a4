"""Sums of ledger rows as the ``ledger`` input wants them: whole ticks of 64 bits each.

A sum beyond 64 bits (58 GPUs of one node over a year) is shared out over several rows, whose leaves
still add up to their wall clock.
"""

from __future__ import annotations

from typing import Final

import polars as pl
from polars import selectors as cs

from analytics.schemas.usage import KEYS, LEAVES, OVERLAYS, SCHEMAS
from analytics.usage import totals

SPAN: Final = ("started_at", "ended_at")
TICK_COLUMNS: Final = ("wall_ticks", *LEAVES)
LARGEST_TICKS: Final = 2**62
"""Half of what 64 signed bits hold: a sum of leaves stays within them."""
_ROW: Final = "_row"


def by_span(rows: pl.DataFrame) -> pl.DataFrame:
    """Return ledger rows summed by span and ``KEYS``, ascending, in the input's types.

    Args:
        rows: span, some of the ``KEYS``, and sums in any integer width.
    """
    return narrowed(totals(rows, *SPAN, *keys_of(rows)))


def keys_of(rows: pl.DataFrame) -> tuple[str, ...]:
    """Return those of the ``KEYS`` that the rows are told apart by."""
    return tuple(name for name in KEYS if name in rows.columns)


def narrowed(sums: pl.DataFrame) -> pl.DataFrame:
    """Return sums in the types of ``ledger``, those beyond 64 bits in several rows.

    Args:
        sums: one row per span and keys, ascending; ticks as whole decimals or integers,
            overlays f64; wall_ticks is the sum of the leaves.
    """
    largest = sums["wall_ticks"].max()
    count = 1 if largest is None else int(str(largest)) // LARGEST_TICKS + 1
    if count == 1:
        return _typed(sums)
    numbered = sums.with_row_index(_ROW)
    is_large = pl.col("wall_ticks") >= LARGEST_TICKS
    large = numbered.filter(is_large).with_columns(
        pl.col(name).cast(pl.Int128) for name in TICK_COLUMNS
    )
    shares = [_share(large, count, is_rest=index == 0) for index in range(count)]
    parts = [_typed(part) for part in (numbered.filter(~is_large), *shares)]
    return pl.concat(parts).sort(_ROW, maintain_order=True).drop(_ROW)


def _share(sums: pl.DataFrame, count: int, *, is_rest: bool) -> pl.DataFrame:
    """Return one of equal shares; the first also holds what is left over, and the overlays."""
    each = {name: pl.col(name) // count for name in LEAVES}
    if is_rest:
        leaves = {name: pl.col(name) - (count - 1) * part for name, part in each.items()}
    else:
        nothing = {name: pl.lit(0.0) for name in OVERLAYS if name in sums.columns}
        leaves = {**each, **nothing}
    shared = sums.with_columns(**leaves)
    return shared.with_columns(wall_ticks=pl.sum_horizontal(LEAVES))


def _typed(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of ``ledger`` that there are, in its types."""
    kinds = {name: kind for name, kind in SCHEMAS["ledger"].items() if name in sums.columns}
    return sums.select(cs.by_name(_ROW, require_all=False), *kinds).cast(pl.Schema(kinds))
