"""Rounds of one replica: idempotent, undisturbed by failures, and told in metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from prometheus_client import generate_latest

from enforcer.apply import Result
from enforcer.assembly import rehearsing
from enforcer.calls import CountedGateway
from enforcer.controller import Controller, consider
from enforcer.entries import Outcome
from enforcer.facts import Snapshot
from enforcer.gateway.memory import Call
from enforcer.hands import Reach
from enforcer.policies.model import Mode, Policy
from steward.errors import ClusterError, UnreachableError
from steward.ids import BatchId
from steward.ports import AppendReceipt, ArrowTable
from tests.support.enforce_jobs import PER_ROUND, IdleJobs
from tests.support.enforced_cluster import ALL_KINDS, TEAM, Enforced, enforced
from tests.support.enforcer_plan import HOUR, MINUTE, caps, policy


@dataclass(slots=True)
class Kept:
    """Keeps verdicts."""

    frames: list[pl.DataFrame] = field(default_factory=list)

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Keep the rows."""
        frame = pl.DataFrame(rows)
        self.frames.append(frame)
        return AppendReceipt(
            batch_id=batch_id, table=table, row_count=frame.height, is_repeat=False
        )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Enforced]:
    with enforced(tmp_path) as opened:
        yield opened


def controller(world: Enforced, kept: Kept | None = None, mode: Mode = Mode.ENFORCE) -> Controller:
    hands = world.hands()
    sight = Moded(IdleJobs(world.gateway, hands.ledger, TEAM), mode)
    return Controller(
        sight=sight, hands=hands, writer=Kept() if kept is None else kept, monotonic=lambda: 0.0
    )


@dataclass(slots=True)
class Moded:
    """Sees idle jobs under a policy of some mode."""

    inner: IdleJobs
    mode: Mode

    def policies(self, _now: datetime) -> tuple[Policy, ...]:
        """Return the policy."""
        return (policy(limits=caps(workloads_per_round=PER_ROUND), mode=self.mode),)

    def snapshot(self, policies: tuple[Policy, ...], now: datetime) -> Snapshot:
        """Return what is seen."""
        return self.inner.snapshot(policies, now)


def suspended(world: Enforced) -> int:
    jobs = world.gateway.list(api_version="batch/v1", kind="Job", namespace=TEAM)
    return sum(one["spec"]["suspend"] is True for one in jobs)  # type: ignore[index,call-overload]  # plain JSON


def test_rounds_go_on_until_nothing_is_due_and_keep_to_the_cap(world: Enforced) -> None:
    for number in range(5):
        world.add_job(f"job-{number}")
    own = controller(world)
    counts = []
    for _ in range(3):
        own.round()
        counts.append(suspended(world))
        world.clock.pass_(MINUTE)
    assert counts == [2, 4, 5]
    own.tend()
    assert own.hands.ledger.entries().open() == ()


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.WARN])
def test_a_policy_without_leave_changes_nothing(world: Enforced, mode: Mode) -> None:
    world.add_job("w")
    report = controller(world, mode=mode).round()
    assert report.applied == ()
    assert world.gateway.writes == []


def test_considering_writes_nothing_anywhere(world: Enforced) -> None:
    world.add_job("w")
    own = controller(world)
    found = consider(own.sight, own.hands)
    assert [one.workload_uid for one in found.plan.actions] == ["w"]
    assert (world.gateway.writes, world.rows("action"), world.rows("audit")) == ([], [], [])


def test_a_rehearsed_round_changes_nothing(world: Enforced) -> None:
    world.add_job("w")
    report = rehearsing(controller(world)).rehearse()
    assert [one.result for one in report.applied] == [Result.DONE]
    assert world.gateway.writes == []


def test_a_round_that_fails_is_counted_and_the_next_one_goes_on(world: Enforced) -> None:
    world.add_job("w")
    own = controller(world)

    def fail(_call: Call) -> None:
        raise ClusterError("away", hint="")

    world.gateway.on_call = fail
    assert own.try_round() is None
    world.gateway.on_call = world.killer.on_call
    assert own.try_round() is not None
    text = generate_latest(own.metrics.registry).decode()
    assert 'steward_enforce_rounds_total{outcome="failed"} 1.0' in text
    assert 'steward_enforce_rounds_total{outcome="done"} 1.0' in text


def test_a_warehouse_that_takes_no_verdicts_lets_nothing_act(world: Enforced) -> None:
    class Away(Kept):
        def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
            del table, rows, batch_id
            raise UnreachableError("away", hint="")

    world.add_job("w")
    assert controller(world, Away()).try_round() is None
    assert suspended(world) == 0


def test_what_was_restored_by_hand_is_left_alone_for_the_grace(world: Enforced) -> None:
    world.add_job("w")
    own = controller(world)
    own.round()
    world.clock.pass_(MINUTE)
    own.round()
    live = dict(world.live("w"))
    world.gateway.put({**live, "spec": {**live["spec"], "suspend": False}})  # type: ignore[dict-item]  # plain JSON
    for _ in range(3):
        world.clock.pass_(5 * MINUTE)
        own.round()
    assert suspended(world) == 0
    (entry,) = own.hands.ledger.entries().all()
    assert entry.outcome is Outcome.UNDONE


def test_scenario_07_what_was_restored_stays_up_for_its_grace(world: Enforced) -> None:
    world.add_job("w")
    world.reach = Reach(kinds=ALL_KINDS, undo_after=10 * MINUTE)
    own = controller(world)
    own.round()
    own.tend()
    world.clock.pass_(10 * MINUTE)
    for _ in range(3):
        own.round()
        own.tend()
        assert suspended(world) == 0
        world.clock.pass_(9 * MINUTE)


def test_verdicts_are_kept_when_they_change_and_once_an_hour(world: Enforced) -> None:
    world.reach = Reach()
    world.add_job("w")
    kept = Kept()
    own = controller(world, kept)
    counts = []
    for length in (timedelta(), MINUTE, HOUR - 2 * MINUTE, MINUTE, MINUTE):
        world.clock.pass_(length)
        own.round()
        counts.append(sum(frame.height for frame in kept.frames))
    assert counts == [1, 1, 1, 2, 2]
    (row,) = kept.frames[0].to_dicts()
    assert (row["verdict"], row["window_s"], row["coverage_ratio"]) == ("IDLE", 3600.0, 1.0)
    assert (row["workload_uid"], row["policy_version"]) == ("w", "p@1")


def test_metrics_tell_verdicts_acts_and_calls(world: Enforced) -> None:
    world.add_job("w")
    own = controller(world)
    counted = CountedGateway(world.gateway, monotonic=lambda: 0.0, on_call=own.metrics.count_call)
    own = replace(own, hands=replace(own.hands, gateway=counted))
    own.round()
    own.tend()
    text = generate_latest(own.metrics.registry).decode()
    assert 'steward_enforce_workloads{verdict="IDLE"} 1.0' in text
    assert 'steward_enforce_actions_total{result="open",step="suspend"} 1.0' in text
    assert 'steward_enforce_ended_actions_total{outcome="done",step="suspend"} 1.0' in text
    assert "steward_enforce_freed_gpus_total 1.0" in text
    assert 'steward_enforce_api_calls_total{call="write",outcome="answered"} 1.0' in text
