"""Without a quota scheduler, a ResourceQuota in the team's namespace is a hard limit.

It knows neither guarantees nor borrowing, and counts the GPUs of one resource name together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from enforcer.actuators.fields import Change, text_at, value_at
from enforcer.gateway.port import KubernetesObject, Target
from enforcer.quota.change import (
    Difference,
    QuotaChange,
    Trouble,
    changed,
    name_of,
)
from enforcer.quota.model import QuotaFile, Share, TeamQuota
from enforcer.quota.quantity import number_text, quantity

HARD: Final = ("spec", "hard")
NAME: Final = "steward-gpu"
"""Of the ResourceQuotas that are kept here; others in the namespace are left alone."""


def changes(
    file: QuotaFile, quotas: Sequence[KubernetesObject]
) -> tuple[tuple[QuotaChange, ...], tuple[Trouble, ...]]:
    """Return what to write to ResourceQuotas, and what cannot be said by them, ascending by team.

    Args:
        file: what is wanted.
        quotas: ResourceQuotas of the teams' namespaces.
    """
    own = {text_at(one, "metadata", "namespace"): one for one in quotas if name_of(one) == NAME}
    found: list[QuotaChange] = []
    troubles: list[Trouble] = []
    for team in file.teams:
        if len(team.namespaces) != 1:
            troubles.append(_no_single_namespace(team))
            continue
        (namespace,) = team.namespaces
        made = _change(file, team, own.get(namespace))
        if made is not None:
            found.append(made)
    return tuple(found), tuple(troubles)


def hard_limits(file: QuotaFile, team: TeamQuota) -> dict[str, str]:
    """Return the limits by key of ``spec.hard``; a resource without limit is left out."""
    limits: dict[str, str] = {}
    for resource in sorted({one.resource for one in file.models}):
        names = {one.gpu_model for one in file.models if one.resource == resource}
        shares: Sequence[Share] = [one for one in team.shares if one.gpu_model in names]
        most = [one.limit_gpu_count for one in shares]
        known = [one for one in most if one is not None]
        if len(known) == len(most):
            limits[f"requests.{resource}"] = quantity(sum(known))
    return limits


def _change(file: QuotaFile, team: TeamQuota, live: KubernetesObject | None) -> QuotaChange | None:
    wanted = hard_limits(file, team)
    hard = value_at(live, *HARD)
    keys = sorted({f"requests.{one.resource}" for one in file.models})
    changes = tuple(
        Change(path=(*HARD, key), old=old, new=wanted.get(key), kept_depth=len(HARD))
        for key in keys
        if number_text(old := value_at(hard, key)) != number_text(wanted.get(key))
    )
    if not changes:
        return None
    differences = tuple(_difference(team, one) for one in changes)
    return (
        _created(team, changes, differences)
        if live is None
        else changed(live, changes, differences)
    )


def _difference(team: TeamQuota, one: Change) -> Difference:
    (namespace,) = team.namespaces
    return Difference(
        subject=f"ResourceQuota {namespace}/{NAME}",
        tenant_id=team.tenant_id,
        gpu_model=", ".join(share.gpu_model for share in team.shares),
        field=f"hard.{one.path[-1]}",
        live=number_text(one.old),
        wanted=number_text(one.new),
    )


def _created(
    team: TeamQuota, changes: tuple[Change, ...], differences: tuple[Difference, ...]
) -> QuotaChange:
    (namespace,) = team.namespaces
    body: KubernetesObject = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {"hard": {one.path[-1]: one.new for one in changes}},
    }
    holder = Target(
        api_version="v1", kind="ResourceQuota", namespace=namespace, name=NAME, uid=None
    )
    return QuotaChange(
        differences=differences,
        holder=holder,
        changes=changes,
        resource_version=None,
        created=body,
    )


def _no_single_namespace(team: TeamQuota) -> Trouble:
    return Trouble(
        tenant_id=team.tenant_id,
        subject=f"team {team.tenant_id}",
        message=(
            f"team {team.tenant_id!r} has {len(team.namespaces)} namespaces, but a ResourceQuota "
            "limits one"
        ),
        hint="name one namespace for it, or use a scheduler with queues",
    )
