"""Long stretches in which a holder's device did nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import polars as pl
import pytest

from analytics.reports.measured import device_time
from analytics.spells import idle_spells, stuck_spells
from tests.support.analytics_frames import MINUTE, NOON, ONE_HOUR, Row, frames, readings, rows

IDLE: Row = {"sm_active_ratio": 0.0, "dram_active_ratio": 0.0, "memory_used_bytes": 1_000}
BUSY: Row = {"sm_active_ratio": 0.5, "dram_active_ratio": 0.3, "memory_used_bytes": 1_000}
STUCK: Row = {"busy_ratio": 1.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0,
              "sm_active_ratio": 1.0}  # fmt: skip


def lengths(
    values: Sequence[Row | None], *, held: pl.DataFrame | None = None, stuck: bool = False
) -> list[float]:
    given = frames(
        node_history=rows("node_history", {}),
        device_history=rows("device_history", {}),
        allocation_history=rows("allocation_history", {}) if held is None else held,
        utilization_sample=readings(values),
    )
    time = device_time(given, ONE_HOUR)
    find = stuck_spells if stuck else idle_spells
    return sorted(length / 60 for length in find(time.resting, time.segments)["length_s"])


@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        pytest.param(9, [], id="just under ten minutes"),
        pytest.param(10, [10.0], id="exactly ten minutes"),
        pytest.param(11, [11.0], id="just over"),
    ],
)
def test_ten_minutes(minutes: int, expected: list[float]) -> None:
    assert lengths([BUSY] * 5 + [IDLE] * minutes + [BUSY] * 5) == expected


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([BUSY], id="work"),
        pytest.param([{}], id="a reading that says nothing"),
        pytest.param([None] * 5, id="a gap"),
    ],
)
def test_what_ends_a_spell(between: list[Row | None]) -> None:
    found = lengths([BUSY] + [IDLE] * 8 + between + [IDLE] * 8)
    assert found == []


def test_a_change_of_holder_ends_a_spell() -> None:
    held = rows(
        "allocation_history",
        {"ended_at": NOON + 12 * MINUTE, "workload_uid": "w1"},
        {"started_at": NOON + 12 * MINUTE, "workload_uid": "w2"},
    )
    assert lengths([IDLE] * 25, held=held) == [12.0, 12.0]


def test_growing_memory_is_a_sign_of_work() -> None:
    growing: list[Row | None] = [
        {**IDLE, "memory_used_bytes": step * 1_048_576} for step in range(20)
    ]
    assert lengths(growing) == []


def test_unknown_memory_does_not_hide_a_spell() -> None:
    assert lengths([{**IDLE, "memory_used_bytes": None}] * 21) == [20.0]


def test_nobody_holds_nothing_idle() -> None:
    late = rows("allocation_history", {"started_at": NOON + timedelta(minutes=50)})
    assert lengths([IDLE] * 21, held=late) == []


@pytest.mark.parametrize(("minutes", "expected"), [(14, []), (15, [15.0]), (16, [16.0])])
def test_stuck(minutes: int, expected: list[float]) -> None:
    assert lengths([BUSY] * 3 + [STUCK] * minutes + [BUSY] * 3, stuck=True) == expected
