"""Long stretches in which a holder's device did nothing."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.inputs import SCHEMAS
from analytics.spells import idle_spells, stuck_spells
from tests.support.analytics_frames import MINUTE, NOON

MIB = 1_048_576


def stretch(from_minute: float, until_minute: float, **given: object) -> dict[str, object]:
    """Return rest of one whole GPU that w1 of team-a holds, in minutes after noon."""
    return {
        "cluster": "c",
        "node": "n1",
        "device_uuid": "GPU-a",
        "tenant_id": "team-a",
        "workload_uid": "w1",
        "pod": "pod-1",
        "is_idle": True,
        "is_stuck": False,
        "started_at": NOON + from_minute * MINUTE,
        "ended_at": NOON + until_minute * MINUTE,
        "gpu_share_ratio": 1.0,
        **given,
    }


def rest(*rows: dict[str, object]) -> pl.DataFrame:
    schema = SCHEMAS["rest"]
    columns = {column: [row.get(column) for row in rows] for column in schema}
    return pl.DataFrame(columns, schema=schema, strict=False)


def minutes(found: pl.DataFrame) -> list[float]:
    return sorted(length / 60 for length in found["length_s"])


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        pytest.param(9.99, [], id="just under ten minutes"),
        pytest.param(10, [10.0], id="exactly ten minutes"),
        pytest.param(11, [11.0], id="just over"),
    ],
)
def test_an_idle_spell_lasts_ten_minutes(length: float, expected: list[float]) -> None:
    assert minutes(idle_spells(rest(stretch(0, length)))) == expected


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        pytest.param(14.99, [], id="just under a quarter of an hour"),
        pytest.param(15, [15.0], id="exactly"),
        pytest.param(16, [16.0], id="just over"),
    ],
)
def test_a_stuck_spell_lasts_fifteen_minutes(length: float, expected: list[float]) -> None:
    looks_busy = rest(stretch(0, length, is_idle=False, is_stuck=True))
    assert minutes(stuck_spells(looks_busy)) == expected
    assert minutes(idle_spells(looks_busy)) == []


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        pytest.param(timedelta(0), [16.0], id="touching is one spell"),
        pytest.param(timedelta(microseconds=1), [], id="a microsecond apart is two"),
        pytest.param(timedelta(microseconds=-1), [16.0], id="overlapping is one"),
    ],
)
def test_the_gap_rule(gap: timedelta, expected: list[float]) -> None:
    later = stretch(8, 16)
    later["started_at"] = NOON + 8 * MINUTE + gap
    assert minutes(idle_spells(rest(stretch(0, 8), later))) == expected


def test_pieces_cut_at_the_hour_are_one_spell() -> None:
    pieces = [stretch(55, 60), stretch(60, 120), stretch(120, 126)]
    (found,) = idle_spells(rest(*reversed(pieces))).to_dicts()
    assert (found["length_s"], found["gpu_hours"]) == (71 * 60, pytest.approx(71 / 60))
    assert (found["started_at"], found["ended_at"]) == (NOON + 55 * MINUTE, NOON + 126 * MINUTE)


@pytest.mark.parametrize(
    "between",
    [
        pytest.param({"is_idle": False}, id="work"),
        pytest.param({"is_idle": None}, id="a reading that says nothing"),
        pytest.param({"workload_uid": "w2"}, id="another workload"),
        pytest.param({"tenant_id": "team-b"}, id="another tenant"),
        pytest.param({"pod": "pod-2"}, id="another pod"),
    ],
)
def test_what_ends_a_spell(between: dict[str, object]) -> None:
    parts = rest(stretch(0, 8), stretch(8, 9, **between), stretch(9, 17))
    assert minutes(idle_spells(parts)) == []


def test_devices_and_instances_rest_apart() -> None:
    found = idle_spells(
        rest(
            stretch(0, 20),
            stretch(0, 20, device_uuid="GPU-b"),
            stretch(0, 20, instance_id=1, gpu_share_ratio=1 / 7),
        )
    )
    assert found.select("device_uuid", "instance_id").rows() == [
        ("GPU-a", None),
        ("GPU-b", None),
        ("GPU-a", 1),
    ]
    assert found["gpu_hours"].to_list() == pytest.approx([1 / 3, 1 / 3, 1 / 21])


@pytest.mark.parametrize(
    ("first", "last", "between", "within"),
    [
        pytest.param(0, MIB - 1, [20.0], [20.0], id="just less growth than counts"),
        pytest.param(0, MIB, [10.0, 10.0], [], id="exactly as much: work"),
        pytest.param(0, MIB + 1, [10.0, 10.0], [], id="more: work"),
        pytest.param(MIB, 0, [20.0], [20.0], id="freed memory is no work"),
        pytest.param(None, MIB, [20.0], [20.0], id="unknown at the start is not growth"),
        pytest.param(None, None, [20.0], [20.0], id="unknown does not hide a spell"),
    ],
)
def test_growing_memory_is_a_sign_of_work(
    first: int | None, last: int | None, between: list[float], within: list[float]
) -> None:
    halves = rest(
        stretch(0, 10, memory_first_bytes=first, memory_last_bytes=first),
        stretch(10, 20, memory_first_bytes=last, memory_last_bytes=last),
    )
    whole = rest(stretch(0, 20, memory_first_bytes=first, memory_last_bytes=last))
    assert minutes(idle_spells(halves)) == between
    assert minutes(idle_spells(whole)) == within


def test_memory_taken_at_the_start_does_not_hide_the_rest_after_it() -> None:
    found = idle_spells(
        rest(
            stretch(0, 1, memory_first_bytes=0, memory_last_bytes=0),
            stretch(1, 2, memory_first_bytes=0, memory_last_bytes=10 * MIB),
            stretch(2, 60, memory_first_bytes=10 * MIB, memory_last_bytes=10 * MIB),
        )
    )
    assert minutes(found) == [58.0]


def test_memory_that_grows_little_by_little_is_work_too() -> None:
    slow = [
        stretch(5 * n, 5 * n + 5, memory_first_bytes=n * MIB // 2,
                memory_last_bytes=n * MIB // 2 + 1)
        for n in range(4)
    ]  # fmt: skip
    assert minutes(idle_spells(rest(*slow))) == []


def test_no_rest_no_spell() -> None:
    assert idle_spells(rest()).is_empty()
    assert stuck_spells(rest()).is_empty()
