"""How many pods of which kind a workload says that it wants, before any of them exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from collector.sources.kubernetes.objects import PodTemplate
from collector.sources.kubernetes.objects_workloads import (
    JobSpec,
    KueueWorkload,
    Maker,
    MakerSpec,
    RayGroup,
    ReplicaSpec,
)

Wanted: TypeAlias = tuple[int, PodTemplate]
"""A number of pods, and what they are made from."""


def queued_pods(workload: KueueWorkload) -> tuple[Wanted, ...]:
    """Return what a Kueue Workload wants admitted."""
    sets = workload.spec.pod_sets or ()
    return tuple(
        (1 if each.count is None else each.count, each.template)
        for each in sets
        if each.template is not None
    )


def declared_pods(maker: Maker | None) -> tuple[Wanted, ...]:
    """Return what a workload wants made; nothing where its kind does not say."""
    if maker is None or maker.spec is None:
        return ()
    return tuple(each for each in _wanted(maker.spec) if each[0] > 0)


def _wanted(spec: MakerSpec) -> Iterator[Wanted]:
    yield from _plain(spec)
    for roles in (
        spec.pytorch_replica_specs,
        spec.tf_replica_specs,
        spec.mpi_replica_specs,
        spec.xgb_replica_specs,
        spec.paddle_replica_specs,
        spec.jax_replica_specs,
    ):
        yield from _roles((roles or {}).values())
    yield from _roles(spec.tasks or ())
    for group in spec.replicated_jobs or ():
        for count, template in _job(group.template.spec):
            yield _one_if_unsaid(group.replicas) * count, template
    ray = spec.ray_cluster_spec
    yield from _ray(spec.head_group_spec, spec.worker_group_specs)
    if ray is not None:
        yield from _ray(ray.head_group_spec, ray.worker_group_specs)


def _plain(spec: MakerSpec) -> Iterator[Wanted]:
    """Yield what Jobs, Deployments, StatefulSets and LeaderWorkerSets want."""
    groups = spec.leader_worker_template
    if groups is not None and groups.worker_template is not None:
        count, size = _one_if_unsaid(spec.replicas), _one_if_unsaid(groups.size)
        leader = groups.leader_template
        yield count * (size - 1 if leader is not None else size), groups.worker_template
        if leader is not None:
            yield count, leader
    if spec.template is not None:
        at_once = spec.parallelism if spec.replicas is None else spec.replicas
        count = _one_if_unsaid(at_once)
        if spec.parallelism is not None and spec.completions is not None:
            count = min(count, spec.completions)
        yield count, spec.template


def _job(spec: JobSpec) -> Iterator[Wanted]:
    if spec.template is not None:
        yield _one_if_unsaid(spec.parallelism), spec.template


def _roles(roles: Iterable[ReplicaSpec]) -> Iterator[Wanted]:
    for role in roles:
        if role.template is not None:
            yield _one_if_unsaid(role.replicas), role.template


def _ray(head: RayGroup | None, workers: Iterable[RayGroup] | None) -> Iterator[Wanted]:
    if head is not None and head.template is not None:
        yield 1, head.template
    for group in workers or ():
        if group.template is not None:
            hosts = _one_if_unsaid(group.num_of_hosts)
            yield _one_if_unsaid(group.replicas) * hosts, group.template


def _one_if_unsaid(count: int | None) -> int:
    """Return the count; Kubernetes takes one where none is said."""
    return 1 if count is None else count
