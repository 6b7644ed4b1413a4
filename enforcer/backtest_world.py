"""The cluster as it would be, had a policy acted: what it took, what came back, what started early.

Recorded history goes on underneath. A workload that was taken holds nothing until it is busy again
in the recording: then its owner is taken to have asked it back at that very moment. A waiting
workload that fits what was freed is taken to start then, and to hold room until its recorded start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from enforcer.decisions import TAKING_STEPS, Decision, Plan, PlannedAction, Step, Verdict
from enforcer.facts import Health, NodeRoom, Notice, PastAction, Snapshot, Workload
from enforcer.planning.pressure import WAITING_MOST
from enforcer.planning.room import demand_of, with_freed, without_placed
from enforcer.planning.victims import by_queue
from enforcer.planning.waiting import Need, need_of, waiting
from enforcer.policies.decide import NOT_JUDGED
from steward.units import SECONDS_PER_HOUR

WATCHED_FOR: Final = timedelta(days=1)
"""For so long it matters in which rounds a taken workload was seen."""


@dataclass(slots=True, kw_only=True)
class Taking:
    """GPUs that would have been taken from one workload at one moment."""

    workload: Workload
    rule: str
    step: Step
    at: datetime
    lost_gpu_hours: float | None
    serves_workload_uid: str | None
    followed_until_at: datetime
    """Until then it is known to have held what was taken, and not to have worked."""
    back_at: datetime | None = None
    """When it was first seen busy again; None: it was not."""
    ended_at: datetime | None = None
    """When it was first seen to hold nothing any more."""
    judged: list[tuple[datetime, bool]] = field(default_factory=list)
    """The rounds of the first ``WATCHED_FOR``, each with whether it could be judged."""

    @property
    def is_open(self) -> bool:
        """Tell whether its GPUs are still free because of it."""
        return self.back_at is None and self.ended_at is None

    @property
    def recovered_gpu_hours(self) -> float:
        """Return GPU-hours that it freed, as far as is known."""
        freed_s = (self.followed_until_at - self.at).total_seconds()
        return self.workload.gpu_count * freed_s / SECONDS_PER_HOUR


@dataclass(slots=True, kw_only=True)
class EarlyStart:
    """A waiting workload that would have started in freed room."""

    workload: Workload
    need: Need
    at: datetime
    waited_until_at: datetime
    """Its recorded start, or until when it is known to have waited."""
    has_started: bool = False
    """Whether it is recorded to have started, or left, at all."""


@dataclass(slots=True, kw_only=True)
class Watched:
    """GPU-seconds of one team that a rule spoke of, by what was seen of them."""

    held_gpu_s: float = 0.0
    known_gpu_s: float = 0.0
    idle_gpu_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class World:
    """What differs from the recording."""

    policy: str
    takings: list[Taking] = field(default_factory=list)
    starts: dict[str, EarlyStart] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    lowered: list[PastAction] = field(default_factory=list)
    watched: dict[str | None, Watched] = field(default_factory=dict)

    def facts(self, seen: Snapshot) -> Snapshot:
        """Return a recorded snapshot as the policy would have found it.

        What was really told and done belongs to the policies of that time and is left out, the
        global switch too; exemptions hold.
        """
        uids = {one.uid for one in seen.workloads}
        back = {one.workload.uid: one.back_at for one in self.takings if one.back_at is not None}
        return replace(
            seen,
            workloads=tuple(replace(one, restored_at=back.get(one.uid)) for one in seen.workloads),
            notices=tuple(one for one in self.notices if one.workload_uid in uids),
            past_actions=(*self._past(), *self.lowered),
            health=Health(
                telemetry_at=seen.health.telemetry_at, api_error_ratio=0.0, is_stopped=False
            ),
        )

    def _past(self) -> Iterator[PastAction]:
        for number, one in enumerate(self.takings):
            yield PastAction(
                action_id=f"taking-{number:06}",
                workload_uid=one.workload.uid,
                tenant_id=one.workload.tenant_id,
                step=one.step,
                gpu_count=one.workload.gpu_count,
                begun_at=one.at,
                outcome="done" if one.back_at is None else "undone",
                undone_at=one.back_at,
                was_asked_back=one.back_at is not None,
            )

    def follow(self, seen: Snapshot, decisions: Sequence[Decision], at: datetime) -> None:
        """Take note of what became of what was taken and of what started early."""
        verdicts = {one.workload_uid: one.judgement.verdict for one in decisions}
        holding = {one.uid for one in seen.workloads if not one.is_pending}
        pending = {one.uid for one in seen.workloads if one.is_pending}
        for taking in self.takings:
            if taking.is_open:
                _follow(taking, verdicts if taking.workload.uid in holding else {}, at)
        for start in self.starts.values():
            if not start.has_started:
                start.waited_until_at = at
                start.has_started = start.workload.uid not in pending

    def close(self, at: datetime) -> None:
        """End the replay: what is still open lasts until then."""
        for taking in self.takings:
            if taking.is_open:
                taking.followed_until_at = at
        for start in self.starts.values():
            if not start.has_started:
                start.waited_until_at = at

    def watch(self, seen: Snapshot, decisions: Sequence[Decision], length: timedelta) -> None:
        """Count the time of one round for what a rule of the policy speaks of."""
        judged = {
            one.workload_uid: one.judgement.verdict
            for one in decisions
            if one.policy == self.policy and one.judgement != NOT_JUDGED
        }
        for one in seen.workloads:
            verdict = judged.get(one.uid)
            if verdict is None or one.is_pending:
                continue
            team = self.watched.setdefault(one.tenant_id, Watched())
            gpu_s = one.gpu_count * length.total_seconds()
            team.held_gpu_s += gpu_s
            team.known_gpu_s += 0.0 if verdict is Verdict.UNKNOWN else gpu_s
            team.idle_gpu_s += gpu_s if verdict is Verdict.IDLE else 0.0

    def without_taken(self, facts: Snapshot, decisions: Sequence[Decision]) -> Scene:
        """Return what is left to plan for: neither what was taken nor what started early."""
        taken = [one.workload for one in self.takings if one.is_open]
        gone = {one.uid for one in taken}
        started = {uid for uid, one in self.starts.items() if not one.has_started}
        there = tuple(one for one in facts.workloads if one.uid not in gone | started)
        now = {one.uid: one for one in facts.workloads}
        rooms = with_freed(_ordered(facts.rooms), [now.get(one.uid, one) for one in taken])
        for start in self.starts.values():
            if not start.has_started:
                demand = demand_of(start.need, rooms, ())
                rooms = without_placed(rooms, demand) if demand.fits() else rooms
        return Scene(
            facts=replace(facts, workloads=there, rooms=tuple(rooms)),
            decisions=[one for one in decisions if one.workload_uid not in gone],
        )

    def carry_out(self, plan: Plan, facts: Snapshot, at: datetime) -> None:
        """Let every action of a plan take effect at once, every notice be delivered."""
        workloads = {one.uid: one for one in facts.workloads}
        for action in plan.actions:
            workload = workloads[action.workload_uid]
            if action.step is Step.NOTIFY:
                self.notices.append(_notice(action, workload, at))
            elif action.step is Step.LOWER_PRIORITY:
                self.lowered.append(_lowered(action, workload, at, number=len(self.lowered)))
            elif action.step in TAKING_STEPS:
                self.takings.append(
                    Taking(
                        workload=workload,
                        rule=action.decision.rule or "",
                        step=action.step,
                        at=at,
                        lost_gpu_hours=action.lost_gpu_hours,
                        serves_workload_uid=action.serves_workload_uid,
                        followed_until_at=at,
                    )
                )

    def start_early(self, seen: Snapshot, scene: Scene, at: datetime) -> None:
        """Start what waits and fits, but would not without what was freed."""
        taken_now = [one.workload for one in self.takings if one.at == at]
        rooms = with_freed(scene.facts.rooms, taken_now)
        recorded = _ordered(seen.rooms)
        quotas = by_queue(seen.quotas)
        for cluster in sorted({room.cluster for room in rooms}):
            for workload in islice(waiting(scene.facts, cluster), WAITING_MOST):
                need = need_of(workload, recorded)
                if need is None:
                    continue
                own = quotas.get((workload.cluster, workload.queue), ())
                demand = demand_of(need, rooms, own)
                if demand.fits() and not demand_of(need, recorded, own).fits():
                    rooms = without_placed(rooms, demand)
                    self.starts[workload.uid] = EarlyStart(
                        workload=workload, need=need, at=at, waited_until_at=at
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Facts and decisions without what was taken."""

    facts: Snapshot
    decisions: Sequence[Decision]


def _follow(taking: Taking, verdicts: Mapping[str, Verdict], at: datetime) -> None:
    """Take note of one round; no verdict: it holds nothing any more."""
    verdict = verdicts.get(taking.workload.uid)
    if verdict is None:
        taking.ended_at = at
    elif verdict is Verdict.BUSY:
        taking.back_at = at
    else:
        taking.followed_until_at = at
        if at <= taking.at + WATCHED_FOR:
            taking.judged.append((at, verdict is Verdict.IDLE))


def _ordered(rooms: Sequence[NodeRoom]) -> list[NodeRoom]:
    return sorted(rooms, key=lambda room: (room.cluster, room.node, room.mig_profile or ""))


def _notice(action: PlannedAction, workload: Workload, at: datetime) -> Notice:
    evidence, act_at = workload.evidence, action.decision.act_at
    return Notice(
        workload_uid=workload.uid,
        rule=action.decision.rule or "",
        delivered_at=at,
        idle_since_at=None if evidence is None else evidence.idle_since_at,
        act_at=at if act_at is None else act_at,
    )


def _lowered(action: PlannedAction, workload: Workload, at: datetime, *, number: int) -> PastAction:
    return PastAction(
        action_id=f"lowered-{number:06}",
        workload_uid=workload.uid,
        tenant_id=workload.tenant_id,
        step=action.step,
        gpu_count=workload.gpu_count,
        begun_at=at,
        outcome="done",
        undone_at=None,
        was_asked_back=False,
    )
