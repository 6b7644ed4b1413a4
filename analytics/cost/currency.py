"""Amounts in another currency: at a dated rate, or not at all; a symbol is never just replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from analytics.cost.rounding import Exact
from steward.units import CURRENCY_MICROS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """What one unit of a currency is worth in another, while it is valid."""

    from_currency: str
    to_currency: str
    rate_micros: int
    """Millionths of ``to_currency`` for one ``from_currency``, above 0."""
    valid_from_at: datetime
    valid_until_at: datetime | None
    """None: still valid."""
    exchange_rate_id: int
    """Of rates for one pair that are valid at one instant, the largest counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A sum in one currency."""

    total: Fraction | None
    """Null where an amount has no rate, never a sum of what has one."""
    missing: tuple[str, ...]
    """Currencies without a rate at the instant, ascending."""


def rate_between(
    from_currency: str, to_currency: str, *, at: datetime, rates: Iterable[ExchangeRate]
) -> Fraction | None:
    """Return what one unit is worth in the other currency at an instant.

    Returns:
        1 for the same currency; the rate recorded for the pair, or else the inverse of the rate
        recorded for the opposite pair; null where there is none
    """
    if from_currency == to_currency:
        return Fraction(1)
    valid = [rate for rate in rates if _is_valid(rate, at)]
    straight = _latest(valid, from_currency, to_currency)
    if straight is not None:
        return Fraction(straight.rate_micros, CURRENCY_MICROS)
    opposite = _latest(valid, to_currency, from_currency)
    return None if opposite is None else Fraction(CURRENCY_MICROS, opposite.rate_micros)


def converted(
    amounts: Mapping[str, Exact], to_currency: str, *, at: datetime, rates: Iterable[ExchangeRate]
) -> Converted:
    """Return amounts by currency as one sum.

    Args:
        amounts: by ISO 4217 code, in any exact unit that is the same for all.
        to_currency: what to tell the sum in.
        at: the instant whose rates count: one for a period, so that its total is one number.
        rates: all that are recorded.
    """
    known = tuple(rates)
    worth = {
        currency: rate_between(currency, to_currency, at=at, rates=known) for currency in amounts
    }
    missing = tuple(sorted(currency for currency, rate in worth.items() if rate is None))
    told = (Fraction(amounts[code]) * rate for code, rate in worth.items() if rate is not None)
    return Converted(total=None if missing else sum(told, Fraction(0)), missing=missing)


def _is_valid(rate: ExchangeRate, at: datetime) -> bool:
    return rate.valid_from_at <= at and (rate.valid_until_at is None or at < rate.valid_until_at)


def _latest(
    rates: Iterable[ExchangeRate], from_currency: str, to_currency: str
) -> ExchangeRate | None:
    pair = (from_currency, to_currency)
    found = [rate for rate in rates if (rate.from_currency, rate.to_currency) == pair]
    return max(found, key=lambda rate: rate.exchange_rate_id, default=None)
