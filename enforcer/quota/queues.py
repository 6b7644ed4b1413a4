"""KAI and Volcano keep quotas in Queues that count GPUs of all models together.

KAI (``scheduling.run.ai/v2``): ``quota`` is promised, ``limit`` is the most, -1 is no limit.
Volcano (``scheduling.volcano.sh/v1beta1``): ``guarantee`` is never lent, ``deserved`` is given back
on demand, ``capability`` is the most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from enforcer.actuators.fields import change, value_at
from enforcer.gateway.port import KubernetesObject
from enforcer.quota.change import (
    Difference,
    QuotaChange,
    Trouble,
    changed,
    name_of,
)
from enforcer.quota.model import QuotaFile, Scheduler, TeamQuota
from enforcer.quota.quantity import number_text, quantity

UNLIMITED: Final = -1
"""KAI's word for no limit."""
Wanted = Mapping[tuple[str, ...], str | int | None]
"""Value by path below ``spec``; None: the field should not be there."""


def changes(
    file: QuotaFile, queues: Sequence[KubernetesObject]
) -> tuple[tuple[QuotaChange, ...], tuple[Trouble, ...]]:
    """Return what to write to Queues, and what cannot be written, ascending by team.

    Args:
        file: what is wanted; its scheduler is KAI or Volcano.
        queues: all Queues of that scheduler.
    """
    by_name = {name_of(one): one for one in queues}
    wanted_of = _WANTED[file.scheduler]
    found: list[QuotaChange] = []
    troubles: list[Trouble] = []
    for team in file.teams:
        queue = by_name.get(team.queue)
        if queue is None:
            troubles.append(_no_queue(team))
            continue
        made = _change(team, queue, wanted_of(file, team))
        if made is not None:
            found.append(made)
    return tuple(found), tuple(troubles)


def kai(_file: QuotaFile, team: TeamQuota) -> Wanted:
    """Return what a KAI Queue should say."""
    limit = total_limit(team)
    return {
        ("resources", "gpu", "quota"): sum(one.guaranteed_gpu_count for one in team.shares),
        ("resources", "gpu", "limit"): UNLIMITED if limit is None else limit,
    }


def volcano(file: QuotaFile, team: TeamQuota) -> Wanted:
    """Return what a Volcano Queue should say, by resource name."""
    wanted: dict[tuple[str, ...], str | int | None] = {}
    for resource in sorted({one.resource for one in file.models}):
        names = {one.gpu_model for one in file.models if one.resource == resource}
        part = TeamQuota(
            tenant_id=team.tenant_id,
            queue=team.queue,
            namespaces=team.namespaces,
            shares=tuple(one for one in team.shares if one.gpu_model in names),
        )
        promised = sum(one.guaranteed_gpu_count for one in part.shares)
        limit = total_limit(part)
        kept = _kept(part)
        wanted["deserved", resource] = quantity(promised)
        wanted["guarantee", "resource", resource] = quantity(kept) if kept else None
        wanted["capability", resource] = None if limit is None else quantity(limit)
    return wanted


def total_limit(team: TeamQuota) -> int | None:
    """Return the most GPUs of all models; None where one of them has no limit."""
    limits = [one.limit_gpu_count for one in team.shares]
    known = [one for one in limits if one is not None]
    return sum(known) if len(known) == len(limits) else None


def _kept(team: TeamQuota) -> int:
    """Return the GPUs that are never lent."""
    return sum(
        max(0, one.guaranteed_gpu_count - one.lend_gpu_count)
        for one in team.shares
        if one.lend_gpu_count is not None
    )


_WANTED: Final[Mapping[Scheduler, Callable[[QuotaFile, TeamQuota], Wanted]]] = {
    Scheduler.KAI: kai,
    Scheduler.VOLCANO: volcano,
}


def _change(team: TeamQuota, queue: KubernetesObject, wanted: Wanted) -> QuotaChange | None:
    models = ", ".join(one.gpu_model for one in team.shares)
    changes = tuple(
        change(queue, ("spec", *path), value)
        for path, value in wanted.items()
        if number_text(value_at(queue, "spec", *path)) != number_text(value)
    )
    if not changes:
        return None
    differences = tuple(
        Difference(
            subject=f"Queue {team.queue}",
            tenant_id=team.tenant_id,
            gpu_model=models,
            field=".".join(one.path[1:]),
            live=number_text(one.old),
            wanted=number_text(one.new),
        )
        for one in changes
    )
    return changed(queue, changes, differences)


def _no_queue(team: TeamQuota) -> Trouble:
    return Trouble(
        tenant_id=team.tenant_id,
        subject=f"Queue {team.queue}",
        message=f"there is no Queue {team.queue!r} for team {team.tenant_id!r}",
        hint="create it with its parent; its GPU quotas are then kept here",
    )
