"""Idle capacity the expected work cannot use, and room for gangs."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.capacity import free_capacity
from analytics.fragmentation import CATEGORIES, fragmentation, free_nodes
from analytics.gangs import gang_slots, largest_node_gang, partial_leftover_milli
from analytics.segments import Inputs
from analytics.shapes import target_workload
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR, Row, rows


def node(cpu: float, *gpus: float, model: str = "T4") -> pl.DataFrame:
    return pl.DataFrame(
        {"cpu_free_milli": [cpu], "gpu_free_milli": [list(gpus)], "gpu_model": [model]}
    )


def shape(  # a shape is these four facts
    cpu: int, milli: int, count: int = 1, models: str = ""
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "cpu_milli": [cpu],
            "gpu_milli": [milli],
            "gpu_count": [count],
            "gpu_models": [models],
            "share_ratio": [1.0],
        }
    )


@pytest.mark.parametrize(
    ("asked", "category", "milli"),
    [
        pytest.param(shape(0, 1000), "q3_satisfied", 2000, id="fits"),
        pytest.param(shape(0, 1000), "q2_lack_gpu", 700, id="leftovers of a fit"),
        pytest.param(shape(0, 1000, 3), "q2_lack_gpu", 2700, id="too few GPUs"),
        pytest.param(shape(1001, 1000), "q4_lack_cpu", 2700, id="too little CPU"),
        pytest.param(shape(1000, 1000), "q3_satisfied", 2000, id="CPU just fits"),
        pytest.param(shape(1001, 1000, 3), "q1_lack_both", 2700, id="neither"),
        pytest.param(shape(1000, 0, 0), "xl_satisfied", 2700, id="no GPU asked, CPU fits"),
        pytest.param(shape(1001, 0, 0), "xr_lack_cpu", 2700, id="no GPU asked, CPU lacks"),
        pytest.param(shape(0, 1000, 1, "A10|G2"), "no_access", 2700, id="bound to other models"),
        pytest.param(shape(0, 200, 1, "A10|T4"), "q3_satisfied", 2700, id="one of the models"),
    ],
)
def test_categories(asked: pl.DataFrame, category: str, milli: float) -> None:
    found = fragmentation(free_nodes(node(1000, 200, 1000, 1000, 500)), asked)
    assert found[category].to_list() == [milli]
    assert sum(found[name][0] for name in CATEGORIES) == 2700


def test_model_as_a_node_label_writes_it() -> None:
    nodes = free_nodes(node(0, 1000, model="NVIDIA H100 80GB HBM3"))
    found = fragmentation(nodes, shape(0, 1000, 1, "NVIDIA-H100-80GB-HBM3"))
    assert found["q3_satisfied"].to_list() == [1000]


def test_full_node_has_no_fragments() -> None:
    found = fragmentation(free_nodes(node(1000, 0, 0)), shape(0, 1000))
    assert found["fragment_milli"].to_list() == [0.0]


@pytest.mark.parametrize("models", ["", "A10", "A10|T4"])
def test_no_nodes(models: str) -> None:
    asked = shape(0, 1000, 1, models)
    assert fragmentation(free_nodes(node(0, 0).clear()), asked).height == 0


def test_target_keeps_popular_shapes_and_renormalises() -> None:
    asked = [{"workload_uid": f"w{i}", "cpu_milli": 1 if i < 95 else 2} for i in range(100)]
    kept = target_workload(rows("workload_current", *asked))
    assert kept["request_count"].to_list() == [95]
    assert kept["share_ratio"].to_list() == [1.0]


def test_target_takes_the_shape_that_crosses_the_share() -> None:
    asked = [{"workload_uid": f"w{i}", "cpu_milli": 1 if i < 94 else 2} for i in range(100)]
    assert target_workload(rows("workload_current", *asked)).height == 2


def test_ties_are_taken_by_the_shape_descending() -> None:
    asked: list[Row] = [{"workload_uid": f"w{cpu}", "cpu_milli": cpu} for cpu in (1, 3, 2)]
    assert target_workload(rows("workload_current", *asked))["cpu_milli"].to_list() == [3, 2, 1]


def test_unknown_requests_are_left_out_and_work_without_gpu_counts() -> None:
    asked = rows(
        "workload_current",
        {"cpu_milli": None},
        {"workload_uid": "w2", "gpu_count": None},
        {"workload_uid": "w3", "gpu_count": 0, "gpu_milli": None},
    )
    assert target_workload(asked).select("gpu_count", "gpu_milli").rows() == [(0, 0)]


DEVICES = rows("device_history", {}, {"device_uuid": "GPU-b"})


def free(*allocations: Row, nodes: Row | None = None, workloads: Row | None = None) -> pl.DataFrame:
    inputs = Inputs(
        nodes=rows("node_history", nodes or {}),
        devices=DEVICES,
        events=rows("device_event_history"),
        allocations=rows("allocation_history", *allocations),
    )
    return free_capacity(inputs, rows("workload_current", workloads or {}), ONE_HOUR)


def test_free_capacity_without_holders() -> None:
    row = free().row(0, named=True)
    assert (row["gpu_free_milli"], row["cpu_free_milli"]) == ([1000.0, 1000.0], 96_000)


def test_free_capacity_beside_a_holder() -> None:
    row = free({"gpu_share_ratio": 0.25}).row(0, named=True)
    assert (row["gpu_free_milli"], row["cpu_free_milli"]) == ([750.0, 1000.0], 88_000)
    assert row["whole_idle_count"] == 1


def test_a_gang_on_two_devices_takes_its_cpu_once() -> None:
    row = free({}, {"device_uuid": "GPU-b"}).row(0, named=True)
    assert (row["idle_milli"], row["cpu_free_milli"]) == (0.0, 88_000)


@pytest.mark.parametrize(
    ("ended_after", "idle"), [(HOUR - HOUR / 60, 2000.0), (HOUR, 1000.0), (2 * HOUR, 1000.0)]
)
def test_what_is_still_held_at_the_end(ended_after: object, idle: float) -> None:
    assert free({"ended_at": NOON + ended_after})["idle_milli"].to_list() == [idle]  # type: ignore[operator]  # a timedelta


def test_unknown_cpu_stays_unknown() -> None:
    assert free(nodes={"cpu_milli": None})["cpu_free_milli"].to_list() == [None]


@pytest.mark.parametrize(
    ("held", "asked_cpu", "left"),
    [
        pytest.param(["w1"], 8_000, 88_000, id="known"),
        pytest.param(["w1"], 0, 96_000, id="none asked for"),
        pytest.param(["w1"], None, None, id="request unknown"),
        pytest.param(["w2"], 8_000, None, id="workload unknown"),
        pytest.param(["w1", "w2"], 8_000, None, id="one known, one not"),
        pytest.param([], None, 96_000, id="no holder"),
    ],
)
def test_cpu_of_an_unknown_holder_is_not_free(
    held: list[str], asked_cpu: int | None, left: int | None
) -> None:
    allocations = [{"workload_uid": uid, "gpu_share_ratio": 0.5} for uid in held]
    found = free(*allocations, workloads={"cpu_milli": asked_cpu})
    assert found["cpu_free_milli"].to_list() == [left]


def test_another_cluster_s_workload_of_the_same_id_takes_no_cpu() -> None:
    found = free({}, workloads={"cluster": "d"})
    assert found["cpu_free_milli"].to_list() == [None]


def test_cordoned_nodes_offer_nothing() -> None:
    assert free(nodes={"is_schedulable": False}).height == 0


def idle_nodes(*whole: int) -> pl.DataFrame:
    return pl.DataFrame(
        {"whole_idle_count": whole, "gpu_free_milli": [[1000.0] * count for count in whole]}
    )


def test_gang_slots() -> None:
    found = gang_slots(idle_nodes(8, 7, 1))
    assert found["slot_count"].to_list() == [16, 7, 3, 1]
    assert found["largest_gang_gpu_count"].to_list() == [16, 14, 12, 8]
    assert found["stranded_gpu_count"].to_list() == [0, 2, 4, 8]
    assert found["external_fragmentation_ratio"].to_list() == [0.0, 0.125, 0.25, 0.5]


def test_no_idle_gpu_has_no_external_fragmentation() -> None:
    found = gang_slots(idle_nodes(0))
    assert found["external_fragmentation_ratio"].to_list() == [None] * 4
    assert largest_node_gang(idle_nodes(0)) == 0


def test_partial_leftovers() -> None:
    frame = pl.DataFrame({"gpu_free_milli": [[0.0, 300.0, 1000.0], [999.0]]})
    assert partial_leftover_milli(frame) == 1299.0
