"""The trend of demand: weekdays, outliers, ranges, and when it meets a limit."""

from __future__ import annotations

import pytest

from analytics.planning import LEAST_DAYS, REACH, outlook, quantile

WEEKDAYS = (10.0, 12.0, 12.0, 12.0, 11.0, 3.0, 2.0)


def weeks(count: int, *, slope: float = 0.0) -> list[float]:
    """Return whole weeks of a weekly pattern with a trend per day."""
    return [WEEKDAYS[day % 7] + slope * day for day in range(7 * count)]


@pytest.mark.parametrize(
    ("count", "is_told"),
    [
        pytest.param(LEAST_DAYS - 1, False, id="a day too few"),
        pytest.param(LEAST_DAYS, True, id="just enough"),
        pytest.param(LEAST_DAYS + 1, True, id="a day more"),
    ],
)
def test_two_of_each_weekday_are_needed(count: int, *, is_told: bool) -> None:
    assert (outlook([1.0] * count) is not None) is is_told


def test_weeks_are_no_trend() -> None:
    found = outlook(weeks(3))
    assert found is not None
    assert (found.slope.low, found.slope.middle, found.slope.high) == (0, 0, 0)
    assert [found.ahead(day).middle for day in (1, 6, 7)] == [10, 3, 2]


def test_trend_through_weeks_is_found_exactly() -> None:
    found = outlook(weeks(4, slope=0.5))
    assert found is not None
    assert found.slope.middle == pytest.approx(0.5)
    assert found.ahead(1).middle == pytest.approx(10 + 0.5 * 28)


def test_one_wild_day_does_not_move_the_trend() -> None:
    days = weeks(4, slope=0.5)
    days[-1] = 500.0
    found = outlook(days)
    assert found is not None
    assert found.slope.middle == pytest.approx(0.5)


def test_range_widens_with_distance_and_holds_the_middle() -> None:
    days = [value + (1 if day % 3 else -1) for day, value in enumerate(weeks(4, slope=0.2))]
    found = outlook(days)
    assert found is not None
    near, far = found.ahead(1), found.ahead(29)
    for one in (near, far):
        assert one.low is not None
        assert one.middle is not None
        assert one.high is not None
        assert one.low <= one.middle <= one.high
    assert (far.high or 0) - (far.low or 0) >= (near.high or 0) - (near.low or 0)


def test_demand_is_never_negative() -> None:
    found = outlook([20.0 - day for day in range(21)])
    assert found is not None
    assert found.ahead(30).middle == 0


@pytest.mark.parametrize(
    ("limit", "days"),
    [
        pytest.param(36.0, 0.0, id="reached already"),
        pytest.param(37.0, 0.0, id="just reached"),
        pytest.param(38.0, 1.0, id="tomorrow"),
        pytest.param(37.0 + REACH * 28, REACH * 28.0, id="at the end of reach"),
        pytest.param(38.0 + REACH * 28, None, id="past the end of reach"),
    ],
)
def test_days_until_a_limit(limit: float, days: float | None) -> None:
    found = outlook([10.0 + day for day in range(28)])
    assert found is not None
    until = found.days_until(limit)
    assert until.middle == (None if days is None else pytest.approx(days))
    assert until.low == until.middle == until.high


@pytest.mark.parametrize("slope", [0.0, -0.5])
def test_flat_or_falling_demand_meets_no_limit(slope: float) -> None:
    found = outlook([50.0 + slope * day for day in range(28)])
    assert found is not None
    assert found.days_until(60.0).middle is None


def test_no_demand_is_a_measured_zero() -> None:
    found = outlook([0.0] * 14)
    assert found is not None
    assert found.ahead(30).middle == 0
    assert found.days_until(1.0).middle is None
    assert found.days_until(0.0).middle == 0


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.5), (1.0, 4.0)])
def test_quantiles_are_interpolated(share: float, value: float) -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == value
