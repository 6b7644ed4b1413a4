"""Where the GPU-hours went."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.ledger import CLASSES, by_class
from analytics.reports.measured import device_time
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, frames, readings, rows

IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
HALF: Row = {"sm_active_ratio": 0.9, "tensor_active_ratio": 0.465, "dram_active_ratio": 0.0}
BOUND: Row = {"sm_active_ratio": 0.75}
APPARENT: Row = {"busy_ratio": 1.0}
SILENT: Row = {}
WHOLE_HOUR = 61


def hours(**given: pl.DataFrame) -> dict[str, float]:
    """Return the classes that are not zero, over one hour from noon."""
    given.setdefault("node_history", rows("node_history", {}))
    given.setdefault("device_history", rows("device_history", {}))
    time = device_time(frames(**given), ONE_HOUR)
    totals = by_class(time.rows).row(0, named=True)
    return {name.removesuffix("_gpu_hours"): totals[name] for name in CLASSES if totals[name] != 0}


HELD = rows("allocation_history", {})


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        pytest.param(IDLE, {"idle": 1.0}, id="zero is idle"),
        pytest.param(SILENT, {"unknown": 1.0}, id="null is unknown, never idle"),
        pytest.param(HALF, {"effective": 0.5, "ineffective": 0.5}, id="active"),
        pytest.param(BOUND, {"effective_estimated": 0.75, "ineffective": 0.25}, id="upper bound"),
        pytest.param(APPARENT, {"unknown": 1.0}, id="apparent only says nothing of effect"),
    ],
)
def test_held_hour(reading: Row, expected: dict[str, float]) -> None:
    samples = readings([reading] * WHOLE_HOUR)
    assert hours(utilization_sample=samples, allocation_history=HELD) == pytest.approx(expected)


def test_zero_and_null_in_one_hour() -> None:
    samples = readings([IDLE] * 31 + [SILENT] * 30)
    assert hours(utilization_sample=samples, allocation_history=HELD) == pytest.approx(
        {
            "idle": 0.5,
            "unknown": 0.5,
        }
    )


def test_held_without_readings_is_unknown() -> None:
    assert hours(allocation_history=HELD) == pytest.approx({"unknown": 1.0})


def test_unobserved_gap_is_unknown() -> None:
    samples = readings([IDLE] * 31 + [None] * 29 + [IDLE])
    found = hours(utilization_sample=samples, allocation_history=HELD)
    assert found == pytest.approx({"idle": 0.5 + 2.5 / 60, "unknown": 0.5 - 2.5 / 60})


def test_free_time_is_unallocated_whatever_was_read() -> None:
    half = rows("allocation_history", {"ended_at": NOON + HOUR / 2})
    samples = readings([HALF] * WHOLE_HOUR)
    assert hours(utilization_sample=samples, allocation_history=half) == pytest.approx(
        {
            "effective": 0.25,
            "ineffective": 0.25,
            "unallocated": 0.5,
        }
    )


def test_without_any_recorded_holder_time_is_unknown_not_free() -> None:
    assert hours(utilization_sample=readings([IDLE] * WHOLE_HOUR)) == pytest.approx(
        {"unknown": 1.0}
    )


def test_a_lost_device_is_down_even_when_held() -> None:
    events = rows(
        "device_event_history",
        {"kind": "lost", "occurred_at": NOON + HOUR / 4},
        {"kind": "returned", "occurred_at": NOON + HOUR / 2},
    )
    samples = readings([IDLE] * WHOLE_HOUR)
    assert hours(
        utilization_sample=samples, allocation_history=HELD, device_event_history=events
    ) == pytest.approx({"idle": 0.75, "down": 0.25})


def test_an_absent_device_stays_in_capacity_as_down() -> None:
    devices = rows("device_history", {}, {"observed_at": NOON + HOUR / 2, "is_present": False})
    assert hours(device_history=devices, allocation_history=HELD) == pytest.approx(
        {"unknown": 0.5, "down": 0.5}
    )


def test_a_cordon_takes_free_time_only() -> None:
    nodes = rows("node_history", {}, {"observed_at": NOON, "is_schedulable": False})
    half = rows("allocation_history", {"ended_at": NOON + HOUR / 2})
    samples = readings([IDLE] * WHOLE_HOUR)
    assert hours(
        node_history=nodes, utilization_sample=samples, allocation_history=half
    ) == pytest.approx(
        {
            "idle": 0.5,
            "down": 0.5,
        }
    )


def test_a_device_counts_from_its_first_sighting() -> None:
    devices = rows("device_history", {"observed_at": NOON + HOUR / 4})
    held = rows("allocation_history", {"started_at": NOON - HOUR})
    assert hours(device_history=devices, allocation_history=held) == pytest.approx(
        {"unknown": 0.75}
    )


def test_shared_device_is_split_by_share() -> None:
    shared = rows(
        "allocation_history",
        {"gpu_share_ratio": 0.25, "tenant_id": "a", "pod": "p1"},
        {"gpu_share_ratio": 0.25, "tenant_id": "b", "pod": "p2"},
    )
    given = frames(
        node_history=rows("node_history", {}),
        device_history=rows("device_history", {}),
        allocation_history=shared,
        utilization_sample=readings([HALF] * WHOLE_HOUR),
    )
    by_tenant = by_class(device_time(given, ONE_HOUR).rows.filter("is_held"), "tenant_id")
    assert by_tenant["wall_gpu_hours"].to_list() == [0.25, 0.25]
    assert by_tenant["effective_gpu_hours"].to_list() == pytest.approx([0.125, 0.125])
    assert hours(
        allocation_history=shared, utilization_sample=readings([HALF] * WHOLE_HOUR)
    ) == pytest.approx(
        {
            "effective": 0.25,
            "ineffective": 0.25,
            "unallocated": 0.5,
        }
    )


def test_more_shares_than_a_device_has_are_scaled_to_it() -> None:
    double = rows(
        "allocation_history", {"tenant_id": "a", "pod": "p1"}, {"tenant_id": "b", "pod": "p2"}
    )
    assert hours(allocation_history=double) == pytest.approx({"unknown": 1.0})


def mig(*instances: Row) -> pl.DataFrame:
    return rows("device_history", {}, *instances)


ONE_SEVENTH: Row = {"instance_id": 8, "sm_share_ratio": 1 / 7, "memory_share_ratio": 1 / 8}


def test_one_idle_instance_held_is_one_seventh_of_the_gpu() -> None:
    held = rows("allocation_history", {"instance_id": 8, "gpu_share_ratio": 1 / 7})
    samples = readings([{**IDLE, "graphics_active_ratio": 0.0}] * WHOLE_HOUR, instance_id=8)
    assert hours(
        device_history=mig(ONE_SEVENTH), allocation_history=held, utilization_sample=samples
    ) == pytest.approx({"idle": 1 / 7, "unconfigured": 6 / 7})


def test_board_readings_of_a_sliced_gpu_belong_to_no_slice() -> None:
    held = rows("allocation_history", {"instance_id": 8, "gpu_share_ratio": 1 / 7})
    samples = pl.concat(
        [readings([HALF] * WHOLE_HOUR), readings([IDLE] * WHOLE_HOUR, instance_id=8)]
    )
    assert hours(
        device_history=mig(ONE_SEVENTH), allocation_history=held, utilization_sample=samples
    ) == pytest.approx({"idle": 1 / 7, "unconfigured": 6 / 7})


def test_an_instance_of_unknown_share_leaves_the_board_unknown() -> None:
    devices = mig({"instance_id": 8})
    held = rows("allocation_history", {"device_uuid": "GPU-z"})
    assert hours(device_history=devices, allocation_history=held) == pytest.approx({"unknown": 1.0})


def test_geometry_may_change_inside_the_period() -> None:
    devices = mig({**ONE_SEVENTH, "observed_at": NOON + HOUR / 2})
    samples = pl.concat(
        [
            readings([IDLE] * 31),
            readings([IDLE] * WHOLE_HOUR, instance_id=8),
        ]
    )
    held = rows(
        "allocation_history",
        {"ended_at": NOON + HOUR / 2},
        {"instance_id": 8, "gpu_share_ratio": 1 / 7, "started_at": NOON + HOUR / 2},
    )
    assert hours(
        device_history=devices, allocation_history=held, utilization_sample=samples
    ) == pytest.approx(
        {
            "idle": 0.5 + 1 / 14,
            "unconfigured": 3 / 7,
        }
    )


def test_a_reading_across_a_change_of_holder_is_cut_there() -> None:
    held = rows(
        "allocation_history",
        {"ended_at": NOON + 30.5 * MINUTE, "tenant_id": "a"},
        {"started_at": NOON + 30.5 * MINUTE, "tenant_id": "b"},
    )
    given = frames(
        node_history=rows("node_history", {}),
        device_history=rows("device_history", {}),
        allocation_history=held,
        utilization_sample=readings([IDLE] * WHOLE_HOUR),
    )
    by_tenant = by_class(device_time(given, ONE_HOUR).rows, "tenant_id")
    assert by_tenant["idle_gpu_hours"].to_list() == pytest.approx([30.5 / 60, 29.5 / 60])


def nobody(reason: str, **given: object) -> Row:
    """Return device-time that the collector says nobody is known to hold."""
    return {
        "namespace": None,
        "pod": None,
        "workload_uid": None,
        "tenant_id": None,
        "workload_class": None,
        "unheld_reason": reason,
        **given,
    }


@pytest.mark.parametrize(
    ("reason", "leaf"),
    [
        pytest.param("busy_without_holder", "unattributed_busy", id="at work, not idle"),
        pytest.param("unobserved", "unknown", id="nothing shows it, not free"),
    ],
)
@pytest.mark.parametrize("reading", [IDLE, SILENT, HALF, APPARENT])
def test_time_that_is_told_without_a_holder(reason: str, leaf: str, reading: Row) -> None:
    told = rows(
        "allocation_history",
        {"ended_at": NOON + HOUR / 4},
        nobody(reason, started_at=NOON + HOUR / 2),
    )
    lost = rows("device_event_history", {"kind": "lost", "occurred_at": NOON + HOUR * 3 / 4})
    found = hours(
        allocation_history=told,
        utilization_sample=readings([reading] * WHOLE_HOUR),
        device_event_history=lost,
    )
    held = rows("allocation_history", {"ended_at": NOON + HOUR / 4})
    known = hours(allocation_history=held, utilization_sample=readings([reading] * WHOLE_HOUR))
    assert found[leaf] == pytest.approx(0.25 + known.get(leaf, 0.0))
    assert (found["unallocated"], found["down"]) == pytest.approx((0.25, 0.25))
    assert sum(found.values()) == pytest.approx(1.0)


def test_work_without_a_holder_is_not_free_on_a_cordoned_node() -> None:
    told = rows("allocation_history", {"ended_at": NOON}, nobody("busy_without_holder"))
    cordoned = rows("node_history", {"is_schedulable": False})
    before = rows("allocation_history", {"device_uuid": "GPU-z"})
    found = hours(allocation_history=pl.concat([told, before]), node_history=cordoned)
    assert found == pytest.approx({"unattributed_busy": 1.0})


def test_a_holder_comes_before_what_is_told_without_one() -> None:
    told = rows("allocation_history", {}, nobody("busy_without_holder"))
    assert hours(allocation_history=told) == pytest.approx({"unknown": 1.0})


def test_time_told_without_a_holder_is_no_word_of_holders() -> None:
    told = rows("allocation_history", nobody("unobserved", ended_at=NOON + HOUR / 2))
    assert hours(allocation_history=told) == pytest.approx({"unknown": 1.0})
