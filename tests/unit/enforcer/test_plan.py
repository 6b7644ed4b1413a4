"""A plan: which due steps a round takes, in which order, and why not the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from enforcer.decisions import Decision, Plan, Step, Verdict
from enforcer.facts import Health, Manager, PodFact, Snapshot, Workload
from enforcer.planning import plan_from
from enforcer.policies.model import Mode, Policy
from tests.support.enforcer_plan import (
    HOUR,
    MINUTE,
    NOON,
    budget,
    caps,
    due,
    evidence,
    holder,
    node,
    notice,
    past,
    pods,
    policy,
    rule,
    snapshot,
    waiter,
)

TICK = timedelta(microseconds=1)


def planned(
    facts: Snapshot, *, by: Policy | None = None, decisions: Sequence[Decision] | None = None
) -> Plan:
    wanted = [due(one) for one in facts.workloads if not one.is_pending]
    chosen = wanted if decisions is None else decisions
    return plan_from(chosen, facts, (policy() if by is None else by,), NOON)


def taken(plan: Plan) -> list[str]:
    return [one.workload_uid for one in plan.actions if one.step is Step.SUSPEND]


def why(plan: Plan) -> dict[str, str]:
    return {one.workload_uid: str(one.reasons[0]) for one in plan.deferred}


def test_what_is_due_is_planned_with_what_it_frees_and_loses() -> None:
    one = holder("a", {"n1": 4})
    (action,) = planned(snapshot(one)).actions
    assert (action.number, action.step, action.workload_uid) == (1, Step.SUSPEND, "a")
    assert (action.gpu_count, action.serves_workload_uid) == (4.0, None)
    # 24 hours since it got its GPUs, the last 3 of them idle
    assert action.lost_gpu_hours == pytest.approx(4 * 21)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        pytest.param({"checkpoint_at": NOON - 5 * HOUR}, 2.0, id="two hours of work since"),
        pytest.param({"checkpoint_at": NOON - 3 * HOUR}, 0.0, id="written when it went idle"),
        pytest.param({"checkpoint_at": NOON - HOUR}, 0.0, id="written since"),
        pytest.param({"checkpoint_at": NOON - 30 * HOUR}, 21.0, id="of an earlier run"),
        pytest.param({"admitted_at": None}, None, id="nothing is known"),
    ],
)
def test_work_lost(changes: dict[str, object], lost: float | None) -> None:
    (action,) = planned(snapshot(holder("a", **changes))).actions
    assert action.lost_gpu_hours == lost


def test_nothing_is_planned_of_nothing() -> None:
    plan = plan_from((), snapshot(), (), NOON)
    assert (plan.actions, plan.deferred, plan.breakers) == ((), (), ())


@pytest.mark.parametrize(
    ("mode", "steps", "reason"),
    [
        pytest.param(Mode.OBSERVE, [], "mode_observe", id="observe"),
        pytest.param(Mode.WARN, [Step.NOTIFY], "mode_warn", id="warn"),
        pytest.param(Mode.ENFORCE, [Step.NOTIFY, Step.SUSPEND], None, id="enforce"),
    ],
)
def test_mode(mode: Mode, steps: list[Step], reason: str | None) -> None:
    one, other = holder("a"), holder("b")
    decisions = (due(other), due(one, Step.NOTIFY))
    plan = planned(snapshot(one, other), by=policy(mode=mode), decisions=decisions)
    assert [action.step for action in plan.actions] == steps
    assert why(plan).get("b") == reason


def test_telling_comes_first_then_lowering_then_taking_by_uid() -> None:
    found = [holder(uid) for uid in "abcd"]
    wanted = [Step.SUSPEND, Step.LOWER_PRIORITY, Step.SUSPEND, Step.NOTIFY]
    decisions = [due(one, step) for one, step in zip(found, wanted, strict=True)]
    plan = planned(snapshot(*found), decisions=decisions)
    order = [(action.number, action.workload_uid) for action in plan.actions]
    assert order == [(1, "d"), (2, "b"), (3, "a"), (4, "c")]
    assert [action.gpu_count for action in plan.actions] == [0.0, 0.0, 1.0, 1.0]


def test_under_caps_low_priority_goes_first_then_the_longest_idle() -> None:
    short, long = holder("a", evidence=evidence(idle=2 * HOUR)), holder("b")
    high = holder("c", priority=5, evidence=evidence(idle=9 * HOUR))
    plan = planned(snapshot(short, long, high), by=policy(limits=caps(workloads_per_round=2)))
    assert taken(plan) == ["b", "a"]
    assert why(plan) == {"c": "cap_per_round"}


class TestCaps:
    @pytest.mark.parametrize(
        ("limits", "count", "reason"),
        [
            pytest.param({"workloads_per_round": 0}, 0, "cap_per_round", id="none a round"),
            pytest.param({"workloads_per_round": 2}, 2, "cap_per_round", id="two a round"),
            pytest.param({"workloads_per_round": 3}, 3, None, id="exactly as many a round"),
            pytest.param({"workloads_per_hour": 2}, 2, "cap_per_hour", id="two an hour"),
            pytest.param(
                {"workloads_per_tenant_per_hour": 1}, 1, "cap_tenant", id="one of a team an hour"
            ),
            pytest.param({"gpu_ratio_per_hour": 0.124}, 0, "cap_gpu_ratio", id="less than one"),
            pytest.param({"gpu_ratio_per_hour": 0.125}, 1, "cap_gpu_ratio", id="exactly one of 8"),
            pytest.param({"gpu_ratio_per_hour": 0.375}, 3, None, id="exactly all"),
        ],
    )
    def test_cap(self, limits: dict[str, object], count: int, reason: str | None) -> None:
        found = snapshot(*(holder(uid) for uid in "abc"))
        plan = planned(found, by=policy(limits=caps(**limits)))
        assert len(taken(plan)) == count
        assert set(why(plan).values()) == ({reason} if reason else set())

    @pytest.mark.parametrize(
        ("ago", "count"),
        [
            pytest.param(HOUR - TICK, 0, id="just inside the hour"),
            pytest.param(HOUR, 1, id="exactly an hour ago"),
            pytest.param(HOUR + TICK, 1, id="longer ago"),
        ],
    )
    def test_the_hour_counts_what_was_done_before(self, ago: timedelta, count: int) -> None:
        found = snapshot(holder("a"), past_actions=(past("gone", begun_at=NOON - ago),))
        assert len(taken(planned(found, by=policy(limits=caps(workloads_per_hour=1))))) == count

    def test_failed_acts_count_and_notices_do_not(self) -> None:
        done = (
            past("x", begun_at=NOON - MINUTE, outcome="failed"),
            past("y", begun_at=NOON - MINUTE, step=Step.NOTIFY),
        )
        found = snapshot(holder("a"), holder("b"), past_actions=done)
        assert taken(planned(found, by=policy(limits=caps(workloads_per_hour=2)))) == ["a"]

    def test_mig_instances_count_as_their_slices(self) -> None:
        rooms = (node("n1", total=7, mig_profile="1g.10gb"),)
        found = snapshot(holder("a", mig_profile="1g.10gb", gpu_count=1 / 7), rooms=rooms)
        assert taken(planned(found, by=policy(limits=caps(gpu_ratio_per_hour=0.14)))) == []
        assert taken(planned(found, by=policy(limits=caps(gpu_ratio_per_hour=0.15)))) == ["a"]

    def test_where_the_cluster_has_no_known_gpus_none_are_taken(self) -> None:
        assert why(planned(snapshot(holder("a"), rooms=()))) == {"a": "cap_gpu_ratio"}


class TestBreakers:
    def test_the_global_switch_stops_notices_too(self) -> None:
        health = Health(telemetry_at=NOON, api_error_ratio=0.0, is_stopped=True)
        one, other = holder("a"), holder("b")
        plan = planned(
            snapshot(one, other, health=health), decisions=(due(one), due(other, Step.NOTIFY))
        )
        assert (plan.actions, plan.breakers) == ((), ("stopped",))
        assert why(plan) == {"a": "stopped", "b": "stopped"}

    @pytest.mark.parametrize(
        ("ratio", "breakers"),
        [
            pytest.param(0.1999, (), id="just below"),
            pytest.param(0.2, (), id="exactly at"),
            pytest.param(0.2001, ("api_errors",), id="just above"),
        ],
    )
    def test_api_errors(self, ratio: float, breakers: tuple[str, ...]) -> None:
        health = Health(telemetry_at=NOON, api_error_ratio=ratio, is_stopped=False)
        by = policy(limits=caps(api_error_ratio_breaker=0.2))
        plan = planned(snapshot(holder("a"), health=health), by=by)
        assert plan.breakers == breakers
        assert taken(plan) == ([] if breakers else ["a"])

    @pytest.mark.parametrize(
        ("unknown", "breakers"),
        [
            pytest.param(0, (), id="none"),
            pytest.param(1, (), id="exactly a half"),
            pytest.param(2, ("unknown_ratio",), id="more"),
        ],
    )
    def test_unknown_share(self, unknown: int, breakers: tuple[str, ...]) -> None:
        one, dark = holder("a"), [holder(f"u{at}") for at in range(unknown)]
        decisions = [due(one), *(due(each, None, verdict=Verdict.UNKNOWN) for each in dark)]
        waits = waiter("z")  # holds nothing: not judged, and not counted
        decisions.append(due(waits, None, verdict=Verdict.UNKNOWN))
        by = policy(limits=caps(unknown_ratio_breaker=0.5))
        plan = planned(snapshot(one, *dark, waits), by=by, decisions=decisions)
        assert plan.breakers == breakers
        assert why(plan) == ({"a": "breaker_open"} if breakers else {})

    @pytest.mark.parametrize(
        ("asked_back", "breakers"),
        [
            pytest.param(1, (), id="exactly a quarter"),
            pytest.param(2, ("restore_ratio",), id="more than a quarter"),
        ],
    )
    def test_restores(self, asked_back: int, breakers: tuple[str, ...]) -> None:
        done = [past(f"x{at}", was_asked_back=at < asked_back) for at in range(4)]
        old = past("old", begun_at=NOON - 24 * HOUR, was_asked_back=True)
        failed = past("failed", outcome="failed", was_asked_back=True)
        by = policy(limits=caps(restore_ratio_breaker=0.25))
        plan = planned(snapshot(holder("a"), past_actions=(*done, old, failed)), by=by)
        assert plan.breakers == breakers

    def test_a_policy_that_only_observes_opens_none(self) -> None:
        health = Health(telemetry_at=NOON, api_error_ratio=1.0, is_stopped=False)
        by = policy(limits=caps(api_error_ratio_breaker=0.0), mode=Mode.OBSERVE)
        assert planned(snapshot(holder("a"), health=health), by=by).breakers == ()


class TestBackOff:
    @pytest.mark.parametrize(
        ("earlier", "ago", "is_taken"),
        [
            pytest.param(1, 15 * MINUTE - TICK, False, id="first: just inside"),
            pytest.param(1, 15 * MINUTE, True, id="first: exactly"),
            pytest.param(2, 30 * MINUTE - TICK, False, id="second: just inside"),
            pytest.param(2, 30 * MINUTE, True, id="second: exactly"),
            pytest.param(4, 2 * HOUR - TICK, False, id="fourth: just inside"),
            pytest.param(4, 2 * HOUR, True, id="fourth: exactly"),
        ],
    )
    def test_scenario_30_each_act_doubles_the_time_it_is_left_alone(
        self, earlier: int, ago: timedelta, *, is_taken: bool
    ) -> None:
        times = [NOON - ago - at * MINUTE for at in range(earlier)]
        done = [past("a", action_id=str(at), begun_at=at, outcome="failed") for at in times]
        plan = planned(snapshot(holder("a"), past_actions=tuple(done)))
        assert why(plan) == ({} if is_taken else {"a": "backing_off"})

    def test_an_unfinished_act_is_not_repeated(self) -> None:
        done = past("a", outcome="begun", begun_at=NOON - 5 * HOUR)
        assert why(planned(snapshot(holder("a"), past_actions=(done,)))) == {"a": "in_flight"}

    @pytest.mark.parametrize(
        ("count", "reasons"),
        [
            pytest.param(1, {}, id="once"),
            pytest.param(2, {"a": "ping_pong"}, id="twice"),
        ],
    )
    def test_ping_pong(self, count: int, reasons: dict[str, str]) -> None:
        at = NOON - 12 * HOUR
        done = [
            past("a", action_id=str(n), begun_at=at + n * HOUR, outcome="undone", undone_at=NOON)
            for n in range(count)
        ]
        assert why(planned(snapshot(holder("a"), past_actions=tuple(done)))) == reasons


class TestManagers:
    def test_scenario_29_what_gitops_owns_is_told_once_and_left_alone(self) -> None:
        owned = holder("a", managers=frozenset({Manager.GITOPS}))
        plan = planned(snapshot(owned))
        assert [(one.step, one.gpu_count) for one in plan.actions] == [(Step.NOTIFY, 0.0)]
        told = planned(snapshot(owned, notices=(notice("a"),)))
        assert (told.actions, why(told)) == ((), {"a": "gitops_owned"})

    def test_what_could_not_be_read_is_left_alone_where_objects_were_read(self) -> None:
        gone = holder("a", resource_version="")
        assert taken(planned(snapshot(gone))) == ["a"]  # history has no objects
        plan = planned(snapshot(gone, holder("b"), is_live=True))
        assert (taken(plan), why(plan)) == (["b"], {"a": "object_unread"})

    def test_the_object_above_is_meant(self) -> None:
        owned = holder("a", managers=frozenset({Manager.OWNER}))
        assert why(planned(snapshot(owned))) == {"a": "owned_above"}

    @pytest.mark.parametrize("manager", [Manager.KUEUE, Manager.HPA, Manager.KEDA])
    def test_others_have_a_way_of_their_own(self, manager: Manager) -> None:
        assert taken(planned(snapshot(holder("a", managers=frozenset({manager}))))) == ["a"]


class TestDisruptionBudgets:
    @pytest.mark.parametrize(
        ("allowed", "is_taken"),
        [
            pytest.param(0, False, id="none"),
            pytest.param(1, False, id="one of two"),
            pytest.param(2, True, id="exactly both"),
        ],
    )
    def test_scenario_30_a_plan_excludes_what_a_budget_keeps(
        self, allowed: int, *, is_taken: bool
    ) -> None:
        served = pods("a", {"n1": 1, "n2": 1}, labels={"app": "chat", "tier": "web"})
        found = snapshot(
            holder("a", {"n1": 1, "n2": 1}, pods=served), disruptions=(budget(allowed, app="chat"),)
        )
        plan = planned(found)
        assert taken(plan) == (["a"] if is_taken else [])
        assert why(plan) == ({} if is_taken else {"a": "disruption_budget"})

    def test_one_budget_over_two_workloads_is_spent_once(self) -> None:
        found = [holder(uid, pods=pods(uid, {"n1": 1}, labels={"app": "x"})) for uid in "ab"]
        plan = planned(snapshot(*found, disruptions=(budget(1, app="x"),)))
        assert (taken(plan), why(plan)) == (["a"], {"b": "disruption_budget"})

    def test_it_speaks_of_its_namespace_and_of_pods_still_there(self) -> None:
        elsewhere = budget(0, namespace="other")
        assert taken(planned(snapshot(holder("a"), disruptions=(elsewhere,)))) == ["a"]
        (gone,) = pods("a", {"n1": 1})
        ended = holder("a", pods=(replace(gone, phase="Succeeded"),))
        assert taken(planned(snapshot(ended, disruptions=(budget(0),)))) == ["a"]

    def test_telling_disturbs_nobody(self) -> None:
        one = holder("a")
        plan = planned(snapshot(one, disruptions=(budget(0),)), decisions=(due(one, Step.NOTIFY),))
        assert len(plan.actions) == 1


def bare(uid: str, *, has_controller: bool = False) -> Workload:
    made = [replace(pod, has_controller=has_controller) for pod in pods(uid, {"n1": 1})]
    return holder(uid, kind="Pod", pods=tuple[PodFact, ...](made))


@pytest.mark.parametrize(
    ("opted_in", "one", "reason"),
    [
        pytest.param(False, bare("a"), "evict_not_allowed", id="not opted in"),
        pytest.param(True, bare("a", has_controller=True), "not_bare", id="made again"),
        pytest.param(True, bare("a"), None, id="opted in and bare"),
    ],
)
def test_eviction(opted_in: bool, one: Workload, reason: str | None) -> None:
    by = policy(rule(evicts_bare_pods=opted_in))
    plan = planned(snapshot(one), by=by, decisions=(due(one, Step.EVICT),))
    assert why(plan) == ({"a": reason} if reason else {})
    assert len(plan.actions) == (0 if reason else 1)


class TestCheckpoints:
    @pytest.mark.parametrize(
        ("checkpoint_ago", "promised", "reasons"),
        [
            pytest.param(2 * HOUR, -5 * MINUTE, {"a": "awaiting_checkpoint"}, id="within grace"),
            pytest.param(2 * HOUR, -10 * MINUTE + TICK, {"a": "awaiting_checkpoint"}, id="last"),
            pytest.param(2 * HOUR, -10 * MINUTE, {}, id="grace over"),
            pytest.param(HOUR, -5 * MINUTE, {}, id="came with the warning"),
            pytest.param(HOUR - TICK, -5 * MINUTE, {}, id="came after it"),
            pytest.param(None, -5 * MINUTE, {}, id="writes none"),
        ],
    )
    def test_scenario_40_a_checkpoint_is_waited_for_as_long_as_the_grace(
        self,
        checkpoint_ago: timedelta | None,
        promised: timedelta,
        reasons: dict[str, str],
    ) -> None:
        at = None if checkpoint_ago is None else NOON - checkpoint_ago
        found = snapshot(
            holder("a", checkpoint_at=at), notices=(notice("a", ago=HOUR, promised=promised),)
        )
        by = policy(rule(checkpoint_grace=10 * MINUTE))
        assert why(planned(found, by=by)) == reasons


def test_a_decision_of_other_facts_is_left_out() -> None:
    one = holder("a")
    strange = replace(due(one), policy="other")
    plan = planned(snapshot(one), decisions=(strange, due(holder("gone"))))
    assert (plan.actions, plan.deferred) == ((), ())


def test_two_policies_take_one_step_on_one_workload() -> None:
    one = holder("a")
    second = replace(policy(), name="q")
    decisions = (due(one), replace(due(one, Step.NOTIFY), policy="q"))
    plan = plan_from(decisions, snapshot(one), (policy(), second), NOON)
    assert [action.step for action in plan.actions] == [Step.NOTIFY]
    assert why(plan) == {"a": "already_planned"}


def test_the_same_facts_and_versions_make_the_same_plan_id() -> None:
    one = snapshot(holder("a"))
    assert planned(one) == planned(one)
    newer = replace(policy(), version=2)
    ids = {
        planned(one).plan_id,
        plan_from((), one, (newer,), NOON).plan_id,
        planned(replace(one, snapshot_id="t")).plan_id,
    }
    assert len(ids) == 3
