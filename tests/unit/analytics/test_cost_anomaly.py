"""Days that cost unusually much or little."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction

import pytest

from analytics.cost.anomaly import LEAST_DAYS, anomalies, median

MONDAY = date(2026, 5, 4)


def days(costs: Sequence[int], *, start: date = MONDAY) -> list[tuple[date, int]]:
    return [(start + timedelta(days=at), cost) for at, cost in enumerate(costs)]


def odd(costs: Sequence[int]) -> list[int]:
    """Return which days stand out, counted from 0."""
    return [(found.day - MONDAY).days for found in anomalies(days(costs))]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param(LEAST_DAYS - 1, [], id="six days before it"),
        pytest.param(LEAST_DAYS, [LEAST_DAYS], id="a week before it"),
        pytest.param(LEAST_DAYS + 1, [LEAST_DAYS + 1], id="a day more"),
    ],
)
def test_a_day_is_judged_after_a_week(before: int, expected: list[int]) -> None:
    assert odd([*[100] * before, 1_000]) == expected


def test_what_stands_out_is_told_with_what_is_usual() -> None:
    (found,) = anomalies(days([*[100] * 7, 200]))
    assert (found.cost, found.usual, found.score) == (200, 100, Fraction(6745, 10_000) * 100 / 5)


@pytest.mark.parametrize(
    ("cost", "is_odd"),
    [
        pytest.param(124, False, id="just inside a quarter more"),
        pytest.param(125, False, id="a quarter more, but of no score"),
        pytest.param(126, True, id="past both"),
        pytest.param(74, True, id="far below"),
        pytest.param(76, False, id="not a quarter less"),
        pytest.param(100, False, id="the same"),
    ],
)
def test_a_change_must_be_large_and_unusual(cost: int, *, is_odd: bool) -> None:
    assert (odd([*[100] * 7, cost]) == [7]) is is_odd


def test_days_that_vary_much_hide_what_steady_days_show() -> None:
    assert odd([50, 150, 60, 140, 80, 120, 100, 200]) == []
    assert odd([95, 105, 96, 104, 98, 102, 100, 200]) == [7]


def test_nothing_before_makes_every_cost_stand_out_without_a_score() -> None:
    (found,) = anomalies(days([*[0] * 7, 5]))
    assert (found.usual, found.score) == (0, None)


def test_days_without_cost_do_not_stand_out() -> None:
    assert odd([0] * 20) == []


def test_one_odd_day_does_not_hide_the_next() -> None:
    assert odd([*[100] * 14, 900, 900]) == [14, 15]


def test_weekends_are_not_odd() -> None:
    week = [100, 100, 100, 100, 100, 10, 10]
    assert odd(week * 4) == []


def test_a_weekend_that_costs_as_much_as_a_weekday_is_no_alarm_but_a_dear_one_is() -> None:
    week = [100, 100, 100, 100, 100, 10, 10]
    assert odd([*week * 3, 100, 100, 100, 100, 100, 100]) == []
    assert odd([*week * 3, 100, 100, 100, 100, 100, 400]) == [26]


def test_an_unknown_day_ends_what_is_compared() -> None:
    first = days([100] * 7)
    later = days([1_000], start=MONDAY + timedelta(days=8))
    assert anomalies([*first, *later]) == []


def test_only_four_weeks_are_compared() -> None:
    assert odd([*[10] * 7, *[100] * 28, 100])[-1] < 35


def test_median() -> None:
    assert median([Fraction(3), Fraction(1), Fraction(2)]) == 2
    assert median([Fraction(4), Fraction(1)]) == Fraction(5, 2)
    with pytest.raises(ValueError, match="no median"):
        median([])
