"""The catalogue: for each kind, which field takes its GPUs away and how its pods are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Final

from enforcer.actuators.fields import (
    Path,
    controller_of,
    group_of,
    items_at,
    mapping_at,
    target_of,
    text_at,
    texts_at,
    value_at,
)
from enforcer.gateway.port import JsonValue, KubernetesObject, Target

KUEUE: Final = "kueue.x-k8s.io"
NOTEBOOK_STOPPED: Final = "kubeflow-resource-stopped"
KSERVE_STOP: Final = "serving.kserve.io/stop"

_SUSPEND: Final = ("spec", "suspend")
_RUN_POLICY: Final = ("spec", "runPolicy", "suspend")
_REPLICAS: Final = ("spec", "replicas")
_ACTIVITY: Final = "notebooks.kubeflow.org/last-activity"
"""Left as it is, the culler would stop a restored notebook at once."""


class Means(StrEnum):
    """In which way a kind gives its GPUs back."""

    FLAG = "flag"
    """A field is set."""
    SCALE = "scale"
    """Its ``scale`` subresource is set to zero."""
    ANNOTATION = "annotation"
    """An annotation is set; its controller reads that."""
    COMMAND = "command"
    """A Command object tells its controller."""


def _no_objection(_thing: KubernetesObject) -> str | None:
    return None


def _ray_job_objection(thing: KubernetesObject) -> str | None:
    """Return why KubeRay would call a suspended RayJob invalid.

    See ``ValidateRayJobSpec`` of KubeRay.
    """
    if value_at(thing, "spec", "shutdownAfterJobFinishes") is not True:
        return "keeps its cluster when it ends (shutdownAfterJobFinishes): it cannot be suspended"
    if mapping_at(thing, "spec", "clusterSelector"):
        return "runs on a cluster of others (clusterSelector): it cannot be suspended"
    return None


@dataclass(frozen=True, slots=True)
class Actuator:
    """How one kind is reclaimed."""

    kind: str
    resource: str
    """Plural and group, as in ``rayclusters.ray.io``."""
    pod_labels: Callable[[KubernetesObject], str]
    """Label selector of its pods; empty: they cannot be told by labels."""
    _: KW_ONLY
    means: Means = Means.FLAG
    path: Path = _SUSPEND
    """The field that takes; empty for a command."""
    taken: JsonValue = True
    """Its value then; None: the time of the act."""
    is_queued_by_kueue: bool = False
    """Kueue, where it manages an object of this kind, is the only writer of that field."""
    resumed: JsonValue = None
    """What must be written out to resume where the field was absent: KubeRay goes on only on an
    explicit value."""
    objection: Callable[[KubernetesObject], str | None] = _no_objection
    """Why its controller would not suspend this object, but fail it; None: it would."""
    stale_annotations: tuple[str, ...] = ()
    """To be taken away when it is restored."""

    @property
    def plural(self) -> str:
        """Return the kind as URLs and RBAC name it."""
        return self.resource.partition(".")[0]

    @property
    def group(self) -> str:
        """Return the API group."""
        return self.resource.partition(".")[2]


def _named(label: str) -> Callable[[KubernetesObject], str]:
    return lambda thing: f"{label}={target_of(thing).name}"


def _selected(thing: KubernetesObject) -> str:
    """Return the object's own selector; requirements that are no equality widen it."""
    labels = texts_at(thing, "spec", "selector", "matchLabels")
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


def _ray_cluster(*status: str) -> Callable[[KubernetesObject], str]:
    def labels(thing: KubernetesObject) -> str:
        name = text_at(thing, "status", *status)
        return f"ray.io/cluster={name}" if name else ""

    return labels


def _job_pods(thing: KubernetesObject) -> str:
    return f"batch.kubernetes.io/controller-uid={target_of(thing).uid}"


def _queued_pods(entry: KubernetesObject) -> str:
    """Return the selector of the pods of the object for which a Kueue Workload stands."""
    for owner in items_at(entry, "metadata", "ownerReferences"):
        found = actuator_of(text_at(owner, "apiVersion") or "", text_at(owner, "kind") or "")
        if found is not None:
            return found.pod_labels({"metadata": owner})
    return ""


def _no_labels(_thing: KubernetesObject) -> str:
    return ""


def _scaled(kind: str, resource: str, pod_labels: Callable[[KubernetesObject], str]) -> Actuator:
    return Actuator(kind, resource, pod_labels, means=Means.SCALE, path=_REPLICAS, taken=0)


def _queued(
    kind: str, resource: str, pod_labels: Callable[[KubernetesObject], str], *, path: Path
) -> Actuator:
    return Actuator(kind, resource, pod_labels, path=path, is_queued_by_kueue=True)


def _annotated(kind: str, resource: str, label: str, *, key: str, taken: str | None) -> Actuator:
    return Actuator(
        kind,
        resource,
        _named(label),
        means=Means.ANNOTATION,
        path=("metadata", "annotations", key),
        taken=taken,
        stale_annotations=(_ACTIVITY,) if key == NOTEBOOK_STOPPED else (),
    )


_TRAINING_PODS: Final = _named("training.kubeflow.org/job-name")
_JOB_SET_PODS: Final = _named("jobset.sigs.k8s.io/jobset-name")
_TRAINING_KINDS: Final = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")

CATALOGUE: Final[tuple[Actuator, ...]] = (
    _scaled("Deployment", "deployments.apps", _selected),
    _scaled("ReplicaSet", "replicasets.apps", _selected),
    _scaled("StatefulSet", "statefulsets.apps", _selected),
    _queued("Job", "jobs.batch", _job_pods, path=_SUSPEND),
    Actuator("CronJob", "cronjobs.batch", _no_labels),
    Actuator(
        "Job", "jobs.batch.volcano.sh", _named("volcano.sh/job-name"), means=Means.COMMAND, path=()
    ),
    _queued("JobSet", "jobsets.jobset.x-k8s.io", _JOB_SET_PODS, path=_SUSPEND),
    *(
        _queued(kind, f"{kind.lower()}s.kubeflow.org", _TRAINING_PODS, path=_RUN_POLICY)
        for kind in _TRAINING_KINDS
    ),
    _annotated(
        "Notebook", "notebooks.kubeflow.org", "notebook-name", key=NOTEBOOK_STOPPED, taken=None
    ),
    Actuator(
        "Workspace",
        "workspaces.kubeflow.org",
        _named("notebooks.kubeflow.org/workspace-name"),
        path=("spec", "paused"),
    ),
    _queued("TrainJob", "trainjobs.trainer.kubeflow.org", _JOB_SET_PODS, path=_SUSPEND),
    _scaled(
        "LeaderWorkerSet",
        "leaderworkersets.leaderworkerset.x-k8s.io",
        _named("leaderworkerset.sigs.k8s.io/name"),
    ),
    Actuator(
        "RayCluster",
        "rayclusters.ray.io",
        _named("ray.io/cluster"),
        is_queued_by_kueue=True,
        resumed=False,
    ),
    Actuator(
        "RayJob",
        "rayjobs.ray.io",
        _ray_cluster("rayClusterName"),
        is_queued_by_kueue=True,
        objection=_ray_job_objection,
    ),
    Actuator(
        "RayService",
        "rayservices.ray.io",
        _ray_cluster("activeServiceStatus", "rayClusterName"),
        path=("spec", "rayClusterConfig", "suspend"),
        resumed=False,
    ),
    _annotated(
        "InferenceService",
        "inferenceservices.serving.kserve.io",
        "serving.kserve.io/inferenceservice",
        key=KSERVE_STOP,
        taken="true",
    ),
    _queued(
        "SparkApplication",
        "sparkapplications.sparkoperator.k8s.io",
        _named("sparkoperator.k8s.io/app-name"),
        path=_SUSPEND,
    ),
    _queued(
        "AppWrapper",
        "appwrappers.workload.codeflare.dev",
        _named("workload.codeflare.dev/appwrapper"),
        path=_SUSPEND,
    ),
    Actuator(
        "Workload", "workloads.kueue.x-k8s.io", _queued_pods, path=("spec", "active"), taken=False
    ),
)
"""Every kind that can be reclaimed, but for bare pods, which are only evicted."""

_BY_KIND: Final = {(each.group, each.kind): each for each in CATALOGUE}
TRANSPARENT_OWNERS: Final = frozenset({("batch", "CronJob")})
"""Owners that do not undo an act on what they made: a CronJob leaves its running Jobs alone."""


def actuator_of(api_version: str, kind: str) -> Actuator | None:
    """Return how a kind is reclaimed, of whichever version; None: it is not."""
    return _BY_KIND.get((group_of(api_version), kind))


def is_pod(thing: KubernetesObject) -> bool:
    """Return whether an object is a pod."""
    return thing.get("apiVersion") == "v1" and thing.get("kind") == "Pod"


def writing_owner(thing: KubernetesObject) -> Target | None:
    """Return the controller above that would undo an act on this object; None: there is none."""
    owner = controller_of(thing)
    if owner is None or (group_of(owner.api_version), owner.kind) in TRANSPARENT_OWNERS:
        return None
    return owner
