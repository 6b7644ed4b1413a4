"""What a month will have cost: two methods by name, and a range."""

from __future__ import annotations

from fractions import Fraction

import pytest

from analytics.cost.forecast import (
    LEAST_DAYS,
    SPREAD_DAYS,
    forecast,
    half_range,
    linear_month_to_date,
    recent_mean,
    run_rate,
)


def test_linear_is_the_mean_of_the_days_so_far() -> None:
    assert linear_month_to_date(4_200, days_done=14, days_in_month=30) == 9_000


def test_linear_before_the_first_day_is_over() -> None:
    assert linear_month_to_date(0, days_done=0, days_in_month=30) is None


def test_linear_of_nothing_spent() -> None:
    assert linear_month_to_date(0, days_done=1, days_in_month=30) == 0


def test_run_rate_is_spent_and_recent_days() -> None:
    assert run_rate(4_200, recent_daily_mean=320, days_left=16) == 9_320


def test_run_rate_stays_exact() -> None:
    assert run_rate(Fraction(1, 3), recent_daily_mean=Fraction(1, 7), days_left=2) == Fraction(
        13, 21
    )


@pytest.mark.parametrize(
    ("count", "is_known"),
    [(LEAST_DAYS - 1, False), (LEAST_DAYS, True), (LEAST_DAYS + 1, True)],
)
def test_a_range_needs_a_week(count: int, *, is_known: bool) -> None:
    assert (half_range([10] * count, days_left=3) is not None) is is_known
    assert (recent_mean([10] * count) is not None) is is_known


def test_days_that_are_all_the_same_have_no_range() -> None:
    assert half_range([10] * 7, days_left=3) == 0


def test_no_day_left_has_no_range() -> None:
    assert half_range([1, 2, 3, 4, 5, 6, 7], days_left=0) == 0


def test_the_range_is_that_of_the_sum_of_the_days_left() -> None:
    days = [1_000_000 * day for day in (1, 2, 3, 4, 5, 6, 7)]
    variance = Fraction(14, 3) * 10**12
    width = half_range(days, days_left=4)
    assert width is not None
    assert float(width) == pytest.approx(1.2816 * float(variance * (4 + Fraction(16, 7))) ** 0.5)


def test_only_the_last_four_weeks_make_the_range() -> None:
    assert half_range([0, *[10] * SPREAD_DAYS], days_left=3) == 0


def test_only_the_last_week_makes_the_run_rate() -> None:
    assert recent_mean([100, 1, 2, 3, 4, 5, 6, 7]) == 4


class TestForecast:
    def test_a_month_under_way(self) -> None:
        found = forecast([], [300] * 14, days_in_month=30)
        assert (found.spent, found.linear, found.run_rate) == (4_200, 9_000, 9_000)
        assert (found.low, found.high) == (9_000, 9_000)

    def test_days_of_the_month_before_help_the_run_rate(self) -> None:
        found = forecast([70] * 6, [140], days_in_month=30)
        assert (found.linear, found.run_rate) == (4_200, 140 + 29 * 80)

    def test_days_before_the_first_known_one_are_forecast_like_days_to_come(self) -> None:
        found = forecast([], [300] * 14, days_in_month=30, is_month_whole=False)
        assert (found.spent, found.linear, found.run_rate) == (None, 9_000, 9_000)
        assert found.days_done == 14

    def test_too_few_days_have_a_linear_forecast_only(self) -> None:
        found = forecast([], [300] * 6, days_in_month=30)
        assert (found.linear, found.run_rate, found.low) == (9_000, None, None)

    def test_a_month_that_is_over_is_what_was_spent(self) -> None:
        found = forecast([], list(range(30)), days_in_month=30)
        assert found.spent == found.linear == found.run_rate == found.low == found.high == 435

    def test_a_month_that_costs_nothing(self) -> None:
        found = forecast([], [0] * 10, days_in_month=30)
        assert (found.spent, found.linear, found.run_rate, found.high) == (0, 0, 0, 0)

    def test_the_low_end_is_not_below_what_is_spent(self) -> None:
        found = forecast([], [0, 0, 0, 0, 0, 0, 7_000], days_in_month=30)
        assert found.low == 7_000
        assert found.high is not None
        assert found.high > 30_000
