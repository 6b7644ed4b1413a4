"""Decide: for every workload, which step of which rule is due now, why, and what comes next.

Pure: the same facts, policies and ``now`` give the same decisions, live, in ``explain`` and in a
backtest. Only an IDLE verdict makes a step of a ladder due; UNKNOWN makes none of any kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from enforcer import judging
from enforcer.decisions import TAKING_STEPS, Decision, Judgement, Step, Verdict
from enforcer.facts import Exemption, Notice, PastAction, Snapshot, Workload
from enforcer.policies import notices as told
from enforcer.policies.exemptions import exempt
from enforcer.policies.matching import Book, Spoken
from enforcer.policies.model import Effect, Mode, Policy
from enforcer.policies.outlook import ACTING_STEPS, Outlook, Stretch, outlooks
from enforcer.policies.reasons import JudgedNot, Reason

NO_POLICY_NAME: Final = ""
"""Stands for the policy where no rule speaks."""
MODE_STEPS: Final[Mapping[Mode, frozenset[Step]]] = {
    Mode.OBSERVE: frozenset({Step.FINDING}),
    Mode.WARN: frozenset({Step.FINDING, Step.NOTIFY}),
    Mode.ENFORCE: frozenset(Step),
}
"""Steps that a mode carries out."""
MODE_REASONS: Final = {Mode.OBSERVE: Reason.MODE_OBSERVE, Mode.WARN: Reason.MODE_WARN}
NOT_JUDGED: Final = Judgement(
    verdict=Verdict.UNKNOWN,
    reasons=(JudgedNot.NOT_JUDGED,),
    findings=(),
    coverage_ratio=None,
    observed_idle_s=0.0,
)
"""Of a workload that no acting rule speaks of: breakers that count UNKNOWN leave it out."""
BEGUN: Final = "begun"
DONE: Final = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What is said of one workload, before the policy's mode has its word."""

    step: Step | None
    reasons: tuple[Reason, ...]
    next_at: datetime | None = None
    act_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """What is remembered, by workload."""

    notices: Mapping[str, tuple[Notice, ...]]
    actions: Mapping[str, tuple[PastAction, ...]]
    exemptions: tuple[Exemption, ...]
    """Those that hold now."""


def decide(snapshot: Snapshot, policies: Sequence[Policy], now: datetime) -> tuple[Decision, ...]:
    """Return one decision for every workload, ascending by its uid.

    Args:
        snapshot: its workloads carry evidence made for the limits of the rule that speaks of them
            (``matching.spoken``).
        policies: at most one version of each; a child is asked before its parent.
        now: of the decision; facts that lie after it count for nothing.
    """
    book = Book(policies)
    memory = _memory(snapshot, now)
    decisions = (_decision(workload, book, memory, now=now) for workload in snapshot.workloads)
    return tuple(sorted(decisions, key=lambda one: one.workload_uid))


def _memory(snapshot: Snapshot, now: datetime) -> _Memory:
    notices: defaultdict[str, list[Notice]] = defaultdict(list)
    for notice in snapshot.notices:
        notices[notice.workload_uid].append(notice)
    actions: defaultdict[str, list[PastAction]] = defaultdict(list)
    for action in snapshot.past_actions:
        actions[action.workload_uid].append(action)
    return _Memory(
        notices={uid: tuple(found) for uid, found in notices.items()},
        actions={uid: tuple(found) for uid, found in actions.items()},
        exemptions=tuple(one for one in snapshot.exemptions if one.period.contains(now)),
    )


def _decision(workload: Workload, book: Book, memory: _Memory, *, now: datetime) -> Decision:
    found = book.spoken(workload)
    if found is None:
        return _unspoken(workload, book)
    limits = found.rule.idle
    is_judged = limits is not None and found.rule.effect is Effect.ACT and not workload.is_pending
    judgement = judging.judge(workload, limits, now=now) if is_judged and limits else NOT_JUDGED
    said = _said(workload, found, judgement, memory=memory, now=now)
    is_carried_out = said.step is None or said.step in MODE_STEPS[found.policy.mode]
    by_mode = () if is_carried_out else (MODE_REASONS[found.policy.mode],)
    return Decision(
        workload_uid=workload.uid,
        policy=found.policy.name,
        policy_version=found.policy.version,
        rule=found.rule.name,
        judgement=judgement,
        step=said.step if is_carried_out else None,
        reasons=(*by_mode, *said.reasons),
        next_at=said.next_at,
        act_at=said.act_at,
        withheld_step=None if is_carried_out else said.step,
    )


def _unspoken(workload: Workload, book: Book) -> Decision:
    asked = book.ordered[-1] if book.ordered else None
    return Decision(
        workload_uid=workload.uid,
        policy=NO_POLICY_NAME if asked is None else asked.name,
        policy_version=0 if asked is None else asked.version,
        rule=None,
        judgement=NOT_JUDGED,
        step=None,
        reasons=(Reason.NO_POLICY if asked is None else Reason.NO_RULE,),
        next_at=None,
    )


def _said(
    workload: Workload, found: Spoken, judgement: Judgement, *, memory: _Memory, now: datetime
) -> _Said:
    left_alone = exempt(workload, found, memory.exemptions)
    if left_alone is not None:
        return _Said(step=None, reasons=(left_alone.reason,), next_at=left_alone.until_at)
    if workload.is_pending or _is_underway(memory.actions.get(workload.uid, ())):
        held = Reason.WAITS_FOR_GPUS if workload.is_pending else Reason.ACTION_UNDERWAY
        return _Said(step=None, reasons=(held,))
    if judgement.verdict is Verdict.UNKNOWN:
        return _Said(step=None, reasons=(Reason.UNKNOWN,))
    said = _Said(step=None, reasons=(Reason.BUSY,))
    if judgement.verdict is Verdict.IDLE:
        said = _of_idle(_stretch(workload, found, judgement, memory=memory, now=now), found)
    return _with_duration(said, workload, found, memory=memory, now=now)


def _is_underway(actions: Iterable[PastAction]) -> bool:
    return any(one.outcome == BEGUN and one.step in ACTING_STEPS for one in actions)


def _with_duration(
    said: _Said, workload: Workload, found: Spoken, *, memory: _Memory, now: datetime
) -> _Said:
    """Add, where nothing is due, that its owner is told once that it holds GPUs for too long."""
    limit, admitted_at = found.rule.duration_limit, workload.admitted_at
    if limit is None or admitted_at is None or said.step is not None:
        return said
    until_at = admitted_at + limit
    if until_at > now:
        times = [at for at in (said.next_at, until_at) if at is not None]
        return replace(said, next_at=min(times))
    is_told = any(
        one.rule == found.rule.name and until_at <= one.delivered_at <= now
        for one in memory.notices.get(workload.uid, ())
    )
    reasons = (*said.reasons, Reason.HELD_TOO_LONG)
    return replace(said, reasons=reasons, step=None if is_told else Step.NOTIFY)


def _stretch(
    workload: Workload, found: Spoken, judgement: Judgement, *, memory: _Memory, now: datetime
) -> Stretch:
    since_at = None if workload.evidence is None else workload.evidence.idle_since_at
    actions = memory.actions.get(workload.uid, ())
    undone = [one.undone_at for one in actions if one.undone_at is not None]
    restored = [*undone, *(() if workload.restored_at is None else (workload.restored_at,))]
    return Stretch(
        workload=workload,
        rule=found.rule,
        now=now,
        idle=timedelta(seconds=judgement.observed_idle_s),
        since_at=since_at,
        notices=_notices(memory.notices.get(workload.uid, ()), found, since_at, now=now),
        done_steps=_done_steps(actions, since_at),
        restored_at=max(restored, default=None),
    )


def _notices(
    notices: Iterable[Notice], found: Spoken, since_at: datetime | None, *, now: datetime
) -> tuple[Notice, ...]:
    """Return the notices that count: of this stretch, and given by this version of the policy."""
    if since_at is None:
        return ()
    valid_from_at = found.policy.valid_from_at
    first_at = since_at if valid_from_at is None else max(since_at, valid_from_at)
    return told.of_stretch(notices, found.rule.name, since_at=first_at, now=now)


def _done_steps(actions: Iterable[PastAction], since_at: datetime | None) -> frozenset[str]:
    if since_at is None:
        return frozenset()
    return frozenset(
        one.step
        for one in actions
        if one.outcome == DONE and one.undone_at is None and one.begun_at >= since_at
    )


def _of_idle(stretch: Stretch, found: Spoken) -> _Said:
    ahead = outlooks(stretch)
    due = next((one for one in reversed(ahead) if one.is_due), None)
    later = _later(ahead, due)
    next_at = min((one.due_at for one in later if one.due_at is not None), default=None)
    act_at = _act_at(ahead)
    held = tuple(hold.reason for one in later[:1] for hold in one.holds)
    if due is not None:
        pressure = found.rule.on_pressure and due.rung.step in TAKING_STEPS
        why = (Reason.IDLE_LONG_ENOUGH, *((Reason.FOR_PRESSURE_ONLY,) if pressure else ()))
        return _Said(step=due.rung.step, reasons=(*why, *held), next_at=next_at, act_at=act_at)
    return _Said(step=None, reasons=held or (Reason.STEP_DONE,), next_at=next_at, act_at=act_at)


def _later(ahead: Sequence[Outlook], due: Outlook | None) -> list[Outlook]:
    """Return the rungs still to come after the one that is due, the next one first."""
    start = 0 if due is None else ahead.index(due) + 1
    return [one for one in ahead[start:] if not one.is_done]


def _act_at(ahead: Iterable[Outlook]) -> datetime | None:
    """Return when GPUs may first be taken; None: the ladder takes none of this workload."""
    times = [
        one.due_at
        for one in ahead
        if one.rung.step in TAKING_STEPS and not one.is_done and one.due_at is not None
    ]
    return min(times, default=None)
