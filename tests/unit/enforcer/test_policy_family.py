"""A child policy only tightens: owners get no more time, the enforcer no more power."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, time

import pytest

from enforcer.decisions import Step
from enforcer.policies.family import children, family_faults
from enforcer.policies.model import IdleLimits, Match, Policy, Schedule, Window
from enforcer.policies.overlap import can_overlap, covers
from enforcer.policies.tightening import loosenings
from tests.support.policy_cases import (
    CAPS,
    EXEMPTING,
    HOUR,
    LADDER,
    LIMITS,
    MINUTE,
    policy,
    rule,
)


def limits(**changes: object) -> IdleLimits:
    return replace(LIMITS, **changes)  # type: ignore[arg-type]  # the caller's words


def suspend(**changes: object) -> tuple[object, ...]:
    return (*LADDER[:2], replace(LADDER[2], **changes))  # type: ignore[arg-type]  # same


def nights(first: int = 22, last: int = 6, *, days: str = "0123456", frozen: int = 0) -> Schedule:
    window = Window(
        weekdays=frozenset(int(day) for day in days),
        from_time=time(first),
        until_time=time(last),
    )
    freeze = frozenset(date(2026, 10, day) for day in range(1, frozen + 1))
    return Schedule(time_zone="Asia/Shanghai", windows=(window,), freeze_days=freeze)


PARENT = policy(
    rule(schedule=nights(frozen=2), duration_limit=72 * HOUR, checkpoint_grace=10 * MINUTE),
    name="house",
)


def child(**changes: object) -> Policy:
    """Return a child whose rule is its parent's, but for some fields."""
    own = replace(PARENT.rules[0], name="own", **changes)  # type: ignore[arg-type]  # the caller's
    return policy(own, name="team", parent="house")


def places(made: Policy, above: Policy = PARENT) -> list[str]:
    return [fault.path for fault in loosenings(made, above)]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        pytest.param({"ladder": suspend(after=121 * MINUTE)}, "ladder.suspend", id="later"),
        pytest.param({"ladder": suspend(after=120 * MINUTE)}, None, id="at the same time"),
        pytest.param({"ladder": suspend(after=119 * MINUTE)}, None, id="sooner"),
        pytest.param({"ladder": LADDER[:2]}, "ladder", id="without taking"),
        pytest.param({"ladder": suspend(lead=59 * MINUTE)}, "ladder[2].lead", id="shorter lead"),
        pytest.param({"ladder": suspend(lead=61 * MINUTE)}, None, id="longer lead"),
        pytest.param(
            {
                "ladder": (*LADDER, replace(LADDER[2], step=Step.EVICT)),
                "evicts_bare_pods": True,
            },
            "evicts_bare_pods",
            id="evicting",
        ),
        pytest.param({"duration_limit": 73 * HOUR}, "duration_limit", id="longer limit"),
        pytest.param({"duration_limit": None}, "duration_limit", id="no limit"),
        pytest.param({"duration_limit": 71 * HOUR}, None, id="shorter limit"),
        pytest.param({"min_runtime": 29 * MINUTE}, "min_runtime", id="shorter run time"),
        pytest.param({"min_runtime": 31 * MINUTE}, None, id="longer run time"),
        pytest.param({"restore_grace": 29 * MINUTE}, "restore_grace", id="shorter grace"),
        pytest.param({"checkpoint_grace": 9 * MINUTE}, "checkpoint_grace", id="less patience"),
        pytest.param({"idle": limits(below_ratio=0.03)}, "idle.below_ratio", id="more is idle"),
        pytest.param({"idle": limits(below_ratio=0.01)}, None, id="less is idle"),
        pytest.param(
            {"idle": limits(power_margin_ratio=0.2)}, "idle.power_margin_ratio", id="more power"
        ),
        pytest.param(
            {"idle": limits(min_coverage_ratio=0.8)}, "idle.min_coverage_ratio", id="less seen"
        ),
        pytest.param({"idle": limits(fresh_scrapes=3)}, "idle.fresh_scrapes", id="older readings"),
        pytest.param({"idle": limits(window=30 * MINUTE)}, None, id="another window"),
        pytest.param({"schedule": nights(21, frozen=2)}, "schedule.windows[0]", id="earlier"),
        pytest.param({"schedule": nights(23, 5, frozen=2)}, None, id="within the night"),
        pytest.param({"schedule": nights(1, 5, frozen=2)}, None, id="after midnight"),
        pytest.param({"schedule": nights(1, 7, frozen=2)}, "schedule.windows[0]", id="too late"),
        pytest.param({"schedule": nights(frozen=1)}, "schedule.freeze_days", id="fewer days"),
        pytest.param({"schedule": nights(frozen=3)}, None, id="more freeze days"),
        pytest.param(
            {"schedule": replace(nights(frozen=2), windows=())}, "schedule.windows", id="always"
        ),
        pytest.param(
            {"schedule": replace(nights(frozen=2), time_zone="UTC")},
            "schedule.time_zone",
            id="another zone",
        ),
        pytest.param({"on_pressure": True}, None, id="under pressure only"),
    ],
)
def test_each_field_may_only_tighten(changes: dict[str, object], place: str | None) -> None:
    found = places(child(**changes))
    if place is None:
        assert found == []
    else:
        assert f"rules[0].{place}" in found


def test_a_window_after_midnight_belongs_to_the_evening_before() -> None:
    parent = policy(rule(schedule=nights(days="0")), name="house")
    tuesday = policy(rule(schedule=nights(1, 5, days="1")), name="team", parent="house")
    monday = policy(rule(schedule=nights(1, 5, days="0")), name="team", parent="house")
    assert places(tuesday, parent) == []
    assert places(monday, parent) == ["rules[0].schedule.windows[0]"]


def test_a_taking_rule_under_pressure_stays_under_pressure() -> None:
    parent = policy(rule(on_pressure=True), name="house")
    assert places(policy(rule(), name="team", parent="house"), parent) == ["rules[0].on_pressure"]


def test_a_child_goes_no_further_than_its_parent() -> None:
    parent = policy(rule(ladder=LADDER[:2]), name="house")
    assert places(policy(rule(), name="team", parent="house"), parent) == ["rules[0].ladder[2]"]


def test_a_child_exempts_nothing_that_its_parent_acts_on() -> None:
    made = policy(EXEMPTING, name="team", parent="house")
    (fault,) = loosenings(made, PARENT)
    assert "ask for an exemption" in fault.text


def test_a_child_may_act_where_its_parent_says_nothing() -> None:
    parent = policy(rule(match=Match(tenant=("speech",)), min_runtime=5 * HOUR), name="house")
    own = policy(rule(match=Match(tenant=("vision",))), name="team", parent="house")
    assert places(own, parent) == []
    everybody = policy(rule(), name="team", parent="house")
    assert places(everybody, parent) == ["rules[0].min_runtime"]


def test_rules_of_the_parent_behind_one_that_covers_the_child_do_not_bind() -> None:
    vision = Match(tenant=("vision",))
    parent = policy(
        rule(match=vision, name="vision"), rule(min_runtime=5 * HOUR, name="rest"), name="house"
    )
    own = policy(rule(match=Match(tenant=("vision",), kind=("Job",))), name="t", parent="house")
    assert places(own, parent) == []


@pytest.mark.parametrize("name", CAPS.__slots__)
def test_no_cap_may_be_above_the_parents(name: str) -> None:
    above = replace(CAPS, **{name: getattr(CAPS, name) * 2})
    made = policy(PARENT.rules[0], name="team", parent="house", caps=above)
    assert places(made) == [f"caps.{name}"]
    below = replace(CAPS, **{name: getattr(CAPS, name) / 2})
    assert places(policy(PARENT.rules[0], name="team", parent="house", caps=below)) == []


def test_the_parent_must_hold_and_no_circle_may_close() -> None:
    orphan = policy(name="team", parent="gone")
    assert [str(one) for one in family_faults(orphan, ())] == [
        "parent: there is no policy 'gone' that holds"
    ]
    first, second = policy(name="a", parent="b"), policy(name="b", parent="a")
    assert family_faults(second, (first,))[0].text == "'a' has 'b' above it"


def test_a_parent_may_not_become_tighter_than_its_children() -> None:
    tight = policy(rule(min_runtime=5 * HOUR), name="house")
    found = family_faults(tight, (child(), policy(name="house")))
    assert [fault.path for fault in found if fault.path.endswith("min_runtime")] == [
        "child team: rules[0].min_runtime"
    ]
    assert [one.name for one in children("house", (child(), tight))] == ["team"]


WORDS = [
    (("vision",), ("vision",), True, True),
    (("vision",), ("speech",), False, False),
    (("vis*",), ("vision",), True, True),
    (("vision",), ("vis*",), True, False),
    (("vis*",), ("spe*",), True, False),
    (("*",), ("spe*",), True, True),
    ((), ("vision",), True, True),
    (("vision",), (), True, False),
    (("a", "b"), ("b",), True, True),
    (("b",), ("a", "b"), True, False),
]


@pytest.mark.parametrize(("wide", "narrow", "meets", "is_covered"), WORDS)
def test_words_that_meet_and_words_that_cover(
    wide: tuple[str, ...], narrow: tuple[str, ...], *, meets: bool, is_covered: bool
) -> None:
    one, other = Match(tenant=wide), Match(tenant=narrow)
    assert can_overlap(one, other) is can_overlap(other, one) is meets
    assert covers(one, other) is is_covered


def test_labels_that_meet_and_labels_that_cover() -> None:
    prod, other = Match(labels=(("env", "prod"),)), Match(labels=(("env", "test"),))
    both = Match(labels=(("env", "prod"), ("zone", "a")))
    assert not can_overlap(prod, other)
    assert can_overlap(prod, both)
    assert covers(prod, both)
    assert not covers(both, prod)


def test_a_model_is_one_of_several_so_models_exclude_nothing() -> None:
    assert can_overlap(Match(gpu_model=("A100",)), Match(gpu_model=("H100",)))


def test_the_child_of_these_tests_is_tight() -> None:
    assert places(child()) == []
