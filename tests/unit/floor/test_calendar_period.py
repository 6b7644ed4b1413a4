"""Periods in words, in a named zone's calendar; relative words count from the newest row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from steward.calendar_period import length, period_from, zone_of
from steward.errors import UsageError
from steward.period import Period

TICK = timedelta(microseconds=1)
NEWEST = datetime(2026, 6, 15, 3, 30, tzinfo=UTC)
"""A Monday; in New York still Sunday, in Shanghai noon."""
UNTIL = NEWEST + TICK


def told(text: str, zone: str = "UTC", until_at: datetime = UNTIL) -> tuple[str, str]:
    period = period_from(text, zone=zone, until_at=until_at)
    return f"{period.from_at:%Y-%m-%dT%H:%M}", f"{period.until_at:%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize(
    ("text", "from_at", "until_at"),
    [
        pytest.param("2026-05-01", "2026-05-01T00:00", "2026-05-02T00:00", id="a date"),
        pytest.param("2026-05", "2026-05-01T00:00", "2026-06-01T00:00", id="a month"),
        pytest.param("2025-12", "2025-12-01T00:00", "2026-01-01T00:00", id="a year's last month"),
        pytest.param("2026-02", "2026-02-01T00:00", "2026-03-01T00:00", id="a short month"),
        pytest.param("2028-02", "2028-02-01T00:00", "2028-03-01T00:00", id="a leap month"),
        pytest.param("2026", "2026-01-01T00:00", "2027-01-01T00:00", id="a year"),
        pytest.param("2026-Q2", "2026-04-01T00:00", "2026-07-01T00:00", id="a quarter"),
        pytest.param("2026-W19", "2026-05-04T00:00", "2026-05-11T00:00", id="an ISO week"),
        pytest.param("2026W19", "2026-05-04T00:00", "2026-05-11T00:00", id="a week, basic form"),
        pytest.param("2026-W01", "2025-12-29T00:00", "2026-01-05T00:00", id="a year's first week"),
        pytest.param("2026-W53", "2026-12-28T00:00", "2027-01-04T00:00", id="a 53rd week"),
        pytest.param("may", "2026-05-01T00:00", "2026-06-01T00:00", id="a month that is over"),
        pytest.param("June", "2026-06-01T00:00", "2026-07-01T00:00", id="the running month"),
        pytest.param("jul", "2025-07-01T00:00", "2025-08-01T00:00", id="a month yet to begin"),
        pytest.param("may 2024", "2024-05-01T00:00", "2024-06-01T00:00", id="a month of a year"),
        pytest.param("五月", "2026-05-01T00:00", "2026-06-01T00:00", id="a month in Chinese"),
        pytest.param("十二月", "2025-12-01T00:00", "2026-01-01T00:00", id="twelfth in Chinese"),
        pytest.param("2024年5月", "2024-05-01T00:00", "2024-06-01T00:00", id="year and month"),
        pytest.param("yesterday", "2026-06-14T00:00", "2026-06-15T00:00", id="yesterday"),
        pytest.param("today", "2026-06-15T00:00", "2026-06-15T03:30", id="today so far"),
        pytest.param("last-week", "2026-06-08T00:00", "2026-06-15T00:00", id="last week"),
        pytest.param("this-week", "2026-06-15T00:00", "2026-06-15T03:30", id="this week so far"),
        pytest.param("last-month", "2026-05-01T00:00", "2026-06-01T00:00", id="last month"),
        pytest.param("this-month", "2026-06-01T00:00", "2026-06-15T03:30", id="this month so far"),
        pytest.param("last-year", "2025-01-01T00:00", "2026-01-01T00:00", id="last year"),
        pytest.param("last-7d", "2026-06-08T03:30", "2026-06-15T03:30", id="a length"),
        pytest.param("last-12h", "2026-06-14T15:30", "2026-06-15T03:30", id="a length in hours"),
        pytest.param(
            "2026-05-01/2026-06-01", "2026-05-01T00:00", "2026-06-01T00:00", id="an interval"
        ),
        pytest.param(
            "2026-05-01T00:00Z/P7D", "2026-05-01T00:00", "2026-05-08T00:00", id="start and length"
        ),
        pytest.param("P1M/2026-03-31", "2026-02-28T00:00", "2026-03-31T00:00", id="length and end"),
        pytest.param(
            "2026-05-01T08:00+08:00/PT90M", "2026-05-01T00:00", "2026-05-01T01:30", id="minutes"
        ),
        pytest.param(
            "2024-02-29/P1Y", "2024-02-29T00:00", "2025-02-28T00:00", id="a year from a leap day"
        ),
        pytest.param("  LAST-WEEK ", "2026-06-08T00:00", "2026-06-15T00:00", id="case and space"),
    ],
)
def test_what_words_mean_in_utc(text: str, from_at: str, until_at: str) -> None:
    assert told(text) == (from_at, until_at)


@pytest.mark.parametrize(
    ("text", "zone", "from_at", "until_at", "hours"),
    [
        pytest.param(
            "2026-03-07", "America/New_York", "2026-03-07T05:00", "2026-03-08T05:00", 24,
            id="the day before clocks go forward",
        ),
        pytest.param(
            "2026-03-08", "America/New_York", "2026-03-08T05:00", "2026-03-09T04:00", 23,
            id="the day clocks go forward",
        ),
        pytest.param(
            "2026-11-01", "America/New_York", "2026-11-01T04:00", "2026-11-02T05:00", 25,
            id="the day clocks go back",
        ),
        pytest.param(
            "2026-03", "America/New_York", "2026-03-01T05:00", "2026-04-01T04:00", 743,
            id="a month in which clocks go forward",
        ),
        pytest.param(
            "2026-03-07T12:00/P1D", "America/New_York", "2026-03-07T17:00", "2026-03-08T16:00", 23,
            id="a calendar day over the change",
        ),
        pytest.param(
            "2026-03-07T12:00/PT24H", "America/New_York", "2026-03-07T17:00", "2026-03-08T17:00",
            24, id="24 hours over the change",
        ),
        pytest.param(
            "2026-04-24", "Africa/Cairo", "2026-04-23T22:00", "2026-04-24T21:00", 23,
            id="a day that begins at one o'clock",
        ),
        pytest.param(
            "2026-05", "Asia/Shanghai", "2026-04-30T16:00", "2026-05-31T16:00", 744,
            id="a month in Shanghai",
        ),
        pytest.param(
            "五月", "Asia/Shanghai", "2026-04-30T16:00", "2026-05-31T16:00", 744,
            id="a month in Shanghai, in Chinese",
        ),
        pytest.param(
            "yesterday", "Asia/Shanghai", "2026-06-13T16:00", "2026-06-14T16:00", 24,
            id="yesterday in Shanghai",
        ),
        pytest.param(
            "yesterday", "America/New_York", "2026-06-13T04:00", "2026-06-14T04:00", 24,
            id="yesterday in New York",
        ),
        pytest.param(
            "last-week", "America/New_York", "2026-06-01T04:00", "2026-06-08T04:00", 168,
            id="last week where it is still Sunday",
        ),
        pytest.param(
            "2026-05-01/2026-05-02", "Asia/Kolkata", "2026-04-30T18:30", "2026-05-01T18:30", 24,
            id="a zone of half hours",
        ),
    ],
)  # fmt: skip
def test_what_words_mean_in_a_zone(
    *, text: str, zone: str, from_at: str, until_at: str, hours: int
) -> None:
    assert told(text, zone) == (from_at, until_at)
    assert period_from(text, zone=zone, until_at=UNTIL).length == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("newest_at", "day"),
    [
        pytest.param(datetime(2026, 6, 15, tzinfo=UTC) - TICK, 14, id="a tick before midnight"),
        pytest.param(datetime(2026, 6, 15, tzinfo=UTC), 15, id="exactly at midnight"),
        pytest.param(datetime(2026, 6, 15, tzinfo=UTC) + TICK, 15, id="a tick past midnight"),
    ],
)
def test_the_newest_row_lies_in_today(newest_at: datetime, day: int) -> None:
    today = period_from("today", zone="UTC", until_at=newest_at + TICK)
    assert today == Period(datetime(2026, 6, day, tzinfo=UTC), newest_at + TICK)


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "2026-13", "2026-02-30", "2026-W54", "2026-W00", "2026-Q5", "0000", "9999",
        "99999", "13月", "maybe", "may 26", "last-0d", "last-7y", "last-fortnight", "/", "a/b",
        "2026-05-01/", "P1D/P1D", "2026-05-01/P", "2026-05-01/PT", "2026-06-01/2026-05-01",
        "2026-05-01/P99999Y", "2026-05-01/2026-06-01/2026-07-01",
    ],
)  # fmt: skip
def test_what_is_no_period_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        period_from(text, zone="UTC", until_at=UNTIL)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["", "Mars/Base", "../../etc/passwd", "UTC+8", "Asia"])
def test_an_unknown_zone_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no time zone that this machine knows"):
        zone_of(name)


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "-1d", "7 days", "1.5h", "7y", "7D", "\u0667d"]
)
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a length of time"):
        length(text)
