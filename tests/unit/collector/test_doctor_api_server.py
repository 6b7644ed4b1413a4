"""What the doctor makes of API servers that answer badly, in part or not as themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from collector.doctor.cluster_check import ClusterCheck, check_cluster
from collector.doctor.finding import counted
from collector.lifecycle.lifecycle import PORTION
from collector.sources.kubernetes.permissions import REVIEW_PATH
from collector.sources.kubernetes.server_facts import REVIEW_PATH as ACCOUNT_PATH
from steward.clock import FixedClock
from steward.errors import SettingsError
from steward.settings import KubernetesSettings, OwnershipSettings, Settings
from tests.support.api_server_script import (
    Document,
    Reply,
    ScriptedApiServer,
    listed,
    refused,
    scripted_api_server,
)
from tests.support.exposition_texts import NOON


def answered(document: Document) -> Reply:
    return Reply(pieces=(json.dumps(document).encode(),))


def node(name: str, gpu_count: int = 8) -> Document:
    offered = {"nvidia.com/gpu": str(gpu_count)}
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels}
    return {"metadata": metadata, "status": {"capacity": offered, "allocatable": offered}}


@pytest.fixture
def server() -> Iterator[ScriptedApiServer]:
    with scripted_api_server() as running:
        running.kinds[""] = ("nodes", "pods", "events", "namespaces", "resourcequotas")
        running.plan("get", "/version", answered({"gitVersion": "v1.33.0"}))
        running.plan("post", REVIEW_PATH, answered({"status": {"allowed": True}}))
        user = {"status": {"userInfo": {"username": "alice"}}}
        running.plan("post", ACCOUNT_PATH, answered(user))
        for plural in running.kinds[""]:
            running.plan("list", f"/api/v1/{plural}", listed())
        yield running


def replan(server: ScriptedApiServer, path: str, *replies: Reply) -> None:
    """Let a list answer this instead."""
    server.script["list", path].clear()
    server.plan("list", path, *replies)


def checked(
    server: ScriptedApiServer, folder: Path, *, kubernetes: KubernetesSettings | None = None
) -> ClusterCheck:
    """Check the scripted server, or what other settings mean."""
    own = KubernetesSettings(access="kubeconfig", kubeconfig=server.kubeconfig(folder))
    chosen = Settings(data_dir=folder, kubernetes=kubernetes or own)
    return check_cluster(chosen, clock=FixedClock(NOON))


def gpu_pod(number: int) -> Document:
    """Return a pod of nobody that runs and holds a GPU."""
    limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    name = f"p{number:04d}"
    return {
        "metadata": {"name": name, "namespace": "a", "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"nodeName": "n0", "containers": [{"name": "main", **limits}]},
        "status": {"phase": "Running"},
    }


def words(found: ClusterCheck, code: str) -> list[str]:
    return [one.message for one in found.findings if one.code == code]


def test_all_pages_of_a_list_are_read(server: ScriptedApiServer, tmp_path: Path) -> None:
    replan(
        server,
        "/api/v1/nodes",
        listed(node("n0"), node("n1"), more="next"),
        listed(node("n2")),
    )
    found = checked(server, tmp_path)
    assert [one.name for one in found.nodes or ()] == ["n0", "n1", "n2"]
    assert [one.query.get("continue") for one in server.asked("list", "/api/v1/nodes")] == [
        None,
        "next",
    ]
    (read,) = words(found, "cluster_read")
    assert read == "Kubernetes v1.33.0 answers to alice, 3 nodes"


def test_an_object_of_another_shape_costs_that_object(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    strange = node("n1")
    strange["status"]["capacity"] = ["eight"]
    replan(server, "/api/v1/nodes", listed(node("n0"), strange))
    found = checked(server, tmp_path)
    assert [one.name for one in found.nodes or ()] == ["n0"]
    assert words(found, "kinds_unread") == ["nodes: 1 objects are not of the known shape"]


def test_a_list_that_fails_costs_its_kind(server: ScriptedApiServer, tmp_path: Path) -> None:
    replan(server, "/api/v1/events", refused(500, "InternalError", "etcd is away"))
    (unread,) = words(checked(server, tmp_path), "kinds_unread")
    assert unread.startswith("events: ")
    assert "etcd is away" in unread


def test_a_list_that_is_no_json_costs_its_kind(server: ScriptedApiServer, tmp_path: Path) -> None:
    replan(server, "/api/v1/nodes", Reply(pieces=(b"<html>",)))
    found = checked(server, tmp_path)
    (unread,) = words(found, "kinds_unread")
    assert unread.startswith("nodes: ")
    assert found.nodes is None


def test_a_group_that_does_not_answer(server: ScriptedApiServer, tmp_path: Path) -> None:
    server.kinds["batch/v1"] = ("jobs", "cronjobs")
    server.plan("get", "/apis/batch/v1", refused(503, "ServiceUnavailable"))
    assert words(checked(server, tmp_path), "kinds_unread") == [
        "cronjobs.batch: its API group does not answer",
        "jobs.batch: its API group does not answer",
    ]


def test_a_server_that_does_not_tell_the_account(server: ScriptedApiServer, tmp_path: Path) -> None:
    server.script["post", ACCOUNT_PATH].clear()
    server.plan("post", REVIEW_PATH, answered({"status": {"allowed": False}}))
    server.script["post", REVIEW_PATH].popleft()
    found = checked(server, tmp_path)
    (read,) = words(found, "cluster_read")
    assert read == "Kubernetes v1.33.0 answers to an account that it does not name"
    (lacking,) = words(found, "permission_missing")
    assert lacking.startswith("the account may not list and watch events, namespaces, nodes, pods")
    assert found.cluster_role is not None
    assert found.binding_command is None


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(Reply(pieces=(b"<html>hello</html>",)), "is not what it should be", id="HTML"),
        pytest.param(refused(404), "404", id="another server"),
        pytest.param(refused(403, "Forbidden", "no"), "403 Forbidden", id="nobody may ask"),
    ],
)
def test_what_is_no_api_server(
    server: ScriptedApiServer, tmp_path: Path, reply: Reply, message: str
) -> None:
    server.script["get", "/version"].clear()
    server.plan("get", "/version", reply)
    (found,) = checked(server, tmp_path).findings
    assert (str(found.severity), found.code) == ("fault", "cluster_unreadable")
    assert message in found.message
    assert str(tmp_path / "kubeconfig") in found.subject


def test_in_cluster_outside_a_pod(
    server: ScriptedApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = checked(server, tmp_path, kubernetes=KubernetesSettings(access="in-cluster"))
    (unread,) = found.findings
    assert (unread.code, unread.subject) == ("cluster_unreadable", "kubernetes.access")


@pytest.mark.parametrize("pod_count", [1, PORTION, 2 * PORTION + 1])
def test_every_pod_is_looked_at_however_many_there_are(
    server: ScriptedApiServer, tmp_path: Path, pod_count: int
) -> None:
    replan(server, "/api/v1/pods", listed(*map(gpu_pod, range(pod_count))))
    (told,) = words(checked(server, tmp_path), "pods_without_team")
    pods, gpus = counted(pod_count, "pod"), counted(pod_count, "GPU")
    assert told == f"no team for {pods} with {gpus}, in the namespaces a"


def test_settings_that_are_wrong_are_told_as_such(
    server: ScriptedApiServer, tmp_path: Path
) -> None:
    watched = KubernetesSettings(
        access="kubeconfig", kubeconfig=server.kubeconfig(tmp_path), exporters=("=",)
    )
    with pytest.raises(SettingsError, match="selects no exporters"):
        checked(server, tmp_path, kubernetes=watched)
    rules = OwnershipSettings(class_rules=("training: colour=red",))
    chosen = Settings(data_dir=tmp_path, kubernetes=watched, ownership=rules)
    with pytest.raises(SettingsError, match="colour"):
        check_cluster(chosen, clock=FixedClock(NOON))
