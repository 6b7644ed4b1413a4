"""Against a real scheduler: devices that it allocates to claims are held by their pods."""

from __future__ import annotations

import pytest

from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod_template
from tests.support.lifecycle_cluster import Follower

pytestmark = pytest.mark.slow
API, DRIVER = "resource.k8s.io/v1", "gpu.nvidia.com"


def board(minor: int, uuid: str) -> Manifest:
    """Return a whole board as NVIDIA's driver offers it."""
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": uuid},
        "minor": {"int": minor},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
    }
    capacity = {"memory": {"value": "81559Mi"}}
    return {"name": f"gpu-{minor}", "attributes": attributes, "capacity": capacity}


def offer_boards(cluster: Cluster, namespace: Namespace, node: str) -> set[str]:
    """Let a node offer two boards by DRA, one per claim; return their UUIDs."""
    uuids = [f"GPU-{namespace.name}-{index}" for index in range(2)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [board(index, uuid) for index, uuid in enumerate(uuids)]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    wish = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}}
    expression = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    for kind, name, content in (
        ("DeviceClass", DRIVER, {"selectors": [expression]}),
        ("ResourceSlice", f"{node}-slice", spec),
    ):
        cluster.client.apply(
            {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": content}
        )
    namespace.apply(
        {
            "apiVersion": API,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu"},
            "spec": {"spec": wish},
        }
    )
    return set(uuids)


def test_claimed_boards(cluster: Cluster, namespace: Namespace) -> None:
    node = f"{namespace.name}-node"
    cluster.create_node(node, gpu_count=0)
    uuids = offer_boards(cluster, namespace, node)
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    follower = Follower(cluster.kubeconfig)
    try:
        with follower.following():
            pods = pod_template(gpu_count=0, spec=claims)
            train = namespace.apply(
                job("train", namespace=namespace.name, pod_count=2, template=pods)
            )
            running = namespace.wait_for_pods(2, phase="Running")
            workload_uid = train["metadata"]["uid"]
            follower.wait_for_transition(workload_uid, 1, "ready")
            follower.wait_for(lambda: len(held(follower, node)) == 2, what="two holdings")
            assert held(follower, node) == {
                (pod["metadata"]["uid"], uuid) for pod, uuid in allocated(namespace, running)
            }
            for pod in running:
                namespace.finish_pod(pod["metadata"]["name"])
            follower.wait_for_transition(workload_uid, 1, "finished")
            follower.wait_for(lambda: not held(follower, node), what="the end of the holdings")
    finally:
        cluster.client.delete(f"{API}/ResourceSlice", f"{node}-slice")
    workloads = follower.table("workload", "gpu_count", "gpu_milli", workload_uid=workload_uid)
    assert workloads[-1] == (2, 1_000)
    told = follower.table("device_claim", "state", "device_uuid", namespace=namespace.name)
    assert {uuid for state, uuid in told if state == "reserved"} == uuids
    assert {uuid for (uuid,) in follower.table("device", "device_uuid", node=node)} == uuids


def held(follower: Follower, node: str) -> set[tuple[str | None, str]]:
    """Return which pod holds which device of a node now."""
    assert follower.lifecycle is not None
    holdings = follower.lifecycle.holdings().get(node, ())
    return {(each.pod_uid, each.device_uuid) for each in holdings}


def allocated(namespace: Namespace, pods: list[Manifest]) -> list[tuple[Manifest, str]]:
    """Return each pod with the board that the server says its claim got."""
    boards: list[tuple[Manifest, str]] = []
    for pod in pods:
        (status,) = pod["status"]["resourceClaimStatuses"]
        claim = namespace.get(f"{API}/ResourceClaim", status["resourceClaimName"])
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        boards.append((pod, f"GPU-{namespace.name}-{result['device'].removeprefix('gpu-')}"))
    return boards
