"""Devices of two clusters that use the same id, and allocations of what is not in the inventory."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.identity import shared_ids
from analytics.ledger import by_class
from analytics.reports.catalogue import REPORTS
from analytics.reports.measured import DeviceTime, device_time
from analytics.reports.model import Question, Report
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, frames, readings, rows

WORKING: Row = {"sm_active_ratio": 0.5, "tensor_active_ratio": 0.465, "dram_active_ratio": 0.0}
IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
TWINS = rows("device_history", {}, {"cluster": "d", "node": "n2"})
NODES = rows("node_history", {}, {"cluster": "d", "node": "n2"})


def measured(**given: pl.DataFrame) -> DeviceTime:
    world = {"node_history": NODES, "device_history": TWINS, **given}
    return device_time(frames(**world), ONE_HOUR)


def report(name: str, **given: pl.DataFrame) -> Report:
    world = frames(node_history=NODES, device_history=TWINS, **given)
    definition = REPORTS[name]
    return definition.build(
        {query: world[query] for query in definition.inputs}, Question(period=ONE_HOUR)
    )


def hours(time: DeviceTime, *keys: str) -> dict[object, float]:
    sums = by_class(time.rows, *keys)
    return dict(zip(sums[keys[0]], sums["wall_gpu_hours"], strict=True))


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        pytest.param([], [], id="no device"),
        pytest.param(["c", "c"], [], id="one cluster, seen twice"),
        pytest.param(["c", "d"], ["GPU-a"], id="two clusters"),
    ],
)
def test_shared_ids(clusters: list[str], expected: list[str]) -> None:
    seen = rows("device_history", *[{"cluster": cluster} for cluster in clusters])
    assert shared_ids(seen).to_list() == expected


def test_each_cluster_has_its_own_device() -> None:
    assert hours(measured(), "device_uuid") == {"c/GPU-a": 1.0, "d/GPU-a": 1.0}
    assert hours(measured(), "cluster") == {"c": 1.0, "d": 1.0}


def test_an_allocation_holds_in_its_own_cluster_only() -> None:
    time = measured(allocation_history=rows("allocation_history", {"cluster": "d", "node": "n2"}))
    held = time.rows.filter("is_held")
    assert held.select("cluster", "wall_gpu_hours").rows() == [("d", 1.0)]


def test_a_loss_counts_on_the_node_it_was_seen_on() -> None:
    lost = rows(
        "device_event_history", {"kind": "lost", "node": "n2", "occurred_at": NOON + HOUR / 2}
    )
    down = by_class(measured(device_event_history=lost).rows, "cluster")
    assert down.select("cluster", "down_gpu_hours").rows() == [("c", 0.0), ("d", 0.5)]


def test_readings_that_fit_two_devices_are_unknown_and_told() -> None:
    held = rows("allocation_history", {}, {"cluster": "d", "node": "n2"})
    given = {"allocation_history": held, "utilization_sample": readings([IDLE] * 61)}
    totals = by_class(measured(**given).rows)
    assert totals.select("idle_gpu_hours", "unknown_gpu_hours").row(0) == (0.0, 2.0)
    told = report("utilization", **given).findings
    assert any(text.startswith("2 devices share their id with a device of") for text in told)
    assert not any("not in the inventory" in text for text in told)


def test_readings_with_a_key_of_each_cluster_are_told_apart() -> None:
    twins = rows("device_history", {"device_key": 1}, {"cluster": "d", "device_key": 2})
    held = rows("allocation_history", {}, {"cluster": "d"})
    read = pl.concat([readings([IDLE] * 61, device_key=1), readings([WORKING] * 61, device_key=2)])
    time = measured(device_history=twins, allocation_history=held, utilization_sample=read)
    found = by_class(time.rows, "cluster").select(
        "cluster", "idle_gpu_hours", pl.col("effective_gpu_hours").round(6)
    )
    assert found.rows() == [("c", 1.0, 0.0), ("d", 0.0, 0.5)]
    assert time.indistinct_device_count == 0


def test_inventory_and_latest_readings_keep_clusters_apart() -> None:
    read = rows("latest_device_sample", {"power_w": 70.0}, {"node": "n2", "power_w": 0.0})
    values = {each.key: each.value for each in report("inventory").figures}
    assert values["gpu_count"] == 2
    latest = report("devices", latest_device_sample=read).tables[0].frame
    assert latest.select("node", "device_uuid", "power_w").rows() == [
        ("n1", "c/GPU-a", 70.0),
        ("n2", "d/GPU-a", 0.0),
    ]


@pytest.mark.parametrize(
    ("allocation", "told"),
    [
        pytest.param({}, False, id="in the inventory"),
        pytest.param({"device_uuid": "GPU-z"}, True, id="an unknown device"),
        pytest.param({"cluster": "e"}, True, id="an unknown cluster"),
        pytest.param({"instance_id": 7}, True, id="an unknown MIG instance"),
        pytest.param({"ended_at": NOON}, False, id="over when the period begins"),
    ],
)
def test_what_cannot_be_placed_is_told(*, allocation: Row, told: bool) -> None:
    given = frames(
        node_history=rows("node_history", {}),
        device_history=rows("device_history", {}),
        allocation_history=rows(
            "allocation_history", {"ended_at": NOON + 30 * MINUTE, **allocation}
        ),
    )
    definition = REPORTS["utilization"]
    found = definition.build(
        {name: given[name] for name in definition.inputs}, Question(period=ONE_HOUR)
    )
    expected = "1 allocations (0.5 GPU-hours) name a GPU or MIG instance that was not in the "
    assert any(text.startswith(expected) for text in found.findings) == told


@pytest.mark.parametrize(
    ("instance_born", "unplaced"),
    [
        pytest.param(29 * MINUTE, 0, id="an instance of its last minute"),
        pytest.param(30 * MINUTE, 1, id="an instance of the instant it ends"),
        pytest.param(31 * MINUTE, 1, id="an instance of the minute after"),
    ],
)
def test_placed_means_that_it_existed_meanwhile(instance_born: timedelta, unplaced: int) -> None:
    instance = {"instance_id": 7, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8}
    given = frames(
        node_history=rows("node_history", {}),
        device_history=rows(
            "device_history", {}, {**instance, "observed_at": NOON + instance_born}
        ),
        allocation_history=rows(
            "allocation_history", {"instance_id": 7, "ended_at": NOON + 30 * MINUTE}
        ),
    )
    assert device_time(given, ONE_HOUR).segments.unplaced.height == unplaced
