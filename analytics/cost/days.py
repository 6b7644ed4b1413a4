"""Days of a named zone: where they start, and which one an instant lies in."""

from __future__ import annotations

import calendar
from datetime import UTC, date, datetime, time, timedelta

import polars as pl

from analytics.schemas.columns import INSTANT
from steward.calendar_period import zone_of
from steward.period import Period


def midnight(day: date, zone: str) -> datetime:
    """Return the first instant of a day in the zone, in UTC; also where clocks skip midnight.

    Raises:
        UsageError: there is no zone of that name.
    """
    return datetime.combine(day, time(), tzinfo=zone_of(zone)).astimezone(UTC)


def days(period: Period, zone: str) -> list[date]:
    """Return the days of the zone that a period touches, ascending; none for no length."""
    if period.from_at == period.until_at:
        return []
    first = period.from_at.astimezone(zone_of(zone)).date()
    last = (period.until_at - timedelta(microseconds=1)).astimezone(zone_of(zone)).date()
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def midnights(period: Period, zone: str) -> tuple[datetime, ...]:
    """Return the instants inside the period at which a day of the zone starts, ascending."""
    starts = (midnight(day, zone) for day in days(period, zone))
    return tuple(at for at in starts if period.from_at < at < period.until_at)


def whole_days(period: Period, zone: str) -> list[date]:
    """Return the days of the zone that lie in the period from start to end, ascending."""
    return [
        day
        for day in days(period, zone)
        if period.from_at <= midnight(day, zone)
        and midnight(day + timedelta(days=1), zone) <= period.until_at
    ]


def with_day(rows: pl.DataFrame, period: Period, zone: str, *, name: str = "day") -> pl.DataFrame:
    """Return rows with the day of the zone that their ``started_at`` lies in, date | null."""
    touched = days(period, zone)
    starts = pl.DataFrame(
        {"_start": [midnight(day, zone) for day in touched], name: touched},
        schema={"_start": INSTANT, name: pl.Date},
    )
    return (
        rows.with_row_index("_row")
        .sort("started_at")
        .join_asof(starts, left_on="started_at", right_on="_start")
        .sort("_row")
        .drop("_row", "_start")
    )


def days_in_month(day: date) -> int:
    """Return 28 to 31."""
    return calendar.monthrange(day.year, day.month)[1]
