"""Devices of two clusters that use the same id, and allocations of what is not in the inventory."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.bookkeeping import Books, keep_books
from analytics.identity import shared_ids
from analytics.reports.catalogue import REPORTS
from analytics.reports.model import Question, Report
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, frames, readings, rows
from tests.support.books import books, hours, leaves

WORKING: Row = {"sm_active_ratio": 0.5, "tensor_active_ratio": 0.465, "dram_active_ratio": 0.0}
IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
TWINS = rows("device_history", {}, {"cluster": "d", "node": "n2"})
NODES = rows("node_history", {}, {"cluster": "d", "node": "n2"})


def measured(**given: pl.DataFrame) -> Books:
    return books(**{"node_history": NODES, "device_history": TWINS, **given})


def report(name: str, **given: pl.DataFrame) -> Report:
    world = frames(**{"node_history": NODES, "device_history": TWINS, **given})
    kept = keep_books(world, ONE_HOUR)
    built = {"ledger": kept.rows, "rest": kept.rest, "ledger_caveat": kept.caveats}
    definition = REPORTS[name]
    asked = {query: {**world, **built}[query] for query in definition.inputs}
    return definition.build(asked, Question(period=ONE_HOUR))


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
    assert hours(measured(), "cluster", "device_uuid") == {
        ("c", "c/GPU-a"): {"unknown": 1.0},
        ("d", "d/GPU-a"): {"unknown": 1.0},
    }


def test_an_allocation_holds_in_its_own_cluster_only() -> None:
    held = rows("allocation_history", {"cluster": "d", "node": "n2"})
    found = measured(allocation_history=held)
    assert hours(found, "cluster", "is_held").keys() == {("c", False), ("d", True)}


def test_a_loss_counts_on_the_node_it_was_seen_on() -> None:
    lost = rows(
        "device_event_history", {"kind": "lost", "node": "n2", "occurred_at": NOON + HOUR / 2}
    )
    assert hours(measured(device_event_history=lost), "cluster") == {
        "c": {"unknown": 1.0},
        "d": {"unknown": 0.5, "down": 0.5},
    }


def test_a_loss_counts_in_the_cluster_it_tells_of() -> None:
    """Both clusters have a node of the same name: only the event itself can tell."""
    twins = rows("device_history", {}, {"cluster": "d"})
    lost = rows("device_event_history", {"kind": "lost", "cluster": "d", "occurred_at": NOON})
    found = measured(device_history=twins, device_event_history=lost)
    assert hours(found, "cluster") == {"c": {"unknown": 1.0}, "d": {"down": 1.0}}


def test_readings_that_fit_two_devices_are_unknown_and_told() -> None:
    held = rows("allocation_history", {}, {"cluster": "d", "node": "n2"})
    given = {"allocation_history": held, "utilization_sample": readings([IDLE] * 61)}
    found = measured(**given)
    assert leaves(found) == {"unknown": 2.0}
    assert found.caveats["indistinct_device_count"].to_list() == [2]
    told = report("utilization", **given).findings
    assert any(text.startswith("2 devices share their id with a device of") for text in told)
    assert not any("not in the inventory" in text for text in told)


def test_readings_with_a_key_of_each_cluster_are_told_apart() -> None:
    twins = rows("device_history", {"device_key": 1}, {"cluster": "d", "device_key": 2})
    held = rows("allocation_history", {}, {"cluster": "d"})
    read = pl.concat([readings([IDLE] * 61, device_key=1), readings([WORKING] * 61, device_key=2)])
    found = measured(device_history=twins, allocation_history=held, utilization_sample=read)
    assert hours(found, "cluster") == {
        "c": {"idle": 1.0},
        "d": {"used_measured": 0.5, "ineffective": 0.5},
    }
    assert found.caveats["indistinct_device_count"].to_list() == [0]


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
    held = rows("allocation_history", {"ended_at": NOON + 30 * MINUTE, **allocation})
    found = report(
        "utilization",
        node_history=rows("node_history", {}),
        device_history=rows("device_history", {}),
        allocation_history=held,
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
    found = books(
        device_history=rows(
            "device_history", {}, {**instance, "observed_at": NOON + instance_born}
        ),
        allocation_history=rows(
            "allocation_history", {"instance_id": 7, "ended_at": NOON + 30 * MINUTE}
        ),
    )
    assert found.caveats["unplaced_allocation_count"].to_list() == [unplaced]
