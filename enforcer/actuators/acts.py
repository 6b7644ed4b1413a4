"""What an act is made of: the order, the write, the before-image that undoes it, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from enforcer.actuators.fields import Change
from enforcer.decisions import Setting, Step
from enforcer.gateway.port import KubernetesObject, Target, Verb, Write
from steward.errors import InputError


class RefusalReason(StrEnum):
    """Why an act on an object, or its undoing, is not done."""

    GO_TO_OWNER = "go_to_owner"
    """Another object controls it and would undo the act: act on that one."""
    GITOPS_OWNED = "gitops_owned"
    """Argo CD or Flux would put it back: notify only."""
    KIND_NOT_SERVED = "kind_not_served"
    """There is no actuator for its kind and this step."""
    NOT_SUSPENDABLE = "not_suspendable"
    """Its controller would fail it instead of suspending it."""
    ALREADY_TAKEN = "already_taken"
    """It is suspended, paused or scaled to zero as it is."""
    QUEUE_ENTRY_MISSING = "queue_entry_missing"
    """Kueue manages it, but its Workload was not found."""
    NO_LOWER_PRIORITY = "no_lower_priority"
    """Nothing queues it that knows a lower priority, or no lower class is named."""
    NOT_A_BARE_POD = "not_a_bare_pod"
    """Evicting is for pods that nothing makes again, and by leave of the rule."""
    NOT_RESTORABLE = "not_restorable"
    """An evicted pod cannot be brought back."""
    OBJECT_GONE = "object_gone"
    """It was deleted, or another has its name now."""
    RESTORED_BY_OTHERS = "restored_by_others"
    """Somebody put it back by hand: nothing is left to undo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An act that is not done, and why."""

    reason: RefusalReason
    detail: str
    """Names the object and what stands in the way, for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an act needs to know beside the object."""

    action_id: str
    """From it come names of objects that are created: an act done twice is one."""
    at: datetime
    """Written where a kind wants a time."""
    pod_uids: tuple[str, ...] = ()
    """Pods that the workload is known to have: they must be gone too before its GPUs are free."""
    low_priority_class: str | None = None
    """Kueue's WorkloadPriorityClass for work that may be preempted."""
    overrides_gitops: bool = False
    """A person's order to act although it will be put back."""


class Restoring(StrEnum):
    """How an act is taken back."""

    FIELDS = "fields"
    """Each changed field gets its old value."""
    COMMAND = "command"
    """Volcano is told to resume the job."""
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeImage:
    """Everything that verifying and undoing an act need; kept in the ledger before the act."""

    step: Step | Setting
    subject: Target
    """The workload's own object."""
    holder: Target
    """The object that is written, or whose state tells: read this one to verify and to undo."""
    verb: Verb
    changes: tuple[Change, ...]
    restoring: Restoring
    pod_labels: str
    """Label selector of the workload's pods in its namespace; empty: they are not told by labels,
    and ``pod_uids`` alone count."""
    pod_uids: tuple[str, ...]
    """Its pods when the act was ordered, ascending."""

    def text(self) -> str:
        """Return it as JSON for the ledger; the same image gives the same text."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One write and the way back."""

    write: Write
    before: BeforeImage


def before_image(text: str) -> BeforeImage:
    """Return the before-image that a ledger row holds.

    Raises:
        InputError: the text is none.
    """
    try:
        return _parsed(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"a before-image of the action ledger cannot be read: {error}",
            hint="restore the object by hand; the row's evidence and audit say what it was",
        ) from error


def _parsed(found: dict[str, object]) -> BeforeImage:
    kept = dict(found)
    changes = kept.pop("changes")
    if not isinstance(changes, Sequence):
        raise TypeError("changes are no list")
    return BeforeImage(
        step=_kind(str(kept["step"])),
        subject=_target(kept["subject"]),
        holder=_target(kept["holder"]),
        verb=Verb(str(kept["verb"])),
        changes=tuple(_change(each) for each in changes),
        restoring=Restoring(str(kept["restoring"])),
        pod_labels=str(kept["pod_labels"]),
        pod_uids=_texts(kept["pod_uids"]),
    )


def _kind(word: str) -> Step | Setting:
    return Setting(word) if word in set(Setting) else Step(word)


def _target(found: object) -> Target:
    if not isinstance(found, dict):
        raise TypeError("a target is no object")
    return Target(**found)


def _change(found: object) -> Change:
    if not isinstance(found, dict):
        raise TypeError("a change is no object")
    return Change(**{**found, "path": _texts(found["path"])})


def _texts(found: object) -> tuple[str, ...]:
    if isinstance(found, str) or not isinstance(found, Sequence):
        raise TypeError("texts are no list")
    return tuple(str(text) for text in found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Objects of a workload's namespace that may have a word about it; any order."""

    queue_entries: tuple[KubernetesObject, ...] = ()
    """Kueue Workloads."""
    autoscalers: tuple[KubernetesObject, ...] = ()
    """HorizontalPodAutoscalers."""
    scaled_objects: tuple[KubernetesObject, ...] = ()
    """KEDA's ScaledObjects."""
