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
from tests.support.ledger_rows import free, held, ledger

UNITS = {"ratio", "s", "GPU-hours", "GPU", "milli-GPU", "W", "J", "bytes", "count", "text",
         "currency"}  # fmt: skip
IDLE: Row = {"sm_active_ratio": 0.0, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}


def made(name: str, **given: pl.DataFrame) -> Report:
    world = frames(**given)
    definition = REPORTS[name]
    return definition.build(
        {query: world[query] for query in definition.inputs}, Question(period=ONE_HOUR)
    )


def full(reading: Row, *kept: Row) -> dict[str, pl.DataFrame]:
    return {
        "ledger": ledger(*kept),
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


AT_REST: Row = {"observed_s": 3600.0, "gap_known_s": 3600.0, "apparent_known_s": 3600.0}
ZEROS = full(IDLE, held(idle=1, **AT_REST), free(free_idle=1))
UNKNOWNS = full({}, held(unknown=1, tier=None, reason="unobserved"), free(free_idle=1))
BOTH = full(IDLE, held(idle=0.5), held(unknown=0.5, tier=None), free(free_idle=1))
WORLDS = {"nothing": {}, "zeros": ZEROS, "unknowns": UNKNOWNS, "both": BOTH}


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
    world = frames(**ZEROS)
    definition = REPORTS[name]
    inputs = {query: world[query] for query in definition.inputs}
    assert definition.build(inputs, Question(period=Period(NOON, NOON))).name == name


def value(report: Report, key: str) -> object:
    return next(figure.value for figure in report.figures if figure.key == key)


def test_health_says_zero_where_zero_was_measured() -> None:
    found = made("health", **ZEROS)
    assert value(found, "effective_ratio") == 0.0
    assert value(found, "idle_gpu_hours") == pytest.approx(1.0)
    assert value(found, "telemetry_coverage_ratio") == pytest.approx(0.5)
    assert any("team-a held 1.0 GPU-hours idle, 100.0 %" in text for text in found.findings)
    assert any("XID errors reported in this period: 1" in text for text in found.findings)
    assert any("Failed scrapes in this period: 2" in text for text in found.findings)


def test_health_says_unknown_where_nothing_was_measured() -> None:
    found = made("health", **UNKNOWNS)
    assert value(found, "effective_ratio") is None
    assert value(found, "apparent_ratio") is None
    assert value(found, "idle_gpu_hours") == 0.0
    assert value(found, "unknown_use_gpu_hours") == pytest.approx(1.0)
    assert not any("idle" in text and "held" in text for text in found.findings)


def test_tiers_are_never_averaged_together() -> None:
    bound: Row = {"tier": 2, "observed_s": 3600.0, "effective_s": 2880.0,
                  "effective_known_s": 3600.0}  # fmt: skip
    mixed = ledger(held(idle=1), held(used_estimated=0.8, ineffective=0.2, **bound))
    found = made("utilization", **{**ZEROS, "ledger": mixed})
    assert value(found, "effective_ratio") == 0.0
    assert value(found, "effective_bound_ratio") == pytest.approx(0.8)
    by_model = next(table.frame for table in found.tables if table.key == "means_by_model")
    assert by_model["tier"].to_list() == [1, 2]


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
