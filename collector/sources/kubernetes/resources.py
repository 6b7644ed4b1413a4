"""Which kinds of objects are followed, and into what each is decoded.

Owners stand before pods, so that a list of pods meets its owners known. Kinds that only some
clusters have are optional; kinds that are not here are met through ``MetadataSource``.
"""

from __future__ import annotations

from typing import Final

from collector.sources.kubernetes.objects import Object, Pod
from collector.sources.kubernetes.objects_cluster import (
    Event,
    KueueQueue,
    Node,
    PriorityClass,
    Queue,
    ResourceClaim,
    ResourceFlavor,
    ResourceQuota,
    ResourceSlice,
)
from collector.sources.kubernetes.objects_workloads import KueueWorkload, Maker, PodGroup
from collector.sources.kubernetes.resource import KubernetesObject, Resource


def _core(plural: str, kind: str, decode: type[KubernetesObject], *, group: str = "") -> Resource:
    return Resource(
        group=group, versions=("v1",), plural=plural, kind=kind, is_namespaced=True, decode=decode
    )


def _core_cluster(
    plural: str, kind: str, decode: type[KubernetesObject], *, group: str = ""
) -> Resource:
    return Resource(
        group=group, versions=("v1",), plural=plural, kind=kind, is_namespaced=False, decode=decode
    )


def _custom(
    name: str,
    kind: str,
    decode: type[KubernetesObject],
    *versions: str,
    is_namespaced: bool = True,
) -> Resource:
    plural, _, group = name.partition(".")
    return Resource(
        group=group,
        versions=versions,
        plural=plural,
        kind=kind,
        is_namespaced=is_namespaced,
        decode=decode,
        is_optional=True,
    )


NAMESPACES: Final = _core_cluster("namespaces", "Namespace", Object)
NODES: Final = _core_cluster("nodes", "Node", Node)
PRIORITY_CLASSES: Final = _core_cluster(
    "priorityclasses", "PriorityClass", PriorityClass, group="scheduling.k8s.io"
)
RESOURCE_QUOTAS: Final = _core("resourcequotas", "ResourceQuota", ResourceQuota)
DEPLOYMENTS: Final = _core("deployments", "Deployment", Maker, group="apps")
REPLICA_SETS: Final = _core("replicasets", "ReplicaSet", Object, group="apps")
STATEFUL_SETS: Final = _core("statefulsets", "StatefulSet", Maker, group="apps")
DAEMON_SETS: Final = _core("daemonsets", "DaemonSet", Object, group="apps")
CRON_JOBS: Final = _core("cronjobs", "CronJob", Object, group="batch")
JOBS: Final = _core("jobs", "Job", Maker, group="batch")
PODS: Final = _core("pods", "Pod", Pod)
EVENTS: Final = _core("events", "Event", Event)

_KUEUE: Final = ("v1beta2", "v1beta1")
_DRA: Final = ("v1", "v1beta2", "v1beta1")
KUEUE_WORKLOADS: Final = _custom("workloads.kueue.x-k8s.io", "Workload", KueueWorkload, *_KUEUE)
CLUSTER_QUEUES: Final = _custom(
    "clusterqueues.kueue.x-k8s.io", "ClusterQueue", KueueQueue, *_KUEUE, is_namespaced=False
)
LOCAL_QUEUES: Final = _custom("localqueues.kueue.x-k8s.io", "LocalQueue", KueueQueue, *_KUEUE)
RESOURCE_FLAVORS: Final = _custom(
    "resourceflavors.kueue.x-k8s.io", "ResourceFlavor", ResourceFlavor, *_KUEUE, is_namespaced=False
)
WORKLOAD_PRIORITY_CLASSES: Final = _custom(
    "workloadpriorityclasses.kueue.x-k8s.io",
    "WorkloadPriorityClass",
    PriorityClass,
    *_KUEUE,
    is_namespaced=False,
)
VOLCANO_QUEUES: Final = _custom(
    "queues.scheduling.volcano.sh", "Queue", Queue, "v1beta1", is_namespaced=False
)
VOLCANO_POD_GROUPS: Final = _custom(
    "podgroups.scheduling.volcano.sh", "PodGroup", PodGroup, "v1beta1"
)
KAI_QUEUES: Final = _custom(
    "queues.scheduling.run.ai", "Queue", Queue, "v2", "v2alpha2", is_namespaced=False
)
KAI_POD_GROUPS: Final = _custom("podgroups.scheduling.run.ai", "PodGroup", PodGroup, "v2alpha2")
RESOURCE_CLAIMS: Final = _custom(
    "resourceclaims.resource.k8s.io", "ResourceClaim", ResourceClaim, *_DRA
)
RESOURCE_SLICES: Final = _custom(
    "resourceslices.resource.k8s.io", "ResourceSlice", ResourceSlice, *_DRA, is_namespaced=False
)

CUSTOM_MAKERS: Final = (
    _custom("jobsets.jobset.x-k8s.io", "JobSet", Maker, "v1alpha2"),
    _custom("trainjobs.trainer.kubeflow.org", "TrainJob", Maker, "v1alpha1"),
    _custom("pytorchjobs.kubeflow.org", "PyTorchJob", Maker, "v1"),
    _custom("tfjobs.kubeflow.org", "TFJob", Maker, "v1"),
    _custom("mpijobs.kubeflow.org", "MPIJob", Maker, "v2beta1", "v1"),
    _custom("xgboostjobs.kubeflow.org", "XGBoostJob", Maker, "v1"),
    _custom("paddlejobs.kubeflow.org", "PaddleJob", Maker, "v1"),
    _custom("jaxjobs.kubeflow.org", "JAXJob", Maker, "v1"),
    _custom("notebooks.kubeflow.org", "Notebook", Object, "v1", "v1beta1"),
    _custom("rayjobs.ray.io", "RayJob", Maker, "v1", "v1alpha1"),
    _custom("rayclusters.ray.io", "RayCluster", Maker, "v1", "v1alpha1"),
    _custom("rayservices.ray.io", "RayService", Object, "v1", "v1alpha1"),
    _custom("inferenceservices.serving.kserve.io", "InferenceService", Object, "v1beta1"),
    _custom("leaderworkersets.leaderworkerset.x-k8s.io", "LeaderWorkerSet", Maker, "v1"),
    _custom("workflows.argoproj.io", "Workflow", Maker, "v1alpha1"),
    _custom("jobs.batch.volcano.sh", "Job", Maker, "v1alpha1"),
)
"""Kinds of other projects whose objects make pods."""

OWNERS: Final = (
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    CRON_JOBS,
    JOBS,
    *CUSTOM_MAKERS,
)
"""Kinds through which pods are made."""

RESOURCES: Final[tuple[Resource, ...]] = (
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    WORKLOAD_PRIORITY_CLASSES,
    RESOURCE_FLAVORS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    VOLCANO_QUEUES,
    KAI_QUEUES,
    RESOURCE_QUOTAS,
    *OWNERS,
    KUEUE_WORKLOADS,
    VOLCANO_POD_GROUPS,
    KAI_POD_GROUPS,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    PODS,
    EVENTS,
)
"""Everything that is followed."""
