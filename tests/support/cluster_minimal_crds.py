"""Minimal definitions of other projects' kinds: right names, versions and scopes, any content.

They are not the projects' own schemas. Group, version, plural and scope are the public ones, so
that owner chains and queues can be read as from the real thing; no field is checked and no
controller acts. Kueue's own definitions come unmodified from its Go module instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.cluster_client import Manifest


@dataclass(frozen=True, slots=True)
class MinimalKind:
    """One kind of another project."""

    group: str
    version: str
    kind: str
    plural: str
    is_namespaced: bool = True

    @property
    def name(self) -> str:
        """Return the kind as ``apiVersion/Kind``."""
        return f"{self.group}/{self.version}/{self.kind}"

    @property
    def definition(self) -> Manifest:
        """Return its CustomResourceDefinition, with a status subresource."""
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": self.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": anything},
            "subresources": {"status": {}},
        }
        names = {"kind": self.kind, "plural": self.plural, "singular": self.kind.lower()}
        group_owned_by_kubernetes = "api-approved.kubernetes.io"
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{self.plural}.{self.group}",
                "annotations": {group_owned_by_kubernetes: "unapproved, minimal copy for tests"},
            },
            "spec": {
                "group": self.group,
                "names": names,
                "scope": "Namespaced" if self.is_namespaced else "Cluster",
                "versions": [version],
            },
        }


VOLCANO, KAI = "scheduling.volcano.sh", "scheduling.run.ai"
KUBEFLOW, RAY = "kubeflow.org", "ray.io"
MINIMAL_KINDS = (
    MinimalKind(VOLCANO, "v1beta1", "Queue", "queues", is_namespaced=False),
    MinimalKind(VOLCANO, "v1beta1", "PodGroup", "podgroups"),
    MinimalKind("batch.volcano.sh", "v1alpha1", "Job", "jobs"),
    MinimalKind(KAI, "v2", "Queue", "queues", is_namespaced=False),
    MinimalKind(KAI, "v2alpha2", "PodGroup", "podgroups"),
    MinimalKind(KUBEFLOW, "v1", "PyTorchJob", "pytorchjobs"),
    MinimalKind(KUBEFLOW, "v1", "TFJob", "tfjobs"),
    MinimalKind(KUBEFLOW, "v1", "XGBoostJob", "xgboostjobs"),
    MinimalKind(KUBEFLOW, "v1", "PaddleJob", "paddlejobs"),
    MinimalKind(KUBEFLOW, "v1", "JAXJob", "jaxjobs"),
    MinimalKind(KUBEFLOW, "v1", "MPIJob", "mpijobs"),
    MinimalKind(KUBEFLOW, "v1", "Notebook", "notebooks"),
    MinimalKind(KUBEFLOW, "v1beta1", "Workspace", "workspaces"),
    MinimalKind("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs"),
    MinimalKind("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
    MinimalKind("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets"),
    MinimalKind(RAY, "v1", "RayCluster", "rayclusters"),
    MinimalKind(RAY, "v1", "RayJob", "rayjobs"),
    MinimalKind(RAY, "v1", "RayService", "rayservices"),
    MinimalKind("serving.kserve.io", "v1beta1", "InferenceService", "inferenceservices"),
    MinimalKind("argoproj.io", "v1alpha1", "Workflow", "workflows"),
    MinimalKind("sparkoperator.k8s.io", "v1beta2", "SparkApplication", "sparkapplications"),
    MinimalKind("bus.volcano.sh", "v1alpha1", "Command", "commands"),
    MinimalKind("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"),
    MinimalKind("example.org", "v1", "Experiment", "experiments"),
)
"""The last one belongs to no project: a kind that no table of Steward knows."""
