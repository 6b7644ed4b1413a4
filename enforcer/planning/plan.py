"""From decisions to a plan: pure, ordered, capped, every due step either planned or given a reason.

Steps that only tell come first, then lowered priorities, then takings that wait for nobody, then
those that make room for a waiting workload; ties by uid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from enforcer.decisions import TAKING_STEPS, Decision, Deferred, Plan, PlannedAction, Step
from enforcer.facts import Snapshot, Workload
from enforcer.planning.breakers import open_breakers
from enforcer.planning.budget import Budget, budget_at
from enforcer.planning.due import CHANGING_STEPS, Due, due_steps, known_from
from enforcer.planning.gates import is_settling, refusal, told_instead
from enforcer.planning.pressure import scene_of, served
from enforcer.planning.reasons import Breaker, Reason
from enforcer.planning.stakes import lost_gpu_hours
from enforcer.planning.waiting import priority_of
from enforcer.policies.model import Policy


def plan_from(  # noqa: PLR0917  # what each round has in hand, in the order in which it comes
    decisions: Sequence[Decision],
    snapshot: Snapshot,
    policies: Sequence[Policy],
    now: datetime,
) -> Plan:
    """Return what one round does.

    Args:
        decisions: of any workloads and policies, in any order.
        snapshot: the facts that they were made from, with what was read of live objects since.
        policies: those that made the decisions.
        now: the round's instant, not before the snapshot's.
    """
    draft = _Draft(snapshot=snapshot, now=now, budget=budget_at(snapshot, now))
    breakers = open_breakers(decisions, snapshot, policies, now=now)
    draft.sort_out(due_steps(decisions, snapshot, policies), breakers)
    draft.take_freely()
    draft.take_for_waiting()
    return Plan(
        plan_id=_plan_id(snapshot, policies),
        snapshot_id=snapshot.snapshot_id,
        planned_at=now,
        actions=tuple(draft.actions),
        deferred=tuple(sorted(draft.deferred, key=lambda one: (one.workload_uid, one.step))),
        breakers=tuple(breakers),
    )


def _plan_id(snapshot: Snapshot, policies: Sequence[Policy]) -> str:
    """Return a name that the same facts and policy versions share, and no others."""
    versions = sorted(f"{one.name}@{one.version}:{one.mode}" for one in policies)
    return sha256("\n".join([snapshot.snapshot_id, *versions]).encode()).hexdigest()


@dataclass(slots=True, kw_only=True)
class _Draft:
    """A plan in the making."""

    snapshot: Snapshot
    now: datetime
    budget: Budget
    actions: list[PlannedAction] = field(default_factory=list)
    deferred: list[Deferred] = field(default_factory=list)
    taking: list[Due] = field(default_factory=list)
    """Takings that nothing speaks against but others."""
    going: list[Workload] = field(default_factory=list)
    """Workloads that let go in any case."""
    seen: set[str] = field(default_factory=set)

    def sort_out(self, due: Sequence[Due], breakers: Sequence[Breaker]) -> None:
        """Plan what only tells or lowers, defer what may not be, keep takings for later."""
        known = known_from(self.snapshot)
        self.going = [
            one
            for one in self.snapshot.workloads
            if any(is_settling(past, self.now) for past in known.past.get(one.uid, ()))
        ]
        for one in due:
            is_told = told_instead(one, known, self.now)
            self._sort_one(is_told or one, refusal(is_told or one, known, self.now), breakers)

    def _sort_one(self, due: Due, reason: Reason | None, breakers: Sequence[Breaker]) -> None:
        if Breaker.STOPPED in breakers and due.step is not Step.FINDING:
            reason = Reason.STOPPED
        elif due.uid in self.seen:
            reason = Reason.ALREADY_PLANNED
        elif reason is None and breakers and due.step in TAKING_STEPS:
            reason = Reason.BREAKER_OPEN
        if reason is not None:
            self._defer(due, reason)
            return
        self.seen.add(due.uid)
        if due.step in TAKING_STEPS:
            self.taking.append(due)
        else:
            self._plan(due)

    def take_freely(self) -> None:
        """Plan takings that wait for nobody, as long as the budget lasts."""
        free = [one for one in self.taking if not one.rule.on_pressure]
        for due in sorted(free, key=self._rank):
            if self._plan(due):
                self.going.append(due.workload)

    def _rank(self, due: Due) -> tuple[int, float, str]:
        """Return the order under caps: low priority, long idle; no quota has a say in it."""
        return (priority_of(due.workload), -due.decision.judgement.observed_idle_s, due.uid)

    def take_for_waiting(self) -> None:
        """Plan takings that make room for what waits, cluster by cluster."""
        held = sorted((one for one in self.taking if one.rule.on_pressure), key=lambda one: one.uid)
        for cluster in sorted({one.workload.cluster for one in held}):
            scene = scene_of(
                cluster, self.snapshot, candidates=held, going=self.going, budget=self.budget
            )
            found = served(scene, self.snapshot, self.now)
            for due in found.taken:
                self._plan(due, serves=found.waiting_uid)
            taken = {due.uid for due in found.taken}
            for due in scene.candidates:
                if due.uid not in taken:
                    self._defer(due, found.reason)

    def _plan(self, due: Due, *, serves: str | None = None) -> bool:
        """Plan a step if the budget lets it, else defer it."""
        if due.step in CHANGING_STEPS:
            reason = self.budget.refusal(due)
            if reason is not None:
                self._defer(due, reason)
                return False
            self.budget = self.budget.spent(due)
        takes = due.step in TAKING_STEPS
        self.actions.append(
            PlannedAction(
                number=len(self.actions) + 1,
                decision=due.decision,
                step=due.step,
                workload_uid=due.uid,
                gpu_count=due.workload.gpu_count if takes else 0.0,
                lost_gpu_hours=lost_gpu_hours(due.workload, self.now) if takes else None,
                serves_workload_uid=serves,
            )
        )
        return True

    def _defer(self, due: Due, reason: Reason) -> None:
        self.deferred.append(Deferred(workload_uid=due.uid, step=due.step, reasons=(reason,)))
