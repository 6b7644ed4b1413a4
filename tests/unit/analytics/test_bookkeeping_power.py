"""Boards that tell power but no activity: what they draw at rest, and what that says of work."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.bookkeeping.material import material
from analytics.bookkeeping.power import power_floors
from tests.support.analytics_frames import Row, frames, readings, rows
from tests.support.books import books, hours

HELD = rows("allocation_history", {})
FLOOR = pl.DataFrame({"model": ["H100"], "power_idle_w": [100.0]})


def draws(watts: float | None, **said: object) -> Row:
    """Return a reading of a busy board with a limit of 500 W."""
    return {"busy_ratio": 1.0, "power_w": watts, "power_limit_w": 500.0, **said}


def floors(*samples: pl.DataFrame, **given: pl.DataFrame) -> list[tuple[object, ...]]:
    given.setdefault("device_history", rows("device_history", {}))
    told = frames(utilization_sample=pl.concat(samples), **given)
    return power_floors(material(told)).rows()


@pytest.mark.parametrize(
    ("reading", "expected", "tier"),
    [
        pytest.param(draws(300.0), {"used_estimated": 0.5, "ineffective": 0.5}, 3, id="half way"),
        pytest.param(draws(90.0), {"ineffective": 1.0}, 3, id="below the floor"),
        pytest.param(draws(600.0), {"used_estimated": 1.0}, 3, id="above the limit"),
        pytest.param(draws(None), {"unknown": 1.0}, 4, id="power unknown"),
        pytest.param(draws(300.0, power_limit_w=None), {"unknown": 1.0}, 4, id="limit unknown"),
        pytest.param(draws(300.0, power_limit_w=100.0), {"unknown": 1.0}, 4, id="limit at floor"),
        pytest.param(draws(300.0, busy_ratio=0.0), {"idle": 1.0}, 3, id="at rest though warm"),
        pytest.param(
            draws(300.0, sm_active_ratio=0.25),
            {"used_estimated": 0.25, "ineffective": 0.75},
            2,
            id="activity comes before power",
        ),
    ],
)
def test_power_between_floor_and_limit_is_a_proxy(
    reading: Row, expected: dict[str, float], tier: int
) -> None:
    samples = readings([reading] * 61)
    found = books(utilization_sample=samples, allocation_history=HELD, floors=FLOOR)
    assert hours(found, "tier") == {tier: pytest.approx(expected)}


def test_a_model_without_a_floor_has_no_proxy() -> None:
    samples = readings([draws(300.0)] * 61)
    found = books(utilization_sample=samples, allocation_history=HELD)
    assert hours(found, "tier") == {4: {"unknown": 1.0}}


def test_the_floor_is_learnt_from_boards_at_rest() -> None:
    samples = readings([draws(300.0)] * 30 + [draws(100.0, busy_ratio=0.0)] * 31)
    found = books(utilization_sample=samples, allocation_history=HELD)
    assert hours(found, "tier")[3]["used_estimated"] == pytest.approx(0.5 * 29 / 60)


def test_a_floor_is_the_median_board_at_its_lowest() -> None:
    boards = [{"device_uuid": f"GPU-{name}"} for name in "abc"]
    lowest = {"a": 90.0, "b": 100.0, "c": 5.0}
    samples = [
        readings(
            [draws(watts, busy_ratio=0.0), draws(watts + 50, busy_ratio=0.0), draws(1.0)],
            device_uuid=f"GPU-{name}",
        )
        for name, watts in lowest.items()
    ]
    assert floors(*samples, device_history=rows("device_history", *boards)) == [("H100", 90.0)]


@pytest.mark.parametrize(
    "reading",
    [
        pytest.param(draws(100.0), id="at work"),
        pytest.param(draws(0.0, busy_ratio=0.0), id="no watts"),
        pytest.param(draws(None, busy_ratio=0.0), id="power unknown"),
        pytest.param(draws(100.0, busy_ratio=None), id="rest unknown"),
    ],
)
def test_such_readings_say_nothing_of_the_floor(reading: Row) -> None:
    assert floors(readings([reading] * 3)) == []


def test_a_board_with_instances_gives_no_floor() -> None:
    devices = rows("device_history", {}, {"instance_id": 1})
    samples = readings([draws(100.0, busy_ratio=0.0)] * 3)
    assert floors(samples, device_history=devices) == []


@pytest.mark.parametrize(
    ("watts", "is_stuck"),
    [
        pytest.param(219.0, True, id="inside"),
        pytest.param(220.0, False, id="exactly at"),
        pytest.param(221.0, False, id="past"),
        pytest.param(None, True, id="power unknown"),
    ],
)
def test_what_looks_stuck_draws_little_power(watts: float | None, is_stuck: bool) -> None:
    reading = draws(watts, tensor_active_ratio=0.0, dram_active_ratio=0.0, sm_active_ratio=1.0)
    samples = readings([reading] * 61)
    found = books(utilization_sample=samples, allocation_history=HELD, floors=FLOOR)
    assert found.rows["stuck_s"].sum() == (3_600.0 if is_stuck else 0.0)
    assert found.rest["is_stuck"].to_list() == ([True] if is_stuck else [])


def test_integer_work_is_work() -> None:
    busy: Row = {"busy_ratio": 1.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
    samples = readings([{**busy, "integer_active_ratio": 0.5}] * 61)
    found = books(utilization_sample=samples, allocation_history=HELD)
    assert hours(found) == {(): {"used_measured": 0.5, "ineffective": 0.5}}
    assert found.rows["stuck_s"].sum() == 0
