"""Which span a reading stands for."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.intervals import bounds, observed_intervals
from analytics.schemas.columns import INSTANT
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR


def spans(minutes: list[float], period: Period = ONE_HOUR) -> list[tuple[float, float]]:
    at = [NOON + minute * MINUTE for minute in minutes]
    frame = pl.DataFrame(
        {"series_id": [0] * len(at), "sampled_at": at},
        schema={"series_id": pl.Int32, "sampled_at": INSTANT},
    )
    found = observed_intervals(frame, period)
    zero, _ = bounds(ONE_HOUR)
    return [
        ((row["start_us"] - zero) / 60e6, (row["end_us"] - zero) / 60e6)
        for row in found.iter_rows(named=True)
    ]


def test_a_reading_closes_the_interval_before_it() -> None:
    assert spans([0, 1, 2]) == [(0, 1), (1, 2)]


def test_one_reading_alone_observes_nothing() -> None:
    assert spans([5]) == []


def test_no_reading_observes_nothing() -> None:
    assert spans([]) == []


def test_a_repeat_observes_nothing() -> None:
    assert spans([0, 1, 1, 2]) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("gap", "start"),
    [
        pytest.param(2.4, 4.0, id="within two and a half cadences"),
        pytest.param(2.5, 4.0, id="exactly two and a half cadences"),
        pytest.param(3.0, 4.5, id="the rest of a longer gap is unobserved"),
    ],
)
def test_gap(gap: float, start: float) -> None:
    minutes = [0.0, 1, 2, 3, 4, 4 + gap]
    assert spans(minutes)[-1] == pytest.approx((start, 4 + gap))


def test_readings_outside_close_the_intervals_across_the_ends() -> None:
    assert spans([-0.5, 0.5, 59.5, 60.5], Period(NOON, NOON + HOUR))[0] == (0, 0.5)
    assert spans([58.5, 59.5, 60.5]) == [(58.5, 59.5), (59.5, 60)]


def test_order_of_rows_does_not_matter() -> None:
    assert spans([2, 0, 1]) == spans([0, 1, 2])


def test_time_of_the_period_is_in_microseconds() -> None:
    first, last = bounds(ONE_HOUR)
    assert last - first == timedelta(hours=1) / timedelta(microseconds=1)
