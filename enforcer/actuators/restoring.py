"""Undoing an act from its before-image, and telling whether an act or its undoing took effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from enforcer.actuators.acts import BeforeImage, Order, Refusal, RefusalReason, Restoring
from enforcer.actuators.commands import ABORTED_PHASES, RESUME, command
from enforcer.actuators.fields import (
    Json,
    condition_status,
    group_of,
    target_of,
    text_at,
    texts_at,
    tidy_patch_of,
    unpatch_of,
    value_at,
)
from enforcer.actuators.kinds import KUEUE, actuator_of
from enforcer.decisions import TAKING_STEPS
from enforcer.gateway.port import KubernetesObject, Target, Write

_ENDED: Final = frozenset({"Succeeded", "Failed"})


def restore(
    before: BeforeImage, current: KubernetesObject | None, *, order: Order
) -> Write | Refusal:
    """Return the write that takes an act back.

    Args:
        before: from the ledger.
        current: ``before.holder`` as read just now; None: it is gone.
        order: of the act that is undone.
    """
    if before.restoring is Restoring.NEVER:
        what = f"{_name(before.subject)} was evicted; its state is lost"
        return Refusal(reason=RefusalReason.NOT_RESTORABLE, detail=what)
    if current is None:
        what = f"{_name(before.holder)} does not exist any more"
        return Refusal(reason=RefusalReason.OBJECT_GONE, detail=what)
    if not is_taken(before, current):
        what = f"{_name(before.holder)} was put back by somebody else"
        return Refusal(reason=RefusalReason.RESTORED_BY_OTHERS, detail=what)
    if before.restoring is Restoring.COMMAND:
        return command(RESUME, subject=before.holder, action_id=order.action_id)
    body = _with_cleared(unpatch_of(before.changes, current), before)
    return Write(
        verb=before.verb,
        target=before.holder,
        body=body,
        resource_version=text_at(current, "metadata", "resourceVersion"),
    )


def tidied(before: BeforeImage, current: KubernetesObject) -> Write | None:
    """Return the write that makes a restored object's spec what it was to the byte; mostly None.

    Some controllers resume only on an explicit value where there was no field. To be written once
    its pods are back: earlier, the controller would not see the value.
    """
    if not any(each.is_untidy(current) for each in before.changes):
        return None
    return Write(
        verb=before.verb,
        target=before.holder,
        body=tidy_patch_of(before.changes, current),
        resource_version=text_at(current, "metadata", "resourceVersion"),
    )


def is_taken(before: BeforeImage, current: KubernetesObject) -> bool:
    """Return whether the object says what the act made it say; pods may still be there."""
    if before.restoring is Restoring.COMMAND:
        return text_at(current, "status", "state", "phase") in ABORTED_PHASES
    return all(each.is_made(current) for each in before.changes)


def is_effective(
    before: BeforeImage, current: KubernetesObject | None, pods: Iterable[KubernetesObject]
) -> bool:
    """Return whether an act did what it was for: GPUs count as freed only then.

    Args:
        before: from the ledger.
        current: ``before.holder`` as read just now; None: it is gone.
        pods: of its namespace, by ``before.pod_labels`` or all; others than its own may be among.
    """
    if before.step not in TAKING_STEPS:
        return current is not None and is_taken(before, current)
    if live_pods(before, pods):
        return False
    if current is None or before.restoring is Restoring.NEVER:
        return True
    return is_taken(before, current) and not _holds_quota(current)


def is_restored(before: BeforeImage, current: KubernetesObject) -> bool:
    """Return whether the object says again what it said before the act."""
    if before.restoring is Restoring.COMMAND:
        return not is_taken(before, current)
    return before.restoring is Restoring.FIELDS and all(
        each.is_unmade(current) for each in before.changes
    )


def live_pods(before: BeforeImage, pods: Iterable[KubernetesObject]) -> tuple[str, ...]:
    """Return the names of a workload's pods that still hold what they were given, ascending.

    A pod that is being deleted holds its GPUs until it is gone.
    """
    return tuple(sorted(target_of(pod).name for pod in pods if _is_live_own(before, pod)))


def _is_live_own(before: BeforeImage, pod: KubernetesObject) -> bool:
    if text_at(pod, "status", "phase") in _ENDED:
        return False
    if target_of(pod).uid in before.pod_uids:
        return True
    labels = dict(each.split("=", 1) for each in before.pod_labels.split(",") if each)
    found = texts_at(pod, "metadata", "labels")
    return bool(labels) and all(found.get(key) == text for key, text in labels.items())


def _holds_quota(current: KubernetesObject) -> bool:
    """Return whether a Kueue Workload still has its place: inactive alone frees nothing."""
    is_entry = group_of(target_of(current).api_version) == KUEUE
    return is_entry and condition_status(current, "QuotaReserved") == "True"


def _with_cleared(body: KubernetesObject, before: BeforeImage) -> KubernetesObject:
    """Return the patch that also takes annotations away that went stale meanwhile."""
    actuator = actuator_of(before.holder.api_version, before.holder.kind)
    stale = () if actuator is None else actuator.stale_annotations
    own = value_at(body, "metadata", "annotations")
    if not stale or not isinstance(own, Mapping):
        return body
    annotations: Json = {**dict.fromkeys(stale, None), **own}
    return {**body, "metadata": {"annotations": annotations}}


def _name(target: Target) -> str:
    return f"{target.kind} {target.namespace}/{target.name}"
