"""Objects of every kind of the catalogue, with a spec as people write it, and pods to match."""

from __future__ import annotations

from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.port import JsonValue, KubernetesObject

SPACE = "team-a"
Json = dict[str, JsonValue]
VERSIONS: dict[str, str] = {
    "apps": "apps/v1",
    "batch": "batch/v1",
    "batch.volcano.sh": "batch.volcano.sh/v1alpha1",
    "jobset.x-k8s.io": "jobset.x-k8s.io/v1alpha2",
    "kubeflow.org": "kubeflow.org/v1",
    "trainer.kubeflow.org": "trainer.kubeflow.org/v1alpha1",
    "leaderworkerset.x-k8s.io": "leaderworkerset.x-k8s.io/v1",
    "ray.io": "ray.io/v1",
    "serving.kserve.io": "serving.kserve.io/v1beta1",
    "sparkoperator.k8s.io": "sparkoperator.k8s.io/v1beta2",
    "workload.codeflare.dev": "workload.codeflare.dev/v1beta2",
    "kueue.x-k8s.io": "kueue.x-k8s.io/v1beta2",
}


def thing(
    kind: str,
    *,
    group: str = "batch",
    name: str = "one",
    spec: Json | None = None,
    metadata: Json | None = None,
    status: Json | None = None,
) -> Json:
    """Return an object; ``metadata`` adds."""
    own: Json = {
        "name": name,
        "namespace": SPACE,
        "uid": f"uid-{kind}-{name}",
        "resourceVersion": "7",
        **(metadata or {}),
    }
    return {
        "apiVersion": VERSIONS[group],
        "kind": kind,
        "metadata": own,
        "spec": spec or {},
        **({"status": status} if status is not None else {}),
    }


def deployment(**more: Json) -> Json:
    """Return a Deployment of three pods."""
    spec: Json = {"replicas": 3, "selector": {"matchLabels": {"app": "one"}}}
    return thing("Deployment", group="apps", spec=spec, **more)


def owned_by(owner: KubernetesObject, *, is_controller: bool = True) -> Json:
    """Return metadata of what an object made."""
    metadata = owner["metadata"]
    assert isinstance(metadata, dict)
    reference: Json = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": is_controller,
    }
    return {"ownerReferences": [reference]}


def queue_entry(owner: KubernetesObject, *, name: str = "entry", has_quota: bool = True) -> Json:
    """Return the Kueue Workload that stands for an object."""
    reserved: Json = {"type": "QuotaReserved", "status": "True" if has_quota else "False"}
    return thing(
        "Workload",
        group="kueue.x-k8s.io",
        name=name,
        spec={"active": True, "queueName": "gpus"},
        metadata=owned_by(owner),
        status={"conditions": [reserved]},
    )


def scaler(kind: str, api_version: str, aim: KubernetesObject) -> Json:
    """Return a HorizontalPodAutoscaler or a ScaledObject of a Deployment."""
    metadata = aim["metadata"]
    assert isinstance(metadata, dict)
    reference: Json = {"kind": aim["kind"], "name": metadata["name"]}
    if kind != "ScaledObject":
        reference["apiVersion"] = aim["apiVersion"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "scaler", "namespace": SPACE, "uid": f"uid-{kind}"},
        "spec": {"scaleTargetRef": reference},
    }


def pod(name: str = "pod", *, labels: Json | None = None, phase: str = "Running") -> Json:
    """Return a pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": SPACE,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "labels": labels or {},
        },
        "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        "status": {"phase": phase},
    }


def gateway_with(*things: KubernetesObject) -> MemoryGateway:
    """Return a cluster in memory with these objects."""
    return MemoryGateway(things)
