"""Instants in whole microseconds."""

from __future__ import annotations

from datetime import timedelta

from analytics.intervals import bounds
from tests.support.analytics_frames import ONE_HOUR


def test_time_of_the_period_is_in_microseconds() -> None:
    first, last = bounds(ONE_HOUR)
    assert last - first == timedelta(hours=1) / timedelta(microseconds=1)
