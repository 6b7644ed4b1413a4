"""Against a real API server: owner chains of all kinds, faults of the server, restarts of ours."""

from __future__ import annotations

from collections import Counter

import pytest

from collector.sources.kubernetes.resources import RESOURCES
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import deployment, job, pod, pod_template
from tests.support.lifecycle_cluster import Follower

pytestmark = pytest.mark.slow
CHAINS = (
    ("jobset.x-k8s.io/v1alpha2/JobSet",),
    ("trainer.kubeflow.org/v1alpha1/TrainJob", "jobset.x-k8s.io/v1alpha2/JobSet"),
    ("kubeflow.org/v1/PyTorchJob",),
    ("kubeflow.org/v1/TFJob",),
    ("kubeflow.org/v1/MPIJob",),
    ("kubeflow.org/v1/XGBoostJob",),
    ("kubeflow.org/v1/Notebook", "apps/v1/StatefulSet"),
    ("ray.io/v1/RayJob", "ray.io/v1/RayCluster"),
    ("ray.io/v1/RayService", "ray.io/v1/RayCluster"),
    ("serving.kserve.io/v1beta1/InferenceService", "apps/v1/Deployment"),
    ("leaderworkerset.x-k8s.io/v1/LeaderWorkerSet", "apps/v1/StatefulSet"),
    ("argoproj.io/v1alpha1/Workflow",),
    ("example.org/v1/Experiment",),
    ("example.org/v1/Experiment", "kubeflow.org/v1/PyTorchJob"),
)
"""From the workload down to what makes its pod."""


def reference(owner: Manifest) -> Manifest:
    """Return what a controller writes into what it makes."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def made(namespace: Namespace, kind: str, name: str, owner: Manifest | None) -> Manifest:
    """Create one object of a chain; a StatefulSet's pod is made by the real controller."""
    api_version, _, kind_name = kind.rpartition("/")
    if kind_name in {"Deployment", "StatefulSet"}:
        is_real = kind_name == "StatefulSet"
        manifest = deployment(name, namespace=namespace.name, replica_count=int(is_real))
        manifest["kind"] = kind_name
    else:
        manifest = {"apiVersion": api_version, "kind": kind_name, "metadata": {"name": name}}
    if owner is not None:
        manifest["metadata"]["ownerReferences"] = [reference(owner)]
    return namespace.apply(manifest)


def chained(namespace: Namespace, index: int, chain: tuple[str, ...]) -> tuple[str, str]:
    """Create a chain with its pod; return the pod's name and the workload's uid."""
    owner: Manifest | None = None
    root = ""
    for depth, kind in enumerate(chain):
        owner = made(namespace, kind, f"w{index}-{depth}", owner)
        root = root or owner["metadata"]["uid"]
    if chain[-1].endswith("StatefulSet"):
        return f"w{index}-{len(chain) - 1}-0", root
    manifest = pod(f"pod-{index}", namespace=namespace.name)
    if owner is not None:
        manifest["metadata"]["ownerReferences"] = [reference(owner)]
    namespace.apply(manifest)
    return f"pod-{index}", root


def test_every_chain_ends_at_its_workload(cluster: Cluster, namespace: Namespace) -> None:
    cluster.install_minimal_crds()
    cluster.create_node(f"{namespace.name}-node", gpu_count=32)
    expected = dict(chained(namespace, index, chain) for index, chain in enumerate(CHAINS))
    follower = Follower(cluster.kubeconfig)
    with follower.following():
        follower.wait_for(
            lambda: set(expected) <= {name for name, _ in _pods(follower, namespace)},
            what="all pods",
        )
    roots = dict(_pods(follower, namespace))
    assert {name: roots[name] for name in expected} == expected
    kinds = dict(follower.table("workload", "workload_uid", "kind"))
    assert [kinds[root] for root in expected.values()] == [
        chain[0].rpartition("/")[2] for chain in CHAINS
    ]


def test_real_controllers_chains(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node(f"{namespace.name}-node", gpu_count=8)
    web = namespace.apply(deployment("web", namespace=namespace.name))
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": pod_template()}}},
    }
    nightly = namespace.apply(cron)
    run = job("nightly-1", namespace=namespace.name)
    run["metadata"]["ownerReferences"] = [reference(nightly)]
    namespace.apply(run)
    follower = Follower(cluster.kubeconfig)
    with follower.following():
        follower.wait_for(
            lambda: len({name for name, _ in _pods(follower, namespace)}) == 2, what="two pods"
        )
    assert {root for _, root in _pods(follower, namespace)} == {
        web["metadata"]["uid"],
        nightly["metadata"]["uid"],
    }


def _pods(follower: Follower, namespace: Namespace) -> list[tuple[object, object]]:
    return [
        (name, root)
        for name, root in follower.table("pod", "pod", "workload_uid", namespace=namespace.name)
    ]


def test_faults_and_restarts_double_nothing_and_lose_nothing(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node(f"{namespace.name}-node", gpu_count=32)
    follower = Follower(cluster.kubeconfig)
    with follower.following():
        namespace.apply(job("before", namespace=namespace.name, pod_count=3))
        namespace.wait_for_pods(3, phase="Running")
        cluster.restart_api_server()
        namespace.apply(job("between", namespace=namespace.name, pod_count=2))
        namespace.wait_for_pods(5, phase="Running")
        follower.wait_for(lambda: len(_ready(follower, namespace)) == 5, what="five ready pods")
    (gone, *_) = namespace.pods("Running")
    namespace.finish_pod(gone["metadata"]["name"])
    with follower.following():
        cluster.expire_history()
        namespace.apply(job("after", namespace=namespace.name, pod_count=2))
        follower.wait_for(lambda: len(_ready(follower, namespace)) == 7, what="seven ready pods")
    with follower.following(tuple(reversed(RESOURCES))):
        pass
    assert max(Counter(_ready(follower, namespace)).values()) == 1
    keys = ("object_uid", "condition", "status", "occurred_at")
    changes = Counter(follower.table("condition_change", *keys, namespace=namespace.name))
    assert max(changes.values()) == 1, "nothing is told twice"
    last = {
        uid: (phase, node)
        for uid, phase, node in follower.table(
            "pod", "pod_uid", "phase", "node", namespace=namespace.name
        )
    }
    assert last == {
        each["metadata"]["uid"]: (each["status"]["phase"], each["spec"].get("nodeName"))
        for each in namespace.pods()
    }


def _ready(follower: Follower, namespace: Namespace) -> list[tuple[object, ...]]:
    """Return the pods of the namespace that were told to be ready."""
    own = {uid for (uid,) in follower.table("pod", "pod_uid", namespace=namespace.name)}
    told = follower.table("workload_transition", "pod_uid", transition="ready")
    return [row for row in told if row[0] in own]
