"""Kubernetes objects with harmless defaults: a test names only what it is about."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests.support.cluster_client import Manifest

GPU = "nvidia.com/gpu"
OWN_LABEL = {"steward.test/own": "true"}
"""On objects outside any namespace that must go with the test."""
IMAGE = "registry.invalid/train:1"
"""Never pulled: kwok plays the kubelets."""


def gpu_labels(
    *,
    gpu_count: int,
    product: str = "NVIDIA-H100-80GB-HBM3",
    memory_mib: int = 81_559,
) -> dict[str, str]:
    """Return the labels that GPU feature discovery gives a node."""
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(gpu_count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/cuda.driver-version.full": "580.65.06",
        "nvidia.com/cuda.runtime-version.full": "13.0",
    }


def gpu_node(
    name: str,
    *,
    gpu_count: int = 8,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] | None = None,
    taints: tuple[Manifest, ...] = (),
) -> Manifest:
    """Return a node; ``resources`` adds to or replaces what it offers (allocatable = capacity)."""
    offered = {
        "cpu": "128",
        "memory": "1Ti",
        "ephemeral-storage": "2Ti",
        "pods": "110",
        **({GPU: str(gpu_count)} if gpu_count else {}),
        **(resources or {}),
    }
    own_labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": "local-a",
        **(gpu_labels(gpu_count=gpu_count) if gpu_count else {}),
        **(labels or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own_labels},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": offered, "allocatable": offered},
    }


def pod_template(
    *,
    gpu_count: int = 1,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: Manifest | None = None,
) -> Manifest:
    """Return metadata and spec of a pod with one container; ``spec`` adds to or replaces."""
    amounts = {"cpu": "1", "memory": "1Gi", **({GPU: str(gpu_count)} if gpu_count else {})}
    container = {
        "name": "main",
        "image": IMAGE,
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {
        "metadata": {"labels": dict(labels or {}), "annotations": dict(annotations or {})},
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            **(spec or {}),
        },
    }


def pod(name: str, *, namespace: str, template: Manifest | None = None) -> Manifest:
    """Return a pod without owner."""
    template = template or pod_template()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": name, "namespace": namespace},
        "spec": template["spec"],
    }


def job(
    name: str,
    *,
    namespace: str,
    pod_count: int = 1,
    template: Manifest | None = None,
    labels: Mapping[str, str] | None = None,
    spec: Manifest | None = None,
) -> Manifest:
    """Return a Job whose pods all run at once; ``spec`` adds to or replaces."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "parallelism": pod_count,
            "completions": pod_count,
            "backoffLimit": 0,
            "template": template or pod_template(),
            **(spec or {}),
        },
    }


def priority_class(name: str, value: int) -> Manifest:
    """Return a PriorityClass, marked as a test's own."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "labels": OWN_LABEL},
        "value": value,
    }


def deployment(
    name: str, *, namespace: str, replica_count: int = 1, template: Manifest | None = None
) -> Manifest:
    """Return a Deployment that selects its pods by the label ``app``."""
    template = template or pod_template()
    metadata = {**template["metadata"]}
    metadata["labels"] = {**metadata.get("labels", {}), "app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replica_count,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": metadata,
                "spec": {**template["spec"], "restartPolicy": "Always"},
            },
        },
    }


def counter() -> Manifest:
    """Return an object that differs each time, so that applying it moves the revision on."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "history", "namespace": "default"},
        "data": {"written_ns": str(time.time_ns())},
    }
