"""When acting is allowed: windows across midnight, clocks that are put, freeze days."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest

from enforcer.policies.model import Schedule, Window
from enforcer.policies.schedule import is_frozen, is_open, next_open

EVERY_DAY = frozenset(range(7))
WORKDAYS = frozenset(range(5))
SECOND = timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def nights(*, zone: str = "Asia/Shanghai", days: frozenset[int] = EVERY_DAY) -> Schedule:
    window = Window(weekdays=days, from_time=time(22), until_time=time(6))
    return Schedule(time_zone=zone, windows=(window,), freeze_days=frozenset())


def hours(first: str, last: str, *, zone: str, frozen: tuple[date, ...] = ()) -> Schedule:
    window = Window(
        weekdays=EVERY_DAY,
        from_time=time.fromisoformat(first),
        until_time=time.fromisoformat(last),
    )
    return Schedule(time_zone=zone, windows=(window,), freeze_days=frozenset(frozen))


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        pytest.param("2026-06-10T21:59:59+08:00", False, id="a second before it begins"),
        pytest.param("2026-06-10T22:00:00+08:00", True, id="as it begins"),
        pytest.param("2026-06-11T00:00:00+08:00", True, id="midnight"),
        pytest.param("2026-06-11T05:59:59+08:00", True, id="a second before it ends"),
        pytest.param("2026-06-11T06:00:00+08:00", False, id="as it ends"),
    ],
)
def test_a_window_across_midnight(instant: str, *, expected: bool) -> None:
    assert is_open(nights(), at(instant)) is expected


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        pytest.param("2026-06-10T08:59:59+02:00", False, id="a second before it begins"),
        pytest.param("2026-06-10T09:00:00+02:00", True, id="as it begins"),
        pytest.param("2026-06-10T16:59:59+02:00", True, id="a second before it ends"),
        pytest.param("2026-06-10T17:00:00+02:00", False, id="as it ends"),
    ],
)
def test_a_window_within_a_day(instant: str, *, expected: bool) -> None:
    assert is_open(hours("09:00", "17:00", zone="Europe/Berlin"), at(instant)) is expected


@pytest.mark.parametrize(
    ("instant", "expected"),
    [
        pytest.param("2026-06-12T23:00:00+08:00", True, id="friday night"),
        pytest.param("2026-06-13T05:00:00+08:00", True, id="its morning, a saturday"),
        pytest.param("2026-06-13T23:00:00+08:00", False, id="saturday night"),
        pytest.param("2026-06-15T05:00:00+08:00", False, id="monday morning, of sunday night"),
        pytest.param("2026-06-15T22:00:00+08:00", True, id="monday night"),
    ],
)
def test_a_window_belongs_to_the_day_on_which_it_begins(instant: str, *, expected: bool) -> None:
    assert is_open(nights(days=WORKDAYS), at(instant)) is expected


def test_equal_ends_are_a_whole_day() -> None:
    mondays = Schedule(
        time_zone="UTC",
        windows=(Window(weekdays=frozenset({0}), from_time=time(8), until_time=time(8)),),
        freeze_days=frozenset(),
    )
    assert is_open(mondays, at("2026-06-15T08:00:00+00:00"))
    assert is_open(mondays, at("2026-06-16T07:59:59+00:00"))
    assert not is_open(mondays, at("2026-06-16T08:00:00+00:00"))


def test_a_freeze_day_is_a_day_of_the_zone() -> None:
    frozen = Schedule(
        time_zone="Asia/Shanghai", windows=(), freeze_days=frozenset({date(2026, 10, 1)})
    )
    assert is_open(frozen, at("2026-09-30T23:59:59+08:00"))
    assert is_frozen(frozen, at("2026-10-01T00:00:00+08:00"))
    assert not is_open(frozen, at("2026-09-30T16:00:00+00:00"))
    assert is_open(frozen, at("2026-10-02T00:00:00+08:00"))


@pytest.mark.parametrize(
    ("schedule", "now", "expected"),
    [
        pytest.param(
            nights(),
            "2026-06-10T12:00:00+08:00",
            "2026-06-10T22:00:00+08:00",
            id="the evening of the day",
        ),
        pytest.param(
            nights(days=WORKDAYS),
            "2026-06-13T12:00:00+08:00",
            "2026-06-15T22:00:00+08:00",
            id="over a weekend",
        ),
        pytest.param(
            hours("22:00", "06:00", zone="Europe/Berlin", frozen=(date(2026, 12, 24),)),
            "2026-12-24T10:00:00+01:00",
            "2026-12-25T00:00:00+01:00",
            id="midnight after a freeze day, inside its window",
        ),
        pytest.param(
            hours("02:30", "05:00", zone="Europe/Berlin"),
            "2026-03-29T00:30:00+01:00",
            "2026-03-29T03:00:00+02:00",
            id="its beginning is an hour that is skipped",
        ),
        pytest.param(
            hours("02:30", "02:45", zone="Europe/Berlin"),
            "2026-03-29T00:30:00+01:00",
            "2026-03-30T02:30:00+02:00",
            id="all of it is skipped",
        ),
        pytest.param(
            hours("01:00", "02:30", zone="Europe/Berlin"),
            "2026-10-25T02:45:00+02:00",
            "2026-10-25T02:00:00+01:00",
            id="the repeated hour opens again as clocks are put back",
        ),
        pytest.param(
            hours("02:30", "05:00", zone="Europe/Berlin"),
            "2026-10-25T02:15:00+01:00",
            "2026-10-25T02:30:00+01:00",
            id="the second of two beginnings",
        ),
    ],
)
def test_when_acting_is_allowed_next(schedule: Schedule, now: str, expected: str) -> None:
    found = next_open(schedule, at(now))
    assert found == at(expected)
    assert not is_open(schedule, found - SECOND)


def test_an_open_schedule_is_open_now() -> None:
    now = at("2026-06-10T23:00:00+08:00")
    assert next_open(nights(), now) == now


def test_a_schedule_that_never_opens() -> None:
    days = frozenset(date(2026, 1, 1) + timedelta(days=number) for number in range(800))
    frozen = Schedule(time_zone="UTC", windows=(), freeze_days=days)
    assert next_open(frozen, at("2026-06-10T00:00:00+00:00")) is None
