"""What is known at one moment: frozen facts about workloads, rooms, quotas, notices and health.

Rules read these and a ``now``; nothing here can act, read a clock or reach outside. Times are aware
UTC instants. A fact that could not be had is None: it is never a zero and never permits an act.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from steward.period import Period


class Manager(StrEnum):
    """Who else writes the field that a reclaim would change."""

    KUEUE = "kueue"
    HPA = "hpa"
    KEDA = "keda"
    GITOPS = "gitops"
    OWNER = "owner"
    """A controller above it, such as the JobSet of a Job: go up to that object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvidence:
    """What one GPU, or one instance of it, told within a window about the workload that holds it.

    Peaks are over the window. None: the device does not tell, or nothing was read.
    """

    device_uuid: str
    instance_id: int | None
    node: str
    is_shared: bool
    """Several holders (time-slicing, MPS, HAMi): readings of the device are not of one of them."""
    coverage_ratio: float
    """Observed share of the part of the window in which the workload held the device, 0..1."""
    newest_at: datetime | None
    """When it was last read."""
    profiling_peak_ratio: float | None
    """The largest of SM, tensor, DRAM and graphics-engine activity, 0..1."""
    busy_peak_ratio: float | None
    """NVML's share of time with a kernel resident, 0..1; absent on MIG."""
    disagreement_ratio: float | None
    """The most by which ``busy`` lay above profiling in one and the same reading, 0..1."""
    own_busy_peak_ratio: float | None
    """Of a shared device: activity of this workload's own processes, where accounted."""
    power_peak_w: float | None
    power_idle_w: float | None
    """What the device drew while known to be without work, learnt from its own past."""
    memory_used_peak_bytes: int | None
    memory_total_bytes: int | None
    memory_change_bytes: int | None
    """Largest less smallest memory in use."""
    traffic_peak_bytes_per_s: float | None
    """PCIe and NVLink together."""
    process_count_peak: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was observed of all GPUs of all pods of one workload, for one set of idle limits."""

    window: Period
    scrape_interval_s: float
    devices: tuple[DeviceEvidence, ...]
    """Ascending by uuid and instance; one per device held at the window's end."""
    held_device_count: int
    """Devices it holds by the allocations; more than ``devices`` where some tell nothing."""
    observed_idle_s: float
    """Seconds since it last worked in which every device was seen idle. Gaps do not count."""
    idle_since_at: datetime | None
    """When that stretch began; None: it is not idle now, or that is not known."""
    was_ever_active: bool | None
    """Whether any of its devices has worked since it started; None: not known."""
    request_rate_per_s: float | None
    """Requests served, for inference; None: not told."""
    level_activity_s: float | None
    """Observed seconds up to now in which activity stayed small and level on every device, without
    traffic or change of memory; None: no device tells activity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFact:
    """One pod of a workload."""

    uid: str
    name: str
    node: str | None
    phase: str
    gpu_count: int
    labels: Mapping[str, str]
    has_controller: bool
    """Whether something would make it again; a bare pod is lost with its state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One workload that holds GPUs or waits for them."""

    cluster: str
    uid: str
    """As in ``workload.workload_uid``."""
    api_version: str
    kind: str
    namespace: str
    name: str
    object_uid: str
    resource_version: str
    tenant_id: str | None
    owner: str | None
    workload_class: str | None
    """training, inference or development; None: not known."""
    queue: str | None
    priority_class: str | None
    priority: int | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    namespace_labels: Mapping[str, str]
    gpu_models: tuple[str, ...]
    """Of what it holds, or the only ones it may use; ascending; empty: any."""
    mig_profile: str | None
    gpu_count: float
    """GPUs held, or asked for while it waits; a share of one counts as that share."""
    pods: tuple[PodFact, ...]
    is_gang: bool
    """All of its pods or none are of use."""
    is_pending: bool
    created_at: datetime
    admitted_at: datetime | None
    """When it last got its GPUs."""
    managers: frozenset[Manager]
    checkpoint_at: datetime | None
    """Its newest checkpoint, as it annotates."""
    restored_at: datetime | None
    """When an act on it was last undone."""
    evidence: Evidence | None
    """None: nothing was read of it."""
    pod_gpu_count: int | None = None
    """Whole GPUs, or instances, that each of its pods needs together on one node; None: as
    ``pods`` tell, or not known."""
    cpu_milli: int | None = None
    """Asked for by all of its pods together; None: nothing, or not known."""
    memory_bytes: int | None = None
    """Likewise."""
    stays_within: str | None = None
    """``nvlink_domain`` or ``rack``: all of its pods must lie in one; None: anywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoom:
    """What one node has and what of it is free, whole GPUs or instances of one profile."""

    cluster: str
    node: str
    gpu_model: str | None
    mig_profile: str | None
    free_count: int
    total_count: int
    is_schedulable: bool
    nvlink_domain: str | None
    rack: str | None
    free_cpu_milli: int | None
    free_memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disruption:
    """One PodDisruptionBudget."""

    namespace: str
    name: str
    match_labels: Mapping[str, str]
    allowed_disruption_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What one team, or queue, is promised of one GPU model and uses."""

    cluster: str
    tenant_id: str | None
    queue: str
    gpu_model: str | None
    guaranteed_gpu_count: float | None
    limit_gpu_count: float | None
    used_gpu_count: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """Somebody's leave, granted and dated, not to be acted on."""

    scope_kind: str
    """workload, tenant, namespace or device."""
    scope_key: str
    policy: str
    """A policy's name, or ``*``."""
    period: Period
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A warning that reached its owner: only delivered ones are facts."""

    workload_uid: str
    rule: str
    delivered_at: datetime
    idle_since_at: datetime | None
    """The idle stretch it spoke of: it says nothing about a later one."""
    act_at: datetime
    """When it said that the act may follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastAction:
    """An act that was begun, from the action ledger."""

    action_id: str
    workload_uid: str
    tenant_id: str | None
    step: str
    gpu_count: float
    begun_at: datetime
    outcome: str
    """begun, done, failed or undone."""
    undone_at: datetime | None
    was_asked_back: bool
    """Whether its owner had it restored, in whatever way: what the restore rate counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Whether what is seen and what is written can be trusted now."""

    telemetry_at: datetime | None
    """Newest reading stored."""
    api_error_ratio: float
    """Failed among the Kubernetes calls of the last ten minutes, 0..1; 0 where none was made."""
    is_stopped: bool
    """The global switch: nothing acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that rules may know at ``taken_at``; sequences are ascending by uid or name."""

    snapshot_id: str
    taken_at: datetime
    workloads: tuple[Workload, ...]
    rooms: tuple[NodeRoom, ...]
    disruptions: tuple[Disruption, ...]
    quotas: tuple[QuotaUse, ...]
    exemptions: tuple[Exemption, ...]
    notices: tuple[Notice, ...]
    past_actions: tuple[PastAction, ...]
    health: Health
    is_live: bool = False
    """Whether the live objects of due workloads were read: then one without a resource version is
    gone or could not be read."""
