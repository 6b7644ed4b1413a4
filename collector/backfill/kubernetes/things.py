"""Nodes, namespaces and owners of the past, in the shape the API server has them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from collector.backfill.kubernetes.names import resource_name, true_labels
from collector.backfill.kubernetes.pods import owner_reference, owner_uid
from collector.backfill.kubernetes.series import KubeHour, Value
from collector.sources.kubernetes.objects import Amounts, Condition, Metadata, Object
from collector.sources.kubernetes.objects_cluster import Node, NodeSpec, NodeStatus, Taint
from collector.sources.kubernetes.objects_workloads import Maker, MakerSpec, MakerStatus
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.resources import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    REPLICA_SETS,
    STATEFUL_SETS,
)

Things: TypeAlias = dict[tuple[str, str], KubernetesObject]
"""By name of the kind and by uid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How the series of a kind are called."""

    resource: Resource
    prefix: str
    label: str
    """The label that holds an object's name."""


_OWNERS: Final = (
    _Kind(resource=DEPLOYMENTS, prefix="kube_deployment", label="deployment"),
    _Kind(resource=REPLICA_SETS, prefix="kube_replicaset", label="replicaset"),
    _Kind(resource=STATEFUL_SETS, prefix="kube_statefulset", label="statefulset"),
    _Kind(resource=DAEMON_SETS, prefix="kube_daemonset", label="daemonset"),
    _Kind(resource=CRON_JOBS, prefix="kube_cronjob", label="cronjob"),
    _Kind(resource=JOBS, prefix="kube_job", label="job_name"),
    _Kind(resource=NAMESPACES, prefix="kube_namespace", label="namespace"),
)


def things_of(hour: KubeHour, *, known_labels: Iterable[str]) -> Things:
    """Return nodes, namespaces and owners of an hour, each as it was last."""
    known = tuple(known_labels)
    found: Things = {}
    jobs = _Jobs(hour)
    for kind in _OWNERS:
        for uid, metadata in _metadata(hour, kind, known).items():
            found[kind.resource.name, uid] = _thing(kind, metadata, jobs)
    for uid, node in _nodes(hour, known).items():
        found[NODES.name, uid] = node
    return found


def _metadata(hour: KubeHour, kind: _Kind, known: Iterable[str]) -> dict[str, Metadata]:
    """Return the metadata of all objects of a kind, by what stands for their uid."""
    made: dict[tuple[str, str], datetime] = {}
    for value in hour.of(f"{kind.prefix}_created"):
        made[_place(value, kind)] = value.at
    owners = {_place(value, kind): value for value in hour.of(f"{kind.prefix}_owner")}
    labels = {
        _place(value, kind): true_labels(value.labels, known=known)
        for value in hour.of(f"{kind.prefix}_labels")
    }
    found: dict[str, Metadata] = {}
    for namespace, name in sorted({*made, *owners, *labels}):
        place = (namespace, name)
        uid = owner_uid(kind.resource.kind, namespace, name)
        owner = owners.get(place)
        is_owned = owner is not None and owner.text("owner_kind") != ""
        found[uid] = Metadata(
            name=name,
            namespace=namespace or None,
            uid=uid,
            creation_timestamp=made.get(place),
            labels=labels.get(place) or None,
            owner_references=(owner_reference(owner, namespace),)
            if owner is not None and is_owned
            else None,
        )
    return found


def _place(value: Value, kind: _Kind) -> tuple[str, str]:
    namespace = value.text("namespace") if kind.resource.is_namespaced else ""
    return namespace, value.text(kind.label)


def _thing(kind: _Kind, metadata: Metadata, jobs: _Jobs) -> KubernetesObject:
    if kind.resource is JOBS:
        return jobs.job(metadata)
    if kind.resource.decode is Maker:
        return Maker(metadata=metadata)
    return Object(metadata=metadata)


class _Jobs:
    """What the series say of Jobs, by namespace and name."""

    def __init__(self, hour: KubeHour) -> None:
        """Read the hour."""

        def by_place(name: str) -> dict[tuple[str, str], Value]:
            return {(v.text("namespace"), v.text("job_name")): v for v in hour.of(name)}

        self._parallelism = by_place("kube_job_spec_parallelism")
        self._completions = by_place("kube_job_spec_completions")
        self._ended = by_place("kube_job_status_completion_time")
        self._complete = {
            (value.text("namespace"), value.text("job_name"))
            for value in hour.of("kube_job_complete")
            if value.text("condition") == "true"
        }

    def job(self, metadata: Metadata) -> Maker:
        """Return a Job with its size and its end."""
        place = (metadata.namespace or "", metadata.name)
        sizes = [
            None if found is None else round(found.number)
            for found in (self._parallelism.get(place), self._completions.get(place))
        ]
        ended = self._ended.get(place)
        ended_at = None if ended is None else ended.at
        condition = Condition(type="Complete", status="True", last_transition_time=ended_at)
        is_complete = place in self._complete and ended_at is not None
        return Maker(
            metadata=metadata,
            spec=MakerSpec(parallelism=sizes[0], completions=sizes[1]),
            status=MakerStatus(
                completion_time=ended_at, conditions=(condition,) if is_complete else None
            ),
        )


def _nodes(hour: KubeHour, known: Iterable[str]) -> dict[str, Node]:
    """Return the nodes by what stands for their uid."""
    made = {value.text("node"): value.at for value in hour.of("kube_node_created")}
    labels = {
        value.text("node"): true_labels(value.labels, known=known)
        for value in hour.of("kube_node_labels")
    }
    offered = _amounts(hour.of("kube_node_status_allocatable"))
    capacity = _amounts(hour.of("kube_node_status_capacity"))
    closed = {value.text("node") for value in hour.of("kube_node_spec_unschedulable")}
    taints: dict[str, list[Taint]] = {}
    for value in hour.of("kube_node_spec_taint"):
        taint = Taint(
            key=value.text("key"), value=value.text("value") or None, effect=value.text("effect")
        )
        taints.setdefault(value.text("node"), []).append(taint)
    return {
        owner_uid(NODES.kind, "", name): Node(
            metadata=Metadata(
                name=name,
                uid=owner_uid(NODES.kind, "", name),
                creation_timestamp=made.get(name),
                labels=labels.get(name) or None,
            ),
            spec=NodeSpec(
                unschedulable=name in closed or None, taints=tuple(taints.get(name, ())) or None
            ),
            status=NodeStatus(
                capacity=dict(capacity.get(name, {})) or None,
                allocatable=dict(offered.get(name, {})) or None,
            ),
        )
        for name in sorted({*made, *offered, *(v.text("node") for v in hour.of("kube_node_info"))})
        if name
    }


def _amounts(values: Iterable[Value]) -> Mapping[str, Amounts]:
    found: dict[str, Amounts] = {}
    for value in values:
        amounts = found.setdefault(value.text("node"), {})
        amounts[resource_name(value.text("resource"))] = value.number
    return found
