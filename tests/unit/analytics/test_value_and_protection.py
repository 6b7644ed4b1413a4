"""What work is worth, whether it started in time, and which GPUs it holds."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from analytics.intervals import bounds
from analytics.protection import (
    START_OBJECTIVE_S,
    critical_waits,
    interruptions,
    protection,
    starts,
)
from analytics.value import declared, lower_while_critical_waits, occupancy, with_level
from steward.period import Period
from tests.support.analytics_frames import HOUR, NOON, ONE_HOUR, Row, rows
from tests.support.governance_rows import told
from tests.support.ledger_rows import free, held, ledger

OBJECTIVE = timedelta(seconds=START_OBJECTIVE_S)
TICK = timedelta(microseconds=1)


def said(*given: Row, period: Period = ONE_HOUR) -> pl.DataFrame:
    return declared(told("state.business_value", *given), period)


@pytest.mark.parametrize(
    ("given", "holds"),
    [
        pytest.param({}, True, id="open"),
        pytest.param({"valid_from_at": NOON + HOUR}, False, id="from the period's end on"),
        pytest.param({"valid_from_at": NOON + HOUR - TICK}, True, id="just before the end"),
        pytest.param({"valid_until_at": NOON + HOUR}, True, id="until the end"),
        pytest.param({"valid_until_at": NOON + HOUR - TICK}, False, id="until just before"),
    ],
)
def test_what_is_declared_holds_while_it_is_valid(given: Row, *, holds: bool) -> None:
    assert said(given).height == holds


def test_of_two_declarations_the_one_recorded_last_counts() -> None:
    found = said({"business_value_id": 2, "value_level": "low"}, {"value_level": "critical"})
    assert found["value_level"].to_list() == ["low"]


@pytest.mark.parametrize(
    ("scope", "key"),
    [
        ("tenant", "team-a"),
        ("workload_class", "training"),
        ("priority_class", "standard"),
        ("queue", "team-a"),
        ("workload", "w1"),
    ],
)
def test_each_scope_beats_those_before_it(scope: str, key: str) -> None:
    scopes = [
        ("tenant", "team-a"),
        ("workload_class", "training"),
        ("priority_class", "standard"),
        ("queue", "team-a"),
        ("workload", "w1"),
    ]
    given = [
        {
            "business_value_id": n, "scope_kind": kind, "scope_key": name,
            "value_level": "critical" if kind == scope else "low",
        }
        for n, (kind, name) in enumerate(scopes[: scopes.index((scope, key)) + 1])
    ]  # fmt: skip
    found = with_level(told("workload_standing", {}), said(*given)).row(0, named=True)
    assert (found["value_level"], found["is_declared"]) == ("critical", True)


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({}, "normal"),
        ({"priority_class": "production"}, "critical"),
        ({"priority_class": "critical"}, "critical"),
        ({"priority_class": "best-effort"}, "low"),
        ({"priority_class": None, "workload_class": "inference"}, "critical"),
        ({"priority_class": "best-effort", "workload_class": "inference"}, "low"),
        ({"priority_class": None, "workload_class": None}, "normal"),
    ],
)
def test_undeclared_value_follows_priority_then_class(given: Row, level: str) -> None:
    found = with_level(told("workload_standing", given), said()).row(0, named=True)
    assert (found["value_level"], found["is_declared"]) == (level, False)


def test_the_objective_comes_with_the_level_that_counts() -> None:
    found = with_level(
        told("workload_standing", {}, {"workload_uid": "w2"}),
        said(
            {"scope_kind": "workload", "scope_key": "w1"},
            {"business_value_id": 2, "start_objective_s": 60},
        ),
    )
    assert found["start_objective_s"].to_list() == [None, 60]


CRITICAL = with_level(
    told("workload_standing", {"priority_class": "production"}, {"workload_uid": "w2"}), said()
)


def step(name: str, after: timedelta, **given: object) -> Row:
    return {"cluster": "c", "transition": name, "occurred_at": NOON + after, **given}


def started(*steps: Row, period: Period = ONE_HOUR) -> pl.DataFrame:
    return starts(rows("transition_history", *steps), CRITICAL, period)


@pytest.mark.parametrize(
    ("steps", "is_met"),
    [
        pytest.param([step("started", OBJECTIVE - TICK)], True, id="just inside"),
        pytest.param([step("started", OBJECTIVE)], True, id="exactly"),
        pytest.param([step("started", OBJECTIVE + TICK)], False, id="just past"),
        pytest.param([step("scheduled", OBJECTIVE)], True, id="scheduled counts without a start"),
        pytest.param(
            [step("scheduled", OBJECTIVE), step("started", OBJECTIVE + TICK)], False,
            id="the start counts where it is told",
        ),
        pytest.param([], False, id="still waiting at the end, past it"),
        pytest.param([step("finished", OBJECTIVE - TICK)], None, id="withdrawn inside"),
        pytest.param([step("finished", OBJECTIVE + TICK)], False, id="withdrawn past it"),
        pytest.param([step("started", timedelta(0))], True, id="at once"),
        pytest.param(
            [step("started", OBJECTIVE), step("evicted", 2 * OBJECTIVE),
             step("started", 5 * OBJECTIVE, attempt=2)], True, id="the first start counts",
        ),
    ],
)  # fmt: skip
def test_started_within_the_objective(steps: list[Row], is_met: bool | None) -> None:
    found = started(step("created", timedelta(0)), *steps)
    assert found["is_met"].to_list() == [is_met]


@pytest.mark.parametrize(
    ("created", "is_met"),
    [
        pytest.param(HOUR - OBJECTIVE - TICK, [False], id="waited longer"),
        pytest.param(HOUR - OBJECTIVE, [None], id="waited exactly so long"),
        pytest.param(HOUR - TICK, [None], id="waits for a moment"),
        pytest.param(HOUR, [], id="created after the period"),
        pytest.param(-TICK, [], id="created before the period"),
    ],
)
def test_waits_are_watched_to_the_end(created: timedelta, is_met: list[bool | None]) -> None:
    assert started(step("created", created))["is_met"].to_list() == is_met


def test_protection_by_value() -> None:
    steps = [
        step("created", timedelta(0)),
        step("started", OBJECTIVE),
        step("preempted", OBJECTIVE, reason="InCohortReclamation"),
        step("preempted", 2 * OBJECTIVE, reason="InCohortReclamation"),
        step("evicted", 3 * OBJECTIVE, reason="NodeFailures"),
        step("evicted", 6 * OBJECTIVE, reason="NodeFailures"),
        step("created", timedelta(0), workload_uid="w2"),
    ]
    told_steps = rows("transition_history", *steps)
    hit = interruptions(told_steps, CRITICAL, ONE_HOUR)
    assert hit.rows() == [
        ("critical", "evicted", "NodeFailures", 1, 1),
        ("critical", "preempted", "InCohortReclamation", 2, 1),
    ]
    found = protection(starts(told_steps, CRITICAL, ONE_HOUR), hit)
    columns = ("workload_count", "decided_count", "met_count", "met_ratio", "evicted_count",
               "preempted_count")  # fmt: skip
    assert found["value_level"].to_list() == ["critical", "high", "normal", "low"]
    assert found.select(columns).rows() == [
        (1, 1, 1, 1.0, 1, 2),
        (0, 0, 0, None, 0, 0),
        (1, 1, 0, 0.0, 0, 0),
        (0, 0, 0, None, 0, 0),
    ]


TIERS = pl.DataFrame({"model": ["H100", "T4"], "capability_tier": ["S", "D"]})


def test_value_beside_the_gpus_held() -> None:
    found = occupancy(
        ledger(
            held(priority_class="production", used=1, idle=1),
            held(priority_class="best-effort", used=0, idle=6),
            held(priority_class="best-effort", model="T4", unknown=2),
            held(priority_class="best-effort", model="X", used=1),
            free(free_idle=9),
        ),
        said(),
        TIERS,
    )
    columns = ("value_level", "capability_tier", "held_gpu_hours", "used_ratio",
               "share_of_tier_ratio", "declared_ratio")  # fmt: skip
    assert found.select(columns).rows() == [
        ("critical", "S", 2.0, 0.5, 0.25, 0.0),
        ("low", "D", 2.0, None, 1.0, 0.0),
        ("low", "S", 6.0, 0.0, 0.75, 0.0),
        ("low", None, 1.0, 1.0, 1.0, 0.0),
    ]


def wait(from_minute: float, until_minute: float, models: str = "") -> dict[str, object]:
    from_us, _ = bounds(ONE_HOUR)
    minute_us = 60_000_000
    return {
        "cluster": "c",
        "gpu_models": models,
        "start_us": from_us + int(from_minute * minute_us),
        "end_us": from_us + int(until_minute * minute_us),
    }


def lower(waits: list[dict[str, object]], **given: object) -> list[float]:
    harmless = {
        "started_at": NOON, "ended_at": None, "gpu_share_ratio": 1.0, "cluster": "c",
        "model": "H100", "tenant_id": "a", "value_level": "low",
    }  # fmt: skip
    instant = pl.Datetime("us", "UTC")
    holder = pl.DataFrame(
        [{**harmless, **given}], schema_overrides={"started_at": instant, "ended_at": instant}
    )
    schema = {"cluster": pl.String, "gpu_models": pl.String, "start_us": pl.Int64,
              "end_us": pl.Int64}  # fmt: skip
    found = lower_while_critical_waits(holder, pl.DataFrame(waits, schema=schema), ONE_HOUR)
    hours: list[float] = found["gpu_hours"].to_list()
    return hours


@pytest.mark.parametrize(
    ("waits", "given", "hours"),
    [
        pytest.param([wait(0, 30)], {}, [0.5], id="half an hour"),
        pytest.param([wait(0, 30), wait(15, 45)], {}, [0.75], id="two waits at once count once"),
        pytest.param([wait(0, 30), wait(0, 60, "H100")], {}, [1.0], id="any model and this one"),
        pytest.param([wait(0, 15), wait(30, 45)], {}, [0.5], id="two stretches"),
        pytest.param([wait(0, 30)], {"gpu_share_ratio": 0.5}, [0.25], id="half a GPU"),
        pytest.param([wait(0, 30)], {"ended_at": NOON + HOUR / 4}, [0.25], id="let go"),
        pytest.param([wait(0, 30)], {"started_at": NOON + HOUR / 2}, [], id="came later"),
        pytest.param([wait(0, 30, "A100")], {}, [], id="could not use this model"),
        pytest.param([wait(0, 30, "A100|H100")], {}, [0.5], id="one of two models"),
        pytest.param([wait(0, 30)], {"value_level": "high"}, [], id="high value"),
        pytest.param([wait(0, 30)], {"value_level": "normal"}, [0.5], id="normal value"),
        pytest.param([wait(0, 30)], {"cluster": "d"}, [], id="another cluster"),
        pytest.param([], {}, [], id="nobody waited"),
    ],
)
def test_lower_work_while_critical_work_waited(
    waits: list[dict[str, object]], given: dict[str, object], hours: list[float]
) -> None:
    assert lower(waits, **given) == pytest.approx(hours)


def test_waits_of_critical_work_only() -> None:
    found = critical_waits(
        started(
            step("created", timedelta(0)),
            step("started", HOUR / 2),
            step("created", timedelta(0), workload_uid="w2"),
        ),
        ONE_HOUR,
    )
    from_us, _ = bounds(ONE_HOUR)
    assert found.select("start_us", "end_us").rows() == [(from_us, from_us + 1_800_000_000)]
