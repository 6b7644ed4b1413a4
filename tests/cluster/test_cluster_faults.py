"""The test cluster can be broken on purpose: restarts, lost history, users with less rights."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.cluster import Cluster, ClusterOptions, running_cluster
from tests.support.cluster_client import KubeClient, KubeStatusError
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod
from tests.support.cluster_processes import ProgramFailedError

pytestmark = pytest.mark.slow
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}


def list_version(client: KubeClient, namespace: str) -> str:
    """Return the resourceVersion of a list of pods."""
    answer = client.request("GET", f"/api/v1/namespaces/{namespace}/pods")
    version: str = answer["metadata"]["resourceVersion"]
    return version


def test_objects_outlive_a_killed_api_server(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    namespace.apply(pod("train", namespace=namespace.name))
    (before,) = namespace.wait_for_pods(1, phase="Running")
    cluster.stop_api_server(kill=True)
    with pytest.raises(httpx.TransportError):
        namespace.pods()
    cluster.start_api_server()
    (after,) = namespace.pods("Running")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    namespace.apply(job("later", namespace=namespace.name))
    namespace.wait_for_pods(2, phase="Running")


def test_a_watch_from_before_lost_history_gets_410(cluster: Cluster, namespace: Namespace) -> None:
    version = list_version(namespace.client, namespace.name)
    namespace.apply(pod("waiting", namespace=namespace.name))

    def first_event(resource_version: str) -> str:
        with namespace.client.watch(
            "v1/Pod",
            namespace=namespace.name,
            resourceVersion=resource_version,
            timeoutSeconds=10,
        ) as events:
            kind: str = next(events)["type"]
            return kind

    assert first_event(version) == "ADDED"
    cluster.expire_history()
    with pytest.raises(KubeStatusError, match="too old resource version") as refused:
        first_event(version)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")


def test_a_list_cannot_go_on_after_a_compaction(cluster: Cluster, namespace: Namespace) -> None:
    for number in range(2):
        namespace.apply(pod(f"pod-{number}", namespace=namespace.name))
    path = f"/api/v1/namespaces/{namespace.name}/pods"
    page = namespace.client.request("GET", path, params={"limit": 1})
    goes_on = {"limit": 1, "continue": page["metadata"]["continue"]}
    assert len(namespace.client.request("GET", path, params=goes_on)["items"]) == 1
    cluster.expire_history()
    with pytest.raises(KubeStatusError) as refused:
        namespace.client.request("GET", path, params=goes_on)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")


def test_a_user_may_do_what_its_rules_say(cluster: Cluster, namespace: Namespace) -> None:
    namespace.apply(pod("waiting", namespace=namespace.name))
    user = cluster.add_user("reader", [READ_PODS])
    client = KubeClient(cluster.url, user.token, cluster.ca_file)
    try:
        assert len(client.list("v1/Pod", namespace=namespace.name)) == 1
        with pytest.raises(KubeStatusError, match='cannot list resource "nodes"') as refused:
            client.list("v1/Node")
    finally:
        client.close()
    assert refused.value.code == 403


def test_a_part_that_does_not_start_shows_its_log(cluster: Cluster, tmp_path: Path) -> None:
    assert cluster.programs.running, "the programs are there"
    wrong = ClusterOptions(api_server_flags=("--no-such-flag",))
    with (
        pytest.raises(ProgramFailedError, match=r"(?s)kube-apiserver ended.*unknown flag"),
        running_cluster(tmp_path, wrong),
    ):
        pytest.fail("a cluster without API server started")
