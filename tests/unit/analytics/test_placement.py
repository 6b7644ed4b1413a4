"""What of a request would fit now, what blocks the rest, and what would fit instead."""

from __future__ import annotations

import pytest

from analytics.placement import alternatives, blocker, fit, workers_on
from analytics.request import Request, request_from
from analytics.rooms import MigBoard, NodeRoom, node_rooms
from analytics.segments import Inputs
from tests.support.analytics_frames import NOON, ONE_HOUR, Row, rows
from tests.support.governance_rows import told

FULL = 1000.0


def room(**given: object) -> NodeRoom:
    harmless: dict[str, object] = {
        "cluster": "c",
        "node": "n1",
        "model": "H100",
        "is_schedulable": True,
        "free_milli": (FULL,) * 8,
        "lost_count": 0,
        "cpu_free_milli": 96_000.0,
        "memory_free_bytes": 1_000.0,
    }
    return NodeRoom(**{**harmless, **given})  # type: ignore[arg-type]  # a case gives right types


@pytest.mark.parametrize(
    ("text", "given", "count"),
    [
        pytest.param("gpus=4", {}, 2, id="by GPUs"),
        pytest.param("gpus=3", {}, 2, id="two left over"),
        pytest.param("gpus=8", {}, 1, id="exactly all"),
        pytest.param("gpus=9", {}, 0, id="one more"),
        pytest.param("gpus=4,cpu=48", {}, 2, id="CPU just fits twice"),
        pytest.param("gpus=4,cpu=49", {}, 1, id="CPU fits once"),
        pytest.param("gpus=4,cpu=97", {}, 0, id="CPU fits not at all"),
        pytest.param("gpus=4,memory=500", {}, 2, id="memory just fits twice"),
        pytest.param("gpus=4,memory=501", {}, 1, id="memory fits once"),
        pytest.param("gpus=1", {"free_milli": ()}, 0, id="no device"),
        pytest.param("gpus=1", {"free_milli": (0.0, 999.0)}, 0, id="almost whole"),
        pytest.param("gpus=0.5", {"free_milli": (0.0, 499.0, 500.0, FULL)}, 3, id="shares"),
        pytest.param("gpus=1,cpu=1", {"cpu_free_milli": None}, 0, id="CPU unknown but asked for"),
        pytest.param("gpus=1", {"cpu_free_milli": None}, 8, id="CPU unknown and not asked for"),
        pytest.param("gpus=1,cpu=1", {"cpu_free_milli": 0.0}, 0, id="CPU zero"),
        pytest.param("gpus=1,model=A100|H100", {}, 8, id="one of the models"),
        pytest.param("gpus=1,model=A100", {}, 0, id="another model"),
        pytest.param("gpus=1,model=H100", {"model": None}, 0, id="model unknown"),
        pytest.param("gpus=1,model=A-1", {"model": "A 1"}, 8, id="as a label writes it"),
        pytest.param("gpus=1", {"is_schedulable": False}, 0, id="cordoned"),
    ],
)
def test_workers_on_one_node(text: str, given: dict[str, object], count: int) -> None:
    assert workers_on(room(**given), request_from(text)) == count


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        ("gpus=1,model=A100", {"is_schedulable": False}, "model"),
        ("gpus=1", {"is_schedulable": False, "free_milli": ()}, "cordoned"),
        ("gpus=8", {"free_milli": (FULL,) * 7, "lost_count": 1}, "lost"),
        ("gpus=8", {"free_milli": (FULL,) * 6, "lost_count": 1}, "gpus"),
        ("gpus=8,cpu=97", {"free_milli": (FULL,) * 7}, "gpus"),
        ("gpus=8,cpu=97,memory=1001", {}, "cpu"),
        ("gpus=8,memory=1001", {}, "memory"),
        ("gpus=8,cpu=1", {"cpu_free_milli": None}, "cpu_unknown"),
        ("gpus=8,memory=1", {"memory_free_bytes": None}, "memory_unknown"),
    ],
)
def test_why_a_node_takes_none(text: str, given: dict[str, object], reason: str) -> None:
    assert workers_on(room(**given), request_from(text)) == 0
    assert blocker(room(**given), request_from(text)) == reason


def test_where_and_what_blocks_the_rest() -> None:
    rooms = [
        room(node="n1", free_milli=(FULL,) * 4),
        room(node="n2"),
        room(node="n3", model="A100"),
        room(node="n4", is_schedulable=False),
        room(node="n5", cpu_free_milli=1_000.0),
        room(node="n6", free_milli=(0.0,) * 8),
    ]
    found = fit(rooms, request_from("gpus=4,workers=9,cpu=16,model=H100"))
    assert found.worker_count == found.at_most_count == 3
    assert [(each.node, count) for each, count in found.by_node] == [("n2", 2), ("n1", 1)]
    assert dict(found.blocked) == {"model": 1, "cordoned": 1, "gpus": 1, "cpu": 1}
    assert dict(found.if_lifted) == {"model": 2, "cordoned": 2, "cpu": 2, "gpus": 2}


def test_no_nodes() -> None:
    found = fit([], Request())
    assert (found.worker_count, found.by_node, found.blocked, found.if_lifted) == (0, (), (), ())
    assert alternatives([], Request(gpu_count=4)) == ()


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        pytest.param("gpus=4,workers=2", [], id="fits as it is"),
        pytest.param(
            "gpus=4,workers=3,model=H100",
            [("any model", "gpus=4,workers=3"), ("fewer workers", "gpus=4,workers=2,model=H100")],
            id="more of another model",
        ),
        pytest.param(
            "gpus=8,workers=1,cpu=128,model=H100",
            [
                ("less CPU and memory", "gpus=8,cpu=96,model=H100"),
                ("fewer, smaller workers", "gpus=6,cpu=96,model=H100"),
            ],
            id="less CPU",
        ),
        pytest.param(
            "gpus=16",
            [("smaller workers, more of them", "gpus=8,workers=2")],
            id="in halves",
        ),
    ],
)
def test_what_would_fit_instead(text: str, instead: list[tuple[str, str]]) -> None:
    rooms = [room(node="n1"), room(node="n2", model="A100")]
    expected = tuple((what, request_from(other)) for what, other in instead)
    assert alternatives(rooms, request_from(text)) == expected
    for _, other in expected:
        assert fit(rooms, other).worker_count >= other.worker_count


BOARD = MigBoard(profiles=("1g", "3g"), free_profiles=("1g.5gb",), memory_gb=40.0)


@pytest.mark.parametrize(
    ("text", "at_least", "at_most"),
    [
        pytest.param("mig=1g.5gb", 3, 4, id="one there, two or three to create"),
        pytest.param("mig=3g.20gb", 0, 0, id="the other half holds a small one"),
        pytest.param("mig=1g.5gb,gpus=2", 1, 2, id="two instances each"),
        pytest.param("mig=1g.10gb", 1, 1, id="twice the memory"),
        pytest.param("mig=1g.12gb", 0, 0, id="no such profile on this board"),
        pytest.param("mig=1g.5gb,cpu=33", 2, 2, id="CPU for two"),
    ],
)
def test_mig_requests_have_bounds(text: str, at_least: int, at_most: int) -> None:
    found = fit([room(model="A100", free_milli=(), mig_boards=(BOARD,))], request_from(text))
    assert (found.worker_count, found.at_most_count) == (at_least, at_most)


def rooms_of(*, node: Row | None = None, **tables: tuple[Row, ...]) -> NodeRoom:
    inputs = Inputs(
        nodes=rows("node_history", node or {}),
        devices=rows("device_history", *tables.get("devices", ({}, {"device_uuid": "GPU-b"}))),
        events=rows("device_event_history", *tables.get("events", ())),
        allocations=rows("allocation_history", *tables.get("allocations", ())),
    )
    standing = told("workload_standing", *tables.get("standing", ()))
    places = told("node_place", *tables.get("places", ({},)))
    (found,) = node_rooms(inputs, standing=standing, places=places, period=ONE_HOUR)
    return found


def test_rooms_from_stored_rows() -> None:
    found = rooms_of(allocations=({"gpu_share_ratio": 0.5},), standing=({},))
    assert found.free_milli == (500.0, 1000.0)
    assert (found.cpu_free_milli, found.memory_free_bytes) == (88_000.0, 900.0)
    assert (found.lost_count, found.is_schedulable) == (0, True)


@pytest.mark.parametrize(
    ("standing", "cpu", "memory"),
    [
        pytest.param({"cpu_milli": 0, "memory_bytes": 0}, 96_000.0, 1_000.0, id="none asked for"),
        pytest.param({"cpu_milli": None}, None, 900.0, id="CPU unknown"),
        pytest.param({"memory_bytes": None}, 88_000.0, None, id="memory unknown"),
        pytest.param({"workload_uid": "other"}, None, None, id="workload unknown"),
        pytest.param({"cpu_milli": 97_000}, 0.0, 900.0, id="never below zero"),
    ],
)
def test_what_an_unknown_holder_needs_is_unknown(
    standing: Row, cpu: float | None, memory: float | None
) -> None:
    found = rooms_of(allocations=({},), standing=(standing,))
    assert (found.cpu_free_milli, found.memory_free_bytes) == (cpu, memory)


def test_lost_and_cut_devices_offer_no_whole_gpu() -> None:
    devices: tuple[Row, ...] = (
        {"memory_total_bytes": 40 * 2**30, "model": "A100"},
        {"instance_id": 1, "mig_profile": "3g.20gb"},
        {"instance_id": 2, "mig_profile": "1g.5gb"},
        {"device_uuid": "GPU-b"},
        {"device_uuid": "GPU-c"},
    )
    lost = {"device_uuid": "GPU-b", "kind": "lost", "occurred_at": NOON}
    held = {"instance_id": 1, "gpu_share_ratio": 3 / 7}
    found = rooms_of(devices=devices, events=(lost,), allocations=(held,), standing=({},))
    assert (found.free_milli, found.lost_count) == ((1000.0,), 1)
    assert found.mig_boards == (
        MigBoard(profiles=("1g", "3g"), free_profiles=("1g.5gb",), memory_gb=40.0),
    )
