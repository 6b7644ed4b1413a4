"""Kinds of workloads as the warehouse names them: their API version, and which need all pods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

API_VERSIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Pod": "v1",
        "Deployment": "apps/v1",
        "ReplicaSet": "apps/v1",
        "StatefulSet": "apps/v1",
        "DaemonSet": "apps/v1",
        "Job": "batch/v1",
        "CronJob": "batch/v1",
        "JobSet": "jobset.x-k8s.io/v1alpha2",
        "JAXJob": "kubeflow.org/v1",
        "MPIJob": "kubeflow.org/v1",
        "PaddleJob": "kubeflow.org/v1",
        "PyTorchJob": "kubeflow.org/v1",
        "TFJob": "kubeflow.org/v1",
        "XGBoostJob": "kubeflow.org/v1",
        "TrainJob": "trainer.kubeflow.org/v1alpha1",
        "Notebook": "kubeflow.org/v1",
        "Workspace": "kubeflow.org/v1beta1",
        "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
        "RayCluster": "ray.io/v1",
        "RayJob": "ray.io/v1",
        "RayService": "ray.io/v1",
        "InferenceService": "serving.kserve.io/v1beta1",
        "SparkApplication": "sparkoperator.k8s.io/v1beta2",
        "AppWrapper": "workload.codeflare.dev/v1beta2",
        "Workload": "kueue.x-k8s.io/v1beta1",
    }
)
"""A kind that is not here is read by nobody: notices to its owner are all that it gets."""
GANG_KINDS: Final[frozenset[str]] = frozenset(
    {
        "AppWrapper",
        "JAXJob",
        "JobSet",
        "LeaderWorkerSet",
        "MPIJob",
        "PaddleJob",
        "PodGroup",
        "PyTorchJob",
        "RayCluster",
        "RayJob",
        "SparkApplication",
        "TFJob",
        "TrainJob",
        "XGBoostJob",
    }
)
"""Work of several pods that wait for each other: some of them alone are of no use."""
BARE_POD: Final = "Pod"
