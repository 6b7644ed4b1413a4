"""Where free GPU-hours went: down, unknown, stranded, reserved, or free and of use."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from analytics.bookkeeping.shapes_now import learnt_shapes, model_key
from steward.period import Period
from steward.units import TICKS_PER_GPU_HOUR
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row, readings, rows
from tests.support.books import books, hours, leaves, reasons, shapes

ELSEWHERE = rows("allocation_history", {"device_uuid": "GPU-z"})
"""Somebody holds something: what nobody holds here is free, not unknown."""
ONE_SEVENTH: Row = {"instance_id": 8, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8}


def gpus(count: int, **same: object) -> pl.DataFrame:
    """Return this many devices of one node."""
    named = [{"device_uuid": f"GPU-{number}", **same} for number in range(count)]
    return rows("device_history", *named)


def held(*devices: int, **same: object) -> list[Row]:
    """Return one allocation for each of these devices."""
    return [{"device_uuid": f"GPU-{number}", "pod": f"p{number}", **same} for number in devices]


def test_nobody_recorded_is_unknown_not_free() -> None:
    assert reasons(books()) == {"no_holder_recorded": 1.0}


def test_what_was_read_where_no_holder_is_recorded_is_told_by_tier() -> None:
    bound: Row = {"sm_active_ratio": 0.5, "busy_ratio": 1.0, "memory_used_bytes": 9}
    samples = readings([bound] * 31 + [{}] * 15)
    told = books(utilization_sample=samples).rows
    assert told.select(
        "tier", "unknown_ticks", "observed_s", "effective_s", "effective_known_s", "apparent_s"
    ).rows() == [
        (2, TICKS_PER_GPU_HOUR // 2, 1_800.0, 900.0, 1_800.0, 1_800.0),
        (None, TICKS_PER_GPU_HOUR // 2, 900.0, 0.0, 0.0, 0.0),
    ]


def test_time_told_without_a_holder_is_no_word_of_holders() -> None:
    told: Row = {"unheld_reason": "unobserved", "pod": None, "ended_at": NOON + HOUR / 2}
    found = reasons(books(allocation_history=rows("allocation_history", told)))
    assert found == {"unobserved": 0.5, "no_holder_recorded": 0.5}


@pytest.mark.parametrize(
    ("minutes", "unknown"),
    [
        pytest.param(-1, {}, id="before the period"),
        pytest.param(0, {}, id="at its start"),
        pytest.param(15, {"unknown": 0.25}, id="inside"),
    ],
)
def test_time_is_free_from_the_first_recorded_holder_on(
    minutes: int, unknown: dict[str, float]
) -> None:
    first = rows("first_allocation", {"started_at": NOON + minutes * MINUTE})
    free = 1.0 - sum(unknown.values())
    assert leaves(books(first_allocation=first)) == {**unknown, "free_idle": free}


def test_a_loss_comes_before_a_cordon() -> None:
    lost = rows("device_event_history", {"kind": "lost", "occurred_at": NOON + HOUR / 2})
    cordoned = rows("node_history", {"is_schedulable": False})
    found = books(allocation_history=ELSEWHERE, device_event_history=lost, node_history=cordoned)
    assert reasons(found) == {"cordoned": 0.5, "lost": 0.5}


def test_one_instance_held_strands_what_no_instance_covers() -> None:
    devices = rows("device_history", {}, ONE_SEVENTH)
    took = rows("allocation_history", {"instance_id": 8, "gpu_share_ratio": 1 / 7})
    found = books(device_history=devices, allocation_history=took)
    assert hours(found, "instance_id", "reason") == {
        (8, None): {"unknown": pytest.approx(1 / 7)},
        (None, "mig_geometry"): {"stranded": pytest.approx(6 / 7)},
    }
    assert sorted(found.rows["wall_ticks"]) == [
        TICKS_PER_GPU_HOUR // 7,
        TICKS_PER_GPU_HOUR * 6 // 7,
    ]


def test_an_instance_of_unknown_share_leaves_the_board_unknown() -> None:
    devices = rows("device_history", {}, {"instance_id": 8})
    found = books(device_history=devices, allocation_history=ELSEWHERE)
    assert reasons(found) == {"share_unknown": 1.0}


def test_geometry_may_change_inside_the_period() -> None:
    devices = rows("device_history", {}, {**ONE_SEVENTH, "observed_at": NOON + HOUR / 2})
    took = rows(
        "allocation_history",
        {"ended_at": NOON + HOUR / 2},
        {"instance_id": 8, "gpu_share_ratio": 1 / 7, "started_at": NOON + HOUR / 2},
    )
    found = books(device_history=devices, allocation_history=took)
    assert leaves(found) == pytest.approx({"unknown": 0.5 + 1 / 14, "stranded": 3 / 7})


@pytest.mark.parametrize(
    ("profiles", "free"),
    [
        pytest.param((3, 2, 1), 1, id="3g+2g+1g leaves one seventh"),
        pytest.param((3, 3), 1, id="3g+3g strands one seventh"),
        pytest.param((7,), 0, id="7g covers the board"),
    ],
)
def test_instances_and_what_they_leave_are_the_whole_board(
    profiles: Sequence[int], free: int
) -> None:
    told = [{"instance_id": n, "sm_share_ratio": size / 7} for n, size in enumerate(profiles)]
    took = [
        {"instance_id": n, "gpu_share_ratio": size / 7, "workload_uid": f"{n}"}
        for n, size in enumerate(profiles)
    ]
    found = books(
        device_history=rows("device_history", {}, *told),
        allocation_history=rows("allocation_history", *took),
    )
    sevenths = {f"{n}": size * TICKS_PER_GPU_HOUR // 7 for n, size in enumerate(profiles)}
    assert (
        dict(found.rows.filter("is_held").select("workload_uid", "wall_ticks").rows()) == sevenths
    )
    assert found.rows["stranded_ticks"].sum() == free * TICKS_PER_GPU_HOUR // 7


def test_two_replicas_of_four_for_two_hours() -> None:
    two_hours = Period(NOON, NOON + 2 * HOUR)
    quarter: Row = {"gpu_share_ratio": 0.25, "sharing_mode": "time-slicing"}
    took = rows(
        "allocation_history",
        {**quarter, "pod": "p1", "replica": 0, "workload_uid": "p1"},
        {**quarter, "pod": "p2", "replica": 1, "workload_uid": "p2", "ended_at": NOON + HOUR},
    )
    assert hours(books(two_hours, allocation_history=took), "workload_uid") == {
        "p1": {"unknown": 0.5},
        "p2": {"unknown": 0.25},
        None: {"free_idle": 1.25},
    }


def test_a_changed_label_splits_the_time() -> None:
    half = NOON + HOUR / 2
    took = rows(
        "allocation_history",
        *held(0, 1, 2, 3, tenant_id="a", started_at=NOON - 2 * HOUR, ended_at=half),
        *held(0, 1, 2, 3, tenant_id="b", started_at=half, ended_at=NOON + 2 * HOUR),
    )
    found = books(
        Period(NOON - 2 * HOUR, NOON + 2 * HOUR),
        device_history=gpus(4, observed_at=NOON - 3 * HOUR),
        allocation_history=took,
    )
    assert hours(found, "tenant_id") == {"a": {"unknown": 10.0}, "b": {"unknown": 6.0}}


TAKES_88: Row = {"workload_uid": "w1", "cpu_milli": 88_000, "memory_bytes": 0}


@pytest.mark.parametrize(
    ("cpu_milli", "stranded"),
    [
        pytest.param(7_999, {}, id="inside"),
        pytest.param(8_000, {}, id="exactly at"),
        pytest.param(8_001, {"stranded": 1.0}, id="past"),
    ],
)
def test_a_free_device_without_processors_is_stranded(
    cpu_milli: int, stranded: dict[str, float]
) -> None:
    found = books(
        device_history=gpus(2),
        allocation_history=rows("allocation_history", *held(0)),
        workload_current=rows("workload_current", TAKES_88),
        wanted=shapes({"cpu_milli": cpu_milli}),
    )
    expected = stranded or {"free_idle": 1.0}
    assert (
        hours(found, "is_held", "reason")[False, "no_shape_fits" if stranded else None] == expected
    )


@pytest.mark.parametrize(
    ("node_bytes", "taken_bytes", "is_stranded"),
    [
        pytest.param(100, 50, False, id="inside"),
        pytest.param(100, 60, False, id="exactly at"),
        pytest.param(100, 61, True, id="past"),
        pytest.param(None, 61, False, id="the node's memory is unknown"),
        pytest.param(100, None, False, id="a holder's memory is unknown"),
        pytest.param(0, 0, True, id="the node has none"),
    ],
)
def test_a_free_device_without_memory_is_stranded(
    node_bytes: int | None, taken_bytes: int | None, is_stranded: bool
) -> None:
    found = books(
        node_history=rows("node_history", {"memory_bytes": node_bytes}),
        device_history=gpus(2),
        allocation_history=rows("allocation_history", *held(0)),
        workload_current=rows("workload_current", {"memory_bytes": taken_bytes}),
        wanted=shapes({"memory_bytes": 40}),
    )
    assert ("no_shape_fits" in reasons(found)) == is_stranded


def test_a_workload_takes_its_processors_in_equal_parts() -> None:
    asked: Row = {"cpu_milli": 60_000, "gpu_count": 3}
    found = books(
        Period(NOON, NOON + 2 * HOUR),
        device_history=gpus(4),
        allocation_history=rows("allocation_history", *held(0, 1), *held(2, ended_at=NOON + HOUR)),
        workload_current=rows("workload_current", asked),
        wanted=shapes({"cpu_milli": 50_000}),
    )
    free = {key: told for key, told in hours(found, "is_held", "reason").items() if not key[0]}
    assert free == {
        (False, "no_shape_fits"): {"stranded": 1.0},
        (False, None): {"free_idle": 2.0},
    }


@pytest.mark.parametrize(
    ("wanted", "is_stranded"),
    [
        pytest.param([{"gpu_models": "A100"}], True, id="another model"),
        pytest.param([{"gpu_models": "A100|NVIDIA-H100"}], False, id="one of the models"),
        pytest.param([{"gpu_count": 2}], True, id="more than are free"),
        pytest.param([{"gpu_count": 2}, {"gpu_milli": 500}], False, id="one shape is enough"),
        pytest.param([{"gpu_count": 16, "cpu_milli": 16_000}], True, id="a gang of full nodes"),
        pytest.param([{"gpu_count": 0, "gpu_milli": 0}], False, id="no shape wants a GPU"),
        pytest.param([], False, id="no shape at all"),
    ],
)
def test_what_people_ask_for_decides_what_is_stranded(
    wanted: Sequence[Row], is_stranded: bool
) -> None:
    found = books(
        device_history=gpus(2),
        allocation_history=rows("allocation_history", *held(0)),
        workload_current=rows("workload_current", {}),
        wanted=shapes(*wanted),
    )
    assert ("no_shape_fits" in reasons(found)) == is_stranded


def test_a_gang_larger_than_every_node_uses_free_nodes() -> None:
    found = books(
        device_history=gpus(2),
        allocation_history=ELSEWHERE,
        wanted=shapes({"gpu_count": 16, "cpu_milli": 16_000}),
    )
    assert leaves(found) == {"free_idle": 2.0}


@pytest.mark.parametrize(
    ("milli", "is_stranded"),
    [
        pytest.param(499, False, id="inside"),
        pytest.param(500, False, id="exactly at"),
        pytest.param(502, True, id="past"),
    ],
)
def test_what_is_left_of_a_shared_device_must_be_enough(milli: int, is_stranded: bool) -> None:
    found = books(
        allocation_history=rows("allocation_history", {"gpu_share_ratio": 0.5}),
        workload_current=rows("workload_current", {}),
        wanted=shapes({"gpu_milli": milli}),
    )
    assert ("no_shape_fits" in reasons(found)) == is_stranded


@pytest.mark.parametrize(("milli", "is_stranded"), [(429, False), (571, True)])
def test_a_free_instance_serves_shapes_of_its_size(milli: int, is_stranded: bool) -> None:
    devices = rows("device_history", {}, {"instance_id": 1, "sm_share_ratio": 3 / 7})
    found = books(
        device_history=devices,
        allocation_history=ELSEWHERE,
        wanted=shapes({"gpu_milli": milli}),
    )
    assert ("no_shape_fits" in reasons(found)) == is_stranded


def test_without_shapes_given_they_are_learnt_from_the_requests() -> None:
    asked = rows("workload_current", {"memory_bytes": 7}, {"workload_uid": "w2", "memory_bytes": 5})
    assert learnt_shapes(asked)["memory_bytes"].to_list() == [5]
    unknown = rows("workload_current", {"gpu_milli": None})
    assert learnt_shapes(unknown).select("gpu_milli", "memory_bytes").rows() == [(1_000, None)]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h10080gbhbm3"),
        ("NVIDIA-H100-80GB-HBM3-SHARED", "h10080gbhbm3"),
        ("Tesla T4|NVIDIA A10", "t4|a10"),
        ("", ""),
        (None, None),
    ],
)
def test_models_are_compared_without_maker_and_punctuation(
    name: str | None, key: str | None
) -> None:
    frame = pl.DataFrame({"model": [name]}, schema={"model": pl.String})
    assert frame.select(model_key(pl.col("model"))).item() == key


def quota(**given: object) -> pl.DataFrame:
    return rows("quota_history", given)


@pytest.mark.parametrize(
    ("guaranteed", "used", "borrowed", "reserved"),
    [
        pytest.param(2.0, 1.0, 0.0, 1.0, id="one of two unused"),
        pytest.param(2.0, 2.0, 0.0, 0.0, id="used up"),
        pytest.param(2.0, 3.0, 1.0, 0.0, id="more than used up"),
        pytest.param(9.0, 1.0, 0.0, 4.0, id="never more than is free"),
        pytest.param(0.5, 0.0, 0.0, 0.5, id="part of a GPU"),
        pytest.param(None, 0.0, 0.0, 0.0, id="guarantee unknown"),
        pytest.param(2.0, None, 0.0, 0.0, id="use unknown"),
    ],
)
def test_unused_guarantees_reserve_free_time(
    guaranteed: float | None, used: float | None, borrowed: float, reserved: float
) -> None:
    told = quota(guaranteed_gpu_count=guaranteed, used_gpu_count=used, borrowed_gpu_count=borrowed)
    found = books(device_history=gpus(4), allocation_history=ELSEWHERE, quota_history=told)
    assert leaves(found).get("reserved_unused", 0.0) == pytest.approx(reserved, abs=1e-12)
    assert sum(leaves(found).values()) == pytest.approx(4.0)


def test_reserved_time_names_whose_guarantee_it_is() -> None:
    told = rows(
        "quota_history",
        {"queue": "qa", "tenant_id": "a", "guaranteed_gpu_count": 2.0},
        {"queue": "qb", "tenant_id": None, "guaranteed_gpu_count": 1.0},
    )
    found = books(device_history=gpus(4), allocation_history=ELSEWHERE, quota_history=told)
    assert hours(found, "is_held", "tenant_id", "queue") == {
        (False, "a", "qa"): {"reserved_unused": pytest.approx(2.0)},
        (False, None, "qb"): {"reserved_unused": pytest.approx(1.0)},
        (False, None, None): {"free_idle": pytest.approx(1.0)},
    }


def test_what_others_of_the_cohort_borrowed_is_not_reserved() -> None:
    told = rows(
        "quota_history",
        {"queue": "lender", "tenant_id": "l", "guaranteed_gpu_count": 3.0},
        {"queue": "borrower", "used_gpu_count": 3.0, "borrowed_gpu_count": 2.0},
        {"queue": "stranger", "cohort": "other", "used_gpu_count": 9.0, "borrowed_gpu_count": 8.0},
    )
    found = books(device_history=gpus(4), allocation_history=ELSEWHERE, quota_history=told)
    assert leaves(found)["reserved_unused"] == pytest.approx(1.0)


def test_a_guarantee_of_another_model_reserves_nothing_here() -> None:
    found = books(
        device_history=gpus(2), allocation_history=ELSEWHERE, quota_history=quota(gpu_model="A100")
    )
    assert leaves(found) == {"free_idle": 2.0}


def test_a_guarantee_without_a_model_takes_what_others_leave_of_any() -> None:
    devices = rows("device_history", {"device_uuid": "GPU-0"}, {"device_uuid": "GPU-1"},
                   {"device_uuid": "GPU-2", "model": "A100"})  # fmt: skip
    told = rows(
        "quota_history",
        {"queue": "named", "gpu_model": "H100"},
        {"queue": "any", "gpu_model": None, "cohort": None},
    )
    found = books(device_history=devices, allocation_history=ELSEWHERE, quota_history=told)
    assert hours(found, "queue", "model") == {
        ("named", "H100"): {"reserved_unused": pytest.approx(1.0)},
        ("any", "H100"): {"reserved_unused": pytest.approx(0.5)},
        ("any", "A100"): {"reserved_unused": pytest.approx(0.5)},
        (None, "H100"): {"free_idle": pytest.approx(0.5)},
        (None, "A100"): {"free_idle": pytest.approx(0.5)},
    }


def test_guarantees_follow_the_quota_as_it_was_told() -> None:
    told = rows(
        "quota_history",
        {},
        {"observed_at": NOON + HOUR / 4, "used_gpu_count": 1.0},
        {"observed_at": NOON + HOUR / 2, "used_gpu_count": 0.5},
    )
    found = books(allocation_history=ELSEWHERE, quota_history=told)
    assert leaves(found) == pytest.approx({"reserved_unused": 0.25 + 0.25, "free_idle": 0.5})


def test_the_first_reason_that_applies_counts() -> None:
    """Down before stranded before reserved: two devices free, one on a cordoned node."""
    devices = rows(
        "device_history",
        {"device_uuid": "GPU-0"},
        {"device_uuid": "GPU-1", "node": "n2"},
        {"device_uuid": "GPU-2", "node": "n3"},
    )
    nodes = rows(
        "node_history",
        {"is_schedulable": False, "cpu_milli": 0},
        {"node": "n2", "cpu_milli": 0},
        {"node": "n3"},
    )
    found = books(
        device_history=devices,
        node_history=nodes,
        allocation_history=ELSEWHERE,
        quota_history=quota(guaranteed_gpu_count=3.0),
        wanted=shapes({}),
    )
    assert hours(found, "node") == {
        "n1": {"down": 1.0},
        "n2": {"stranded": 1.0},
        "n3": {"reserved_unused": 1.0},
    }


def test_a_day_of_one_node_falls_into_every_leaf() -> None:
    """Team C is guaranteed two GPUs that it never uses; teams A and B use theirs."""
    midnight = NOON - HOUR / 2

    def at(hour: float) -> object:
        return midnight + hour * HOUR

    day = Period(midnight, midnight + 24 * HOUR)
    took = rows(
        "allocation_history",
        *held(0, 1, 2, 3, tenant_id="A", started_at=at(0), ended_at=at(24)),
        *held(4, 5, tenant_id="B", started_at=at(0), ended_at=at(12)),
        *held(6, tenant_id=None, workload_uid=None, started_at=at(0), ended_at=at(6)),
    )
    geometry = rows("device_history", {"device_uuid": "GPU-7"},
                    {"device_uuid": "GPU-7", "instance_id": 1, "sm_share_ratio": 0.0},
                    {"device_uuid": "GPU-7", "instance_id": 1, "is_present": False,
                     "observed_at": at(12)})  # fmt: skip
    lost = rows(
        "device_event_history",
        {"device_uuid": "GPU-6", "kind": "lost", "occurred_at": at(20)},
    )
    told = rows(
        "quota_history",
        {"queue": "A", "tenant_id": "A", "guaranteed_gpu_count": 4.0, "used_gpu_count": 4.0},
        {"queue": "B", "tenant_id": "B", "guaranteed_gpu_count": 2.0, "used_gpu_count": 2.0},
        {"queue": "B", "tenant_id": "B", "guaranteed_gpu_count": 0.0, "observed_at": at(12)},
        {"queue": "C", "tenant_id": "C", "guaranteed_gpu_count": 2.0},
    )
    found = books(
        day,
        device_history=pl.concat([gpus(7), geometry]),
        allocation_history=took,
        device_event_history=lost,
        quota_history=told,
    )
    assert hours(found, "is_held", "tenant_id") == {
        (True, "A"): {"unknown": 96.0},
        (True, "B"): {"unknown": 24.0},
        (True, None): {"unknown": 6.0},
        (False, "C"): {"reserved_unused": pytest.approx(30.0)},
        (False, None): {"stranded": 12.0, "free_idle": pytest.approx(20.0), "down": 4.0},
    }
    assert found.rows["wall_ticks"].sum() == 192 * TICKS_PER_GPU_HOUR
