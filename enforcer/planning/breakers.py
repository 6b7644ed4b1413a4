"""Circuit breakers: while one is open, a plan takes no GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from enforcer.decisions import Decision, Verdict
from enforcer.facts import Snapshot
from enforcer.planning.due import is_taking
from enforcer.planning.reasons import Breaker
from enforcer.policies.model import Effect, Mode, Policy

RESTORES_WITHIN: Final = timedelta(days=1)
"""Of takings begun within this time the share that was asked back counts."""


def open_breakers(
    decisions: Sequence[Decision],
    snapshot: Snapshot,
    policies: Sequence[Policy],
    *,
    now: datetime,
) -> tuple[Breaker, ...]:
    """Return the open breakers in the order of ``Breaker``.

    Only policies that may act have a say; where one of them finds a breaker open, it is open for
    all. Workloads that wait, or on which no rule would act, do not count as UNKNOWN.
    """
    found = {Breaker.STOPPED} if snapshot.health.is_stopped else set()
    restored = _restore_ratio(snapshot, now)
    for policy in policies:
        if policy.mode is not Mode.ENFORCE:
            continue
        if _unknown_ratio(decisions, snapshot, policy) > policy.caps.unknown_ratio_breaker:
            found.add(Breaker.UNKNOWN_RATIO)
        if snapshot.health.api_error_ratio > policy.caps.api_error_ratio_breaker:
            found.add(Breaker.API_ERRORS)
        if restored > policy.caps.restore_ratio_breaker:
            found.add(Breaker.RESTORE_RATIO)
    return tuple(breaker for breaker in Breaker if breaker in found)


def _unknown_ratio(decisions: Sequence[Decision], snapshot: Snapshot, policy: Policy) -> float:
    acting = {rule.name for rule in policy.rules if rule.effect is Effect.ACT}
    waiting = {one.uid for one in snapshot.workloads if one.is_pending}
    judged = [
        one.judgement.verdict
        for one in decisions
        if one.policy == policy.name and one.rule in acting and one.workload_uid not in waiting
    ]
    return judged.count(Verdict.UNKNOWN) / len(judged) if judged else 0.0


def _restore_ratio(snapshot: Snapshot, now: datetime) -> float:
    taken = [
        one
        for one in snapshot.past_actions
        if is_taking(one) and one.outcome != "failed" and one.begun_at > now - RESTORES_WITHIN
    ]
    return sum(one.was_asked_back for one in taken) / len(taken) if taken else 0.0
