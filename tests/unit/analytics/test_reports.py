"""Every report is whole: on nothing, on zeros, on unknowns."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.inputs import SCHEMAS
from analytics.reports.catalogue import REPORTS
from analytics.reports.model import Question, Report
from analytics.reports.shape import percent
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR, Row, frames, readings, rows

UNITS = {"ratio", "s", "GPU-hours", "GPU", "milli-GPU", "W", "J", "bytes", "count", "text"}
IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}


def made(name: str, **given: pl.DataFrame) -> Report:
    world = frames(**given)
    definition = REPORTS[name]
    return definition.build(
        {query: world[query] for query in definition.inputs}, Question(period=ONE_HOUR)
    )


def full(reading: Row) -> dict[str, pl.DataFrame]:
    return {
        "node_history": rows("node_history", {}),
        "device_history": rows("device_history", {}, {"device_uuid": "GPU-b"}),
        "device_event_history": rows(
            "device_event_history", {"occurred_at": NOON + HOUR / 2, "code": 79}
        ),
        "utilization_sample": readings([reading] * 61),
        "latest_device_sample": rows("latest_device_sample", reading),
        "allocation_history": rows("allocation_history", {}),
        "workload_current": rows("workload_current", {}),
        "transition_history": rows(
            "transition_history",
            {"occurred_at": NOON},
            {"occurred_at": NOON, "transition": "scheduled"},
        ),
        "scrape_health": rows("scrape_health", {"failed_count": 2}),
    }


WORLDS = {"nothing": {}, "zeros": full(IDLE), "unknowns": full({})}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", REPORTS)
def test_report_is_whole(name: str, world: str) -> None:
    found = made(name, **WORLDS[world])
    assert (found.name, found.period) == (name, ONE_HOUR)
    assert len({each.key for each in found.figures}) == len(found.figures)
    assert len({each.key for each in found.tables}) == len(found.tables)
    for figure in found.figures:
        assert figure.unit in UNITS
        assert figure.rows in SCHEMAS
        assert figure.definition.endswith(".")
        assert figure.coverage_ratio is None or 0 <= figure.coverage_ratio <= 1
    for table in found.tables:
        assert table.frame.columns == [column.name for column in table.columns]
        assert {column.unit for column in table.columns} <= UNITS


@pytest.mark.parametrize("name", REPORTS)
def test_report_on_an_instant(name: str) -> None:
    world = frames(**full(IDLE))
    definition = REPORTS[name]
    inputs = {query: world[query] for query in definition.inputs}
    assert definition.build(inputs, Question(period=Period(NOON, NOON))).name == name


def value(report: Report, key: str) -> object:
    return next(figure.value for figure in report.figures if figure.key == key)


def test_health_says_zero_where_zero_was_measured() -> None:
    found = made("health", **WORLDS["zeros"])
    assert value(found, "effective_ratio") == 0.0
    assert value(found, "allocated_idle_gpu_hours") == pytest.approx(1.0)
    assert value(found, "telemetry_coverage_ratio") == pytest.approx(0.5)
    assert any("team-a held 1.0 GPU-hours idle, 100.0 %" in text for text in found.findings)
    assert any("1 XID errors" in text for text in found.findings)
    assert any("2 scrapes failed" in text for text in found.findings)


def test_health_says_unknown_where_nothing_was_measured() -> None:
    found = made("health", **WORLDS["unknowns"])
    assert value(found, "effective_ratio") is None
    assert value(found, "apparent_ratio") is None
    assert value(found, "allocated_idle_gpu_hours") == 0.0
    assert value(found, "unknown_gpu_hours") == pytest.approx(1.0)
    assert not any("idle" in text and "held" in text for text in found.findings)


def test_tiers_are_never_averaged_together() -> None:
    mixed = pl.concat(
        [readings([IDLE] * 61), readings([{"sm_active_ratio": 0.8}] * 61, device_uuid="GPU-b")]
    )
    found = made("utilization", **{**WORLDS["zeros"], "utilization_sample": mixed})
    assert value(found, "effective_ratio") == 0.0
    assert value(found, "effective_bound_ratio") == pytest.approx(0.8)
    by_model = next(table.frame for table in found.tables if table.key == "by_model")
    assert by_model["tier"].to_list() == [1, 2]


def test_readings_of_unknown_devices_are_told() -> None:
    stray = readings([IDLE] * 3, device_uuid="GPU-z")
    found = made("utilization", **{**WORLDS["zeros"], "utilization_sample": stray})
    assert any("1 devices send readings but are not in the inventory" in t for t in found.findings)


def test_busy_without_holder_is_told_apart_from_free() -> None:
    busy = readings([{**IDLE, "sm_active_ratio": 0.5, "dram_active_ratio": 0.4}] * 61)
    held = rows("allocation_history", {"device_uuid": "GPU-b"})
    world = {**WORLDS["zeros"], "utilization_sample": busy, "allocation_history": held}
    assert value(made("utilization", **world), "unattributed_busy_gpu_hours") == pytest.approx(1.0)


def points_of(report: Report) -> pl.DataFrame:
    return next(table.frame for table in report.tables if table.key == "waiting_and_idle")


def test_waiting_beside_free() -> None:
    points = points_of(made("queue", **WORLDS["zeros"]))
    assert points["idle_gpu_count"].unique().to_list() == [1.0]
    assert points["waiting_gpu_count"].unique().to_list() == [0.0]


def test_a_device_that_is_lost_while_held_is_missing_once() -> None:
    lost = rows("device_event_history", {"kind": "lost", "occurred_at": NOON})
    points = points_of(made("queue", **{**WORLDS["zeros"], "device_event_history": lost}))
    assert points["idle_gpu_count"].unique().to_list() == [1.0]


def test_work_that_waits_since_before_the_period_is_told() -> None:
    asked = rows("transition_history", {"occurred_at": NOON - HOUR})
    found = made("queue", **{**WORLDS["nothing"], "transition_history": asked})
    assert found.findings == (
        "1 attempts still wait at 2026-05-04 13:00 UTC, the oldest for 2.0 h.",
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(None, "unknown", id="unknown"),
        pytest.param(0.0, "0.0 %", id="none"),
        pytest.param(0.00049, "less than 0.1 %", id="just below what can be told"),
        pytest.param(0.0005, "0.1 %", id="exactly what can be told"),
        pytest.param(0.00051, "0.1 %", id="just past it"),
    ],
)
def test_a_share_in_a_sentence(value: float | None, said: str) -> None:
    assert percent(value) == said
