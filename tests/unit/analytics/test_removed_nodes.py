"""Boards of a node that was removed are no longer there, in any report of what there is."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.capacity import free_capacity
from analytics.reports import devices as device_report
from analytics.reports import inventory
from analytics.reports.model import Question, Report
from analytics.rooms import device_rooms
from analytics.segments import Inputs
from tests.support.analytics_frames import MINUTE, NOON, ONE_HOUR, Row, frames, rows
from tests.support.queue_story import Story

LEFT: Row = {
    "observed_at": NOON,
    "node": "n2",
    "gpu_model": None,
    "gpu_count": 0,
    "cpu_milli": 0,
    "memory_bytes": 0,
    "is_schedulable": False,
    "is_present": False,
}
BACK: Row = {"observed_at": NOON + MINUTE, "node": "n2"}
CUT: Row = {"node": "n2", "device_uuid": "GPU-b", "instance_id": 1, "sm_share_ratio": 1 / 7}
DEVICES = rows("device_history", {}, {"node": "n2", "device_uuid": "GPU-b"}, CUT)
CASES = [
    pytest.param((), 2, id="both there"),
    pytest.param((LEFT,), 1, id="removed"),
    pytest.param((LEFT, BACK), 2, id="removed and back"),
]


def stored(*changes: Row) -> dict[str, pl.DataFrame]:
    """Return two nodes of a GPU each, and what else is told of nodes."""
    return frames(
        node_history=rows("node_history", {}, {"node": "n2"}, *changes),
        device_history=DEVICES,
        latest_device_sample=rows("latest_device_sample", {}, {"device_uuid": "GPU-b"}),
    )


def values(report: Report) -> dict[str, object]:
    return {each.key: each.value for each in report.figures}


@pytest.mark.parametrize(("changes", "count"), CASES)
def test_inventory(changes: tuple[Row, ...], count: int) -> None:
    report = inventory.build(stored(*changes), Question(period=ONE_HOUR))
    assert values(report) == {
        "node_count": count,
        "gpu_count": count,
        "present_gpu_count": count,
        "mig_instance_count": count - 1,
        "cpu_core_count": 96.0 * count,
    }
    assert [table.frame.height for table in report.tables] == [1, count]


@pytest.mark.parametrize(("changes", "count"), CASES)
def test_latest_readings(changes: tuple[Row, ...], count: int) -> None:
    report = device_report.build(stored(*changes), Question(period=ONE_HOUR))
    assert values(report)["read_gpu_count"] == count


@pytest.mark.parametrize(("changes", "count"), CASES)
def test_free_capacity_and_rooms(changes: tuple[Row, ...], count: int) -> None:
    told = stored(*changes)
    inputs = Inputs(
        nodes=told["node_history"],
        devices=told["device_history"],
        events=told["device_event_history"],
        allocations=told["allocation_history"],
    )
    assert free_capacity(inputs, told["workload_current"], ONE_HOUR).height == count
    assert device_rooms(inputs, ONE_HOUR).height == count


def test_what_was_free_until_the_removal() -> None:
    story = Story().node(gpus=1)
    gone = {"observed_at": NOON + 60 * MINUTE, "is_schedulable": False, "is_present": False}
    story.node("n1", gpus=0, **gone)
    units = story.free().changes["free_units"].to_list()
    assert (units[0] > 0, units[-1]) == (True, 0)
