"""Carrying out a plan: ahead of each act the ledger, then a rehearsal, then the write.

Acts that take GPUs stay open here; ``enforcer.settling`` ends them once their pods are seen gone.
Nothing acts without a delivered notice older than its lead: that is checked here once more, on its
own, whatever a plan says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from enforcer.actuators import Act, Order, Refusal, reclaim
from enforcer.decisions import TAKING_STEPS, Plan, PlannedAction, Step
from enforcer.enrich import UNREAD, subject_target, surroundings
from enforcer.entries import Entry, Outcome
from enforcer.facts import Notice, Snapshot, Workload
from enforcer.gateway.port import Write
from enforcer.hands import Hands, carry_out
from enforcer.ledger import Draft, Known
from enforcer.policies.model import Policy, Rung
from enforcer.telling import tell_owner
from steward.errors import ClusterError, DeniedError, FencedError, RefusedError
from steward.errors import ConflictError as Conflict
from steward.units import GPU_MILLI


class Result(StrEnum):
    """What became of one planned action within its round."""

    OPEN = "open"
    """Written; its effect is not yet seen."""
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Left alone; the ledger says why."""
    OVERTAKEN = "overtaken"
    """Somebody else acted on the workload since it was decided."""
    STOPPED = "stopped"
    """The global switch was turned during the round."""
    UNREAD = "unread"
    """Its object could not be read: nothing was begun."""


class SkipReason(StrEnum):
    """Why an action of a plan is not begun, beside the actuators' own reasons."""

    ACTUATOR_OFF = "actuator_off"
    """Objects of this kind may not be written: see ``enforce.kinds``."""
    NOTICE_MISSING = "notice_missing"
    """No notice of this idle stretch was delivered long enough ago."""
    OBJECT_GONE = "object_gone"
    OBJECT_UNREAD = "object_unread"
    """Its live object could not be read when the round was planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """One planned action and what became of it."""

    action: PlannedAction
    result: Result
    detail: str | None = None


REPEAT_SKIP_AFTER: Final = timedelta(hours=24)
"""The same reason to leave the same workload alone is written down once in so long."""
CALM_STEPS: Final = frozenset({Step.FINDING, Step.NOTIFY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a plan was made from."""

    plan: Plan
    snapshot: Snapshot
    policies: tuple[Policy, ...]
    known: Known
    """Of the ledger, when the snapshot was taken."""


def apply(round_: Round, hands: Hands) -> tuple[Applied, ...]:
    """Carry out the plan in its order; return what became of each action.

    Raises:
        FencedError: another replica leads now; what was begun stays open for it.
        WarehouseError: the ledger cannot be written: nothing more is done.
    """
    workloads = {one.uid: one for one in round_.snapshot.workloads}
    return tuple(
        _applied(action, workloads[action.workload_uid], round_, hands=hands)
        for action in round_.plan.actions
    )


def _applied(action: PlannedAction, workload: Workload, round_: Round, *, hands: Hands) -> Applied:
    draft = draft_of(action, workload, round_, hands=hands)
    if action.step is Step.FINDING:
        is_new = hands.ledger.record(draft, Outcome.DONE, known=round_.known, detail=None)
        return Applied(action=action, result=Result.DONE if is_new else Result.OVERTAKEN)
    if hands.ledger.is_stopped():
        return Applied(action=action, result=Result.STOPPED)
    if action.step is Step.NOTIFY:
        return _told(action, workload, draft, round_=round_, hands=hands)
    try:
        return _checked(action, workload, draft, round_=round_, hands=hands)
    except FencedError:
        raise
    except ClusterError as error:
        return Applied(action=action, result=Result.UNREAD, detail=error.message)


def _checked(
    action: PlannedAction, workload: Workload, draft: Draft, *, round_: Round, hands: Hands
) -> Applied:
    skipped = _skip_reason(action, workload, round_, now=hands.clock.now())
    if skipped is not None:
        return _skipped(action, draft, skipped, round_=round_, hands=hands)
    return _changed(action, workload, draft, round_=round_, hands=hands)


def draft_of(action: PlannedAction, workload: Workload, round_: Round, *, hands: Hands) -> Draft:
    """Return the act as the ledger will have it, before its before-image is known."""
    reach = hands.reach
    plan_id = f"dry-{round_.plan.plan_id}" if reach.is_dry_run else round_.plan.plan_id
    is_timed = action.step not in CALM_STEPS and reach.undo_after is not None
    return Draft(
        plan_id=plan_id,
        number=action.number,
        step=action.step.value,
        workload_uid=workload.uid,
        tenant_id=workload.tenant_id,
        target=subject_target(workload),
        gpu_milli=round(action.gpu_count * GPU_MILLI),
        reasons=(*action.decision.reasons, *action.decision.judgement.reasons),
        evidence=_evidence(action, workload, round_.plan),
        policy=action.decision.policy,
        policy_version=action.decision.policy_version,
        rule=action.decision.rule,
        undo_at=hands.clock.now() + reach.undo_after if is_timed and reach.undo_after else None,
        is_dry_run=reach.is_dry_run,
    )


def _evidence(action: PlannedAction, workload: Workload, plan: Plan) -> dict[str, object]:
    return {
        "snapshot_id": plan.snapshot_id,
        "judgement": action.decision.judgement,
        "evidence": workload.evidence,
        "serves_workload_uid": action.serves_workload_uid,
        "lost_gpu_hours": action.lost_gpu_hours,
    }


def _told(
    action: PlannedAction, workload: Workload, draft: Draft, *, round_: Round, hands: Hands
) -> Applied:
    found = tell_owner(action.decision, workload, draft, known=round_.known, hands=hands)
    if found is None:
        return Applied(action=action, result=Result.OVERTAKEN)
    result = Result.DONE if found.is_delivered else Result.FAILED
    return Applied(action=action, result=result, detail=found.detail)


def _skip_reason(
    action: PlannedAction, workload: Workload, round_: Round, *, now: datetime
) -> SkipReason | None:
    if workload.resource_version == UNREAD:
        return SkipReason.OBJECT_UNREAD
    if action.step not in TAKING_STEPS:
        return None
    is_told = was_warned(action, workload, round_, now=now)
    return None if is_told else SkipReason.NOTICE_MISSING


def was_warned(action: PlannedAction, workload: Workload, round_: Round, *, now: datetime) -> bool:
    """Tell whether a notice of this idle stretch was delivered long enough before now."""
    since_at = None if workload.evidence is None else workload.evidence.idle_since_at
    ladder = _ladder(action, round_.policies)
    rungs = [one for one in ladder if one.step is action.step]
    first = min((one.after for one in ladder if one.step is Step.NOTIFY), default=None)
    if since_at is None or not rungs or first is None:
        return False
    lead = min(rungs[-1].lead, rungs[-1].after - first)
    return any(
        _speaks(notice, action, since_at=since_at) and notice.delivered_at <= now - lead
        for notice in round_.snapshot.notices
    )


def _speaks(notice: Notice, action: PlannedAction, *, since_at: datetime) -> bool:
    return (
        notice.workload_uid == action.workload_uid
        and notice.rule == action.decision.rule
        and notice.delivered_at >= since_at
    )


def _ladder(action: PlannedAction, policies: Iterable[Policy]) -> Sequence[Rung]:
    decision = action.decision
    rules = (
        rule
        for policy in policies
        if (policy.name, policy.version) == (decision.policy, decision.policy_version)
        for rule in policy.rules
        if rule.name == decision.rule
    )
    return next((rule.ladder for rule in rules), ())


def _changed(
    action: PlannedAction, workload: Workload, draft: Draft, *, round_: Round, hands: Hands
) -> Applied:
    """Change the workload's object, once it is written down how it was."""
    found = _act(action, workload, draft, hands=hands)
    if not isinstance(found, Act):
        return _skipped(action, draft, found, round_=round_, hands=hands)
    begun = replace(draft, before=found.before.text())
    entry = hands.ledger.begin(begun, known=round_.known)
    if entry is None:
        return Applied(action=action, result=Result.OVERTAKEN)

    def again() -> Write | None:
        fresh = _act(action, workload, draft, hands=hands)
        is_same = isinstance(fresh, Act) and fresh.before == found.before
        return fresh.write if isinstance(fresh, Act) and is_same else None

    return _written(action, entry, found.write, again=again, hands=hands)


def _act(
    action: PlannedAction, workload: Workload, draft: Draft, *, hands: Hands
) -> Act | Refusal | SkipReason:
    subject = hands.gateway.read(subject_target(workload))
    if subject is None:
        return SkipReason.OBJECT_GONE
    around = surroundings(hands.gateway, workload.namespace)
    order = Order(
        action_id=draft.action_id,
        at=hands.clock.now(),
        low_priority_class=hands.reach.low_priority_class,
    )
    found = reclaim(action.step, subject, around, order=order)
    if isinstance(found, Act) and not hands.reach.may_write(found.before.holder):
        return SkipReason.ACTUATOR_OFF
    return found


def _written(
    action: PlannedAction,
    entry: Entry,
    write: Write,
    *,
    again: Callable[[], Write | None],
    hands: Hands,
) -> Applied:
    """Rehearse and write; a refusal ends the act, an answer that never came leaves it open."""
    try:
        carry_out(write, again=again, gateway=hands.gateway)
    except FencedError:
        raise
    except (Conflict, DeniedError, RefusedError) as error:
        return _refused(action, entry, error, hands=hands)
    except ClusterError as error:
        return Applied(action=action, result=Result.OPEN, detail=error.message)
    if hands.reach.is_dry_run:
        hands.ledger.end(entry, Outcome.DONE, detail="rehearsed only")
        return Applied(action=action, result=Result.DONE, detail="rehearsed only")
    return Applied(action=action, result=Result.OPEN)


def _refused(action: PlannedAction, entry: Entry, error: ClusterError, *, hands: Hands) -> Applied:
    """End the act, but for an eviction that a budget may yet allow: that one is tried again."""
    if action.step is Step.EVICT and isinstance(error, RefusedError):
        return Applied(action=action, result=Result.OPEN, detail=error.message)
    hands.ledger.end(entry, Outcome.FAILED, detail=error.message)
    return Applied(action=action, result=Result.FAILED, detail=error.message)


def _skipped(
    action: PlannedAction,
    draft: Draft,
    why: Refusal | SkipReason,
    *,
    round_: Round,
    hands: Hands,
) -> Applied:
    """Write down why a workload is left alone, unless that was written lately."""
    reason = why.reason.value if isinstance(why, Refusal) else why.value
    detail = why.detail if isinstance(why, Refusal) else None
    if _is_known_skip(draft, reason, hands=hands):
        return Applied(action=action, result=Result.SKIPPED, detail=detail or reason)
    row = replace(draft, reasons=(reason,), undo_at=None)
    is_new = hands.ledger.record(row, Outcome.SKIPPED, known=round_.known, detail=detail)
    result = Result.SKIPPED if is_new else Result.OVERTAKEN
    return Applied(action=action, result=result, detail=detail or reason)


def _is_known_skip(draft: Draft, reason: str, *, hands: Hands) -> bool:
    since_at = hands.clock.now() - REPEAT_SKIP_AFTER
    return any(
        one.outcome is Outcome.SKIPPED
        and one.step == draft.step
        and one.reasons == (reason,)
        and one.begun_at > since_at
        for one in hands.ledger.entries().of_workload(draft.workload_uid)
    )
