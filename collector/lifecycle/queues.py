"""Which queue a pod or workload waits in, by what Kueue, Volcano and KAI write down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from collector.lifecycle.view import View
from collector.sources.kubernetes.objects import Metadata
from collector.sources.kubernetes.objects_cluster import KueueQueue, Queue
from collector.sources.kubernetes.objects_workloads import Maker, PodGroup
from collector.sources.kubernetes.resources import (
    CLUSTER_QUEUES,
    KAI_POD_GROUPS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
)

KUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PLAIN_LABELS: Final = (
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/queue-name",
    "kai.scheduler/queue",
    "runai/queue",
)
"""Labels of Volcano and KAI; their queues belong to the whole cluster."""


def local_queue_name(namespace: str | None, name: str) -> str:
    """Return a LocalQueue's name as it is stored: the same name exists in many namespaces."""
    return f"{namespace}/{name}"


def queue_in(metadata: Iterable[Metadata | None]) -> str | None:
    """Return the queue that labels and annotations name, nearest object first."""
    for each in metadata:
        found = None if each is None else _named(each)
        if found is not None:
            return found
    return None


def _named(metadata: Metadata) -> str | None:
    labels, annotations = metadata.labels or {}, metadata.annotations
    kueue = labels.get(KUEUE_LABEL) or (annotations and annotations.kueue_queue)
    if kueue:
        return local_queue_name(metadata.namespace, kueue)
    for label in PLAIN_LABELS:
        if labels.get(label):
            return labels[label]
    return annotations.volcano_queue if annotations is not None else None


def pod_group_of(view: View, metadata: Metadata) -> PodGroup | None:
    """Return the gang that annotations put a pod into."""
    annotations = metadata.annotations
    if annotations is None:
        return None
    volcano = annotations.volcano_group_own or annotations.volcano_group
    if volcano:
        return view.find(VOLCANO_POD_GROUPS, PodGroup, name=volcano, namespace=metadata.namespace)
    if annotations.kai_group:
        return view.find(
            KAI_POD_GROUPS, PodGroup, name=annotations.kai_group, namespace=metadata.namespace
        )
    return None


def declared_queue(maker: Maker | None) -> str | None:
    """Return the queue that a Volcano job names in its own field."""
    return maker.spec.queue if maker is not None and maker.spec is not None else None


def queue_labels(view: View, queue: str | None) -> Mapping[str, str]:
    """Return the labels of a queue: a LocalQueue's own, then those of its ClusterQueue."""
    if queue is None:
        return {}
    namespace, slash, name = queue.rpartition("/")
    if slash:
        local = view.find(LOCAL_QUEUES, KueueQueue, name=name, namespace=namespace)
        whole = local.spec.cluster_queue if local is not None else None
        above = view.find(CLUSTER_QUEUES, KueueQueue, name=whole) if whole else None
        return {**_labels(above), **_labels(local)}
    for resource in (VOLCANO_QUEUES, KAI_QUEUES):
        found = view.find(resource, Queue, name=queue)
        if found is not None:
            return _labels(found)
    return {}


def _labels(queue: KueueQueue | Queue | None) -> Mapping[str, str]:
    return (queue.metadata.labels or {}) if queue is not None else {}
