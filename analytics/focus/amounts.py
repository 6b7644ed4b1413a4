"""Exact parts of money and ticks of time as decimals of one written scale, whose rows add up.

Each row is the difference of two rounded running totals, so that the written rows add up to the
rounded total exactly, and no row is off by a whole last digit.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import polars as pl

from steward.units import PARTS_PER_CURRENCY_UNIT, TICKS_PER_GPU_HOUR

WRITTEN_DECIMALS: Final = 12
"""Decimals of every amount and quantity in the export."""
AMOUNT: Final = pl.Decimal(38, WRITTEN_DECIMALS)
"""The type of every amount and quantity in the export."""
_STEPS: Final = 10**WRITTEN_DECIMALS
_STEP: Final = Decimal(1).scaleb(-WRITTEN_DECIMALS)


def money(parts: pl.Expr, *, over: str | None = None) -> pl.Expr:
    """Return parts of money as currency units, controlled: rows add up to the rounded total.

    Args:
        parts: i128, in the order in which rows are written.
        over: column within which rows add up, such as the currency; None: over all rows.
    """
    return _decimal(_controlled(parts, unit=PARTS_PER_CURRENCY_UNIT, over=over))


def hours(ticks: pl.Expr) -> pl.Expr:
    """Return ticks as GPU-hours, controlled over all rows."""
    return _decimal(_controlled(ticks, unit=TICKS_PER_GPU_HOUR, over=None))


def ratio(part: pl.Expr, *, whole: pl.Expr, over: pl.Expr) -> pl.Expr:
    """Return part / whole, controlled within each group of ``over``: a group adds up to 1."""
    running = part.cast(pl.Int128).cum_sum().over(over)
    steps = _rounded_share(running, whole)
    return _decimal(steps - steps.shift(1).over(over).fill_null(0))


def floored(parts: pl.Expr) -> pl.Expr:
    """Return parts of money as currency units, rounded down."""
    return _decimal(_steps(parts, unit=PARTS_PER_CURRENCY_UNIT, is_rounded=False))


def price(micros: pl.Expr) -> pl.Expr:
    """Return a price in millionths of the currency as currency units, null where it is."""
    return (micros.cast(pl.Decimal(38, 0)) * pl.lit(Decimal("0.000001"))).cast(AMOUNT)


def written(parts: int) -> Decimal:
    """Return parts of money as currency units, rounded half up at the written scale."""
    doubled = 2 * parts * _STEPS + PARTS_PER_CURRENCY_UNIT
    return Decimal(doubled // (2 * PARTS_PER_CURRENCY_UNIT)).scaleb(-WRITTEN_DECIMALS)


def _controlled(amount: pl.Expr, *, unit: int, over: str | None) -> pl.Expr:
    running = amount.cast(pl.Int128).cum_sum()
    running = running if over is None else running.over(over)
    steps = _steps(running, unit=unit, is_rounded=True)
    before = steps.shift(1) if over is None else steps.shift(1).over(over)
    return steps - before.fill_null(0)


def _steps(amount: pl.Expr, *, unit: int, is_rounded: bool) -> pl.Expr:
    """Return the amount in steps of the written scale, without leaving 128 bits."""
    whole, rest = amount // unit, amount % unit
    half = unit if is_rounded else 0
    return whole * _STEPS + (2 * rest * _STEPS + half) // (2 * unit)


def _rounded_share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return (2 * part * _STEPS + whole) // (2 * whole)


def _decimal(steps: pl.Expr) -> pl.Expr:
    return (steps.cast(pl.Decimal(38, 0)) * pl.lit(_STEP)).cast(AMOUNT)
