"""Kueue keeps quotas in ClusterQueues: nominal, borrowing and lending limits per flavor.

A limit on borrowing or lending is only allowed to a queue with a cohort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from enforcer.actuators.fields import change, items_at, text_at
from enforcer.gateway.port import KubernetesObject
from enforcer.quota.change import (
    Difference,
    QuotaChange,
    Trouble,
    changed,
    name_of,
)
from enforcer.quota.model import ModelName, QuotaFile, Share, TeamQuota
from enforcer.quota.quantity import number_text, quantity

GROUPS: Final = ("spec", "resourceGroups")
FIELDS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")


def changes(
    file: QuotaFile, queues: Sequence[KubernetesObject]
) -> tuple[tuple[QuotaChange, ...], tuple[Trouble, ...]]:
    """Return what to write to ClusterQueues, and what cannot be written, ascending by team.

    Args:
        file: what is wanted.
        queues: all ClusterQueues of the cluster.
    """
    by_name = {name_of(one): one for one in queues}
    found: list[QuotaChange] = []
    troubles: list[Trouble] = []
    for team in file.teams:
        queue = by_name.get(team.queue)
        if queue is None:
            troubles.append(_no_queue(team))
            continue
        troubles.extend(_unnamed(file, team, queue))
        made = _change(file, team, queue)
        if made is not None:
            found.append(made)
    return tuple(found), tuple(troubles)


def _change(file: QuotaFile, team: TeamQuota, queue: KubernetesObject) -> QuotaChange | None:
    """Return the write of one queue; None where nothing differs."""
    groups = items_at(queue, *GROUPS)
    wanted: dict[tuple[str | None, str | None], tuple[Share, ModelName]] = {
        (model.flavor, model.resource): (share, model)
        for share in team.shares
        if (model := file.model(share.gpu_model)) is not None
    }
    has_cohort = _cohort(queue) is not None
    differences: list[Difference] = []
    renewed = [
        _group(group, wanted, team=team, has_cohort=has_cohort, told=differences)
        for group in groups
    ]
    if not differences:
        return None
    return changed(queue, (change(queue, GROUPS, renewed),), tuple(differences))


def _group(
    group: KubernetesObject,
    wanted: dict[tuple[str | None, str | None], tuple[Share, ModelName]],
    *,
    team: TeamQuota,
    has_cohort: bool,
    told: list[Difference],
) -> KubernetesObject:
    """Return one resource group with the wanted numbers, and tell each that differs."""
    flavors = []
    for flavor in items_at(group, "flavors"):
        resources = []
        for resource in items_at(flavor, "resources"):
            key = (text_at(flavor, "name"), text_at(resource, "name"))
            if key in wanted:
                share, _model = wanted[key]
                renewed = _resource(resource, share, has_cohort=has_cohort)
                told.extend(_differences(resource, renewed, team=team, share=share))
                resources.append(renewed)
            else:
                resources.append(resource)
        flavors.append({**flavor, "resources": resources})
    return {**group, "flavors": flavors}


def _resource(resource: KubernetesObject, share: Share, *, has_cohort: bool) -> KubernetesObject:
    """Return one quota as it should be; limits that are None are left out."""
    limits = {
        "nominalQuota": share.guaranteed_gpu_count,
        "borrowingLimit": share.borrow_gpu_count if has_cohort else None,
        "lendingLimit": share.lend_gpu_count if has_cohort else None,
    }
    kept = {name: value for name, value in resource.items() if name not in FIELDS}
    return {
        **kept,
        **{name: quantity(value) for name, value in limits.items() if value is not None},
    }


def _differences(
    live: KubernetesObject, renewed: KubernetesObject, *, team: TeamQuota, share: Share
) -> list[Difference]:
    return [
        Difference(
            subject=f"ClusterQueue {team.queue}",
            tenant_id=team.tenant_id,
            gpu_model=share.gpu_model,
            field=name,
            live=number_text(live.get(name)),
            wanted=number_text(renewed.get(name)),
        )
        for name in FIELDS
        if number_text(live.get(name)) != number_text(renewed.get(name))
    ]


def _cohort(queue: KubernetesObject) -> str | None:
    """Return the cohort: ``cohortName`` since v1beta2, ``cohort`` before."""
    return text_at(queue, "spec", "cohortName") or text_at(queue, "spec", "cohort")


def _no_queue(team: TeamQuota) -> Trouble:
    return Trouble(
        tenant_id=team.tenant_id,
        subject=f"ClusterQueue {team.queue}",
        message=f"there is no ClusterQueue {team.queue!r} for team {team.tenant_id!r}",
        hint="create it with its namespaces, CPU and memory; its GPU quotas are then kept here",
    )


def _unnamed(file: QuotaFile, team: TeamQuota, queue: KubernetesObject) -> list[Trouble]:
    """Tell what the queue cannot hold: flavors it has not, limits without a cohort."""
    has = {
        (text_at(flavor, "name"), text_at(resource, "name"))
        for group in items_at(queue, *GROUPS)
        for flavor in items_at(group, "flavors")
        for resource in items_at(flavor, "resources")
    }
    subject = f"ClusterQueue {team.queue}"
    told = []
    for share in team.shares:
        model = file.model(share.gpu_model)
        if model is not None and (model.flavor, model.resource) not in has:
            told.append(
                Trouble(
                    tenant_id=team.tenant_id,
                    subject=subject,
                    message=f"{subject} has no {model.resource} of flavor {model.flavor!r}",
                    hint="add the flavor to one of its resource groups, or correct `flavor`",
                )
            )
    borrows = any(share.borrow_gpu_count != 0 for share in team.shares)
    if borrows and _cohort(queue) is None:
        told.append(
            Trouble(
                tenant_id=team.tenant_id,
                subject=subject,
                message=f"{subject} is in no cohort, so it can neither borrow nor lend",
                hint="give it a cohort, or say `borrow: 0`",
            )
        )
    return told
