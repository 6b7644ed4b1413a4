"""From an idle verdict to GPUs at work again: steps, speed, reuse and regret."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest

from analytics.reclaim import (
    REGRET_WITHIN,
    REUSE_WITHIN,
    by_holder,
    cases,
    funnel,
    holds_of,
    speed,
    with_actions,
    with_outcomes,
)
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON, Row, rows
from tests.support.governance_rows import told

TICK = timedelta(microseconds=1)
TWO_DAYS = Period(NOON, NOON + 48 * HOUR)
RECLAIMED = NOON + HOUR


def judged(verdict: str, at: datetime, **given: object) -> Row:
    return {"verdict": verdict, "judged_at": at, **given}


IDLE_AT_NOON = judged("IDLE", NOON)
HELD: Row = {"started_at": NOON - HOUR, "ended_at": RECLAIMED}
SUSPENDED: Row = {"recorded_at": RECLAIMED}


def outcomes(
    *,
    verdicts: tuple[Row, ...] = (IDLE_AT_NOON,),
    allocations: tuple[Row, ...] = (HELD,),
    actions: tuple[Row, ...] = (),
    exemptions: tuple[Row, ...] = (),
    period: Period = TWO_DAYS,
) -> pl.DataFrame:
    holds = holds_of(rows("allocation_history", *allocations), period)
    acts = told("state.action", *actions)
    found = with_actions(cases(told("verdict_history", *verdicts), holds, period), acts, period)
    return with_outcomes(
        found,
        holds=holds,
        actions=acts,
        exemptions=told("state.exemption", *exemptions),
        period=period,
    )


def one(**given: object) -> dict[str, object]:
    (row,) = outcomes(**given).rows(named=True)  # type: ignore[arg-type]  # tuples of rows
    return row


@pytest.mark.parametrize(
    ("verdicts", "count"),
    [
        pytest.param([], 0, id="never judged"),
        pytest.param([judged("BUSY", NOON)], 0, id="busy"),
        pytest.param([judged("UNKNOWN", NOON)], 0, id="unknown never starts a case"),
        pytest.param([IDLE_AT_NOON], 1, id="idle"),
        pytest.param([judged("idle", NOON)], 1, id="in any case"),
        pytest.param([IDLE_AT_NOON, judged("IDLE", NOON + MINUTE)], 1, id="idle still"),
        pytest.param(
            [IDLE_AT_NOON, judged("UNKNOWN", NOON + MINUTE), judged("IDLE", NOON + 2 * MINUTE)], 1,
            id="unknown does not end a case",
        ),
        pytest.param(
            [IDLE_AT_NOON, judged("BUSY", NOON + MINUTE), judged("IDLE", NOON + 2 * MINUTE)], 2,
            id="busy ends it",
        ),
        pytest.param(
            [judged("IDLE", NOON - HOUR), judged("BUSY", NOON)], 0, id="over when it begins"
        ),
        pytest.param([judged("IDLE", NOON - HOUR / 2)], 1, id="open when it begins"),
        pytest.param([judged("IDLE", NOON + 48 * HOUR)], 0, id="after the period"),
        pytest.param([IDLE_AT_NOON, judged("IDLE", NOON, cluster="d")], 2, id="two clusters"),
    ],
)  # fmt: skip
def test_cases(verdicts: list[Row], count: int) -> None:
    assert outcomes(verdicts=tuple(verdicts)).height == count


def test_a_case_that_was_let_go_before_the_period_is_none_of_it() -> None:
    early = {"started_at": NOON - 2 * HOUR, "ended_at": NOON - HOUR / 2}
    verdict = judged("IDLE", NOON - HOUR)
    assert outcomes(verdicts=(verdict,), allocations=(early,)).is_empty()


@pytest.mark.parametrize(
    ("action", "step"),
    [
        pytest.param({"kind": "notify"}, "warned_us", id="told the owner"),
        pytest.param({"kind": "suspend"}, "reclaimed_us", id="suspended"),
        pytest.param({"kind": "evict"}, "reclaimed_us", id="evicted"),
        pytest.param({"kind": "lower_priority"}, None, id="gentle"),
        pytest.param({"kind": "suspend", "is_dry_run": 1}, None, id="dry run"),
        pytest.param({"kind": "suspend", "outcome": "failed"}, None, id="failed"),
        pytest.param({"kind": "suspend", "outcome": "planned"}, None, id="planned"),
        pytest.param({"kind": "suspend", "subject_uid": "w2"}, None, id="another workload"),
        pytest.param({"recorded_at": NOON - TICK}, None, id="before it was idle"),
        pytest.param({"recorded_at": NOON}, "reclaimed_us", id="in the same instant"),
        pytest.param({"recorded_at": NOON + 48 * HOUR}, None, id="after the period"),
        pytest.param({"undoes_action_id": 9}, None, id="an undoing"),
    ],
)
def test_what_was_done(action: Row, step: str | None) -> None:
    found = one(actions=({"recorded_at": RECLAIMED, **action},))
    done = [name for name in ("warned_us", "reclaimed_us") if found[name] is not None]
    assert done == ([] if step is None else [step])


def test_busy_before_the_action_is_another_case() -> None:
    found = one(verdicts=(IDLE_AT_NOON, judged("BUSY", RECLAIMED)), actions=(SUSPENDED,))
    assert found["reclaimed_us"] is None


@pytest.mark.parametrize(
    ("given", "hours"),
    [
        pytest.param({"actions": (SUSPENDED,)}, 1.0, id="until it was reclaimed"),
        pytest.param({"allocations": ({**HELD, "ended_at": NOON + HOUR / 2},)}, 0.5, id="let go"),
        pytest.param(
            {"verdicts": (IDLE_AT_NOON, judged("BUSY", NOON + HOUR / 4))}, 0.25, id="busy again"
        ),
        pytest.param({"allocations": ({**HELD, "ended_at": None},)}, 48.0, id="to the end"),
        pytest.param(
            {"verdicts": (judged("IDLE", NOON - HOUR / 2),)}, 1.0, id="inside the period only"
        ),
        pytest.param(
            {"allocations": (HELD, {**HELD, "device_uuid": "GPU-b", "gpu_share_ratio": 0.5})}, 1.5,
            id="one and a half GPUs",
        ),
        pytest.param({"allocations": ()}, None, id="not recorded what it held"),
    ],
)  # fmt: skip
def test_idle_gpu_hours(given: dict[str, object], hours: float | None) -> None:
    assert one(**given)["idle_gpu_hours"] == hours


def taken(after: timedelta, **given: object) -> Row:
    """Another workload on the same GPU."""
    start = RECLAIMED + after
    return {
        "workload_uid": "w2",
        "pod": "q",
        "started_at": start,
        "ended_at": start + HOUR,
        **given,
    }


@pytest.mark.parametrize(
    ("other", "is_reused", "hours"),
    [
        pytest.param([taken(timedelta(0))], True, 1.0, id="at once"),
        pytest.param([taken(REUSE_WITHIN)], True, 1.0, id="exactly in time"),
        pytest.param([taken(REUSE_WITHIN + TICK)], False, 1.0, id="just too late"),
        pytest.param([taken(-TICK)], False, 0.0, id="before it was free"),
        pytest.param([taken(MINUTE, device_uuid="GPU-b")], False, 0.0, id="another GPU"),
        pytest.param([taken(MINUTE, instance_id=1)], False, 0.0, id="another part of it"),
        pytest.param([taken(MINUTE, gpu_share_ratio=0.5)], True, 0.5, id="half of it"),
        pytest.param([taken(MINUTE), taken(5 * HOUR)], True, 2.0, id="twice"),
        pytest.param([], False, 0.0, id="nobody"),
    ],
)
def test_reuse(other: list[Row], is_reused: bool, hours: float) -> None:
    found = one(allocations=(HELD, *other), actions=(SUSPENDED,))
    assert (found["is_reused"], found["reused_gpu_hours"]) == (is_reused, hours)


@pytest.mark.parametrize(
    ("length", "is_reused", "is_regretted"),
    [
        pytest.param(HOUR + REUSE_WITHIN, None, None, id="the hour ends with the period"),
        pytest.param(HOUR + REUSE_WITHIN + TICK, False, None, id="the hour is over"),
        pytest.param(HOUR + REGRET_WITHIN, False, None, id="the day ends with the period"),
        pytest.param(HOUR + REGRET_WITHIN + TICK, False, False, id="the day is over"),
    ],
)
def test_what_may_still_come_is_undecided(
    length: timedelta, is_reused: bool | None, is_regretted: bool | None
) -> None:
    found = one(actions=(SUSPENDED,), period=Period(NOON, NOON + length))
    assert (found["is_reused"], found["is_regretted"]) == (is_reused, is_regretted)


def test_what_was_not_reclaimed_is_neither_reused_nor_regretted() -> None:
    found = one()
    assert (found["is_reused"], found["is_regretted"], found["regret"]) == (None, None, None)


def back(after: timedelta) -> Row:
    return {"started_at": RECLAIMED + after, "ended_at": None, "pod": "again"}


@pytest.mark.parametrize(
    ("given", "regret"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"allocations": (HELD, back(TICK))}, "came_back", id="came back"),
        pytest.param({"allocations": (HELD, back(REGRET_WITHIN))}, "came_back", id="in a day"),
        pytest.param({"allocations": (HELD, back(REGRET_WITHIN + TICK))}, None, id="after a day"),
        pytest.param(
            {"exemptions": ({"recorded_at": RECLAIMED + MINUTE},)}, "appealed", id="appealed"
        ),
        pytest.param(
            {"exemptions": ({"recorded_at": RECLAIMED},)}, None, id="exempted no later"
        ),
        pytest.param(
            {"exemptions": ({"recorded_at": RECLAIMED + MINUTE, "scope_kind": "tenant"},)}, None,
            id="its team was exempted",
        ),
        pytest.param(
            {"actions": (SUSPENDED, {"action_id": 2, "plan_id": "p2", "kind": "resume",
             "recorded_at": RECLAIMED + MINUTE, "undoes_action_id": 1})}, "undone", id="undone",
        ),
        pytest.param(
            {"actions": (SUSPENDED, {"action_id": 2, "outcome": "undone",
             "recorded_at": RECLAIMED + MINUTE})}, "undone", id="undone as an outcome of its step",
        ),
        pytest.param(
            {"actions": (SUSPENDED, {"action_id": 2, "plan_id": "p2", "kind": "resume",
             "recorded_at": RECLAIMED + MINUTE, "undoes_action_id": 1, "is_dry_run": 1})}, None,
            id="a dry run undoes nothing",
        ),
        pytest.param(
            {"allocations": (HELD, back(TICK)),
             "exemptions": ({"recorded_at": RECLAIMED + MINUTE},)}, "came_back", id="both",
        ),
    ],
)  # fmt: skip
def test_regret(given: dict[str, object], regret: str | None) -> None:
    found = one(**{"actions": (SUSPENDED,), **given})
    assert (found["regret"], found["is_regretted"]) == (regret, regret is not None)


MIXED = outcomes(
    verdicts=(IDLE_AT_NOON, judged("IDLE", NOON, workload_uid="w3")),
    allocations=(
        HELD,
        taken(MINUTE),
        {**HELD, "workload_uid": "w3", "device_uuid": "GPU-c", "ended_at": None},
    ),
    actions=({"kind": "notify", "recorded_at": NOON + MINUTE}, {**SUSPENDED, "action_id": 2}),
)


def test_the_funnel() -> None:
    found = funnel(MIXED, has_verdicts=True, has_actions=True)
    assert found.rows() == [
        ("detected", 2, 2.0, 1.0),
        ("warned", 1, 1.0, 0.5),
        ("reclaimed", 1, 1.0, 0.5),
        ("reused", 1, 1.0, 0.5),
    ]


def test_what_is_not_recorded_is_unknown() -> None:
    nothing = funnel(MIXED.clear(), has_verdicts=False, has_actions=False)
    assert nothing["case_count"].to_list() == [None] * 4
    unacted = funnel(MIXED, has_verdicts=True, has_actions=False)
    assert unacted["case_count"].to_list() == [2, None, None, None]
    none_idle = funnel(MIXED.clear(), has_verdicts=True, has_actions=True)
    assert none_idle["case_count"].to_list() == [0, 0, 0, 0]
    assert none_idle["of_detected_ratio"].to_list() == [None] * 4


def test_speed_and_shares() -> None:
    assert speed(MIXED) == {"median_s": 3_600.0, "reused_ratio": 1.0, "regret_ratio": 0.0}
    assert set(speed(MIXED.clear()).values()) == {None}


def test_by_team() -> None:
    named = MIXED.with_columns(tenant_id=pl.Series(["a", None], dtype=pl.String))
    columns = ("tenant_id", "detected_count", "reclaimed_count", "reused_count", "idle_gpu_hours",
               "reused_gpu_hours")  # fmt: skip
    assert by_holder(named, "tenant_id").select(columns).rows() == [
        (None, 1, 0, 0, 48.0, None),
        ("a", 1, 1, 1, 1.0, 1.0),
    ]
