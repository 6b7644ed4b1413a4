"""Where the GPU-hours went: held time, by what was read of it."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from analytics.bookkeeping import BOOK_INPUTS, hour_borders, keep_books
from analytics.inputs import SCHEMAS
from analytics.schemas.usage import LEAVES
from steward.period import Period
from steward.units import MIB_BYTES, TICKS_PER_GPU_HOUR
from tests.support.analytics_frames import HOUR, MINUTE, NOON, ONE_HOUR, Row, frames, readings, rows
from tests.support.books import books, hours, leaves, reasons

IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
HALF: Row = {"sm_active_ratio": 0.9, "tensor_active_ratio": 0.465, "dram_active_ratio": 0.0}
BOUND: Row = {"sm_active_ratio": 0.75}
APPARENT: Row = {"busy_ratio": 1.0}
SILENT: Row = {}
WHOLE_HOUR = 61
HELD = rows("allocation_history", {})


@pytest.mark.parametrize(
    ("reading", "expected", "tier"),
    [
        pytest.param(IDLE, {"idle": 1.0}, 1, id="zero is idle"),
        pytest.param(SILENT, {"unknown": 1.0}, None, id="null is unknown, never idle"),
        pytest.param(HALF, {"used_measured": 0.5, "ineffective": 0.5}, 1, id="active"),
        pytest.param(BOUND, {"used_estimated": 0.75, "ineffective": 0.25}, 2, id="upper bound"),
        pytest.param(APPARENT, {"unknown": 1.0}, 4, id="apparent only says nothing of effect"),
        pytest.param({"busy_ratio": 0.0}, {"idle": 1.0}, 4, id="never busy is at rest"),
    ],
)
def test_held_hour(reading: Row, expected: dict[str, float], tier: int | None) -> None:
    samples = readings([reading] * WHOLE_HOUR)
    found = books(utilization_sample=samples, allocation_history=HELD)
    assert hours(found, "is_held", "tier") == {(True, tier): pytest.approx(expected)}


def test_zero_and_null_in_one_hour() -> None:
    samples = readings([IDLE] * 31 + [SILENT] * 30)
    found = books(utilization_sample=samples, allocation_history=HELD)
    assert hours(found, "tier") == {1: {"idle": 0.5}, None: {"unknown": 0.5}}


def test_held_without_readings_is_unknown() -> None:
    assert leaves(books(allocation_history=HELD)) == {"unknown": 1.0}


def test_of_a_gap_two_and_a_half_cadences_are_observed() -> None:
    samples = readings([IDLE] * 31 + [None] * 29 + [IDLE])
    found = leaves(books(utilization_sample=samples, allocation_history=HELD))
    assert found == pytest.approx({"idle": 0.5 + 2.5 / 60, "unknown": 0.5 - 2.5 / 60})


@pytest.mark.parametrize(
    ("minutes", "idle_minutes"),
    [
        pytest.param(2, 60, id="inside"),
        pytest.param(2.5, 60, id="exactly at"),
        pytest.param(3, 59.5, id="past"),
    ],
)
def test_a_gap_of_two_and_a_half_cadences_is_observed_whole(
    minutes: float, idle_minutes: float
) -> None:
    marks = [*range(31), *[30 + minutes + step for step in range(31)]]
    told = [{"sampled_at": NOON + mark * MINUTE, **IDLE} for mark in marks]
    samples = rows("utilization_sample", *told)
    found = leaves(books(utilization_sample=samples, allocation_history=HELD))
    assert found["idle"] * 60 == pytest.approx(idle_minutes)


@pytest.mark.parametrize(
    ("minutes", "idle_minutes"),
    [
        pytest.param(59, 59, id="inside"),
        pytest.param(60, 60, id="exactly at"),
        pytest.param(61, 0, id="past"),
    ],
)
def test_readings_more_than_an_hour_apart_observe_nothing(
    minutes: int, idle_minutes: float
) -> None:
    end = NOON + HOUR
    told = [{"sampled_at": end - minutes * MINUTE, **IDLE}, {"sampled_at": end, **IDLE}]
    samples = rows("utilization_sample", *told)
    found = leaves(books(utilization_sample=samples, allocation_history=HELD))
    assert found.get("idle", 0.0) * 60 == pytest.approx(idle_minutes)


def test_a_lost_device_is_down_even_when_held() -> None:
    events = rows(
        "device_event_history",
        {"kind": "lost", "occurred_at": NOON + HOUR / 4},
        {"kind": "returned", "occurred_at": NOON + HOUR / 2},
    )
    samples = readings([IDLE] * WHOLE_HOUR)
    found = books(utilization_sample=samples, allocation_history=HELD, device_event_history=events)
    assert hours(found, "is_held", "tenant_id", "reason") == {
        (True, "team-a", None): {"idle": 0.75},
        (True, "team-a", "lost"): {"down": 0.25},
    }


def test_an_absent_device_stays_in_capacity_as_down() -> None:
    devices = rows("device_history", {}, {"observed_at": NOON + HOUR / 2, "is_present": False})
    found = books(device_history=devices, allocation_history=HELD)
    assert leaves(found) == {"unknown": 0.5, "down": 0.5}


def test_a_device_counts_from_its_first_sighting() -> None:
    devices = rows("device_history", {"observed_at": NOON + HOUR / 4})
    held = rows("allocation_history", {"started_at": NOON - HOUR})
    assert leaves(books(device_history=devices, allocation_history=held)) == {"unknown": 0.75}


def test_a_cordon_takes_free_time_only() -> None:
    nodes = rows("node_history", {}, {"observed_at": NOON, "is_schedulable": False})
    half = rows("allocation_history", {"ended_at": NOON + HOUR / 2})
    samples = readings([IDLE] * WHOLE_HOUR)
    found = books(node_history=nodes, utilization_sample=samples, allocation_history=half)
    assert hours(found, "reason") == {None: {"idle": 0.5}, "cordoned": {"down": 0.5}}


def test_a_device_that_moves_takes_its_time_along() -> None:
    devices = rows("device_history", {}, {"observed_at": NOON + HOUR / 4, "node": "n2"})
    nodes = rows("node_history", {"is_schedulable": False}, {"node": "n2", "gpu_model": "A100"})
    before = rows("allocation_history", {"device_uuid": "GPU-z"})
    found = books(device_history=devices, node_history=nodes, allocation_history=before)
    assert hours(found, "node") == {"n1": {"down": 0.25}, "n2": {"free_idle": 0.75}}


def test_a_model_not_told_is_the_one_of_the_node() -> None:
    found = books(device_history=rows("device_history", {"model": None}), allocation_history=HELD)
    assert found.rows["model"].to_list() == ["H100"]


def test_more_shares_than_a_device_has_are_scaled_to_it() -> None:
    given = [{"tenant_id": name, "pod": name} for name in "abc"]
    found = books(allocation_history=rows("allocation_history", *given))
    assert hours(found, "tenant_id") == {name: {"unknown": pytest.approx(1 / 3)} for name in "abc"}
    assert sum(found.rows["wall_ticks"]) == TICKS_PER_GPU_HOUR


@pytest.mark.parametrize("count", [1, 3, 7, 11, 13])
def test_equal_shares_of_a_whole_device_leave_nothing_free(count: int) -> None:
    given = [{"gpu_share_ratio": 1 / count, "pod": f"p{number}"} for number in range(count)]
    found = books(allocation_history=rows("allocation_history", *given))
    assert leaves(found) == {"unknown": 1.0}


def test_a_share_of_nothing_holds_nothing() -> None:
    found = books(allocation_history=rows("allocation_history", {"gpu_share_ratio": 0.0}))
    assert leaves(found) == {"free_idle": 1.0}


def test_a_share_that_is_not_told_makes_the_time_unknown() -> None:
    held = rows("allocation_history", {"gpu_share_ratio": None})
    found = books(allocation_history=held, utilization_sample=readings([IDLE] * WHOLE_HOUR))
    assert hours(found, "is_held", "reason") == {(True, "share_unknown"): {"unknown": 1.0}}


def test_three_sharers_of_one_busy_device_count_its_use_once() -> None:
    given = [{"gpu_share_ratio": 1 / 3, "tenant_id": name, "pod": name} for name in "abc"]
    samples = readings([HALF] * WHOLE_HOUR)
    found = books(allocation_history=rows("allocation_history", *given), utilization_sample=samples)
    assert leaves(found)["used_measured"] == pytest.approx(0.5)
    assert found.rows["effective_s"].sum() == pytest.approx(1_800)


def test_a_reading_across_a_change_of_holder_is_cut_there() -> None:
    border = NOON + 30.5 * MINUTE
    held = rows(
        "allocation_history",
        {"ended_at": border, "tenant_id": "a"},
        {"started_at": border, "tenant_id": "b"},
    )
    found = books(allocation_history=held, utilization_sample=readings([IDLE] * WHOLE_HOUR))
    assert hours(found, "tenant_id") == {
        "a": {"idle": pytest.approx(30.5 / 60)},
        "b": {"idle": pytest.approx(29.5 / 60)},
    }


def test_holders_say_who_they_are() -> None:
    told = {"queue": "q", "priority_class": "high", "owner": "ann"}
    found = books(allocation_history=rows("allocation_history", told))
    names = ("tenant_id", "workload_class", "workload_uid", "queue", "priority_class", "owner")
    assert found.rows.select(names).rows() == [("team-a", "training", "w1", "q", "high", "ann")]


def test_repeated_rows_count_once_and_replicas_of_one_pod_each() -> None:
    one: Row = {"gpu_share_ratio": 0.25, "replica": 0}
    held = rows("allocation_history", one, one, {**one, "replica": 1})
    samples = readings([IDLE] * WHOLE_HOUR)
    found = books(allocation_history=held, utilization_sample=pl.concat([samples, samples]))
    assert leaves(found) == {"idle": 0.5, "free_idle": 0.5}


def nobody(reason: str, **given: object) -> Row:
    """Return device-time that the collector says nobody is known to hold."""
    holder = ("namespace", "pod", "workload_uid", "tenant_id", "workload_class")
    return {**dict.fromkeys(holder), "unheld_reason": reason, **given}


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        pytest.param(IDLE, {"idle": 1.0}, id="at rest"),
        pytest.param(HALF, {"used_measured": 0.5, "ineffective": 0.5}, id="at work"),
        pytest.param(SILENT, {"unknown": 1.0}, id="not read"),
    ],
)
def test_work_without_a_known_holder_is_held_by_readings(
    reading: Row, expected: dict[str, float]
) -> None:
    told = rows("allocation_history", nobody("busy_without_holder"))
    cordoned = rows("node_history", {"is_schedulable": False})
    samples = readings([reading] * WHOLE_HOUR)
    found = books(allocation_history=told, utilization_sample=samples, node_history=cordoned)
    key = ("is_held", "tenant_id", "reason")
    assert hours(found, *key) == {(True, None, "busy_without_holder"): pytest.approx(expected)}


def test_a_holder_comes_before_what_is_told_without_one() -> None:
    told = rows("allocation_history", {}, nobody("busy_without_holder"))
    assert reasons(books(allocation_history=told)) == {None: 1.0}


def test_time_that_nothing_shows_is_unknown_not_free() -> None:
    told = rows("allocation_history", {"ended_at": NOON + HOUR / 2},
                nobody("unobserved", started_at=NOON + HOUR / 2))  # fmt: skip
    assert reasons(books(allocation_history=told)) == {None: 0.5, "unobserved": 0.5}


def test_overlays_are_weighted_by_share() -> None:
    reading: Row = {**IDLE, "busy_ratio": 1.0, "memory_used_bytes": 4_000}
    held = rows("allocation_history", {"gpu_share_ratio": 0.25})
    samples = readings([reading] * WHOLE_HOUR)
    row = books(allocation_history=held, utilization_sample=samples).rows.filter("is_held")
    assert row.select(
        "observed_s", "apparent_s", "effective_s", "sm_active_known_s", "busy_source_s",
        "stuck_s", "idle_memory_byte_s", "memory_peak_bytes",
    ).row(0) == (900.0, 900.0, 0.0, 900.0, 900.0, 900.0, 3_600_000.0, 4_000)  # fmt: skip


def test_overlays_of_what_is_not_read_are_zero_with_no_known_time() -> None:
    samples = readings([SILENT] * WHOLE_HOUR)
    row = books(allocation_history=HELD, utilization_sample=samples).rows
    assert row.select("observed_s", "apparent_s", "apparent_known_s", "memory_peak_bytes").row(
        0
    ) == (3_600.0, 0.0, 0.0, None)


def test_free_time_shows_what_was_read_but_no_effective_use() -> None:
    other = rows("allocation_history", {"device_uuid": "GPU-z"})
    samples = readings([{**HALF, "busy_ratio": 0.5}] * WHOLE_HOUR)
    row = books(allocation_history=other, utilization_sample=samples).rows
    assert row.select(
        "tier", "free_idle_ticks", "observed_s", "apparent_s", "effective_s", "effective_known_s"
    ).rows() == [(None, TICKS_PER_GPU_HOUR, 3_600.0, 1_800.0, 0.0, 0.0)]


def test_rest_is_unbroken_and_ends_with_the_holder_and_the_span() -> None:
    change = NOON + HOUR / 4
    held = rows("allocation_history", {"ended_at": change}, {"started_at": change, "pod": "p2"})
    samples = readings([{**IDLE, "memory_used_bytes": step} for step in range(WHOLE_HOUR)])
    found = books(allocation_history=held, utilization_sample=samples, borders=[NOON + HOUR / 2])
    names = ("pod", "started_at", "ended_at", "memory_first_bytes", "memory_last_bytes")
    assert found.rest.select(names).rows() == [
        ("pod-1", NOON, change, 1, 15),
        ("p2", change, NOON + HOUR / 2, 16, 30),
        ("p2", NOON + HOUR / 2, NOON + HOUR, 31, 60),
    ]
    assert found.rest.select("is_idle", "gpu_share_ratio").unique().rows() == [(True, 1.0)]


@pytest.mark.parametrize(
    ("growth", "count"),
    [
        pytest.param(MIB_BYTES - 1, 1, id="inside"),
        pytest.param(MIB_BYTES, 2, id="exactly at"),
        pytest.param(None, 1, id="unknown"),
        pytest.param(-MIB_BYTES, 1, id="it shrank"),
    ],
)
def test_memory_that_grew_ends_a_rest(growth: int | None, count: int) -> None:
    start = 2 * MIB_BYTES
    later = None if growth is None else start + growth
    used = [start] * 31 + [later] * 30
    samples = readings([{**IDLE, "memory_used_bytes": each} for each in used])
    assert books(allocation_history=HELD, utilization_sample=samples).rest.height == count


def test_what_could_not_be_placed_is_told_by_span() -> None:
    half = NOON + HOUR / 2
    held = rows("allocation_history", {}, {"device_uuid": "GPU-z", "started_at": half})
    stray = readings([IDLE] * 10, device_uuid="GPU-y")
    told = books(allocation_history=held, utilization_sample=stray, borders=[half]).caveats
    assert told.drop("indistinct_device_count").rows() == [
        (NOON, 1, 0, 0.0, True),
        (half, 0, 1, 0.5, True),
    ]


def test_the_same_id_in_two_clusters_is_two_devices() -> None:
    devices = rows("device_history", {}, {"cluster": "d", "device_key": 7})
    nodes = rows("node_history", {}, {"cluster": "d"})
    held = rows("allocation_history", {"cluster": "d", "tenant_id": "only-there"})
    samples = readings([IDLE] * WHOLE_HOUR, device_key=7)
    found = books(
        device_history=devices,
        node_history=nodes,
        allocation_history=held,
        utilization_sample=samples,
    )
    assert hours(found, "cluster", "tenant_id", "reason") == {
        ("c", None, "no_holder_recorded"): {"unknown": 1.0},
        ("d", "only-there", None): {"idle": 1.0},
    }


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param((NOON, NOON), [], id="an empty period"),
        pytest.param((NOON, NOON + HOUR), [], id="ends on hours"),
        pytest.param((NOON - MINUTE, NOON + MINUTE), [NOON], id="across an hour"),
        pytest.param(
            (NOON - MINUTE, NOON + 2 * HOUR + MINUTE),
            [NOON, NOON + HOUR, NOON + 2 * HOUR],
            id="several",
        ),
    ],
)
def test_hour_borders(ends: tuple[datetime, datetime], expected: list[datetime]) -> None:
    assert list(hour_borders(Period(*ends))) == expected


def test_a_slice_of_many_months_does_not_overflow() -> None:
    year = Period(NOON, NOON + 365 * 24 * HOUR)
    hourly = pl.datetime_range(year.from_at, year.until_at, "1h", eager=True)
    samples = rows("utilization_sample", *[{**BOUND, "sampled_at": at} for at in hourly])
    found = leaves(books(year, allocation_history=HELD, utilization_sample=samples))
    assert found == {"used_estimated": 0.75 * 8_760, "ineffective": 0.25 * 8_760}


def test_nothing_stored_is_an_empty_ledger() -> None:
    found = keep_books({}, ONE_HOUR)
    assert found.rows.is_empty()
    assert found.rest.is_empty()
    assert found.caveats.rows() == [(NOON, 0, 0, 0, 0.0, False)]


def test_an_empty_period_has_no_rows() -> None:
    found = books(Period(NOON, NOON), allocation_history=HELD)
    assert (found.rows.height, found.rest.height, found.caveats.height) == (0, 0, 0)


def test_rows_have_the_declared_columns_and_add_up_by_row() -> None:
    samples = readings([HALF] * WHOLE_HOUR)
    found = books(
        allocation_history=rows("allocation_history", {"gpu_share_ratio": 1 / 7}),
        utilization_sample=samples,
        borders=[NOON + HOUR / 3],
    )
    assert found.rows.select(*SCHEMAS["ledger"]).schema == SCHEMAS["ledger"]
    assert found.rest.schema == SCHEMAS["rest"]
    assert found.caveats.schema == SCHEMAS["ledger_caveat"]
    assert found.rows.select(
        (pl.sum_horizontal(LEAVES) == pl.col("wall_ticks")).all()
    ).to_series().to_list() == [True]
    assert set(BOOK_INPUTS) <= set(frames())
