"""Carrying out a plan: the ledger first, then a rehearsal, the write, a look at its effect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from enforcer.apply import Result, apply
from enforcer.decisions import Step
from enforcer.entries import Outcome, past_actions
from enforcer.gateway.dry_run import DryRunGateway
from enforcer.gateway.memory import Call
from enforcer.gateway.port import Verb
from enforcer.hands import Reach
from enforcer.settling import note_restores, settle
from enforcer.undo import Undoing, undo, undo_due, undoable
from steward.errors import ClusterError, FencedError
from tests.support.enforced_cluster import (
    ALL_KINDS,
    TEAM,
    UID_LABEL,
    Enforced,
    enforced,
    job_target,
)
from tests.support.enforcer_plan import HOUR, MINUTE, NOON, notice

TICK = timedelta(milliseconds=1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Enforced]:
    with enforced(tmp_path) as opened:
        yield opened


def outcomes(world: Enforced) -> list[object]:
    return [row["outcome"] for row in world.rows("action")]


def test_an_act_is_written_down_before_it_is_done_and_ends_when_pods_are_gone(
    world: Enforced,
) -> None:
    seen: list[object] = []
    world.gateway.on_call = lambda call: (
        seen.append(outcomes(world)) if call.name == "write" else None
    )
    hands = world.hands()
    (applied,) = apply(world.round(world.add_job("w")), hands)
    assert applied.result is Result.OPEN
    assert seen == [["planned"], ["planned"]]
    (settled,) = settle(hands)
    assert settled.outcome is Outcome.DONE
    assert outcomes(world) == ["planned", "done"]


def test_the_ledger_holds_the_object_as_it_was_who_why_and_the_evidences_hash(
    world: Enforced,
) -> None:
    hands = world.hands()
    apply(world.round(world.add_job("w")), hands)
    (row,) = world.rows("action")
    assert row["before_image_json"]
    assert (row["actor"], row["fence"]) == ("replica-1", "1:replica-1")
    assert (row["policy"], row["policy_version"], row["rule"]) == ("p", 1, "idle")
    assert row["reason_codes"] == "any,any"
    assert len(str(row["evidence_sha256"])) == 64


@pytest.mark.parametrize(
    ("ago", "result"),
    [
        pytest.param(HOUR + TICK, Result.OPEN, id="older than its lead"),
        pytest.param(HOUR, Result.OPEN, id="exactly its lead"),
        pytest.param(HOUR - TICK, Result.SKIPPED, id="just too young"),
        pytest.param(4 * HOUR, Result.SKIPPED, id="of an earlier idle stretch"),
        pytest.param(None, Result.SKIPPED, id="none"),
    ],
)
def test_scenario_18_no_act_without_a_delivered_warning_older_than_its_lead(
    world: Enforced, ago: timedelta | None, result: Result
) -> None:
    workload = world.add_job("w")
    notices = [] if ago is None else [notice("w", ago=ago)]
    (applied,) = apply(world.round(workload, notices=notices), world.hands())
    assert applied.result is result
    assert bool(world.gateway.writes) is (result is Result.OPEN)


def test_a_notice_of_another_rule_or_workload_warns_nobody(world: Enforced) -> None:
    workload = world.add_job("w")
    others = [replace(notice("w"), rule="other"), notice("v")]
    (applied,) = apply(world.round(workload, notices=others), world.hands())
    assert applied.result is Result.SKIPPED
    assert outcomes(world) == ["skipped"]


def test_objects_of_a_kind_that_was_not_enabled_are_never_written(world: Enforced) -> None:
    world.reach = Reach(kinds=frozenset({"Deployment"}))
    workload = world.add_job("w")
    (applied,) = apply(world.round(workload), world.hands())
    assert (applied.result, applied.detail) == (Result.SKIPPED, "actuator_off")
    assert world.gateway.writes == []


def test_the_same_reason_to_leave_it_alone_is_written_once_a_day(world: Enforced) -> None:
    world.reach = Reach()
    workload = world.add_job("w")
    for number in range(3):
        apply(world.round(workload, plan_id=f"plan-{number}"), world.hands())
    world.clock.pass_(24 * HOUR)
    apply(world.round(workload, plan_id="tomorrow"), world.hands())
    assert outcomes(world) == ["skipped", "skipped"]
    assert past_actions(world.hands().ledger.entries().all()) == ()


def test_the_same_plan_again_does_nothing(world: Enforced) -> None:
    round_ = world.round(world.add_job("w"))
    apply(round_, world.hands())
    (applied,) = apply(round_, world.hands("replica-2"))
    assert applied.result is Result.OVERTAKEN
    assert len(world.gateway.writes) == 1


def test_of_two_replicas_that_decided_from_the_same_facts_one_acts(world: Enforced) -> None:
    workload = world.add_job("w")
    first, second = world.round(workload), world.round(workload, plan_id="plan-2")
    apply(first, world.hands())
    settle(world.hands())
    (applied,) = apply(second, world.hands("replica-2"))
    assert applied.result is Result.OVERTAKEN
    assert outcomes(world) == ["planned", "done"]


def test_a_replaced_leader_begins_nothing_once_its_successor_has(world: Enforced) -> None:
    early = world.hands("old", fence=lambda: "1:old")
    mine = world.round(world.add_job("w"))
    other = world.add_job("v")
    apply(world.round(other, plan_id="plan-2"), world.hands("new", fence=lambda: "2:new"))
    with pytest.raises(FencedError):
        apply(mine, early)
    assert [write.target.name for write in world.gateway.writes] == ["v"]


def test_a_leader_that_is_fenced_at_the_write_leaves_the_act_to_its_successor(
    world: Enforced,
) -> None:
    world.gateway.is_leading = lambda: False
    with pytest.raises(FencedError):
        apply(world.round(world.add_job("w")), world.hands())
    world.gateway.is_leading = lambda: True
    world.clock.pass_(world.reach.interrupted_after)
    (settled,) = settle(world.hands("replica-2"))
    assert settled.outcome is Outcome.FAILED
    assert world.spec("w") != {"suspend": True}


def test_the_global_switch_stops_a_round_between_two_acts(world: Enforced) -> None:
    hands = world.hands()
    round_ = world.round(world.add_job("v"), world.add_job("w"))

    def freeze(call: Call) -> None:
        if call.name == "write" and call.is_done and len(world.gateway.writes) == 1:
            world.hands("kim").ledger.turn(is_stopped=True, reason="stop", everywhere=False)

    world.gateway.on_call = freeze
    found = [one.result for one in apply(round_, hands)]
    assert found == [Result.OPEN, Result.STOPPED]


def test_thawing_takes_the_switch_back_and_other_clusters_do_not_matter(world: Enforced) -> None:
    ledger = world.hands("kim").ledger
    assert not ledger.is_stopped()
    ledger.turn(is_stopped=True, reason="stop", everywhere=True)
    assert ledger.is_stopped()
    ledger.turn(is_stopped=False, reason="go", everywhere=False)
    assert not ledger.is_stopped()
    assert [row["action"] for row in world.rows("audit")] == ["freeze", "thaw"]


def test_a_refusal_of_the_server_fails_the_act_and_frees_nothing(world: Enforced) -> None:
    world.gateway.refusals.append(lambda _write: "admission says no")
    (applied,) = apply(world.round(world.add_job("w")), world.hands())
    assert applied.result is Result.FAILED
    assert outcomes(world) == ["planned", "failed"]


def test_an_object_that_is_gone_is_left_alone(world: Enforced) -> None:
    workload = world.add_job("w")
    round_ = world.round(workload)
    world.gateway.remove(job_target("w"))
    (applied,) = apply(round_, world.hands())
    assert (applied.result, applied.detail) == (Result.SKIPPED, "object_gone")


def test_a_later_object_of_the_same_name_is_left_alone(world: Enforced) -> None:
    workload = replace(world.add_job("w"), object_uid="an earlier one")
    (applied,) = apply(world.round(workload), world.hands())
    assert (applied.result, applied.detail) == (Result.SKIPPED, "object_gone")


def test_an_answer_that_never_came_is_settled_by_what_the_object_says(world: Enforced) -> None:
    def lose(call: Call) -> None:
        if call.name == "write" and call.is_done:
            raise ClusterError("no answer", hint="")

    world.gateway.on_call = lose
    hands = world.hands()
    (applied,) = apply(world.round(world.add_job("w")), hands)
    assert applied.result is Result.OPEN
    world.gateway.on_call = lambda _call: None
    assert [one.outcome for one in settle(hands)] == [Outcome.DONE]


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        pytest.param(2 * MINUTE - TICK, Outcome.PLANNED, id="within the time"),
        pytest.param(2 * MINUTE, Outcome.FAILED, id="exactly at its end"),
        pytest.param(2 * MINUTE + TICK, Outcome.FAILED, id="past it"),
    ],
)
def test_scenario_24_pods_that_stay_make_the_act_failed_not_done(
    world: Enforced, after: timedelta, outcome: Outcome
) -> None:
    world.gateway.controllers.clear()
    hands = world.hands()
    apply(world.round(world.add_job("w")), hands)
    world.clock.pass_(after)
    (settled,) = settle(hands)
    assert settled.outcome is outcome
    if outcome is Outcome.FAILED:
        assert settled.detail == "pods are still there after 120 s: w-0"
        (past,) = past_actions(hands.ledger.entries().all())
        assert past.outcome == "failed"


def test_a_failed_act_that_changed_its_object_can_be_undone(world: Enforced) -> None:
    world.gateway.controllers.clear()
    hands = world.hands()
    workload = world.add_job("w")
    before = world.spec("w")
    apply(world.round(workload), hands)
    world.clock.pass_(HOUR)
    settle(hands)
    (entry,) = undoable(hands.ledger.entries().all())
    assert undo(entry, hands).result is Undoing.OPEN
    settle(hands)
    assert world.spec("w") == before


def test_a_notice_is_an_event_with_the_exact_time_and_what_is_lost(world: Enforced) -> None:
    hands = world.hands()
    (applied,) = apply(world.round(world.add_job("w"), step=Step.NOTIFY), hands)
    assert applied.result is Result.DONE
    (event,) = world.gateway.list(api_version="v1", kind="Event", namespace=TEAM)
    assert event["message"] == (
        "Job w holds 1 GPUs, idle for 180 min of observed time. From 2026-06-10 13:00 UTC on it "
        "may be stopped (rule idle of policy p). Then what its pods hold in memory and on local "
        "disks is lost. Using the GPUs, or an exemption, prevents it."
    )
    delivered = [row for row in world.rows("notice") if row["is_delivered"] == 1]
    assert [row["act_at"] for row in delivered] == ["2026-06-10T13:00:00.000Z"]
    assert outcomes(world) == ["planned", "done"]


def test_a_notice_that_did_not_arrive_is_no_notice(world: Enforced) -> None:
    world.gateway.denied.add(("create", "Event"))
    (applied,) = apply(world.round(world.add_job("w"), step=Step.NOTIFY), world.hands())
    assert applied.result is Result.FAILED
    assert [row["is_delivered"] for row in world.rows("notice")] == [0]
    assert outcomes(world) == ["planned", "failed"]


def test_a_finding_is_recorded_and_touches_nothing(world: Enforced) -> None:
    (applied,) = apply(world.round(world.add_job("w"), step=Step.FINDING), world.hands())
    assert applied.result is Result.DONE
    assert world.gateway.writes == []
    assert outcomes(world) == ["done"]


def test_undo_gives_the_very_spec_back_and_counts_as_asked_back(world: Enforced) -> None:
    hands = world.hands()
    workload = world.add_job("w")
    before = world.spec("w")
    apply(world.round(workload), hands)
    settle(hands)
    assert world.spec("w") != before
    (entry,) = undoable(hands.ledger.entries().all())
    assert undo(entry, world.hands("kim", fence=lambda: None)).result is Undoing.OPEN
    settle(hands)
    assert world.spec("w") == before
    (past,) = past_actions(hands.ledger.entries().all())
    assert (past.outcome, past.was_asked_back, past.undone_at) == ("undone", True, NOON)
    assert undoable(hands.ledger.entries().all()) == ()


@pytest.mark.parametrize(
    ("after", "is_undone"),
    [
        pytest.param(HOUR - TICK, False, id="just before"),
        pytest.param(HOUR, True, id="exactly then"),
        pytest.param(HOUR + TICK, True, id="just after"),
    ],
)
def test_an_act_is_taken_back_by_its_timer(
    world: Enforced, after: timedelta, is_undone: bool
) -> None:
    world.reach = Reach(kinds=ALL_KINDS, undo_after=HOUR)
    hands = world.hands()
    apply(world.round(world.add_job("w")), hands)
    settle(hands)
    world.clock.pass_(after)
    undo_due(hands)
    settle(hands)
    (past,) = past_actions(hands.ledger.entries().all())
    assert (past.undone_at is not None) is is_undone
    assert not past.was_asked_back


def test_an_undoing_by_timer_that_fails_is_tried_again_ever_later(world: Enforced) -> None:
    world.reach = Reach(kinds=ALL_KINDS, undo_after=HOUR)
    hands = world.hands()
    apply(world.round(world.add_job("w")), hands)
    settle(hands)
    world.gateway.refusals.append(lambda _write: "no")
    tries = []
    world.clock.pass_(HOUR)
    for _minute in range(8):
        tries.append(len(undo_due(hands)))
        world.clock.pass_(MINUTE)
    assert tries == [1, 1, 0, 1, 0, 0, 0, 1]


def test_what_was_put_back_by_hand_is_noticed_and_not_fought(world: Enforced) -> None:
    hands = world.hands()
    apply(world.round(world.add_job("w")), hands)
    settle(hands)
    live = dict(world.live("w"))
    world.gateway.put({**live, "spec": {**live["spec"], "suspend": False}})  # type: ignore[dict-item]  # plain JSON
    (entry,) = note_restores(hands, since_at=NOON - HOUR)
    assert entry.workload_uid == "w"
    (past,) = past_actions(hands.ledger.entries().all())
    assert (past.outcome, past.was_asked_back) == ("undone", True)
    assert note_restores(hands, since_at=NOON - HOUR) == ()
    assert len(world.gateway.writes) == 1


def test_scenario_30_an_eviction_that_a_budget_refuses_is_tried_until_its_time_is_over(
    world: Enforced,
) -> None:
    bare = world.add_job("w")
    pod = next(iter(world.gateway.list(api_version="v1", kind="Pod", namespace=TEAM)))
    uid = str(pod["metadata"]["uid"])  # type: ignore[index,call-overload]  # plain JSON
    workload = replace(bare, kind="Pod", api_version="v1", name="w-0", object_uid=uid)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": TEAM},
        "spec": {"selector": {"matchLabels": {UID_LABEL: "w"}}},
        "status": {"disruptionsAllowed": 0},
    }
    world.gateway.controllers.clear()
    world.gateway.put(budget)  # type: ignore[arg-type]  # plain JSON
    (rung, taking) = world.policies[0].rules[0].ladder
    ladder = (rung, replace(taking, step=Step.EVICT))
    world.policies = (
        replace(world.policies[0], rules=(replace(world.policies[0].rules[0], ladder=ladder),)),
    )
    hands = world.hands()
    (applied,) = apply(world.round(workload, step=Step.EVICT), hands)
    assert applied.result is Result.OPEN
    assert [one.outcome for one in settle(hands)] == [Outcome.PLANNED]
    world.gateway.put({**budget, "status": {"disruptionsAllowed": 1}})  # type: ignore[arg-type]  # plain JSON
    settle(hands)
    assert [one.outcome for one in settle(hands)] == [Outcome.DONE]
    assert [write.verb for write in world.gateway.writes] == [Verb.EVICT]


def test_a_dry_run_rehearses_and_records_and_changes_nothing(world: Enforced) -> None:
    workload = world.add_job("w")
    before = world.live("w")
    world.reach = Reach(kinds=ALL_KINDS, is_dry_run=True)
    hands = replace(world.hands(), gateway=DryRunGateway(world.gateway))
    (applied,) = apply(world.round(workload), hands)
    assert applied.result is Result.DONE
    assert world.live("w") == before
    assert {row["is_dry_run"] for row in world.rows("action")} == {1}
    assert past_actions(hands.ledger.entries().all()) == ()
    world.reach = Reach(kinds=ALL_KINDS)
    assert apply(world.round(workload), world.hands())[0].result is Result.OPEN


def test_every_row_of_the_ledger_has_its_row_of_the_audit(world: Enforced) -> None:
    hands = world.hands()
    apply(world.round(world.add_job("v"), world.add_job("w")), hands)
    settle(hands)
    words = [(row["action"], row["subject_uid"]) for row in world.rows("audit")]
    acts = [(f"act.{row['outcome']}", row["subject_uid"]) for row in world.rows("action")]
    assert words == acts
