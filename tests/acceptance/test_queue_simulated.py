"""The queue report on a simulated fleet: what was planted is explained as it was planted."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import duckdb
import polars as pl
import pytest

from analytics.inputs import empty
from analytics.reports import queue
from analytics.reports.model import Question, Report
from collector.sources.simulated.history import Transition
from collector.sources.simulated.quota import BORROWABLE_RATIO
from collector.sources.simulated.requests import TENANT_WEIGHTS, Request
from steward.period import Period
from tests.support import simulated_fleets as fleets

SQL = Path(__file__).parents[2] / "sql"
ASKED = fleets.parameters(days=2, node_count=12)
START = ASKED.until_at - timedelta(days=2)


@cache
def warehouse() -> duckdb.DuckDBPyConnection:
    """Return the tables of the fleet, without its readings."""
    connection = duckdb.connect()
    for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
        for statement in duckdb.extract_statements(path.read_text()):
            connection.sql(statement)
    for batch in fleets.batches(ASKED):
        if batch.table != "device_sample":
            connection.register("batch", batch.rows)
            connection.sql(f"insert into {batch.table} by name select * from batch")  # noqa: S608  # a table of ours
            connection.unregister("batch")
    return connection


@cache
def report(until_at: datetime, by: str | None = None) -> Report:
    ends = {"from_at": START, "until_at": until_at}
    frames = {
        name: empty(name)
        if name == "rest"
        else pl.DataFrame(
            warehouse()
            .sql((SQL / "queries" / f"{name}.sql").read_text(), params=ends)
            .to_arrow_table()
        )
        for name in queue.DEFINITION.inputs
    }
    return queue.build(frames, Question(period=Period(START, until_at), by=by))


def rows(found: Report, key: str) -> list[dict[str, object]]:
    return next(each.frame for each in found.tables if each.key == key).to_dicts()


def planted(name: str) -> Request:
    return next(each for each in fleets.world(ASKED).requests if each.name == name)


def steps(request: Request) -> dict[str, int]:
    told: list[Transition] = fleets.world(ASKED).history.transitions
    return {each.transition: each.at_s for each in told if each.request is request}


@pytest.mark.parametrize("name", ["too-large", "still-waiting"])
def test_a_job_larger_than_the_fleet_is_explained(name: str) -> None:
    request = planted(name)
    waited_s = 6 * 3600
    found = report(START + timedelta(seconds=request.created_s + waited_s))
    (row,) = [each for each in rows(found, "pending") if each["name"] == name]
    (model,) = request.models
    fleet = fleets.world(ASKED).fleet
    total = sum(each.model.name == model for each in fleet.devices)
    own = TENANT_WEIGHTS[request.tenant] * total
    limit = f"{own + BORROWABLE_RATIO * (total - own):.3f}".rstrip("0").rstrip(".")
    assert request.slot_count > total
    assert row["wait_class"] == "quota"
    assert row["wait_s"] == waited_s
    assert row["blocking"] == (
        f"asks for {request.slot_count} GPUs of {model}; queue {request.tenant}-queue may never "
        f"hold more than {limit}"
    )
    assert str(row["evidence"]).startswith("event of Workload: Pending: couldn't assign flavors")


def test_too_large_gave_up_and_still_waiting_still_waits() -> None:
    found = report(ASKED.until_at)
    waiting = {str(each["name"]) for each in rows(found, "pending")}
    assert "too-large" not in waiting
    assert "still-waiting" in waiting


def test_those_pending_are_those_that_the_scheduler_left_waiting() -> None:
    last = {each.request.uid: each.transition for each in fleets.world(ASKED).history.transitions}
    left = {uid for uid, each in last.items() if each in {"created", "requeued", "quota_reserved",
                                                          "admitted"}}  # fmt: skip
    assert {each["workload_uid"] for each in rows(report(ASKED.until_at), "pending")} == left


def test_time_in_quota_is_what_the_scheduler_let_pass() -> None:
    told = fleets.world(ASKED).history.transitions
    begun = {(each.request.uid, each.attempt): each.at_s for each in told
             if each.transition in {"created", "requeued"}}  # fmt: skip
    ended = dict(begun)
    for each in reversed(told):
        if each.transition not in {"created", "requeued"}:
            ended[each.request.uid, each.attempt] = each.at_s
    has_quota = {(each.request.uid, each.attempt) for each in told
                 if each.transition in {"quota_reserved", "finished"}}  # fmt: skip
    expected = sum(
        (ended[key] if key in has_quota else ASKED.duration_s) - at_s for key, at_s in begun.items()
    )
    (quota,) = [
        each
        for each in rows(report(ASKED.until_at), "wait_classes")
        if each["wait_class"] == "quota"
    ]
    assert quota["waited_s"] == pytest.approx(expected)


def test_every_class_is_known_in_a_fleet_that_tells_everything() -> None:
    found = report(ASKED.until_at)
    assert {each["wait_class"] for each in rows(found, "wait_classes")} <= {
        "quota", "placement", "capacity", "start-up", "other"
    }  # fmt: skip
    ratios = [each.coverage_ratio for each in found.figures if each.key.endswith("_wait_ratio")]
    assert ratios == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("by", queue.BY)
def test_groupings(by: str) -> None:
    found = report(ASKED.until_at, by)
    key = queue.BY[by][0]
    waits = [each.key for each in found.tables if each.key.startswith("waits_by_")]
    shares = [each.key for each in found.tables if each.key.startswith("wait_classes_by_")]
    assert (waits, shares) == ([f"waits_by_{key}"], [f"wait_classes_by_{key}"])
