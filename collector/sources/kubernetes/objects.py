"""Kubernetes objects with the fields that are used and no more: what all have, and pods.

Decoded with msgspec from the API server's JSON: unknown fields are passed over, absent ones are
None. Field names are Kubernetes' own in snake case; see the Kubernetes API reference.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, TypeAlias

import msgspec

Quantity: TypeAlias = str | int | float
"""An amount as Kubernetes writes it: ``"500m"``, ``"16Gi"``, and numbers in some custom objects."""
Amounts: TypeAlias = dict[str, Quantity]
"""Amounts by resource name."""
ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
"""Phases of pods that hold nothing any more."""
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A number as the API server has them; a larger one is none of its own."""
_CALENDAR: Final = range(2, 9_999)
"""Years of which every instant is one in every time zone."""


class Part(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A part of an object; holds no cycles, so that the collector of cycles may pass it over."""


class Dated(Part, frozen=True):
    """A part with instants.

    One without a time zone, or at an end of the calendar, counts as not said: custom objects hold
    whatever their makers wrote.
    """

    def __post_init__(self) -> None:
        """Leave out what is no instant."""
        for name in self.__struct_fields__:
            found = getattr(self, name)
            if type(found) is datetime and (found.tzinfo is None or found.year not in _CALENDAR):
                msgspec.structs.force_setattr(self, name, None)


class OwnerReference(Part, frozen=True):
    """Who made an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class Annotations(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    rename={
        "kueue_queue": "kueue.x-k8s.io/queue-name",
        "volcano_queue": "scheduling.volcano.sh/queue-name",
        "volcano_group": "scheduling.k8s.io/group-name",
        "volcano_group_own": "scheduling.volcano.sh/group-name",
        "kai_group": "pod-group-name",
        "gpu_fraction": "gpu-fraction",
        "gpu_fraction_device_count": "gpu-fraction-num-devices",
        "gpu_memory_mib": "gpu-memory",
    },
):
    """The few annotations that say who waits where for how much; all others are passed over."""

    kueue_queue: str | None = None
    volcano_queue: str | None = None
    volcano_group: str | None = None
    volcano_group_own: str | None = None
    kai_group: str | None = None
    gpu_fraction: str | None = None
    """KAI scheduler: the part of one GPU that is asked for, ``"0.5"``."""
    gpu_fraction_device_count: str | None = None
    gpu_memory_mib: str | None = None


class Metadata(Dated, frozen=True):
    """What every object has."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class Condition(Dated, frozen=True):
    """One aspect of an object's state."""

    type: str = ""
    status: str = "Unknown"
    """``True``, ``False`` or ``Unknown``."""
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class Object(Part, frozen=True):
    """An object of which only the metadata matters."""

    metadata: Metadata = Metadata()


class ResourceRequirements(Part, frozen=True):
    """What a container asks for."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class Container(Part, frozen=True):
    """A container as it was asked for."""

    name: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    """``Always`` makes an init container a sidecar."""


class SelectorRequirement(Part, frozen=True):
    """One term of a node selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Part, frozen=True):
    """Requirements that must all hold."""

    match_expressions: tuple[SelectorRequirement, ...] | None = None


class NodeSelector(Part, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class NodeAffinity(Part, frozen=True):
    """Which nodes will do."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Part, frozen=True):
    """Where a pod wants to be."""

    node_affinity: NodeAffinity | None = None


class PodClaim(Part, frozen=True):
    """A claim that a pod uses, in its spec and in its status."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSpec(Part, frozen=True):
    """A pod as it was asked for."""

    node_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    priority: Whole | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    resource_claims: tuple[PodClaim, ...] | None = None


class StateRunning(Dated, frozen=True):
    """A container that runs."""

    started_at: datetime | None = None


class StateTerminated(Dated, frozen=True):
    """A container that ended."""

    exit_code: Whole | None = None
    reason: str | None = None
    message: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class StateWaiting(Part, frozen=True):
    """A container that does not run yet."""

    reason: str | None = None


class ContainerState(Part, frozen=True):
    """Where a container is in its life; one of the three is set."""

    running: StateRunning | None = None
    terminated: StateTerminated | None = None
    waiting: StateWaiting | None = None


class ContainerStatus(Part, frozen=True):
    """A container as it is."""

    name: str = ""
    restart_count: Whole = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class PodStatus(Dated, frozen=True):
    """A pod as it is."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    start_time: datetime | None = None
    qos_class: str | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    resource_claim_statuses: tuple[PodClaim, ...] | None = None


class Pod(Part, frozen=True):
    """A pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Part, frozen=True):
    """What pods are made from."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
