"""Who else writes what a reclaim would change, told from labels, owners and field managers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from enforcer.actuators.acts import Surroundings
from enforcer.actuators.fields import (
    Path,
    group_of,
    is_owned_by,
    items_at,
    mapping_at,
    target_of,
    text_at,
    texts_at,
    value_at,
)
from enforcer.actuators.kinds import KUEUE, Actuator, Means, actuator_of, writing_owner
from enforcer.facts import Manager
from enforcer.gateway.port import KubernetesObject

KUEUE_QUEUE: Final = f"{KUEUE}/queue-name"
KUEUE_POD_GROUP: Final = f"{KUEUE}/pod-group-name"
KEDA_PAUSED: Final = "autoscaling.keda.sh/paused-replicas"

_GITOPS_ANNOTATIONS: Final = frozenset({"argocd.argoproj.io/tracking-id"})
_GITOPS_LABELS: Final = frozenset(
    {
        "argocd.argoproj.io/instance",
        "helm.toolkit.fluxcd.io/name",
        "kustomize.toolkit.fluxcd.io/name",
    }
)
_GITOPS_WRITERS: Final = frozenset(
    {
        "argocd-application-controller",
        "argocd-controller",
        "flux",
        "helm-controller",
        "kustomize-controller",
    }
)
"""Names under which Argo CD and Flux apply what is in git."""


def managers_of(subject: KubernetesObject, around: Surroundings) -> frozenset[Manager]:
    """Return who else has a word about reclaiming a workload's object."""
    found: set[Manager] = set()
    if writing_owner(subject) is not None:
        found.add(Manager.OWNER)
    if is_queued_by_kueue(subject, around):
        found.add(Manager.KUEUE)
    if scaled_object_of(subject, around) is not None:
        found.add(Manager.KEDA)
    elif _scaler_of(subject, around.autoscalers) is not None:
        found.add(Manager.HPA)
    if is_gitops_owned(subject) and Manager.KUEUE not in found:
        found.add(Manager.GITOPS)
    return frozenset(found)


def is_queued_by_kueue(subject: KubernetesObject, around: Surroundings) -> bool:
    """Return whether Kueue is the only one who may suspend this object.

    Kueue suspends jobs; it makes room of a Deployment's pods one by one, and the replica count
    stays its owner's.
    """
    actuator = _actuator(subject)
    if actuator is None or not actuator.is_queued_by_kueue:
        return False
    is_labelled = KUEUE_QUEUE in texts_at(subject, "metadata", "labels")
    is_annotated = KUEUE_QUEUE in texts_at(subject, "metadata", "annotations")
    return is_labelled or is_annotated or queue_entry_of(subject, around) is not None


def queue_entry_of(subject: KubernetesObject, around: Surroundings) -> KubernetesObject | None:
    """Return the Kueue Workload that stands for an object; None where there is none."""
    uid = target_of(subject).uid
    owned = (entry for entry in around.queue_entries if is_owned_by(entry, uid))
    return min(owned, key=_uid, default=None)


def scaled_object_of(subject: KubernetesObject, around: Surroundings) -> KubernetesObject | None:
    """Return the KEDA ScaledObject that scales an object; None where there is none."""
    return _scaler_of(subject, around.scaled_objects)


def is_gitops_owned(thing: KubernetesObject) -> bool:
    """Return whether Argo CD or Flux keeps an object as git has it."""
    if _GITOPS_ANNOTATIONS & texts_at(thing, "metadata", "annotations").keys():
        return True
    if _GITOPS_LABELS & texts_at(thing, "metadata", "labels").keys():
        return True
    actuator = _actuator(thing)
    path = actuator.path if actuator is not None else ()
    return bool(_GITOPS_WRITERS & set(_writers_of(thing, path)))


def _writers_of(thing: KubernetesObject, path: Path) -> Iterable[str]:
    """Return the names of those who wrote a field, or anything where the path is empty."""
    keys = [f"f:{key}" for key in path]
    for entry in items_at(thing, "metadata", "managedFields"):
        if value_at(mapping_at(entry, "fieldsV1"), *keys) is not None:
            yield text_at(entry, "manager") or ""


def _scaler_of(
    subject: KubernetesObject, scalers: Iterable[KubernetesObject]
) -> KubernetesObject | None:
    """Return the one that scales an object: KEDA's targets are Deployments unless they say."""
    actuator = _actuator(subject)
    if actuator is None or actuator.means is not Means.SCALE:
        return None
    return min((each for each in scalers if _aims_at(each, subject)), key=_uid, default=None)


def _aims_at(scaler: KubernetesObject, subject: KubernetesObject) -> bool:
    aim, target = mapping_at(scaler, "spec", "scaleTargetRef"), target_of(subject)
    group = group_of(text_at(aim, "apiVersion") or "apps/v1")
    return (group, text_at(aim, "kind") or "Deployment", text_at(aim, "name")) == (
        group_of(target.api_version),
        target.kind,
        target.name,
    ) and text_at(scaler, "metadata", "namespace") == target.namespace


def _actuator(thing: KubernetesObject) -> Actuator | None:
    target = target_of(thing)
    return actuator_of(target.api_version, target.kind)


def _uid(thing: KubernetesObject) -> str:
    return target_of(thing).uid or ""
