"""Priorities above what a team may use: found, and brought down to the ceiling with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from enforcer.facts import Workload
from enforcer.quota.model import QuotaFile

ABOVE_CEILING: Final = "priority_above_ceiling"
NOT_RANKED: Final = "priority_not_ranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demotion:
    """One workload whose priority class is not its team's to use."""

    workload_uid: str
    tenant_id: str | None
    live: str
    wanted: str
    """The ceiling."""
    reason: str
    sentence: str
    """For the owner."""


def demotions(file: QuotaFile, workloads: Iterable[Workload]) -> tuple[Demotion, ...]:
    """Return the workloads to demote, ascending by uid.

    A class that the file does not rank is above every ceiling: nobody can say how high it is.
    A workload without a priority class, or of a team without a ceiling, is left alone.
    """
    rank = {name: number for number, name in enumerate(file.priorities)}
    found = []
    for one in sorted(workloads, key=lambda each: each.uid):
        highest = file.ceiling(one.tenant_id, one.workload_class)
        if highest is None or one.priority_class is None:
            continue
        is_ranked = one.priority_class in rank
        if is_ranked and rank[one.priority_class] <= rank[highest]:
            continue
        found.append(_demotion(one, one.priority_class, highest, is_ranked=is_ranked))
    return tuple(found)


def _demotion(one: Workload, live: str, highest: str, *, is_ranked: bool) -> Demotion:
    whose = f"{one.workload_class or 'any'} workloads of team {one.tenant_id or 'unknown'}"
    why = (
        f"{whose} may go up to {highest!r}"
        if is_ranked
        else f"{live!r} is not in the list of priorities; {whose} may go up to {highest!r}"
    )
    return Demotion(
        workload_uid=one.uid,
        tenant_id=one.tenant_id,
        live=live,
        wanted=highest,
        reason=ABOVE_CEILING if is_ranked else NOT_RANKED,
        sentence=f"priority {live!r} was lowered to {highest!r}: {why}",
    )
