"""Rounding of money, in this one place: parts become minor units whose rows sum to their total.

A total is rounded half away from zero, once. Its children are given whole minor units by largest
remainder, so each is less than one unit from its exact value and their sum is the printed total.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final, TypeAlias

from steward.units import PARTS_PER_CURRENCY_UNIT

Exact: TypeAlias = int | Fraction
"""An amount without rounding: whole, or a ratio of whole numbers."""

USUAL_EXPONENT: Final = 2
"""Decimals of a currency that ``EXPONENTS`` does not name."""
_WHOLE_ONLY: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE: Final = "BHD IQD JOD KWD LYD OMR TND"
_FOUR: Final = "CLF UYW"
EXPONENTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        code: decimals
        for decimals, codes in ((0, _WHOLE_ONLY), (3, _THREE), (4, _FOUR))
        for code in codes.split()
    }
)
"""Decimals of the minor unit, ISO 4217, where they are not two."""


def exponent(currency: str) -> int:
    """Return how many decimals amounts of a currency are printed with."""
    return EXPONENTS.get(currency, USUAL_EXPONENT)


def parts_per_minor(currency: str) -> int:
    """Return how many parts make one minor unit."""
    unit: int = PARTS_PER_CURRENCY_UNIT // 10 ** exponent(currency)
    return unit


def units_of(parts: Exact) -> Fraction:
    """Return parts as exact currency units."""
    return Fraction(parts) / PARTS_PER_CURRENCY_UNIT


def parts_of(units: Exact) -> Fraction:
    """Return currency units as exact parts."""
    return Fraction(units) * PARTS_PER_CURRENCY_UNIT


def rounded(amount: Exact) -> int:
    """Return the nearest whole number, halves away from zero."""
    exact = Fraction(amount)
    whole = (2 * abs(exact.numerator) + exact.denominator) // (2 * exact.denominator)
    return whole if exact >= 0 else -whole


def minor_units(parts: Exact, currency: str) -> int:
    """Return parts in whole minor units of the currency, halves away from zero."""
    return rounded(Fraction(parts) / parts_per_minor(currency))


def apportioned(exact: Mapping[str, Exact], total: int | None = None) -> dict[str, int]:
    """Return whole numbers that sum to the total, each less than one from its exact value.

    Args:
        exact: amounts by key, of either sign.
        total: what the whole numbers sum to, less than one from the exact sum; None: that sum
            rounded.

    Returns:
        the same keys in the same order. Every amount is cut towards zero; what is missing goes in
        ones to the largest remainders, ties to the first key in ascending order.

    Raises:
        ValueError: the total is not the exact sum rounded up or down.
    """
    amounts = {key: Fraction(amount) for key, amount in exact.items()}
    summed = sum(amounts.values(), Fraction(0))
    goal = rounded(summed) if total is None else total
    if abs(goal - summed) >= 1:
        raise ValueError(f"{goal} is not {summed} rounded")
    whole = {key: int(amount) for key, amount in amounts.items()}
    missing = goal - sum(whole.values())
    step = 1 if missing > 0 else -1
    remainders = {key: (amount - whole[key]) * step for key, amount in amounts.items()}
    for key in sorted(amounts, key=lambda key: (-remainders[key], key))[: abs(missing)]:
        whole[key] += step
    return whole


def shared_out(total: int, weights: Mapping[str, Exact]) -> dict[str, int]:
    """Return a whole number shared out by weights, whole for each key, by largest remainder.

    Raises:
        ValueError: the weights are all zero, and the total is not.
    """
    weighed = sum((Fraction(weight) for weight in weights.values()), Fraction(0))
    if weighed == 0:
        if total:
            raise ValueError(f"cannot share out {total}: every weight is 0")
        return dict.fromkeys(weights, 0)
    return apportioned({key: total * Fraction(w) / weighed for key, w in weights.items()}, total)


def printed(
    parts: Mapping[str, Exact], currency: str, *, total: int | None = None
) -> dict[str, int]:
    """Return amounts in parts as minor units that sum to the printed total.

    Args:
        parts: amounts by key.
        currency: ISO 4217.
        total: the parent's printed minor units; None: the parts' own sum, rounded.
    """
    unit = parts_per_minor(currency)
    return apportioned({key: Fraction(amount) / unit for key, amount in parts.items()}, total)


def minor_text(minor: int, currency: str) -> str:
    """Return minor units as decimal text, as in ``-1234.50``: a point in every locale."""
    decimals = exponent(currency)
    sign = "-" if minor < 0 else ""
    if decimals == 0:
        return f"{sign}{abs(minor)}"
    whole, rest = divmod(abs(minor), 10**decimals)
    return f"{sign}{whole}.{rest:0{decimals}d}"


def money_text(parts: Exact | None, currency: str) -> str | None:
    """Return parts as decimal text, rounded half away from zero; None stays None."""
    return None if parts is None else minor_text(minor_units(parts, currency), currency)
