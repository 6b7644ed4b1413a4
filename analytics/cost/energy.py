"""The energy of GPUs and what it costs: from joules at the board to the meter of the building.

Cost is told for energy whose tariff is known, and never added to a rate that contains energy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final
from zoneinfo import ZoneInfo

from analytics.cost.rounding import Exact
from steward.units import CURRENCY_MICROS, MICROS_PER_SECOND, SECONDS_PER_HOUR

JOULES_PER_KWH: Final = 1_000 * SECONDS_PER_HOUR
HOUR: Final = timedelta(hours=1)
FINEST_OFFSET: Final = timedelta(minutes=15)
"""Offsets of time zones in use are whole quarter-hours, so a local hour changes only there."""
_MICRO: Final = CURRENCY_MICROS


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """What a kWh costs in some hours of the local day, and what surrounds the GPU."""

    cluster: str | None
    """None: every cluster without a tariff of its own at that hour."""
    currency: str
    amount_micros_per_kwh: int
    pue_micros: int
    """Millionths: power of the building / power of the machines."""
    host_factor_micros: int
    """Millionths: power of the machine / power of its GPUs."""
    kgco2e_micros_per_kwh: int | None
    """Null: the grid's factor is unknown."""
    time_zone: str
    from_hour: int
    until_hour: int
    """Half-open hours of the local day, 0 to 24."""
    valid_from_at: datetime
    valid_until_at: datetime | None
    energy_tariff_id: int
    """Of tariffs for one cluster that hold at one instant, the largest counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Energy that GPUs of one cluster used in a span, at even power."""

    cluster: str
    from_at: datetime
    until_at: datetime
    joules: Exact | None
    """At the boards; null: not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyCost:
    """Energy and its cost in one currency."""

    it_kwh: Fraction
    """At the boards, where measured."""
    facility_kwh: Fraction
    """At the building's meter (x host factor x PUE), where a tariff tells them."""
    cost: Fraction
    """In currency units, for what has a tariff."""
    kgco2e: Fraction | None
    """Null where the grid's factor is unknown for part of it."""
    unpriced_kwh: Fraction
    """Of ``it_kwh``: without a tariff in this currency, and in no other figure."""
    unknown_s: Fraction
    """Seconds of spans without a measurement."""


def energy_cost(draws: Iterable[Draw], tariffs: Sequence[Tariff], *, currency: str) -> EnergyCost:
    """Return what measured energy costs by the tariff of each local hour, exactly.

    Args:
        draws: spans that do not overlap within a cluster.
        tariffs: all that are recorded.
        currency: ISO 4217; tariffs in another do not count.
    """
    it_kwh = facility_kwh = cost = kgco2e = unpriced_kwh = unknown_s = Fraction(0)
    has_carbon = True
    own = [tariff for tariff in tariffs if tariff.currency == currency]
    for draw, part in _pieces(draws, own):
        if part.kwh is None:
            unknown_s += part.seconds
            continue
        it_kwh += part.kwh
        tariff = tariff_at(own, draw.cluster, part.at)
        if tariff is None:
            unpriced_kwh += part.kwh
            continue
        metered = part.kwh * _around(tariff)
        facility_kwh += metered
        cost += metered * Fraction(tariff.amount_micros_per_kwh, _MICRO)
        has_carbon = has_carbon and tariff.kgco2e_micros_per_kwh is not None
        kgco2e += metered * Fraction(tariff.kgco2e_micros_per_kwh or 0, _MICRO)
    return EnergyCost(
        it_kwh=it_kwh,
        facility_kwh=facility_kwh,
        cost=cost,
        kgco2e=kgco2e if has_carbon else None,
        unpriced_kwh=unpriced_kwh,
        unknown_s=unknown_s,
    )


def added(costs: Iterable[EnergyCost]) -> EnergyCost:
    """Return several costs in one currency as one, exactly."""
    found = tuple(costs)
    carbons = [one.kgco2e for one in found if one.kgco2e is not None]
    return EnergyCost(
        it_kwh=sum((one.it_kwh for one in found), Fraction(0)),
        facility_kwh=sum((one.facility_kwh for one in found), Fraction(0)),
        cost=sum((one.cost for one in found), Fraction(0)),
        kgco2e=sum(carbons, Fraction(0)) if len(carbons) == len(found) else None,
        unpriced_kwh=sum((one.unpriced_kwh for one in found), Fraction(0)),
        unknown_s=sum((one.unknown_s for one in found), Fraction(0)),
    )


def charged_energy(cost: Exact, *, rate_includes_energy: bool) -> Fraction:
    """Return what energy adds to a bill: nothing where the rate contains it, and cost is a memo."""
    return Fraction(0) if rate_includes_energy else Fraction(cost)


def tariff_at(tariffs: Sequence[Tariff], cluster: str, at: datetime) -> Tariff | None:
    """Return the tariff that holds for a cluster at an instant: its own before a common one."""
    holding = [
        tariff for tariff in tariffs if tariff.cluster in {cluster, None} and _holds(tariff, at)
    ]
    return max(
        holding, key=lambda found: (found.cluster is not None, found.energy_tariff_id), default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    at: datetime
    seconds: Fraction
    kwh: Fraction | None


def _pieces(draws: Iterable[Draw], tariffs: Sequence[Tariff]) -> Iterator[tuple[Draw, _Part]]:
    """Yield each draw in pieces within which neither a local hour nor a tariff changes."""
    ends = _ends(tariffs)
    zones = {tariff.time_zone for tariff in tariffs}
    for draw in draws:
        length = _seconds(draw.until_at - draw.from_at)
        at = draw.from_at
        while at < draw.until_at:
            mark = _next_mark(at, zones) if zones else draw.until_at
            end = min(draw.until_at, mark, *(one for one in ends if one > at))
            seconds = _seconds(end - at)
            share = None if draw.joules is None else Fraction(draw.joules) * seconds / length
            kwh = None if share is None else share / JOULES_PER_KWH
            yield draw, _Part(at=at, seconds=seconds, kwh=kwh)
            at = end


def _ends(tariffs: Iterable[Tariff]) -> tuple[datetime, ...]:
    """Return the instants at which a tariff starts or ends to hold."""
    ends = [end for one in tariffs for end in (one.valid_from_at, one.valid_until_at)]
    return tuple(end for end in ends if end is not None)


def _next_mark(at: datetime, zones: Iterable[str]) -> datetime:
    """Return the next instant at which a local hour may change in one of the zones."""
    hour_at = _next(at, HOUR)
    is_whole = all(_minutes(at, zone) == _minutes(hour_at, zone) == 0 for zone in zones)
    return hour_at if is_whole else _next(at, FINEST_OFFSET)


def _minutes(at: datetime, zone: str) -> int:
    """Return the minutes of the local hour at a whole UTC hour or a part of it."""
    return (at.astimezone(ZoneInfo(zone)).minute - at.minute) % 60


def _next(at: datetime, step: timedelta) -> datetime:
    past = timedelta(minutes=at.minute, seconds=at.second, microseconds=at.microsecond)
    return at + step - past % step


def _seconds(length: timedelta) -> Fraction:
    return Fraction(length // timedelta(microseconds=1), MICROS_PER_SECOND)


def _around(tariff: Tariff) -> Fraction:
    return Fraction(tariff.pue_micros, _MICRO) * Fraction(tariff.host_factor_micros, _MICRO)


def _holds(tariff: Tariff, at: datetime) -> bool:
    hour = at.astimezone(ZoneInfo(tariff.time_zone)).hour
    is_valid = tariff.valid_until_at is None or at < tariff.valid_until_at
    return tariff.valid_from_at <= at and is_valid and tariff.from_hour <= hour < tariff.until_hour
