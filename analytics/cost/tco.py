"""What an owned server costs: a rate per GPU-hour from its whole cost over its life, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from analytics.cost.rounding import Exact, rounded
from steward.units import CURRENCY_MICROS

HOURS_PER_YEAR: Final = 8_760
HOURS_PER_LEAP_YEAR: Final = 8_784
MONTHS_PER_YEAR: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCard:
    """One server and its share of everything around it, in one currency."""

    gpus: int
    server: Exact
    """Purchase price."""
    residual_ratio: Exact
    """Share of the purchase price that is left at the end of its life, 0..1."""
    life_years: Exact
    network_and_storage: Exact
    """Purchase price of the server's share."""
    network_life_years: Exact
    colocation_kw: Exact
    """Power reserved for the server."""
    colocation_per_kw_month: Exact
    load_ratio: Exact
    """Power drawn / power reserved, mean over a year, 0..1."""
    pue: Exact
    """Power of the building / power of the machines, 1 or more."""
    energy_per_kwh: Exact
    support_per_year: Exact
    staff_per_year: Exact

    def __post_init__(self) -> None:
        """Refuse what cannot be divided by.

        Raises:
            ValueError: no GPU, or a life of no length.
        """
        if self.gpus < 1 or self.life_years <= 0 or self.network_life_years <= 0:
            raise ValueError("a rate card needs at least one GPU and lives above 0 years")


def per_year(card: RateCard, *, is_leap: bool = False) -> Fraction:
    """Return what the server costs in one year: a leap year needs a day more of energy."""
    server = Fraction(card.server) * (1 - Fraction(card.residual_ratio)) / Fraction(card.life_years)
    network = Fraction(card.network_and_storage) / Fraction(card.network_life_years)
    kw = Fraction(card.colocation_kw)
    room = kw * Fraction(card.colocation_per_kw_month) * MONTHS_PER_YEAR
    drawn_kwh = kw * Fraction(card.load_ratio) * _hours(is_leap=is_leap)
    energy = drawn_kwh * Fraction(card.pue) * Fraction(card.energy_per_kwh)
    return server + network + room + energy + card.support_per_year + card.staff_per_year


def per_capacity_hour(card: RateCard, *, is_leap: bool = False) -> Fraction:
    """Return the cost of an hour of one GPU, whether used or not: the rate where idle is shown."""
    return per_year(card, is_leap=is_leap) / (card.gpus * _hours(is_leap=is_leap))


def per_sold_hour(
    card: RateCard, *, sold_ratio: Exact, is_idle_charged: bool, is_leap: bool = False
) -> Fraction:
    """Return the cost of an hour that somebody is charged for, if idle is charged to nobody.

    Args:
        card: the server.
        sold_ratio: share of the capacity that is charged for, above 0, at most 1.
        is_idle_charged: whether idle is also charged to somebody.
        is_leap: as in ``per_year``.

    Raises:
        ValueError: idle is charged too, which would recover the same cost twice; or the share is
            not above 0 and at most 1.
    """
    if is_idle_charged:
        raise ValueError("a rate per sold hour contains idle: charging idle too recovers it twice")
    if not 0 < sold_ratio <= 1:
        raise ValueError(f"the sold share of capacity is above 0 and at most 1, not {sold_ratio}")
    return per_capacity_hour(card, is_leap=is_leap) / Fraction(sold_ratio)


def rate_micros(rate: Exact) -> int:
    """Return a rate as the whole millionths that the price book keeps."""
    return rounded(Fraction(rate) * CURRENCY_MICROS)


def _hours(*, is_leap: bool) -> int:
    return HOURS_PER_LEAP_YEAR if is_leap else HOURS_PER_YEAR
