"""The test cluster serves what Steward reads: device claims, other projects' kinds, quotas."""

from __future__ import annotations

import pytest

from tests.support.cluster import Cluster
from tests.support.cluster_client import KubeStatusError, Manifest
from tests.support.cluster_minimal_crds import MINIMAL_KINDS
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import GPU, job, pod, pod_template

pytestmark = pytest.mark.slow
DRA = "resource.k8s.io/v1"


def device_objects(node: str) -> list[Manifest]:
    """Return a class of GPUs and a node's slice with two of them."""
    rule = {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}
    devices = [
        {"name": f"gpu-{n}", "attributes": {"uuid": {"string": f"GPU-{n}"}}} for n in range(2)
    ]
    return [
        {
            "apiVersion": DRA,
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.nvidia.com"},
            "spec": {"selectors": [rule]},
        },
        {
            "apiVersion": DRA,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-gpus"},
            "spec": {
                "driver": "gpu.nvidia.com",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        },
    ]


def test_a_device_claim_is_allocated_by_the_scheduler(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node("node", gpu_count=0)
    for one in device_objects("node"):
        cluster.client.apply(one)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    claim = {
        "apiVersion": DRA,
        "kind": "ResourceClaim",
        "metadata": {"name": "one-gpu"},
        "spec": {"devices": {"requests": [request]}},
    }
    namespace.apply(claim)
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one-gpu"}]}
    template = pod_template(gpu_count=0, spec=spec)
    namespace.apply(pod("train", namespace=namespace.name, template=template))
    namespace.wait_for_pods(1, phase="Running")
    status = namespace.get(f"{DRA}/ResourceClaim", "one-gpu")["status"]
    (result,) = status["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"]) == ("gpu.nvidia.com", "node")
    assert [user["name"] for user in status["reservedFor"]] == ["train"]


def test_kinds_of_other_projects_own_pods(cluster: Cluster, namespace: Namespace) -> None:
    cluster.install_minimal_crds()
    for kind in MINIMAL_KINDS:
        api_version, name = kind.name.rsplit("/", 1)
        metadata = {"name": "one", **({"namespace": namespace.name} if kind.is_namespaced else {})}
        stored = cluster.client.apply(
            {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": {"any": [1]}}
        )
        assert stored["spec"] == {"any": [1]}
        if kind.is_namespaced:
            owner = {k: stored[k] for k in ("apiVersion", "kind")}
            owner |= {k: stored["metadata"][k] for k in ("name", "uid")}
            own = pod(kind.plural, namespace=namespace.name)
            own["metadata"]["ownerReferences"] = [owner | {"controller": True}]
            own["metadata"]["generateName"] = f"{own['metadata'].pop('name')}-"
            cluster.client.create(own)
        else:
            cluster.client.delete(kind.name, "one")
    owners = {p["metadata"]["ownerReferences"][0]["kind"] for p in namespace.pods()}
    assert owners == {k.kind for k in MINIMAL_KINDS if k.is_namespaced}


def test_a_quota_refuses_and_the_job_says_so(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus"},
        "spec": {"hard": {f"requests.{GPU}": "2"}},
    }
    namespace.apply(quota)
    namespace.wait_until(
        lambda: "hard" in namespace.get("v1/ResourceQuota", "gpus").get("status", {}),
        what="the quota to be counted",
    )
    with pytest.raises(KubeStatusError, match="exceeded quota: gpus"):
        namespace.apply(pod("wide", namespace=namespace.name, template=pod_template(gpu_count=3)))
    namespace.apply(job("two", namespace=namespace.name, template=pod_template(gpu_count=2)))
    namespace.wait_for_pods(1, phase="Running")
    used = {f"requests.{GPU}": "2"}
    namespace.wait_until(
        lambda: namespace.get("v1/ResourceQuota", "gpus")["status"]["used"] == used,
        what="the quota to be used",
    )
