"""Rounding of many amounts at once, by the same rules as ``rounding``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from analytics.cost.rounding import EXPONENTS, USUAL_EXPONENT, parts_per_minor

_ROW: Final = "_row"
_WHOLE: Final = "_whole"
_REST: Final = "_rest"
_MISSING: Final = "_missing"


def minor_per_row(parts: str | pl.Expr = "parts", *, currency: str = "currency") -> pl.Expr:
    """Return amounts in minor units, i64, each rounded for itself, halves away from zero.

    Args:
        parts: i128 | null amounts.
        currency: the column with ISO 4217 codes.

    Returns:
        null where the amount or the currency is. Only for amounts that have no printed total.
    """
    amount = (pl.col(parts) if isinstance(parts, str) else parts).cast(pl.Int128)
    unit = _unit(currency)
    return _nearest(amount, unit).cast(pl.Int64)


def with_minor(
    rows: pl.DataFrame,
    *,
    parts: str = "parts",
    within: Sequence[str] = (),
    ties: Sequence[str] = (),
    total: str | None = None,
) -> pl.DataFrame:
    """Return rows with ``<parts without _parts>_minor``: minor units that sum to a total.

    Args:
        rows: with currency str | null and the amounts.
        parts: name of the i128 | null column of amounts; ``x_parts`` gives ``x_minor``.
        within: the columns that name a total; the currency always does.
        ties: the columns whose ascending order decides between equal remainders.
        total: i64 column with the printed minor units of each row's total; None: the exact sum of
            its rows, rounded half away from zero.

    Returns:
        the rows in their order, with the new column i64 | null (null: no amount or no currency,
        and no part of any total)
    """
    group = [*within, "currency"]
    amount, unit = pl.col(parts).cast(pl.Int128), _unit("currency")
    whole = amount.sign() * (amount.abs() // unit)
    goal = _nearest(amount.sum().over(group), unit) if total is None else pl.col(total)
    prepared = rows.with_row_index(_ROW).with_columns(whole.alias(_WHOLE), goal.alias("_goal"))
    prepared = prepared.with_columns(
        (amount - pl.col(_WHOLE) * unit).alias(_REST),
        (pl.col("_goal").cast(pl.Int128) - pl.col(_WHOLE).sum().over(group)).alias(_MISSING),
    )
    directed = pl.col(_REST) * pl.col(_MISSING).sign()
    ranked = prepared.sort(
        directed,
        *[pl.col(tie) for tie in ties],
        _ROW,
        descending=[True] + [False] * (len(ties) + 1),
        nulls_last=True,
    ).with_columns(_place=pl.int_range(pl.len()).over(group))
    ones = pl.when(pl.col("_place") < pl.col(_MISSING).abs()).then(pl.col(_MISSING).sign())
    minor = pl.col(_WHOLE) + ones.otherwise(pl.lit(0, dtype=pl.Int128))
    return (
        ranked.with_columns(minor.cast(pl.Int64).alias(f"{parts.removesuffix('_parts')}_minor"))
        .sort(_ROW)
        .drop(_ROW, _WHOLE, _REST, _MISSING, "_goal", "_place")
    )


def minor_as_text(minor: str | pl.Expr, *, currency: str = "currency") -> pl.Expr:
    """Return minor units as decimal text, null where the amount or the currency is null."""
    amount = pl.col(minor) if isinstance(minor, str) else minor
    size = amount.abs()
    sign = pl.when(amount < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    text = pl.concat_str(sign, size.cast(pl.String))
    for decimals in sorted({*EXPONENTS.values(), USUAL_EXPONENT} - {0}):
        scale = 10**decimals
        whole, rest = (size // scale).cast(pl.String), (size % scale).cast(pl.String)
        told = pl.concat_str(sign, whole, pl.lit("."), rest.str.zfill(decimals))
        text = pl.when(_decimals(currency) == decimals).then(told).otherwise(text)
    return pl.when(pl.col(currency).is_not_null()).then(text)


def _decimals(currency: str) -> pl.Expr:
    return pl.col(currency).replace_strict(
        dict(EXPONENTS), default=USUAL_EXPONENT, return_dtype=pl.Int64
    )


def _unit(currency: str) -> pl.Expr:
    """Return the parts of one minor unit of each row's currency, i128, null without one."""
    usual = pl.lit(parts_per_minor(""), dtype=pl.Int128)
    unit: pl.Expr = pl.when(pl.col(currency).is_not_null()).then(usual)
    for code in EXPONENTS:
        own = pl.lit(parts_per_minor(code), dtype=pl.Int128)
        unit = pl.when(pl.col(currency) == code).then(own).otherwise(unit)
    return unit


def _nearest(amount: pl.Expr, unit: pl.Expr) -> pl.Expr:
    return amount.sign() * ((amount.abs() + unit // 2) // unit)
