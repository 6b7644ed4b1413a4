"""From when to when a device is capacity: it leaves with its node, and comes back when seen."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from analytics.inventory import current_devices, known_devices
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, rows
from tests.support.books import books, hours, leaves

HALF = NOON + HOUR / 2
INSTANT = timedelta(microseconds=1)
REMOVED: Row = {
    "observed_at": HALF,
    "gpu_model": None,
    "gpu_count": 0,
    "cpu_milli": 0,
    "memory_bytes": 0,
    "is_schedulable": False,
    "is_present": False,
}


def wall_hours(
    *nodes: Row, devices: tuple[Row, ...] = ({},), period: Period = ONE_HOUR, **given: pl.DataFrame
) -> float:
    """Return how long the devices were capacity, in GPU-hours."""
    found = books(
        period,
        node_history=rows("node_history", {}, *nodes),
        device_history=rows("device_history", *devices),
        **given,
    )
    return sum(leaves(found).values())


@pytest.mark.parametrize(
    ("removed_at", "expected"),
    [
        pytest.param(NOON, 0.0, id="as the period begins"),
        pytest.param(NOON + 15 * MINUTE, 0.25, id="inside"),
        pytest.param(NOON + HOUR - MINUTE, 59 / 60, id="just before its end"),
        pytest.param(NOON + HOUR, 1.0, id="as it ends"),
        pytest.param(NOON - 30 * MINUTE, 0.0, id="before it"),
    ],
)
def test_a_device_is_capacity_until_its_node_is_removed(
    removed_at: datetime, expected: float
) -> None:
    assert wall_hours({**REMOVED, "observed_at": removed_at}) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("seen_at", "expected"),
    [
        pytest.param(HALF - INSTANT, 0.5, id="before the removal"),
        pytest.param(HALF, 0.5, id="at the removal"),
        pytest.param(HALF + 15 * MINUTE, 0.75, id="after it: a new life"),
    ],
)
def test_a_device_seen_again_begins_a_new_life(seen_at: datetime, expected: float) -> None:
    devices: tuple[Row, ...] = ({}, {"observed_at": seen_at})
    assert wall_hours(REMOVED, devices=devices) == pytest.approx(expected)


def test_a_node_seen_again_brings_its_devices_back() -> None:
    back = {"observed_at": HALF + 15 * MINUTE}
    assert wall_hours(REMOVED, back) == pytest.approx(0.75)


def test_a_node_removed_twice_is_gone_since_the_second_time_if_seen_between() -> None:
    again: Row = {**REMOVED, "observed_at": HALF + 20 * MINUTE}
    seen: tuple[Row, ...] = ({}, {"observed_at": HALF + 10 * MINUTE})
    assert wall_hours(REMOVED, again, devices=seen) == pytest.approx(40 / 60)


def test_a_device_told_absent_after_the_removal_is_not_seen() -> None:
    absent: Row = {"observed_at": HALF + MINUTE, "is_present": False}
    assert wall_hours(REMOVED, devices=({}, absent)) == pytest.approx(0.5)


def test_a_device_first_seen_after_the_removal_counts_from_then() -> None:
    assert wall_hours(REMOVED, devices=({"observed_at": HALF + 15 * MINUTE},)) == pytest.approx(
        0.25
    )


def test_a_device_that_moved_on_stays() -> None:
    moved: Row = {"observed_at": NOON + 15 * MINUTE, "node": "n2"}
    assert wall_hours(REMOVED, {"node": "n2"}, devices=({}, moved)) == pytest.approx(1.0)


def test_a_device_that_moves_on_after_the_removal_is_missed_in_between() -> None:
    moved: Row = {"observed_at": HALF + 15 * MINUTE, "node": "n2"}
    assert wall_hours(REMOVED, {"node": "n2"}, devices=({}, moved)) == pytest.approx(0.75)


def test_the_instances_of_a_board_leave_with_it() -> None:
    cut: Row = {"instance_id": 8, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8}
    assert wall_hours(REMOVED, devices=({}, cut)) == pytest.approx(0.5)


def test_a_node_whose_device_plugin_is_away_keeps_its_devices_down() -> None:
    away: Row = {"observed_at": HALF, "gpu_count": 0, "is_schedulable": True}
    lost: Row = {"observed_at": HALF, "is_present": False}
    found = books(
        node_history=rows("node_history", {}, away),
        device_history=rows("device_history", {}, lost),
        allocation_history=rows("allocation_history", {}),
    )
    assert leaves(found) == {"unknown": 0.5, "down": 0.5}


def test_a_device_lost_before_its_node_left_is_down_until_then() -> None:
    lost: Row = {"observed_at": NOON + 15 * MINUTE, "is_present": False}
    found = books(
        node_history=rows("node_history", {}, REMOVED),
        device_history=rows("device_history", {}, lost),
        allocation_history=rows("allocation_history", {}),
    )
    assert hours(found, "is_held") == {True: {"unknown": 0.25, "down": 0.25}}


def test_the_time_before_the_removal_keeps_the_model_that_the_node_told() -> None:
    found = books(
        node_history=rows("node_history", {}, REMOVED),
        device_history=rows("device_history", {"model": None}),
    )
    assert found.rows["model"].to_list() == ["H100"]


def test_what_is_held_of_a_removed_node_is_not_placed() -> None:
    told = books(
        node_history=rows("node_history", {}, REMOVED),
        allocation_history=rows("allocation_history", {}),
        borders=[HALF],
    )
    assert told.caveats["unplaced_gpu_hours"].to_list() == [0.0, 0.5]
    assert told.rows["wall_ticks"].len() == 1


@pytest.mark.parametrize(
    ("devices", "nodes", "count"),
    [
        pytest.param([{}], [{}], 1, id="there"),
        pytest.param([{}], [{}, REMOVED], 0, id="left with its node"),
        pytest.param([{}, {"observed_at": HALF}], [{}, REMOVED], 0, id="seen as it left"),
        pytest.param([{}, {"observed_at": HALF + INSTANT}], [{}, REMOVED], 1, id="seen since"),
        pytest.param([{}], [REMOVED, {"observed_at": HALF + INSTANT}], 1, id="the node is back"),
        pytest.param([{}], [], 1, id="of a node never told of"),
    ],
)
def test_the_inventory_follows_the_same_rule(
    devices: list[Row], nodes: list[Row], count: int
) -> None:
    told = rows("device_history", *devices), rows("node_history", *nodes)
    assert current_devices(*told).height == count
    assert known_devices(*told).height == 1
