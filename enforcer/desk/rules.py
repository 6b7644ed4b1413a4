"""Who must agree to a request, and where it then stands. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from enforcer.desk.model import (
    KEEPING,
    Answer,
    Case,
    DeskRules,
    Event,
    Request,
    RequestKind,
    Ruling,
    State,
)

BY_RULE: Final = "rule:first-short-keep"
"""Approver of what nobody needs to agree to."""
SHORT_AND_FIRST: Final = "short_and_first"
SHORT_AGAIN: Final = "short_but_again"
LONG: Final = "long"
ONE_PERSON: Final = "one_person"
MANY_GPUS: Final = "many_gpus"
LONG_QUOTA: Final = "long_quota"
WIDE: Final = "more_than_one_workload"
_DONE: Final = {
    "applied": State.APPLIED,
    "failed": State.FAILED,
    "expired": State.EXPIRED,
    "taken_back": State.EXPIRED,
    "take_back_failed": State.TAKE_BACK_FAILED,
}


def needed(
    request: Request, earlier: Iterable[Case], rules: DeskRules
) -> tuple[int, tuple[str, ...]]:
    """Return how many people must agree, and why.

    Args:
        request: the wish.
        earlier: cases recorded before it.
        rules: the limits.
    """
    if request.kind in KEEPING:
        return _needed_to_keep(request, earlier, rules)
    if request.kind is RequestKind.QUOTA:
        length = request.period.until_at - request.period.from_at
        reasons = [MANY_GPUS] if request.gpu_count >= rules.two_approvers_from_gpu_count else []
        reasons += [LONG_QUOTA] if length >= rules.two_approvers_from else []
        if reasons:
            return 2, tuple(reasons)
    return 1, (ONE_PERSON,)


def _needed_to_keep(
    request: Request, earlier: Iterable[Case], rules: DeskRules
) -> tuple[int, tuple[str, ...]]:
    """Let the first short one pass; whoever asks again asks a person."""
    if request.scope_kind != "workload":
        return 1, (WIDE,)
    if request.period.until_at - request.recorded_at >= rules.auto_longest:
        return 1, (LONG,)
    since = request.recorded_at - rules.auto_interval
    if any(_kept(one, request, since) for one in earlier):
        return 1, (SHORT_AGAIN,)
    return 0, (SHORT_AND_FIRST,)


def _kept(case: Case, request: Request, since: datetime) -> bool:
    """Tell whether the same workload was kept lately, as was known when this was asked for."""
    other = case.request
    return (
        other.kind in KEEPING
        and other.scope_key == request.scope_key  # an exemption holds in every cluster
        and other.recorded_at > since
        and any(
            one.answer is Answer.GRANTED and one.recorded_at <= request.recorded_at
            for one in case.rulings
        )
    )


def state_of(
    request: Request,
    rulings: Sequence[Ruling],
    events: Sequence[Event],
    *,
    needed_count: int,
    now: datetime,
) -> State:
    """Return where the request stands.

    Its requester's own agreement counts for nothing, and one person's counts once. One refusal
    before enough people agreed ends it. What was done about it counts only once they agreed: it is
    not a second way to be granted.

    Args:
        request: the wish.
        rulings: ascending by time.
        events: ascending by time.
        needed_count: people who must agree.
        now: until when time counts.
    """
    said = _said(request, rulings, needed_count)
    if said is State.GRANTED and events:
        return _DONE[events[-1].event]
    if any(one.answer is Answer.WITHDRAWN for one in rulings):
        return State.WITHDRAWN
    is_over = now >= request.period.until_at
    return State.LAPSED if is_over and said in {State.PENDING, State.GRANTED} else said


def _said(request: Request, rulings: Sequence[Ruling], needed_count: int) -> State:
    agreed: set[str] = set()
    if needed_count == 0:
        return State.GRANTED
    for one in rulings:
        if one.answer is Answer.WITHDRAWN:
            return State.WITHDRAWN
        if one.answer is Answer.REFUSED:
            return State.REFUSED
        if one.approver != request.requester:
            agreed.add(one.approver)
        if len(agreed) >= needed_count:
            return State.GRANTED
    return State.PENDING
