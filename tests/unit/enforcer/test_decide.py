"""What is due of an idle workload and why not sooner: ladder, notices, graces, exemptions, mode."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from enforcer.decisions import Step, Verdict
from enforcer.policies.decide import decide
from enforcer.policies.model import Mode, Schedule
from enforcer.policies.outlook import Stretch, outlooks
from enforcer.policies.reasons import Reason
from steward.period import Period
from tests.support.policy_cases import (
    EXEMPTING,
    HOUR,
    LADDER,
    MINUTE,
    NEVER,
    NOON,
    TICK,
    WARNED,
    busy_evidence,
    decided,
    evidence,
    exemption,
    notice,
    past,
    policy,
    rule,
    snapshot,
    workload,
)


@pytest.mark.parametrize(
    ("idle", "step", "reason"),
    [
        pytest.param(61 * MINUTE, Step.NOTIFY, Reason.IDLE_LONG_ENOUGH, id="past its time"),
        pytest.param(60 * MINUTE, Step.NOTIFY, Reason.IDLE_LONG_ENOUGH, id="exactly"),
        pytest.param(60 * MINUTE - TICK, None, Reason.NOT_YET, id="one second inside"),
        pytest.param(None, None, Reason.UNKNOWN, id="nothing was read"),
    ],
)
def test_the_first_notice_is_due_by_observed_idle_time(
    idle: timedelta | None, step: Step | None, reason: Reason
) -> None:
    found = decided(workload(idle=idle))
    assert (found.step, found.reasons[0]) == (step, reason)


def test_gaps_do_not_age_the_clock() -> None:
    seen = evidence(idle=59 * MINUTE, gap=10 * HOUR)
    found = decided(workload(evidence=seen))
    assert (found.step, found.reasons, found.next_at) == (
        None,
        (Reason.NOT_YET,),
        NOON + MINUTE,
    )


@pytest.mark.parametrize(
    ("ago", "step"),
    [
        pytest.param(46 * MINUTE, Step.NOTIFY, id="more than the time between both"),
        pytest.param(45 * MINUTE, Step.NOTIFY, id="exactly"),
        pytest.param(45 * MINUTE - TICK, None, id="less"),
    ],
)
def test_the_second_notice_keeps_its_distance_from_the_first(
    ago: timedelta, step: Step | None
) -> None:
    """Also where a policy begins to warn long after the idle time of both notices."""
    assert decided(workload(idle=10 * HOUR), notices=(notice(ago=ago),)).step is step


@pytest.mark.parametrize(
    ("first", "second", "step", "reason"),
    [
        pytest.param(60, 15, Step.SUSPEND, Reason.IDLE_LONG_ENOUGH, id="both exactly old enough"),
        pytest.param(61, 16, Step.SUSPEND, Reason.IDLE_LONG_ENOUGH, id="both older"),
        pytest.param(59.9, 14.9, None, Reason.NOTICE_TOO_YOUNG, id="both too young"),
        pytest.param(61, 14.9, None, Reason.NOTICE_TOO_YOUNG, id="the last one too young"),
    ],
)
def test_scenario_18_gpus_are_taken_only_after_both_notices_had_their_time(
    first: float, second: float, step: Step | None, reason: Reason
) -> None:
    told = (notice(ago=first * MINUTE), notice(ago=second * MINUTE))
    found = decided(workload(), notices=told)
    assert (found.step, found.reasons[0]) == (step, reason)


def test_scenario_18_without_a_delivered_notice_only_the_notice_is_due() -> None:
    found = decided(workload(idle=100 * HOUR))
    assert found.step is Step.NOTIFY
    assert found.reasons[0] == Reason.IDLE_LONG_ENOUGH
    assert found.act_at == NOON + HOUR


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"delivered_at": NOON - 4 * HOUR}, id="of an earlier stretch"),
        pytest.param({"idle_since_at": None}, id="of no idle stretch"),
        pytest.param({"rule": "another"}, id="of another rule"),
        pytest.param({"workload_uid": "another"}, id="of another workload"),
        pytest.param({"delivered_at": NOON + TICK}, id="delivered later than now"),
    ],
)
def test_a_notice_that_speaks_of_something_else_does_not_count(told: dict[str, object]) -> None:
    first = replace(WARNED[0], **told)  # type: ignore[arg-type]  # fields by name
    assert decided(workload(), notices=(first, WARNED[1])).step is not Step.SUSPEND


def test_a_notice_that_is_delivered_later_is_still_to_be_given() -> None:
    found = decided(workload(), notices=(notice(ago=-TICK),))
    assert found.step is Step.NOTIFY


@pytest.mark.parametrize(
    ("ago", "step"),
    [
        pytest.param(16 * MINUTE, Step.SUSPEND, id="older than the lead"),
        pytest.param(15 * MINUTE, Step.SUSPEND, id="as old as the lead"),
        pytest.param(15 * MINUTE - TICK, None, id="younger"),
    ],
)
def test_a_lead_shorter_than_the_notice_is_early_is_enough(
    ago: timedelta, step: Step | None
) -> None:
    ladder = (LADDER[0], replace(LADDER[2], lead=15 * MINUTE))
    found = decided(workload(), policy(rule(ladder=ladder)), notices=(notice(ago=ago),))
    assert found.step is step


def test_scenario_18_a_ladder_without_any_notice_takes_nothing() -> None:
    """Validation refuses such a ladder; the decision does not lean on it."""
    found = decided(workload(), policy(rule(ladder=LADDER[2:])), notices=WARNED)
    assert (found.step, found.reasons, found.act_at) == (None, (Reason.NOTICE_MISSING,), None)


def test_no_step_is_due_in_a_stretch_of_unknown_beginning() -> None:
    stretch = Stretch(
        workload=workload(),
        rule=rule(),
        now=NOON,
        idle=3 * HOUR,
        since_at=None,
        notices=WARNED,
        done_steps=frozenset(),
        restored_at=None,
    )
    assert [one.is_due for one in outlooks(stretch)] == [False, False, False]
    assert {one.due_at for one in outlooks(stretch)} == {None}


def test_a_notice_of_an_earlier_version_promised_something_else() -> None:
    newer = policy(valid_from_at=NOON - 30 * MINUTE)
    assert decided(workload(), newer, notices=WARNED).step is None
    older = policy(valid_from_at=NOON - HOUR)
    assert decided(workload(), older, notices=WARNED).step is Step.SUSPEND


def test_copies_of_one_notice_by_several_channels_are_one_notice() -> None:
    copies = tuple(notice(ago=60 * MINUTE - number * TICK) for number in range(5))
    found = decided(workload(), notices=copies)
    assert found.step is Step.NOTIFY


@pytest.mark.parametrize(
    ("promised", "step"),
    [
        pytest.param(-TICK, Step.SUSPEND, id="past"),
        pytest.param(NEVER, Step.SUSPEND, id="now"),
        pytest.param(TICK, None, id="later"),
    ],
)
def test_what_the_newest_notice_promised_is_kept(promised: timedelta, step: Step | None) -> None:
    told = (WARNED[0], notice(ago=15 * MINUTE, act_at=NOON + promised))
    found = decided(workload(), notices=told)
    assert found.step is step
    assert (Reason.PROMISED_LATER in found.reasons) == (step is None)


@pytest.mark.parametrize(
    ("ran", "step"),
    [
        pytest.param(31 * MINUTE, Step.SUSPEND, id="longer"),
        pytest.param(30 * MINUTE, Step.SUSPEND, id="exactly"),
        pytest.param(30 * MINUTE - TICK, None, id="shorter"),
    ],
)
def test_scenario_34_nothing_is_taken_within_the_minimum_run_time(
    ran: timedelta, step: Step | None
) -> None:
    found = decided(workload(admitted_at=NOON - ran), notices=WARNED)
    assert found.step is step


def test_scenario_34_when_it_got_its_gpus_must_be_known() -> None:
    found = decided(workload(admitted_at=None), notices=WARNED)
    assert (found.step, found.reasons, found.act_at) == (None, (Reason.ADMISSION_UNKNOWN,), None)


@pytest.mark.parametrize(
    ("ago", "step"),
    [
        pytest.param(31 * MINUTE, Step.SUSPEND, id="longer"),
        pytest.param(30 * MINUTE, Step.SUSPEND, id="exactly"),
        pytest.param(30 * MINUTE - TICK, None, id="shorter"),
    ],
)
@pytest.mark.parametrize("told_by", ["the object", "the ledger"])
def test_scenario_07_nothing_is_due_within_the_grace_after_a_restore(
    ago: timedelta, step: Step | None, told_by: str
) -> None:
    at = NOON - ago
    if told_by == "the object":
        found = decided(workload(restored_at=at), notices=WARNED)
    else:
        actions = (past(begun_at=NOON - 5 * HOUR, outcome="undone", undone_at=at),)
        found = decided(workload(), notices=WARNED, past_actions=actions)
    assert found.step is step
    assert (Reason.RESTORED_LATELY in found.reasons) == (step is None)


def test_scenario_07_three_rounds_after_a_restore_leave_it_up() -> None:
    for minutes in (0, 5, 10):
        now = NOON + minutes * MINUTE
        one = workload(now=now, restored_at=NOON)
        assert decided(one, now=now, notices=WARNED).step is None


def test_a_busy_workload_is_left_alone() -> None:
    found = decided(workload(evidence=busy_evidence()), notices=WARNED)
    assert (found.step, found.reasons, found.next_at) == (None, (Reason.BUSY,), None)


@pytest.mark.parametrize(
    ("held", "step"),
    [
        pytest.param(24 * HOUR + TICK, Step.NOTIFY, id="longer"),
        pytest.param(24 * HOUR, Step.NOTIFY, id="exactly"),
        pytest.param(24 * HOUR - TICK, None, id="shorter"),
    ],
)
def test_the_owner_of_a_busy_workload_is_told_that_it_holds_gpus_for_too_long(
    held: timedelta, step: Step | None
) -> None:
    limited = policy(rule(duration_limit=24 * HOUR))
    one = workload(evidence=busy_evidence(), admitted_at=NOON - held)
    found = decided(one, limited)
    assert found.step is step
    assert found.next_at == (None if step else NOON + TICK)


def test_the_owner_is_told_once_that_it_holds_gpus_for_too_long() -> None:
    limited = policy(rule(duration_limit=24 * HOUR))
    one = workload(evidence=busy_evidence(), admitted_at=NOON - 25 * HOUR)
    found = decided(one, limited, notices=(notice(ago=MINUTE, idle_since_at=None),))
    assert (found.step, found.reasons) == (None, (Reason.BUSY, Reason.HELD_TOO_LONG))


def test_unknown_is_told_of_nothing_however_long_it_holds_gpus() -> None:
    limited = policy(rule(duration_limit=24 * HOUR))
    found = decided(workload(idle=None, admitted_at=NOON - 99 * HOUR), limited, notices=WARNED)
    assert (found.step, found.judgement.verdict) == (None, Verdict.UNKNOWN)
    assert found.reasons == (Reason.UNKNOWN,)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("workload", "w"),
        ("tenant", "vision"),
        ("namespace", "vision"),
        ("namespace", "c/vision"),
        ("device", "GPU-1"),
    ],
)
def test_a_grant_exempts_what_it_names(kind: str, key: str) -> None:
    found = decided(
        workload(), notices=WARNED, exemptions=(exemption(scope_kind=kind, scope_key=key),)
    )
    assert (found.step, found.reasons, found.next_at) == (
        None,
        (Reason.EXEMPT_BY_GRANT,),
        NOON + HOUR,
    )


@pytest.mark.parametrize(
    "grant",
    [
        exemption(scope_key="another"),
        exemption(scope_kind="tenant", scope_key="w"),
        exemption(policy="another"),
        exemption(scope_kind="cluster", scope_key="c"),
    ],
)
def test_a_grant_exempts_nothing_else(grant: object) -> None:
    assert decided(workload(), notices=WARNED, exemptions=(grant,)).step is Step.SUSPEND


@pytest.mark.parametrize(
    ("until", "step"),
    [
        pytest.param(NOON - TICK, Step.SUSPEND, id="over"),
        pytest.param(NOON, Step.SUSPEND, id="over this instant"),
        pytest.param(NOON + TICK, None, id="not yet over"),
    ],
)
def test_scenario_19_on_expiry_the_policy_applies_again(until: object, step: Step | None) -> None:
    grant = exemption(period=Period(NOON - HOUR, until))  # type: ignore[arg-type]  # a datetime
    assert decided(workload(), notices=WARNED, exemptions=(grant,)).step is step


def test_an_exempting_rule_ends_the_search() -> None:
    found = decided(workload(), policy(EXEMPTING, rule()), notices=WARNED)
    assert (found.rule, found.step, found.reasons) == ("kept", None, (Reason.EXEMPT_BY_RULE,))


def test_what_a_parent_exempts_no_child_takes() -> None:
    parent = policy(EXEMPTING, name="house")
    child = policy(rule(), name="team", parent="house")
    found = decided(workload(), parent, child, notices=WARNED)
    assert (found.policy, found.step, found.reasons) == (
        "team",
        None,
        (Reason.EXEMPT_BY_PARENT,),
    )


@pytest.mark.parametrize(
    ("mode", "step", "withheld", "reason"),
    [
        (Mode.OBSERVE, None, Step.SUSPEND, Reason.MODE_OBSERVE),
        (Mode.WARN, None, Step.SUSPEND, Reason.MODE_WARN),
        (Mode.ENFORCE, Step.SUSPEND, None, Reason.IDLE_LONG_ENOUGH),
    ],
)
def test_a_mode_withholds_what_it_does_not_allow(
    mode: Mode, step: Step | None, withheld: Step | None, reason: Reason
) -> None:
    found = decided(workload(), policy(mode=mode), notices=WARNED)
    assert (found.step, found.withheld_step, found.reasons[0]) == (step, withheld, reason)


def test_warning_mode_still_warns() -> None:
    assert decided(workload(), policy(mode=Mode.WARN)).step is Step.NOTIFY
    assert decided(workload(), policy(mode=Mode.OBSERVE)).step is None


NIGHT = Schedule(
    time_zone="UTC",
    windows=(),
    freeze_days=frozenset({NOON.date()}),
)


def test_on_a_freeze_day_owners_are_told_and_nothing_is_taken() -> None:
    frozen = policy(rule(schedule=NIGHT))
    found = decided(workload(), frozen, notices=WARNED)
    midnight = NOON.replace(day=11, hour=0)
    assert (found.step, found.reasons, found.next_at) == (None, (Reason.FREEZE_DAY,), midnight)
    told = decided(workload(), frozen)
    assert (told.step, told.act_at) == (Step.NOTIFY, midnight)


@pytest.mark.parametrize(
    ("kind", "last", "step", "reason"),
    [
        ("Pod", Step.SUSPEND, None, Reason.BARE_POD),
        ("Pod", Step.EVICT, Step.EVICT, Reason.IDLE_LONG_ENOUGH),
        ("Job", Step.EVICT, None, Reason.NOT_A_BARE_POD),
        ("Job", Step.SUSPEND, Step.SUSPEND, Reason.IDLE_LONG_ENOUGH),
    ],
)
def test_bare_pods_are_evicted_and_all_else_is_suspended(
    kind: str, last: Step, step: Step | None, reason: Reason
) -> None:
    ladder = (*LADDER[:2], replace(LADDER[2], step=last))
    found = decided(workload(kind=kind), policy(rule(ladder=ladder)), notices=WARNED)
    assert (found.step, found.reasons[0]) == (step, reason)


def test_a_lower_priority_is_asked_for_once_in_a_stretch() -> None:
    lower = replace(LADDER[2], step=Step.LOWER_PRIORITY, after=90 * MINUTE, lead=15 * MINUTE)
    ladder = (LADDER[0], lower, *LADDER[1:])
    one, told = workload(idle=100 * MINUTE), (notice(ago=40 * MINUTE),)
    assert decided(one, policy(rule(ladder=ladder)), notices=told).step is Step.LOWER_PRIORITY
    done = (past(step="lower_priority", begun_at=NOON - 5 * MINUTE),)
    found = decided(one, policy(rule(ladder=ladder)), notices=told, past_actions=done)
    assert (found.step, found.next_at) == (None, NOON + 5 * MINUTE)
    long_ago = (past(step="lower_priority", begun_at=NOON - 5 * HOUR),)
    again = decided(one, policy(rule(ladder=ladder)), notices=told, past_actions=long_ago)
    assert again.step is Step.LOWER_PRIORITY


def test_nothing_is_due_while_an_act_is_under_way() -> None:
    found = decided(workload(), notices=WARNED, past_actions=(past(outcome="begun"),))
    assert (found.step, found.reasons) == (None, (Reason.ACTION_UNDERWAY,))


def test_every_step_taken_leaves_nothing_to_do() -> None:
    found = decided(workload(), notices=WARNED, past_actions=(past(),))
    assert (found.step, found.reasons, found.next_at) == (None, (Reason.STEP_DONE,), None)


def test_under_pressure_only_is_said() -> None:
    found = decided(workload(), policy(rule(on_pressure=True)), notices=WARNED)
    assert found.reasons == (Reason.IDLE_LONG_ENOUGH, Reason.FOR_PRESSURE_ONLY)


def test_a_waiting_workload_holds_nothing() -> None:
    found = decided(workload(is_pending=True, idle=None))
    assert (found.step, found.reasons) == (None, (Reason.WAITS_FOR_GPUS,))
    assert found.judgement.reasons == ("not_judged",)


def test_idle_since_unknown_gives_no_step() -> None:
    seen = replace(evidence(idle=3 * HOUR), idle_since_at=None)
    assert decided(workload(evidence=seen), notices=WARNED).step is None


@pytest.mark.parametrize(
    ("policies", "reason", "name"),
    [
        pytest.param((), Reason.NO_POLICY, "", id="no policy"),
        pytest.param(
            (policy(rule(match=replace(rule().match, tenant=("speech",)))),),
            Reason.NO_RULE,
            "p",
            id="no rule",
        ),
    ],
)
def test_every_workload_gets_a_decision(
    policies: tuple[object, ...], reason: Reason, name: str
) -> None:
    (found,) = decide(snapshot(workload()), policies, NOON)  # type: ignore[arg-type]  # policies
    assert (found.policy, found.rule, found.step, found.reasons) == (name, None, None, (reason,))


def test_a_day_of_rounds_warns_twice_and_suspends_after_the_promised_hour() -> None:
    """What happens to one workload that idles from noon on, with a round every minute."""
    happened = []
    notices: tuple[object, ...] = ()
    for minute in range(1, 181):
        now = NOON + minute * MINUTE
        one = workload(idle=minute * MINUTE, now=now)
        found = decided(one, now=now, notices=notices)
        if found.step is None:
            continue
        happened.append((minute, found.step.value))
        if found.step is Step.SUSPEND:
            break
        told = notice(ago=NEVER, now=now, idle_since_at=NOON, act_at=found.act_at)
        notices = (*notices, told)
    assert happened == [(60, "notify"), (105, "notify"), (120, "suspend")]
