"""One policy over many kinds of objects, as written by a person, round by round."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from enforcer.decisions import Step, Verdict
from enforcer.facts import Notice
from enforcer.policies.model import Mode, Policy
from enforcer.policies.reading import read_policy
from enforcer.policies.shipped import default_policy
from tests.support.policy_cases import (
    HOUR,
    MINUTE,
    NOON,
    decided,
    evidence,
    notice,
    workload,
)

INTERACTIVE = """
policy: interactive
mode: enforce
rules:
  - name: shells
    match: {kind: [Pod, Job, Deployment, Notebook]}
    idle: {window: 2h}
    on_pressure: false
    evicts_bare_pods: true
    ladder:
      - {step: notify, after: 2h}
      - {step: notify, after: 2h25m}
      - {step: suspend, after: 2h30m, lead: 30m}
      - {step: evict, after: 2h30m, lead: 30m}
"""


def life(law: Policy, *, name: str, until: timedelta, **changes: object) -> list[tuple[int, str]]:
    """Return when, in minutes, which step is due of a workload that idles from noon on."""
    told: tuple[Notice, ...] = ()
    found = []
    for minute in range(0, int(until / MINUTE) + 1, 5):
        now = NOON + minute * MINUTE
        seen = replace(evidence(idle=minute * MINUTE, now=now))
        window = replace(seen.window, from_at=now - 6 * HOUR)
        one = workload(evidence=replace(seen, window=window), **changes)
        decision = decided(one, law, now=now, notices=told)
        if decision.step is not None:
            found.append((minute, decision.step.value))
        if decision.step is Step.NOTIFY:
            act_at = decision.act_at or now
            told = (
                *told,
                notice(ago=timedelta(), now=now, rule=name, idle_since_at=NOON, act_at=act_at),
            )
        if decision.step in {Step.SUSPEND, Step.EVICT}:
            break
    return found


@pytest.mark.parametrize(
    ("kind", "last"),
    [("Pod", "evict"), ("Job", "suspend"), ("Deployment", "suspend"), ("Notebook", "suspend")],
)
def test_scenario_16_one_policy_covers_shells_and_jobs_told_30_and_5_minutes_before(
    kind: str, last: str
) -> None:
    law = read_policy(INTERACTIVE, name="interactive")
    happened = life(law, name="shells", until=3 * HOUR, kind=kind)
    assert happened == [(120, "notify"), (145, "notify"), (150, last)]


@pytest.mark.parametrize(
    ("workload_class", "name", "expected"),
    [
        (
            "training",
            "training",
            [(60, "finding"), (60, "notify"), (90, "lower"), (105, "notify"), (120, "suspend")],
        ),
        (
            "development",
            "development",
            [(120, "finding"), (120, "notify"), (150, "lower"), (165, "notify"), (180, "suspend")],
        ),
        (
            "inference",
            "inference",
            [(360, "finding"), (360, "notify"), (390, "lower"), (405, "notify"), (420, "suspend")],
        ),
        (None, "class-not-known", [(360, "finding"), (360, "notify")]),
    ],
)
def test_the_shipped_ladder_of_each_class(
    workload_class: str | None, name: str, expected: list[tuple[int, str]]
) -> None:
    """Steps of the day: the furthest one that is due hides those before it."""
    law = replace(default_policy(), mode=Mode.ENFORCE)
    happened = life(law, name=name, until=8 * HOUR, workload_class=workload_class)
    kinds = [step for _, step in happened]
    notices = [minute for minute, step in expected if step == "notify"]
    assert [minute for minute, step in happened if step == "notify"] == notices
    takes = [minute for minute, step in expected if step == "suspend"]
    assert [minute for minute, step in happened if step == "suspend"] == takes
    lowered = [minute for minute, step in expected if step == "lower"]
    assert [minute for minute, step in happened if step == "lower_priority"][:1] == lowered
    assert "evict" not in kinds


def test_scenario_03_what_idles_for_a_day_is_warned_before_anything_is_taken() -> None:
    law = replace(default_policy(), mode=Mode.ENFORCE)
    seen = evidence(idle=24 * HOUR)
    found = decided(workload(evidence=seen, workload_class="training"), law)
    assert (found.step, found.judgement.verdict) == (Step.NOTIFY, Verdict.IDLE)
    assert found.act_at == NOON + HOUR


def test_the_shipped_policy_takes_nothing_before_a_person_gives_it_leave() -> None:
    for name in ("training", "development", "inference"):
        for minute, step in life(default_policy(), name=name, until=8 * HOUR, workload_class=name):
            assert (step, minute > 0) == ("finding", True)
