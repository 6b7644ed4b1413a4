"""Which one write takes a workload's GPUs away, or lowers its priority, and how to go back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from enforcer.actuators.acts import (
    Act,
    BeforeImage,
    Order,
    Refusal,
    RefusalReason,
    Restoring,
    Surroundings,
)
from enforcer.actuators.commands import ABORT, command
from enforcer.actuators.fields import (
    Change,
    change,
    patch_of,
    target_of,
    text_at,
    texts_at,
)
from enforcer.actuators.kinds import KUEUE, Actuator, Means, actuator_of, is_pod, writing_owner
from enforcer.actuators.managers import (
    KEDA_PAUSED,
    is_gitops_owned,
    is_queued_by_kueue,
    queue_entry_of,
    scaled_object_of,
)
from enforcer.decisions import TAKING_STEPS, Step
from enforcer.gateway.port import KubernetesObject, Verb, Write

KUEUE_PRIORITY: Final = ("metadata", "labels", f"{KUEUE}/priority-class")
"""Kueue takes a changed label over at any time, also of admitted work."""
KAI_PREEMPTIBILITY: Final = ("metadata", "labels", "kai.scheduler/preemptibility")
KAI_PREEMPTIBLE: Final = "preemptible"
KAI_QUEUE: Final = "kai.scheduler/queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """What an act consists of before it is a write."""

    step: Step
    subject: KubernetesObject
    holder: KubernetesObject
    changes: tuple[Change, ...] = ()
    verb: Verb = Verb.PATCH
    restoring: Restoring = Restoring.FIELDS
    pod_labels: str = ""


def reclaim(
    step: Step, subject: KubernetesObject, around: Surroundings, *, order: Order
) -> Act | Refusal:
    """Return the write of one step on a workload's own object, as read just now.

    Args:
        step: LOWER_PRIORITY, SUSPEND or EVICT; the others write no object.
        subject: the top object of the workload, or the bare pod.
        around: what else in its namespace has a word.
        order: for what and when.
    """
    if step is Step.EVICT:
        return _eviction(subject, order)
    if (owner := writing_owner(subject)) is not None:
        what = f"is controlled by {owner.kind} {owner.name}"
        return _refusal(RefusalReason.GO_TO_OWNER, subject, what)
    if step is Step.LOWER_PRIORITY:
        return _lowered(subject, around, order=order)
    target = target_of(subject)
    actuator = actuator_of(target.api_version, target.kind)
    if step is not Step.SUSPEND or actuator is None:
        what = f"has no way to {step.value} it"
        return _refusal(RefusalReason.KIND_NOT_SERVED, subject, what)
    return _suspension(actuator, subject, around, order=order)


def _suspension(
    actuator: Actuator, subject: KubernetesObject, around: Surroundings, *, order: Order
) -> Act | Refusal:
    """Return the write on the object that holds the deciding field."""
    if (objection := actuator.objection(subject)) is not None:
        return _refusal(RefusalReason.NOT_SUSPENDABLE, subject, objection)
    if is_queued_by_kueue(subject, around):
        return _deactivation(actuator, subject, around, order=order)
    return _stopping(actuator, subject, around, order=order)


def _stopping(
    actuator: Actuator, subject: KubernetesObject, around: Surroundings, *, order: Order
) -> Act | Refusal:
    """Return the write on the object itself, or on what scales it."""
    scaler = scaled_object_of(subject, around)
    holder = subject if scaler is None else scaler
    if is_gitops_owned(holder) and not order.overrides_gitops:
        return _refusal(RefusalReason.GITOPS_OWNED, holder, "is kept as git has it")
    draft = _Draft(
        step=Step.SUSPEND,
        subject=subject,
        holder=holder,
        pod_labels=actuator.pod_labels(subject),
    )
    if actuator.means is Means.COMMAND:
        return _abortion(draft, order)
    made = _taking_change(actuator, holder, is_paused=scaler is not None, order=order)
    if _is_taken_already(made, actuator):
        return _refusal(RefusalReason.ALREADY_TAKEN, holder, "is stopped already")
    is_scaled = actuator.means is Means.SCALE and scaler is None
    verb = Verb.SCALE if is_scaled else Verb.PATCH
    return _act(replace(draft, changes=(made,), verb=verb), order)


def _taking_change(
    actuator: Actuator, holder: KubernetesObject, *, is_paused: bool, order: Order
) -> Change:
    """Return the change that takes; KEDA scales to what its annotation says and keeps it so."""
    if is_paused:
        return change(holder, ("metadata", "annotations", KEDA_PAUSED), "0")
    stopped_at = order.at.strftime("%Y-%m-%dT%H:%M:%SZ")
    new = stopped_at if actuator.taken is None else actuator.taken
    return change(holder, actuator.path, new, resumed=actuator.resumed)


def _is_taken_already(made: Change, actuator: Actuator) -> bool:
    """Return whether the old value takes as much; of times of stopping any does."""
    if made.path == actuator.path and actuator.taken is None:
        return made.old is not None
    return made.old == made.new


def _deactivation(
    actuator: Actuator, subject: KubernetesObject, around: Surroundings, *, order: Order
) -> Act | Refusal:
    """Return the write on Kueue's Workload: Kueue suspends the job and frees the quota."""
    entry = queue_entry_of(subject, around)
    if entry is None:
        what = "is queued by Kueue, but no Workload stands for it"
        return _refusal(RefusalReason.QUEUE_ENTRY_MISSING, subject, what)
    made = change(entry, ("spec", "active"), new=False)
    if made.is_made(entry):
        return _refusal(RefusalReason.ALREADY_TAKEN, entry, "is inactive already")
    draft = _Draft(
        step=Step.SUSPEND,
        subject=subject,
        holder=entry,
        changes=(made,),
        pod_labels=actuator.pod_labels(subject),
    )
    return _act(draft, order)


def _lowered(subject: KubernetesObject, around: Surroundings, *, order: Order) -> Act | Refusal:
    """Return the write of a label that queue systems read; the GPUs stay until someone waits."""
    made = _lower_label(subject, around, order=order)
    if made is None:
        what = "is in no queue that knows a lower priority"
        return _refusal(RefusalReason.NO_LOWER_PRIORITY, subject, what)
    if made.is_made(subject):
        return _refusal(RefusalReason.ALREADY_TAKEN, subject, "has the lower priority already")
    if is_gitops_owned(subject) and not order.overrides_gitops:
        return _refusal(RefusalReason.GITOPS_OWNED, subject, "is kept as git has it")
    draft = _Draft(step=Step.LOWER_PRIORITY, subject=subject, holder=subject, changes=(made,))
    return _act(draft, order)


def _lower_label(subject: KubernetesObject, around: Surroundings, *, order: Order) -> Change | None:
    if is_queued_by_kueue(subject, around):
        lower = order.low_priority_class
        return None if lower is None else change(subject, KUEUE_PRIORITY, lower)
    if KAI_QUEUE in texts_at(subject, "metadata", "labels"):
        return change(subject, KAI_PREEMPTIBILITY, KAI_PREEMPTIBLE)
    return None


def _abortion(draft: _Draft, order: Order) -> Act:
    """Return Volcano's command: the job's own spec stays as it is."""
    image = _image(replace(draft, verb=Verb.CREATE, restoring=Restoring.COMMAND), order)
    write = command(ABORT, subject=image.subject, action_id=order.action_id)
    return Act(write=write, before=image)


def _eviction(subject: KubernetesObject, order: Order) -> Act | Refusal:
    owner = writing_owner(subject)
    if not is_pod(subject) or owner is not None:
        what = "is no pod" if owner is None else f"is made by {owner.kind} {owner.name}"
        return _refusal(RefusalReason.NOT_A_BARE_POD, subject, what)
    draft = _Draft(
        step=Step.EVICT,
        subject=subject,
        holder=subject,
        verb=Verb.EVICT,
        restoring=Restoring.NEVER,
    )
    uid = target_of(subject).uid
    own = order if uid is None else replace(order, pod_uids=(*order.pod_uids, uid))
    return _act(draft, own)


def _act(draft: _Draft, order: Order) -> Act:
    write = Write(
        verb=draft.verb,
        target=target_of(draft.holder),
        body=patch_of(draft.changes),
        resource_version=text_at(draft.holder, "metadata", "resourceVersion"),
    )
    return Act(write=write, before=_image(draft, order))


def _image(draft: _Draft, order: Order) -> BeforeImage:
    is_taking = draft.step in TAKING_STEPS
    return BeforeImage(
        step=draft.step,
        subject=target_of(draft.subject),
        holder=target_of(draft.holder),
        verb=draft.verb,
        changes=draft.changes,
        restoring=draft.restoring,
        pod_labels=draft.pod_labels,
        pod_uids=tuple(sorted(set(order.pod_uids))) if is_taking else (),
    )


def _refusal(reason: RefusalReason, thing: KubernetesObject, what: str) -> Refusal:
    target = target_of(thing)
    return Refusal(reason=reason, detail=f"{target.kind} {target.namespace}/{target.name} {what}")
