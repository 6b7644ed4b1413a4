"""``steward collect doctor`` on a real cluster: permissions, nodes, exporters, teams."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from collector.doctor.cluster_check import check_cluster
from collector.doctor.diagnosis import Diagnosis
from collector.doctor.examine import examine
from collector.doctor.finding import Finding
from collector.sources.kubernetes.resources import RESOURCES
from steward.clock import SystemClock
from steward.settings import KubernetesSettings, OwnershipSettings, Settings
from tests.support.cluster import Cluster, User
from tests.support.cluster_client import Manifest
from tests.support.cluster_kueue import QUEUE_LABEL, Kueue
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod, pod_template
from tests.support.collector_process import steward
from tests.support.doctor_views import answer
from tests.support.exporter_server import ExporterServer, exporter_server, exposition

pytestmark = pytest.mark.slow
RBAC = "rbac.authorization.k8s.io/v1"
ROLE_KINDS = (f"{RBAC}/ClusterRole", f"{RBAC}/ClusterRoleBinding")
CORE = sorted(one.plural for one in RESOURCES if not one.group)
APPS = sorted(one.plural for one in RESOURCES if one.group == "apps")


@pytest.fixture(scope="module")
def server() -> Iterator[ExporterServer]:
    with exporter_server() as running:
        yield running


def settings(folder: Path, kubeconfig: Path, *, exporters: tuple[str, ...] = ()) -> Settings:
    watched = KubernetesSettings(access="kubeconfig", kubeconfig=kubeconfig, exporters=exporters)
    return Settings(data_dir=folder, kubernetes=watched)


def slice_of(node: str, *, device_count: int) -> Manifest:
    """Return the GPUs that a DRA driver offers on a node."""
    devices = [
        {"name": f"gpu-{n}", "attributes": {"uuid": {"string": f"GPU-{node}-{n}"}}}
        for n in range(device_count)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def doctor(chosen: Settings, *urls: str) -> Diagnosis:
    return asyncio.run(examine(chosen, urls=urls, clock=SystemClock(), is_patient=False))


def of(found: Diagnosis, code: str) -> list[Finding]:
    return [one for one in found.findings if one.code == code]


def bind(cluster: Cluster, user: User, *, role: str) -> None:
    """Do what the printed command does."""
    cluster.client.apply(
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": user.name}],
            "roleRef": {"apiGroup": RBAC.partition("/")[0], "kind": "ClusterRole", "name": role},
        }
    )


@pytest.mark.usefixtures("namespace")
def test_an_account_is_told_what_it_lacks_and_lacks_nothing_with_the_printed_role(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create_node("n0")
    others = [one.plural for one in RESOURCES if one.group not in {"", "apps"}]
    groups = sorted({one.group for one in RESOURCES} - {"", "apps"})
    user = cluster.add_user(
        "doctor-lacking",
        [
            {"apiGroups": [""], "resources": ["nodes", "events"], "verbs": ["list"]},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["watch"]},
            {"apiGroups": groups, "resources": others, "verbs": ["list", "watch"]},
        ],
    )
    chosen = settings(tmp_path, user.kubeconfig)
    found = doctor(chosen)
    core, apps = of(found, "permission_missing")
    account = "system:serviceaccount:default:doctor-lacking"
    assert (str(core.severity), core.message) == (
        "fault",
        f"{account} may not watch events, nodes; list and watch pods, resourcequotas",
    )
    assert (str(apps.severity), apps.message) == (
        "gap",
        (
            f"{account} may not list daemonsets; list and watch deployments, replicasets, "
            "statefulsets of apps"
        ),
    )
    assert found.exit_code == 5
    assert found.cluster_role is not None
    assert found.binding_command == (
        "kubectl create clusterrolebinding steward-collector --clusterrole=steward-collector "
        "--serviceaccount=default:doctor-lacking"
    )
    try:
        cluster.client.apply(yaml.safe_load(found.cluster_role))
        bind(cluster, user, role="steward-collector")
        again = doctor(chosen)
    finally:
        for kind in ROLE_KINDS:
            cluster.client.delete(kind, "steward-collector")
    assert of(again, "permission_missing") == []
    assert (again.cluster_role, again.binding_command) == (None, None)
    assert "answers to " + account in of(again, "cluster_read")[0].message


def test_an_account_without_any_right(cluster: Cluster, tmp_path: Path) -> None:
    user = cluster.add_user("doctor-nobody", [])
    found = doctor(settings(tmp_path, user.kubeconfig))
    lacking = {one.message.partition(" may not ")[2] for one in of(found, "permission_missing")}
    assert f"list and watch {', '.join(CORE)}" in lacking
    assert f"list and watch {', '.join(APPS)} of apps" in lacking
    assert of(found, "node_unseen") == []
    assert "0 nodes" not in of(found, "cluster_read")[0].message


def test_an_owner_of_a_kind_that_is_not_followed(
    cluster: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    cluster.install_minimal_crds()
    cluster.create_node("n0")
    experiment = {
        "apiVersion": "example.org/v1",
        "kind": "Experiment",
        "metadata": {"name": "trial", "labels": {"team": "vision"}},
    }
    made = namespace.apply(experiment)
    owned = pod("train", namespace=namespace.name, template=pod_template(gpu_count=2))
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "example.org/v1",
            "kind": "Experiment",
            "name": "trial",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
    ]
    namespace.apply(owned)
    namespace.wait_for_pods(1, phase="Running")
    plain = {"apiGroups": sorted({one.group for one in RESOURCES}), "resources": ["*"]}
    user = cluster.add_user("doctor-plain", [{**plain, "verbs": ["list", "watch"]}])
    found = doctor(settings(tmp_path, user.kubeconfig))
    (lacking,) = of(found, "permission_missing")
    assert lacking.message.endswith(" may not get experiments of example.org")
    assert (found.cluster_role or "").endswith(
        '  - apiGroups: ["example.org"]\n    resources: [experiments]\n    verbs: [get]\n'
    )
    assert len(of(found, "pods_without_team")) == 1
    projects = of(found, "cluster_read")[0].message.partition("it has ")[2]
    assert {"KAI scheduler", "Kubeflow", "Volcano"} <= set(projects.split(", "))
    assert of(found, "kinds_absent")[0].message == "the cluster does not have Kueue"
    cured = doctor(settings(tmp_path, cluster.kubeconfig))
    assert of(cured, "permission_missing") == of(cured, "pods_without_team") == []


def test_pods_with_gpus_and_without_a_team(
    cluster: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    cluster.create_node("n0")
    for name, labels in (("named", {"team": "nlp"}), ("first", {}), ("second", {})):
        template = pod_template(gpu_count=2, labels=labels)
        namespace.apply(pod(name, namespace=namespace.name, template=template))
    without_gpu = pod_template(gpu_count=0)
    namespace.apply(pod("other", namespace=namespace.name, template=without_gpu))
    namespace.wait_for_pods(4, phase="Running")
    chosen = settings(tmp_path, cluster.kubeconfig)
    (found,) = of(doctor(chosen), "pods_without_team")
    assert found.message == f"no team for 2 pods with 4 GPUs, in the namespaces {namespace.name}"
    by_namespace = OwnershipSettings(team_labels=("team", "metadata.namespace"))
    assert of(doctor(replace(chosen, ownership=by_namespace)), "pods_without_team") == []
    namespace.finish_pod("first")
    namespace.finish_pod("second")
    namespace.wait_for_pods(2, phase="Succeeded")
    assert of(doctor(chosen), "pods_without_team") == []


@pytest.mark.usefixtures("namespace")
def test_nodes_are_compared_with_what_exporters_show(
    cluster: Cluster, server: ExporterServer, tmp_path: Path
) -> None:
    cluster.create_node("seen", gpu_count=2)
    cluster.create_node("partly", gpu_count=2)
    cluster.create_node("unseen", gpu_count=4)
    cluster.create_node("plain", gpu_count=0)
    cluster.create_node("claims", gpu_count=0)
    cluster.client.apply(slice_of("claims", device_count=3))
    for node, numbers in (("seen", (0, 1)), ("partly", (0,)), ("stranger", (0,))):
        boards = [
            text
            for n in numbers
            for text in answer(labels={"UUID": f"GPU-{node}-{n}", "gpu": str(n), "Hostname": node})
        ]
        server.answers[f"/{node}"] = exposition("\n".join(boards) + "\n")
    urls = [server.url(f"/{node}") for node in ("seen", "partly", "stranger")]
    found = doctor(settings(tmp_path, cluster.kubeconfig), *urls)
    nodes = [
        (one.code, one.subject, *re.findall(r"\d+ GPUs?", one.message))
        for one in found.findings
        if one.code.startswith("node_")
    ]
    assert nodes == [
        ("node_partly_seen", "partly", "2 GPUs"),
        ("node_unknown", server.url("/stranger")),
        ("node_unseen", "claims", "3 GPUs"),
        ("node_unseen", "unseen", "4 GPUs"),
    ]


def test_exporters_are_found_by_their_labels_and_read_once(
    cluster: Cluster, namespace: Namespace, server: ExporterServer, tmp_path: Path
) -> None:
    cluster.create_node("n0", gpu_count=1)
    template = pod_template(
        gpu_count=0,
        labels={"app": "exporter"},
        annotations={"prometheus.io/port": str(server.port), "prometheus.io/path": "/metrics"},
    )
    namespace.apply(pod("dcgm-x", namespace=namespace.name, template=template))
    (made,) = namespace.wait_for_pods(1, phase="Running")
    cluster.client.patch(
        "v1/Pod",
        "dcgm-x",
        {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}},
        namespace=namespace.name,
        subresource="status",
    )
    namespace.wait_until(
        lambda: namespace.get("v1/Pod", "dcgm-x")["status"].get("podIP") == "127.0.0.1",
        what="the pod's address",
    )
    text = "\n".join(answer(hidden=("pod", "namespace", "container"))) + "\n"
    server.answers["/metrics"] = exposition(text)
    chosen = settings(tmp_path, cluster.kubeconfig, exporters=("app=exporter", "app=absent"))
    found = doctor(chosen)
    assert made["spec"]["nodeName"] == "n0"
    (unlisted,) = of(found, "targets_unlisted")
    assert (unlisted.subject, unlisted.message) == (
        "pod app=absent",
        "nothing in the cluster matches",
    )
    (holders,) = of(found, "no_podresources")
    assert holders.subject == server.url()
    assert of(found, "node_unseen") == of(found, "node_from_address") == []


def test_an_api_server_that_does_not_know_the_account(cluster: Cluster, tmp_path: Path) -> None:
    config = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"]["token"] = "stale"  # noqa: S105 - a token that nobody has
    stale = tmp_path / "stale.kubeconfig"
    stale.write_text(yaml.safe_dump(config), encoding="utf-8")
    (found,) = check_cluster(settings(tmp_path, stale), clock=SystemClock()).findings
    assert (str(found.severity), found.code) == ("fault", "cluster_unreadable")
    assert "401 Unauthorized" in found.message
    assert "renew the credentials" in (found.remedy or "")


def test_the_command_watches_the_cluster_that_its_flags_name(
    cluster: Cluster, tmp_path: Path
) -> None:
    done = steward(
        *("collect", "doctor", "--kubernetes", "--kubeconfig", str(cluster.kubeconfig)),
        *("--exporters", "app=absent", "--format", "json"),
        *("--data-dir", str(tmp_path / "new")),
        cwd=tmp_path,
    )
    content = json.loads(done.stdout)
    found = {one["code"]: one for one in content["findings"]}
    assert (done.returncode, done.stderr, content["exit_code"]) == (5, "", 5)
    assert found["cluster_read"]["message"].startswith("Kubernetes v1.")
    assert found["targets_unlisted"]["subject"] == "pod app=absent"
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_with_kueue(kueue: Kueue, kueue_namespace: Namespace, tmp_path: Path) -> None:
    kueue.cluster.create_node("n0")
    kueue.add_flavor()
    kueue.add_cluster_queue("research", gpu_count=8)
    kueue.add_local_queue("vision", namespace=kueue_namespace.name, cluster_queue="research")
    queued = job("train", namespace=kueue_namespace.name, labels={QUEUE_LABEL: "vision"})
    kueue_namespace.apply(queued)
    kueue_namespace.wait_for_pods(1, phase="Running")
    found = doctor(settings(tmp_path, kueue.cluster.kubeconfig))
    assert "Kueue" in of(found, "cluster_read")[0].message
    assert "Kueue" not in of(found, "kinds_absent")[0].message
    assert of(found, "pods_without_team") == of(found, "kinds_unread") == []
