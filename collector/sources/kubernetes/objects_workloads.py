"""Kubernetes objects with the fields that are used and no more: who makes and who queues pods.

One struct serves all kinds that make pods: each writes what it wants made in its own field.
"""

from __future__ import annotations

from datetime import datetime

from collector.sources.kubernetes.objects import (
    Condition,
    Dated,
    Metadata,
    Part,
    PodTemplate,
    Whole,
)


class JobSpec(Part, frozen=True):
    """What a batch Job wants made."""

    parallelism: Whole | None = None
    completions: Whole | None = None
    suspend: bool | None = None
    template: PodTemplate | None = None


class JobTemplate(Part, frozen=True):
    """What a JobSet's or a CronJob's Jobs are made from."""

    spec: JobSpec = JobSpec()


class ReplicaSpec(Part, frozen=True):
    """One role of a Kubeflow job."""

    replicas: Whole | None = None
    template: PodTemplate | None = None


class ReplicatedJob(Part, frozen=True):
    """One group of Jobs of a JobSet."""

    replicas: Whole | None = None
    template: JobTemplate = JobTemplate()


class RayGroup(Part, frozen=True):
    """The head or one group of workers of a Ray cluster."""

    replicas: Whole | None = None
    num_of_hosts: Whole | None = None
    template: PodTemplate | None = None


class RaySpec(Part, frozen=True):
    """A Ray cluster as it was asked for."""

    suspend: bool | None = None
    head_group_spec: RayGroup | None = None
    worker_group_specs: tuple[RayGroup, ...] | None = None


class LeaderWorkerTemplate(Part, frozen=True):
    """A group of a LeaderWorkerSet."""

    size: Whole | None = None
    leader_template: PodTemplate | None = None
    worker_template: PodTemplate | None = None


class RunPolicy(Part, frozen=True):
    """How a Kubeflow job is run."""

    suspend: bool | None = None


class MakerSpec(Part, frozen=True):
    """What an object that makes pods wants made; each kind fills its own fields."""

    suspend: bool | None = None
    parallelism: Whole | None = None
    completions: Whole | None = None
    replicas: Whole | None = None
    template: PodTemplate | None = None
    run_policy: RunPolicy | None = None
    pytorch_replica_specs: dict[str, ReplicaSpec] | None = None
    tf_replica_specs: dict[str, ReplicaSpec] | None = None
    mpi_replica_specs: dict[str, ReplicaSpec] | None = None
    xgb_replica_specs: dict[str, ReplicaSpec] | None = None
    paddle_replica_specs: dict[str, ReplicaSpec] | None = None
    jax_replica_specs: dict[str, ReplicaSpec] | None = None
    replicated_jobs: tuple[ReplicatedJob, ...] | None = None
    head_group_spec: RayGroup | None = None
    worker_group_specs: tuple[RayGroup, ...] | None = None
    ray_cluster_spec: RaySpec | None = None
    leader_worker_template: LeaderWorkerTemplate | None = None
    tasks: tuple[ReplicaSpec, ...] | None = None
    """Volcano jobs."""
    queue: str | None = None
    """Volcano jobs."""
    priority_class_name: str | None = None
    """Volcano jobs."""


class StateOfVolcanoJob(Dated, frozen=True):
    """Where a Volcano job is in its life."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class MakerStatus(Dated, frozen=True):
    """How an object that makes pods is doing."""

    conditions: tuple[Condition, ...] | None = None
    completion_time: datetime | None = None
    finished_at: datetime | None = None
    end_time: datetime | None = None
    phase: str | None = None
    """Argo workflows."""
    job_status: str | None = None
    """Ray jobs: ``SUCCEEDED``, ``FAILED``, ``STOPPED`` at the end."""
    message: str | None = None
    state: StateOfVolcanoJob | str | None = None


class Maker(Part, frozen=True):
    """An object that makes pods, itself or through others."""

    metadata: Metadata = Metadata()
    spec: MakerSpec | None = None
    status: MakerStatus | None = None


class PodSet(Part, frozen=True):
    """Pods of one kind that a Kueue Workload wants admitted."""

    name: str = ""
    count: Whole | None = None
    template: PodTemplate | None = None


class PriorityClassRef(Part, frozen=True):
    """Which priority class a Kueue Workload has."""

    name: str = ""


class KueueWorkloadSpec(Part, frozen=True):
    """What is queued."""

    pod_sets: tuple[PodSet, ...] | None = None
    queue_name: str | None = None
    priority: Whole | None = None
    priority_class_name: str | None = None
    """v1beta1."""
    priority_class_ref: PriorityClassRef | None = None
    """v1beta2."""
    active: bool | None = None


class Evictions(Part, frozen=True):
    """How often a workload was evicted for one reason."""

    count: Whole = 0


class SchedulingStats(Part, frozen=True):
    """How often a workload was evicted."""

    evictions: tuple[Evictions, ...] | None = None


class KueueWorkloadStatus(Part, frozen=True):
    """How far it came."""

    conditions: tuple[Condition, ...] | None = None
    scheduling_stats: SchedulingStats | None = None


class KueueWorkload(Part, frozen=True):
    """One entry of a Kueue queue."""

    metadata: Metadata = Metadata()
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus | None = None


class PodGroupSpec(Part, frozen=True):
    """A gang as Volcano and KAI schedule it."""

    queue: str | None = None
    priority_class_name: str | None = None


class PodGroupStatus(Part, frozen=True):
    """How far a gang came."""

    phase: str | None = None
    conditions: tuple[Condition, ...] | None = None


class PodGroup(Part, frozen=True):
    """A gang of pods."""

    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus | None = None
