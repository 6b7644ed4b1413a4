"""A period's ends: aware, in UTC, in order; the end itself lies outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from steward.errors import UsageError
from steward.period import Period, instant_from

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("instant", "is_inside"),
    [
        pytest.param(NOON - TICK, False, id="one tick before the start"),
        pytest.param(NOON, True, id="exactly at the start"),
        pytest.param(NOON + TICK, True, id="one tick after the start"),
        pytest.param(NOON + HOUR - TICK, True, id="one tick before the end"),
        pytest.param(NOON + HOUR, False, id="exactly at the end"),
        pytest.param(NOON + HOUR + TICK, False, id="one tick past the end"),
    ],
)
def test_contains(instant: datetime, *, is_inside: bool) -> None:
    assert Period(NOON, NOON + HOUR).contains(instant) is is_inside


@pytest.mark.parametrize(
    ("other", "common"),
    [
        pytest.param(Period(NOON - HOUR, NOON - TICK), None, id="a tick apart"),
        pytest.param(Period(NOON - HOUR, NOON), None, id="touching"),
        pytest.param(
            Period(NOON - HOUR, NOON + TICK), Period(NOON, NOON + TICK), id="one tick in common"
        ),
        pytest.param(
            Period(NOON - HOUR, NOON + 2 * HOUR), Period(NOON, NOON + HOUR), id="wholly covered"
        ),
        pytest.param(Period(NOON, NOON), None, id="an empty period"),
    ],
)
def test_intersection(other: Period, common: Period | None) -> None:
    assert Period(NOON, NOON + HOUR).intersection(other) == common


def test_ends_in_other_zones_are_kept_in_utc() -> None:
    shanghai = timezone(timedelta(hours=8))
    period = Period(NOON.astimezone(shanghai), (NOON + HOUR).astimezone(shanghai))

    assert period == Period(NOON, NOON + HOUR)
    assert (period.from_at.tzinfo, period.until_at.tzinfo) == (UTC, UTC)


def test_a_naive_end_is_refused_with_an_example() -> None:
    naive = NOON.replace(tzinfo=None)

    with pytest.raises(UsageError, match="until_at=2026-05-01T12:00:00 has no time zone") as caught:
        Period(NOON - HOUR, naive)
    assert "2026-05-01T00:00:00Z" in caught.value.hint


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(UsageError, match="ends before it starts"):
        Period(NOON, NOON - TICK)


def test_an_empty_period_has_no_length_and_holds_nothing() -> None:
    empty = Period(NOON, NOON)

    assert (empty.length_s, empty.contains(NOON)) == (0.0, False)


def test_before_counts_back_from_the_end() -> None:
    assert Period.before(NOON, HOUR) == Period(NOON - HOUR, NOON)


def test_a_period_reads_as_an_interval_cut_to_the_second() -> None:
    assert str(Period(NOON, NOON + HOUR + TICK)) == "[2026-05-01T12:00:00Z, 2026-05-01T13:00:00Z)"


@pytest.mark.parametrize(
    "ends",
    [
        ("0001-01-01T00:00:00+23:59", "2026-05-01T00:00:00Z"),
        ("2026-05-01T00:00:00Z", "9999-12-31T23:59:59-23:59"),
    ],
)
def test_an_end_that_its_zone_lifts_out_of_the_calendar_is_refused(ends: tuple[str, str]) -> None:
    from_at, until_at = (datetime.fromisoformat(end) for end in ends)
    with pytest.raises(UsageError, match="outside the years 1 to 9999"):
        Period(from_at, until_at)


def test_a_length_that_reaches_before_the_calendar_is_refused() -> None:
    until_at = datetime.fromisoformat("2026-05-01T00:00:00Z")
    with pytest.raises(UsageError, match="999999 days before 2026-05-01"):
        Period.before(until_at, timedelta(days=999_999))


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        pytest.param("", "noon", "'noon' is not an ISO 8601 instant", id="no instant"),
        pytest.param("--from", "noon", "--from 'noon' is not an ISO", id="named by its flag"),
        pytest.param("", "2026-05-01T00:00:00", "has no time zone", id="no zone"),
    ],
)
def test_text_that_names_no_instant(option: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        instant_from(text, option=option)


def test_text_that_names_an_instant_keeps_its_zone() -> None:
    at = instant_from(" 2026-05-01T08:00:00+08:00 ")
    assert at == datetime(2026, 5, 1, tzinfo=UTC)
    assert at.utcoffset() == timedelta(hours=8)
