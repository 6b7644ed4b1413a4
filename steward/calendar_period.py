"""Periods in people's words: dates, months, weeks, intervals and lengths, in a named zone.

Days, weeks, months and years are those of the zone's calendar, so that a day on which clocks change
has 23 or 25 hours. Relative words count from the newest stored row, not from the present.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from steward.errors import UsageError
from steward.period import Period

LENGTH_UNITS: Final = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
TICK: Final = timedelta(microseconds=1)
"""The resolution of stored instants: a period that ends a tick after a row contains it."""
DAY: Final = timedelta(days=1)
MONTHS_OF_QUARTER: Final = 3
EXAMPLES: Final = (
    "for example last-7d, yesterday, last-month, 2026-05-01, 2026-W19, 2026-05, 'may 2026', 五月, "
    "2026-05-01/2026-06-01 or 2026-05-01T00:00Z/P7D"
)
_ENGLISH: Final = {
    **{name.lower(): number for number, name in enumerate(calendar.month_name) if name},
    **{name.lower(): number for number, name in enumerate(calendar.month_abbr) if name},
}
_CHINESE: Final = {
    name: number
    for number, name in enumerate(
        ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"), start=1
    )
}
_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<years>\d{1,4})Y)?(?:(?P<months>\d{1,5})M)?(?:(?P<weeks>\d{1,5})W)?"
    r"(?:(?P<days>\d{1,6})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,7})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9})S)?)?",
    re.IGNORECASE,
)


def period_from(text: str, *, zone: str, until_at: datetime) -> Period:
    """Return the period that the words name.

    Args:
        text: such as ``last-7d``, ``yesterday``, ``2026-05``, ``may``, ``2026-05-01/P7D``.
        zone: IANA name of the zone whose calendar is meant.
        until_at: just past the newest stored row: what relative words count from. The running day,
            week, month or year ends here; a month without a year is the latest that has begun.

    Raises:
        UsageError: the words name no period, or the zone is unknown.
    """
    words = " ".join(text.strip().lower().split())
    clock = _Calendar(zone_of(zone), until_at)
    try:
        for pattern, meaning in _MEANINGS.items():
            match = re.fullmatch(pattern, words, re.IGNORECASE)
            if match is not None:
                return meaning(clock, match)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--period {text!r}: {error}", hint=EXAMPLES) from error
    raise UsageError(f"--period {text!r} is no period", hint=EXAMPLES)


def zone_of(name: str) -> ZoneInfo:
    """Return the zone of this IANA name.

    Raises:
        UsageError: there is none of that name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"--zone {name!r} is no time zone that this machine knows",
            hint="use an IANA name such as Asia/Shanghai or America/New_York; "
            "install the package tzdata if all are unknown",
        ) from error


def length(text: str, *, option: str = "--last") -> timedelta:
    """Return the length that ``7d``, ``12h``, ``30m`` or ``2w`` names.

    Raises:
        UsageError: the text names none.
    """
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", text.strip())
    if match is None or int(match[1]) == 0:
        raise UsageError(
            f"{option} {text!r} is not a length of time",
            hint="use a number with m, h, d or w, for example --last 7d",
        )
    return int(match[1]) * LENGTH_UNITS[match[2]]


class _Calendar:
    """The calendar of one zone, as of the newest stored row."""

    def __init__(self, zone: ZoneInfo, until_at: datetime) -> None:
        self.zone = zone
        self.until_at = until_at
        self.today = (until_at - TICK).astimezone(zone).date()

    def midnight(self, day: date) -> datetime:
        """Return the first instant of a day, also where clocks skip midnight."""
        return datetime.combine(day, time(), tzinfo=self.zone).astimezone(UTC)

    def days(self, first: date, after: date) -> Period:
        """Return the days from the first up to, without, the other."""
        return Period(self.midnight(first), self.midnight(after))

    def months(self, year: int, month: int, count: int = 1) -> Period:
        """Return whole months from this one on."""
        return self.days(date(year, month, 1), _months_on(date(year, month, 1), count))

    def so_far(self, whole: Period) -> Period:
        """Return a running period up to the newest row."""
        return Period(whole.from_at, min(whole.until_at, self.until_at))

    def instant(self, text: str) -> datetime:
        """Return a date or an instant; without a zone of its own it is in this one."""
        at = datetime.fromisoformat(text.upper())
        return (at if at.tzinfo else at.replace(tzinfo=self.zone)).astimezone(UTC)

    def moved(self, at: datetime, duration: re.Match[str], sign: int) -> datetime:
        """Return the instant that far on: calendar units in the zone, hours as they elapse."""
        part = {name: sign * int(value or 0) for name, value in duration.groupdict().items()}
        local = at.astimezone(self.zone)
        day = _months_on(local.date(), 12 * part["years"] + part["months"])
        day += timedelta(weeks=part["weeks"], days=part["days"])
        moved = local if day == local.date() else datetime.combine(day, local.timetz())
        elapsed = timedelta(**{name: part[name] for name in ("hours", "minutes", "seconds")})
        return moved.astimezone(UTC) + elapsed


def _months_on(day: date, count: int) -> date:
    """Return the same day so many months on, or the month's last where it is shorter."""
    index = day.year * 12 + day.month - 1 + count
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _last_length(clock: _Calendar, match: re.Match[str]) -> Period:
    return Period.before(clock.until_at, length(match[1], option="--period"))


def _relative(clock: _Calendar, match: re.Match[str]) -> Period:
    start, after = _unit_of(clock.today, match[2])
    if match[1] == "this":
        return clock.so_far(clock.days(start, after))
    return clock.days(_unit_of(start - DAY, match[2])[0], start)


def _unit_of(day: date, unit: str) -> tuple[date, date]:
    """Return the first day of the week, month or year of a day, and of the next."""
    if unit == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(weeks=1)
    first = day.replace(day=1) if unit == "month" else day.replace(month=1, day=1)
    return first, _months_on(first, 1 if unit == "month" else 12)


def _today(clock: _Calendar, _match: re.Match[str]) -> Period:
    return clock.so_far(clock.days(clock.today, clock.today + DAY))


def _yesterday(clock: _Calendar, _match: re.Match[str]) -> Period:
    return clock.days(clock.today - DAY, clock.today)


def _date(clock: _Calendar, match: re.Match[str]) -> Period:
    day = date.fromisoformat(match[0])
    return clock.days(day, day + DAY)


def _iso_week(clock: _Calendar, match: re.Match[str]) -> Period:
    monday = date.fromisocalendar(int(match[1]), int(match[2]), 1)
    return clock.days(monday, monday + timedelta(weeks=1))


def _quarter(clock: _Calendar, match: re.Match[str]) -> Period:
    first = MONTHS_OF_QUARTER * (int(match[2]) - 1) + 1
    return clock.months(int(match[1]), first, MONTHS_OF_QUARTER)


def _month(clock: _Calendar, match: re.Match[str]) -> Period:
    return clock.months(int(match[1]), int(match[2]))


def _year(clock: _Calendar, match: re.Match[str]) -> Period:
    return clock.months(int(match[1]), 1, 12)


def _named_month(clock: _Calendar, match: re.Match[str]) -> Period:
    told = match["month"]
    month = int(told) if told.isdecimal() else {**_ENGLISH, **_CHINESE}[told]
    if match["year"]:
        return clock.months(int(match["year"]), month)
    has_begun = month <= clock.today.month
    return clock.months(clock.today.year - (not has_begun), month)


def _interval(clock: _Calendar, match: re.Match[str]) -> Period:
    start, end = match[1].strip().upper(), match[2].strip().upper()
    before, after = _DURATION.fullmatch(start), _DURATION.fullmatch(end)
    if before and after:
        raise ValueError("an interval needs a start or an end, not two lengths")
    if after:
        from_at = clock.instant(start)
        return Period(from_at, clock.moved(from_at, after, 1))
    until_at = clock.instant(end)
    return Period(clock.moved(until_at, before, -1) if before else clock.instant(start), until_at)


_MEANINGS: Final[Mapping[str, Callable[[_Calendar, re.Match[str]], Period]]] = {
    r"last-([0-9]+[mhdw])": _last_length,
    r"(this|last)-(week|month|year)": _relative,
    r"today": _today,
    r"yesterday": _yesterday,
    r"\d{4}-\d{2}-\d{2}": _date,
    r"(\d{4})-?w(\d{2})": _iso_week,
    r"(\d{4})-?q([1-4])": _quarter,
    r"(\d{4})-(\d{2})": _month,
    r"(\d{4})": _year,
    rf"(?P<month>{'|'.join(_ENGLISH)})(?: (?P<year>\d{{4}}))?": _named_month,
    rf"(?:(?P<year>\d{{4}}) ?年 ?)?(?P<month>{'|'.join(_CHINESE)}|\d{{1,2}}) ?月": _named_month,
    r"([^/]+)/([^/]+)": _interval,
}
"""What each form of words means; the first that fits counts."""
