"""Whole UTC hours and days: the grid that the ledger is built on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from steward.period import Period

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
TICK: Final = timedelta(microseconds=1)
"""The resolution of stored instants."""
HOURS_PER_DAY: Final = 24
"""Of a UTC day."""


def runs(starts: Iterable[datetime], length: timedelta = HOUR) -> list[Period]:
    """Return unbroken runs of hours (or of units of another length) as periods, ascending."""
    found: list[Period] = []
    for at in sorted(starts):
        if found and found[-1].until_at == at:
            found[-1] = Period(found[-1].from_at, at + length)
        else:
            found.append(Period(at, at + length))
    return found


def hours_in(period: Period) -> Iterator[datetime]:
    """Yield the starts of the whole hours of a period that begins and ends at whole hours."""
    count = (period.until_at - period.from_at) // HOUR
    return (period.from_at + step * HOUR for step in range(count))


def hours_of(day_at: datetime) -> tuple[datetime, ...]:
    """Return the hours of a UTC day by their starts."""
    return tuple(day_at + step * HOUR for step in range(HOURS_PER_DAY))


def floor_hour(at: datetime) -> datetime:
    """Return the whole hour at or before the instant, UTC."""
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def ceil_hour(at: datetime) -> datetime:
    """Return the whole hour at or after the instant, UTC."""
    floor = floor_hour(at)
    return floor if floor == at else floor + HOUR


def floor_day(at: datetime) -> datetime:
    """Return the UTC midnight at or before the instant."""
    return floor_hour(at).replace(hour=0)


def is_day(at: datetime) -> bool:
    """Tell whether the instant is a UTC midnight."""
    return floor_day(at) == at
