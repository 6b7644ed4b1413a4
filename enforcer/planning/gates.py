"""What keeps one due step out of a plan, whatever else is planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from enforcer.decisions import TAKING_STEPS, Step
from enforcer.facts import Manager, Notice, PastAction
from enforcer.planning.due import CHANGING_STEPS, Due, Known, is_changing, is_taking
from enforcer.planning.reasons import Reason
from enforcer.policies.model import Mode
from enforcer.policies.notices import of_stretch

PING_PONG_WITHIN: Final = timedelta(days=1)
"""Restores within this time count towards a policy's ``ping_pong_count``."""
BACK_OFF_FIRST: Final = timedelta(minutes=15)
"""How long a workload is left alone after the first act on it; doubled with each further one."""
BACK_OFF_MOST: Final = timedelta(days=1)
"""The longest; acts that lie further back are forgotten."""
_MOST_DOUBLINGS: Final = 7
SETTLING: Final = timedelta(minutes=15)
"""So long after an act its effect may not be seen yet: the GPUs count as on their way."""


def refusal(due: Due, known: Known, now: datetime) -> Reason | None:
    """Return why this step may not be planned; None: nothing about it alone speaks against it."""
    if due.step not in _allowed(due.policy.mode):
        observes = due.policy.mode is Mode.OBSERVE
        return Reason.MODE_OBSERVE if observes else Reason.MODE_WARN
    checks = (*_CHANGING, *_TAKING) if due.step in TAKING_STEPS else _CHANGING
    if due.step not in CHANGING_STEPS:
        return None
    return next((reason for check in checks if (reason := check(due, known, now))), None)


def told_instead(due: Due, known: Known, now: datetime) -> Due | None:
    """Return the notice that stands in for a step on what a GitOps controller owns.

    None: the step is not of this kind, or its owner was told of this idle stretch already.
    """
    if due.step not in CHANGING_STEPS or Manager.GITOPS not in due.workload.managers:
        return None
    return None if _warnings(due, known, now) else replace(due, step=Step.NOTIFY)


def is_settling(action: PastAction, now: datetime) -> bool:
    """Tell whether a taking act may still be on its way to free its GPUs."""
    is_open = action.outcome in {"begun", "done"} and action.undone_at is None
    return is_taking(action) and is_open and action.begun_at > now - SETTLING


def _allowed(mode: Mode) -> frozenset[Step]:
    if mode is Mode.OBSERVE:
        return frozenset({Step.FINDING})
    return frozenset({Step.FINDING, Step.NOTIFY}) if mode is Mode.WARN else frozenset(Step)


def _unread(due: Due, known: Known, _now: datetime) -> Reason | None:
    is_unread = known.is_live and not due.workload.resource_version
    return Reason.OBJECT_UNREAD if is_unread else None


def _owned(due: Due, _known: Known, _now: datetime) -> Reason | None:
    if Manager.GITOPS in due.workload.managers:
        return Reason.GITOPS_OWNED
    return Reason.OWNED_ABOVE if Manager.OWNER in due.workload.managers else None


def _in_flight(due: Due, known: Known, now: datetime) -> Reason | None:
    past = known.past.get(due.uid, ())
    unfinished = any(one.outcome == "begun" for one in past)
    return Reason.IN_FLIGHT if unfinished or any(is_settling(one, now) for one in past) else None


def _ping_pong(due: Due, known: Known, now: datetime) -> Reason | None:
    since_at = now - PING_PONG_WITHIN
    restored = [
        one
        for one in known.past.get(due.uid, ())
        if is_taking(one) and _came_back(one) and one.begun_at > since_at
    ]
    return Reason.PING_PONG if len(restored) >= due.policy.caps.ping_pong_count else None


def _came_back(action: PastAction) -> bool:
    return action.undone_at is not None or action.was_asked_back


def _backing_off(due: Due, known: Known, now: datetime) -> Reason | None:
    """Leave alone what was acted on, by this very kind of step, for ever longer."""
    is_same: Callable[[PastAction], bool] = is_taking if due.step in TAKING_STEPS else is_changing
    recent = [
        one
        for one in known.past.get(due.uid, ())
        if is_same(one) and one.begun_at > now - BACK_OFF_MOST
    ]
    if not recent:
        return None
    doublings = min(len(recent) - 1, _MOST_DOUBLINGS)
    wait = min(BACK_OFF_FIRST * 2**doublings, BACK_OFF_MOST)
    return Reason.BACKING_OFF if now < recent[-1].begun_at + wait else None


def _evictable(due: Due, _known: Known, _now: datetime) -> Reason | None:
    if due.step is not Step.EVICT:
        return None
    if not due.rule.evicts_bare_pods:
        return Reason.EVICT_NOT_ALLOWED
    return Reason.NOT_BARE if any(pod.has_controller for pod in due.workload.pods) else None


def _checkpoint(due: Due, known: Known, now: datetime) -> Reason | None:
    """Wait for the checkpoint that the warning asked for, for as long as the rule's grace.

    The warning of this idle stretch is what asks; only what has written one before can answer.
    """
    checkpoint_at = due.workload.checkpoint_at
    asked = _warnings(due, known, now)
    if checkpoint_at is None or not asked or checkpoint_at >= asked[0].delivered_at:
        return None
    until_at = asked[-1].act_at + due.rule.checkpoint_grace
    return Reason.AWAITING_CHECKPOINT if now < until_at else None


def _warnings(due: Due, known: Known, now: datetime) -> Sequence[Notice]:
    """Return the delivered warnings of this idle stretch, oldest first."""
    evidence = due.workload.evidence
    since_at = None if evidence is None else evidence.idle_since_at
    if since_at is None:
        return ()
    return of_stretch(known.notices.get(due.uid, ()), due.rule.name, since_at=since_at, now=now)


_Check = Callable[[Due, Known, datetime], Reason | None]
_CHANGING: Final[tuple[_Check, ...]] = (
    _unread,
    _owned,
    _in_flight,
    _ping_pong,
    _backing_off,
)
_TAKING: Final[tuple[_Check, ...]] = (_evictable, _checkpoint)
