"""When acting is allowed: windows by the wall clock of a named zone, and days of no act.

A window is read as people read it off a clock: an hour that a zone skips is not there, and one
that it repeats counts twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from enforcer.policies.model import Schedule, Window

HORIZON_DAYS: Final = 400
"""Openings are looked for so far ahead: more than a year of freeze days is no schedule."""
ONE_DAY: Final = timedelta(days=1)
MIDNIGHT: Final = time()
ALWAYS: Final = Schedule(time_zone="UTC", windows=(), freeze_days=frozenset())


def is_open(schedule: Schedule, at: datetime) -> bool:
    """Tell whether acting is allowed at this instant."""
    local = at.astimezone(ZoneInfo(schedule.time_zone))
    return local.date() not in schedule.freeze_days and _is_in_any(schedule.windows, local)


def is_frozen(schedule: Schedule, at: datetime) -> bool:
    """Tell whether the instant lies on a day on which nothing acts."""
    return at.astimezone(ZoneInfo(schedule.time_zone)).date() in schedule.freeze_days


def next_open(schedule: Schedule, at: datetime) -> datetime | None:
    """Return the first instant from ``at`` on at which acting is allowed, in UTC.

    None: there is none within ``HORIZON_DAYS``.
    """
    if is_open(schedule, at):
        return at
    zone = ZoneInfo(schedule.time_zone)
    first = at.astimezone(zone).date()
    for days in range(HORIZON_DAYS):
        opened = [
            instant
            for instant in _candidates(schedule, first + timedelta(days=days), zone)
            if instant > at and is_open(schedule, instant)
        ]
        if opened:
            return min(opened)
    return None


def _is_in_any(windows: tuple[Window, ...], local: datetime) -> bool:
    return not windows or any(_is_in(window, local) for window in windows)


def _is_in(window: Window, local: datetime) -> bool:
    today, clock = local.weekday(), local.time()
    if window.from_time < window.until_time:
        return today in window.weekdays and window.from_time <= clock < window.until_time
    begun_today = today in window.weekdays and clock >= window.from_time
    begun_before = (today - 1) % 7 in window.weekdays and clock < window.until_time
    return begun_today or begun_before


def _candidates(schedule: Schedule, day: date, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield every instant of a day at which a schedule can open: also where clocks are put."""
    for clock in (MIDNIGHT, *(window.from_time for window in schedule.windows)):
        yield from (
            datetime.combine(day, clock, tzinfo=zone).replace(fold=fold).astimezone(UTC)
            for fold in (0, 1)
        )
    start = datetime.combine(day, MIDNIGHT, tzinfo=zone).astimezone(UTC)
    end = datetime.combine(day + ONE_DAY, MIDNIGHT, tzinfo=zone).astimezone(UTC)
    if start.astimezone(zone).utcoffset() != end.astimezone(zone).utcoffset():
        yield _clock_change(start, end, zone)


def _clock_change(start: datetime, end: datetime, zone: ZoneInfo) -> datetime:
    """Return the first second after ``start`` at which the zone's clock is another."""
    before = start.astimezone(zone).utcoffset()
    low, high = 0, int((end - start).total_seconds())
    while high - low > 1:
        middle = (low + high) // 2
        is_before = (start + timedelta(seconds=middle)).astimezone(zone).utcoffset() == before
        low, high = (middle, high) if is_before else (low, middle)
    return start + timedelta(seconds=high)
