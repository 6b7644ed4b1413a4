"""Which time a reading stands for, and whose time it is."""

from __future__ import annotations

import polars as pl
import pytest

from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, readings, rows
from tests.support.books import books, hours, leaves

IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
HALF: Row = {"sm_active_ratio": 0.9, "tensor_active_ratio": 0.465, "dram_active_ratio": 0.0}
LATER = Period(NOON + HOUR, NOON + 2 * HOUR)


def idle_minutes(*minutes: float, period: Period = ONE_HOUR) -> float:
    """Return for how long a held device is known to be at rest, read at these minutes."""
    told = [{"sampled_at": NOON + minute * MINUTE, **IDLE} for minute in minutes]
    samples = rows("utilization_sample", *told)
    held = rows("allocation_history", {})
    return (
        leaves(books(period, allocation_history=held, utilization_sample=samples)).get("idle", 0.0)
        * 60
    )


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        pytest.param([0, 1, 2], 2, id="a reading closes the interval before it"),
        pytest.param([5], 0, id="one alone observes nothing"),
        pytest.param([], 0, id="none observes nothing"),
        pytest.param([0, 1, 1, 2], 2, id="a repeat observes nothing"),
        pytest.param([2, 0, 1], 2, id="in any order"),
        pytest.param([-0.5, 0.5], 0.5, id="across the beginning"),
        pytest.param([58.5, 59.5, 60.5], 1.5, id="across the end"),
    ],
)
def test_time_that_readings_stand_for(minutes: list[float], expected: float) -> None:
    assert idle_minutes(*minutes) == pytest.approx(expected)


def test_a_reading_after_the_period_closes_the_interval_across_its_end() -> None:
    minutes = [59.5, 60.5, 61.5]
    both = idle_minutes(*minutes), idle_minutes(*minutes, period=LATER)
    assert both == pytest.approx((0.5, 1.5))


def test_readings_of_a_board_with_instances_belong_to_no_instance() -> None:
    cut: Row = {"instance_id": 8, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8}
    samples = pl.concat([readings([HALF] * 61), readings([IDLE] * 61, instance_id=8)])
    found = books(
        device_history=rows("device_history", {}, cut),
        allocation_history=rows("allocation_history", {"instance_id": 8, "gpu_share_ratio": 1 / 7}),
        utilization_sample=samples,
    )
    assert hours(found, "is_held") == {
        True: {"idle": pytest.approx(1 / 7)},
        False: {"stranded": pytest.approx(6 / 7)},
    }
