"""Kubernetes objects as the API server writes them, with harmless defaults, for the lifecycle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from collector.sources.kubernetes.resource import KubernetesObject, Resource

Body: TypeAlias = dict[str, Any]
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def at(seconds: float) -> datetime:
    """Return the instant so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def stamp(seconds: float | None) -> str | None:
    """Return the instant as the API server writes it."""
    return None if seconds is None else at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def decoded(resource: Resource, body: Body) -> KubernetesObject:
    """Return the object as the transport decodes it."""
    return msgspec.json.decode(json.dumps(body), type=resource.decode)


def metadata(  # noqa: PLR0913 - metadata has that many parts
    name: str,
    *,
    namespace: str | None = "research",
    uid: str | None = None,
    created_s: float = 0,
    deleted_s: float | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: Body | None = None,
) -> Body:
    """Return metadata; the uid is ``<name>-uid`` unless said."""
    found: Body = {
        "name": name,
        "uid": uid or f"{name}-uid",
        "resourceVersion": "1",
        "creationTimestamp": stamp(created_s),
        "managedFields": [{"manager": "kubectl"}],
    }
    optional = {
        "namespace": namespace,
        "deletionTimestamp": stamp(deleted_s),
        "labels": dict(labels) if labels else None,
        "annotations": dict(annotations) if annotations else None,
        "ownerReferences": [owner] if owner else None,
    }
    return {**found, **{name: each for name, each in optional.items() if each is not None}}


def owner_reference(
    kind: str, name: str, *, uid: str | None = None, api_version: str = "batch/v1"
) -> Body:
    """Return a controller's reference."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid or f"{name}-uid",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(
    kind: str, status: str, changed_s: float | None, reason: str = "", message: str = ""
) -> Body:
    """Return a condition."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": stamp(changed_s),
    }


def pod_spec(
    *,
    gpu_count: int = 1,
    node: str | None = None,
    requests: Mapping[str, str] | None = None,
    **spec: object,
) -> Body:
    """Return a pod's spec with one container."""
    amounts = {"cpu": "4", "memory": "8Gi", **({GPU: str(gpu_count)} if gpu_count else {})}
    asked = {**amounts, **(requests or {})}
    container = {"name": "main", "resources": {"limits": asked, "requests": asked}}
    bound = {"nodeName": node} if node else {}
    return {"containers": [container], "schedulerName": "default-scheduler", **bound, **spec}


def pod(  # noqa: PLR0913 - the life of a pod has that many instants
    name: str = "train-0",
    *,
    gpu_count: int = 1,
    node: str | None = None,
    scheduled_s: float | None = None,
    started_s: float | None = None,
    ready_s: float | None = None,
    finished_s: float | None = None,
    exit_code: int = 0,
    disrupted: tuple[float, str] | None = None,
    conditions: Sequence[Body] = (),
    spec: Body | None = None,
    reason: str | None = None,
    **meta: Any,  # noqa: ANN401 - passed on to metadata()
) -> Body:
    """Return a pod as far as it came; times are seconds after noon."""
    is_bound = scheduled_s is not None
    own = [
        condition("PodScheduled", "True", scheduled_s)
        if is_bound
        else condition("PodScheduled", "False", 0, "Unschedulable", "0/1 nodes are available"),
        *conditions,
    ]
    if ready_s is not None:
        own.append(condition("Ready", "True" if finished_s is None else "False", ready_s))
    if disrupted is not None:
        own.append(condition("DisruptionTarget", "True", disrupted[0], disrupted[1], "moved away"))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, **meta),
        "spec": pod_spec(
            gpu_count=gpu_count, node=node or ("gpu-0" if is_bound else None), **(spec or {})
        ),
        "status": _pod_status(own, started_s, finished_s, exit_code, reason),
    }


def _pod_status(
    conditions: list[Body],
    started_s: float | None,
    finished_s: float | None,
    exit_code: int,
    reason: str | None,
) -> Body:
    phase, state = "Pending", None
    if started_s is not None:
        phase, state = "Running", {"running": {"startedAt": stamp(started_s)}}
    if finished_s is not None:
        phase = "Failed" if exit_code else "Succeeded"
        ended = {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": stamp(started_s),
            "finishedAt": stamp(finished_s),
        }
        state = {"terminated": ended}
    status: Body = {"phase": phase, "conditions": conditions, "qosClass": "Guaranteed"}
    if reason is not None:
        status |= {"phase": "Failed", "reason": reason}
    if state is not None:
        status["containerStatuses"] = [{"name": "main", "restartCount": 0, "state": state}]
    return status


def job(
    name: str = "train",
    *,
    pod_count: int = 1,
    gpu_count: int = 1,
    suspend: bool = False,
    conditions: Sequence[Body] = (),
    **meta: Any,  # noqa: ANN401 - passed on to metadata()
) -> Body:
    """Return a batch Job."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, **meta),
        "spec": {
            "parallelism": pod_count,
            "completions": pod_count,
            "suspend": suspend,
            "template": {
                "metadata": {"creationTimestamp": None},
                "spec": pod_spec(gpu_count=gpu_count),
            },
        },
        "status": {"conditions": list(conditions)},
    }


def kueue_workload(  # noqa: PLR0913 - a case shows only what it is about
    name: str = "job-train",
    *,
    owner: Body | None = None,
    pod_count: int = 1,
    gpu_count: int = 1,
    queue: str = "team-a",
    conditions: Sequence[Body] = (),
    past_eviction_count: int = 0,
    **meta: Any,  # noqa: ANN401 - passed on to metadata()
) -> Body:
    """Return a Kueue Workload, by default of the Job ``train``."""
    stats = {"evictions": [{"reason": "Preempted", "count": past_eviction_count}]}
    reference = owner or owner_reference("Job", "train")
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": metadata(name, owner=reference, **meta),
        "spec": {
            "queueName": queue,
            "priority": 100,
            "priorityClassRef": {"group": "kueue.x-k8s.io", "name": "urgent"},
            "podSets": [
                {
                    "name": "main",
                    "count": pod_count,
                    "template": {"spec": pod_spec(gpu_count=gpu_count)},
                }
            ],
        },
        "status": {
            "conditions": list(conditions),
            **({"schedulingStats": stats} if past_eviction_count else {}),
        },
    }


def node(
    name: str = "gpu-0",
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    spec: Body | None = None,
    conditions: Sequence[Body] = (),
) -> Body:
    """Return a node with eight GPUs."""
    offered = {"cpu": "128", "memory": "1Ti", GPU: "8"} if allocatable is None else allocatable
    product = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata(name, namespace=None, labels=product if labels is None else labels),
        "spec": spec or {},
        "status": {
            "capacity": dict(offered),
            "allocatable": dict(offered),
            "conditions": list(conditions),
        },
    }
