"""Kubernetes objects with the fields that are used and no more: nodes, quotas, devices, events."""

from __future__ import annotations

from datetime import datetime

import msgspec

from collector.sources.kubernetes.objects import (
    Amounts,
    Condition,
    Dated,
    Metadata,
    Part,
    Quantity,
    Whole,
)


class Taint(Part, frozen=True):
    """What keeps pods off a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Part, frozen=True):
    """A node as it is meant to be used."""

    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None


class NodeStatus(Part, frozen=True):
    """A node as it is."""

    capacity: Amounts | None = None
    allocatable: Amounts | None = None
    conditions: tuple[Condition, ...] | None = None


class Node(Part, frozen=True):
    """A node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PriorityClass(Part, frozen=True):
    """A named priority; the kinds of Kubernetes and of Kueue have the same fields."""

    metadata: Metadata = Metadata()
    value: Whole | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


class ResourceQuotaSpec(Part, frozen=True):
    """What a namespace may use."""

    hard: Amounts | None = None


class ResourceQuotaStatus(Part, frozen=True):
    """What a namespace uses."""

    hard: Amounts | None = None
    used: Amounts | None = None


class ResourceQuota(Part, frozen=True):
    """The limits of a namespace."""

    metadata: Metadata = Metadata()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class FlavorResource(Part, frozen=True):
    """One resource of a flavor: its quota, or its usage."""

    name: str = ""
    nominal_quota: Quantity | None = None
    borrowing_limit: Quantity | None = None
    total: Quantity | None = None
    borrowed: Quantity | None = None


class Flavor(Part, frozen=True):
    """One flavor of a queue: its quotas, or its usages."""

    name: str = ""
    resources: tuple[FlavorResource, ...] | None = None


class ResourceGroup(Part, frozen=True):
    """Flavors that stand for each other."""

    flavors: tuple[Flavor, ...] | None = None


class KueueQueueSpec(Part, frozen=True):
    """A ClusterQueue's quotas, or which ClusterQueue a LocalQueue stands for."""

    cluster_queue: str | None = None
    cohort: str | None = None
    """v1beta1."""
    cohort_name: str | None = None
    """v1beta2."""
    resource_groups: tuple[ResourceGroup, ...] | None = None


class KueueQueueStatus(Part, frozen=True):
    """How full a queue is."""

    pending_workloads: Whole | None = None
    flavors_usage: tuple[Flavor, ...] | None = None
    flavor_usage: tuple[Flavor, ...] | None = None
    """LocalQueues of v1beta1."""


class KueueQueue(Part, frozen=True):
    """A ClusterQueue or a LocalQueue."""

    metadata: Metadata = Metadata()
    spec: KueueQueueSpec = KueueQueueSpec()
    status: KueueQueueStatus | None = None


class ResourceFlavorSpec(Part, frozen=True):
    """Which nodes a flavor stands for."""

    node_labels: dict[str, str] | None = None


class ResourceFlavor(Part, frozen=True):
    """A kind of nodes in Kueue's eyes."""

    metadata: Metadata = Metadata()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class Guarantee(Part, frozen=True):
    """What a Volcano queue always has."""

    resource: Amounts | None = None


class KaiAmount(Part, frozen=True):
    """One resource of a KAI queue; -1 is without end."""

    quota: float | None = None
    limit: float | None = None


class KaiResources(Part, frozen=True):
    """The resources of a KAI queue."""

    gpu: KaiAmount | None = None


class QueueSpec(Part, frozen=True):
    """A queue of Volcano or KAI."""

    capability: Amounts | None = None
    deserved: Amounts | None = None
    guarantee: Guarantee | None = None
    parent: str | None = None
    parent_queue: str | None = None
    resources: KaiResources | None = None


class QueueStatus(Part, frozen=True):
    """How full a queue of Volcano or KAI is."""

    allocated: Amounts | None = None
    pending: Whole | None = None


class Queue(Part, frozen=True):
    """A queue of Volcano or KAI."""

    metadata: Metadata = Metadata()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus | None = None


class DeviceAttribute(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    rename={"text": "string", "whole": "int"},
):
    """One property of a device; one of them is set, none where it is a yes or no."""

    text: str | None = None
    whole: Whole | None = None
    version: str | None = None


class DeviceCapacity(Part, frozen=True):
    """One amount of a device."""

    value: Quantity | None = None


class BasicDevice(Part, frozen=True):
    """A device's properties as v1beta1 wrapped them."""

    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity | Quantity] | None = None


class SliceDevice(Part, frozen=True):
    """A device that can be allocated."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity | Quantity] | None = None
    basic: BasicDevice | None = None


class Pool(Part, frozen=True):
    """Devices that one driver manages together."""

    name: str = ""
    generation: Whole = 0


class ResourceSliceSpec(Part, frozen=True):
    """Devices of one node."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str | None = None
    devices: tuple[SliceDevice, ...] | None = None


class ResourceSlice(Part, frozen=True):
    """Devices that a driver offers."""

    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()


class AllocatedDevice(Part, frozen=True):
    """A device that a claim got."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class AllocatedDevices(Part, frozen=True):
    """All devices that a claim got."""

    results: tuple[AllocatedDevice, ...] | None = None


class ClaimAllocation(Part, frozen=True):
    """What a claim got."""

    devices: AllocatedDevices = AllocatedDevices()


class ClaimConsumer(Part, frozen=True):
    """Who may use a claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Part, frozen=True):
    """How far a claim came."""

    allocation: ClaimAllocation | None = None
    reserved_for: tuple[ClaimConsumer, ...] | None = None


class DeviceWish(Part, frozen=True):
    """Devices of one class that are wanted."""

    device_class_name: str | None = None
    count: Whole | None = None
    admin_access: bool | None = None


class DeviceRequest(Part, frozen=True):
    """One wish of a claim; v1beta1 had the class right here."""

    name: str = ""
    exactly: DeviceWish | None = None
    first_available: tuple[DeviceWish, ...] | None = None
    device_class_name: str | None = None
    count: Whole | None = None
    admin_access: bool | None = None


class DeviceWishes(Part, frozen=True):
    """All wishes of a claim."""

    requests: tuple[DeviceRequest, ...] | None = None


class ResourceClaimSpec(Part, frozen=True):
    """What a claim wants."""

    devices: DeviceWishes = DeviceWishes()


class ResourceClaim(Part, frozen=True):
    """A wish for devices."""

    metadata: Metadata = Metadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus | None = None


class ObjectReference(Part, frozen=True):
    """Which object is meant."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class EventSeries(Dated, frozen=True):
    """How often an event came again."""

    count: Whole | None = None
    last_observed_time: datetime | None = None


class Event(Dated, frozen=True):
    """What a component of the cluster has to say; core/v1 and events.k8s.io/v1."""

    metadata: Metadata = Metadata()
    type: str | None = None
    reason: str | None = None
    message: str | None = None
    note: str | None = None
    involved_object: ObjectReference | None = None
    regarding: ObjectReference | None = None
    count: Whole | None = None
    deprecated_count: Whole | None = None
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    deprecated_last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: EventSeries | None = None
