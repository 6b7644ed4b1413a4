"""The doctor's words on a cluster, from what an API server told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collector.doctor.cluster import TeamlessPod
from collector.doctor.cluster_check import binding_command, needed_role
from collector.doctor.cluster_findings import cluster_findings, node_views
from collector.doctor.fleet import NodeView
from collector.sources.kubernetes.objects_cluster import (
    DeviceAttribute,
    Pool,
    ResourceSlice,
    ResourceSliceSpec,
    SliceDevice,
)
from collector.sources.kubernetes.permissions import MissingPermission
from collector.sources.kubernetes.resources import (
    CLUSTER_QUEUES,
    KUEUE_WORKLOADS,
    LOCAL_QUEUES,
    RESOURCES,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
)
from tests.support.doctor_views import PRODUCT, cluster_view, node, told
from tests.support.exposition_texts import NOON

FULL = [node("n1", labels=PRODUCT)]


def dra_slice(node_name: str, *uuids: str, driver: str = "gpu.nvidia.com") -> ResourceSlice:
    devices = tuple(
        SliceDevice(name=f"gpu-{n}", attributes={"uuid": DeviceAttribute(text=uuid)})
        for n, uuid in enumerate(uuids)
    )
    spec = ResourceSliceSpec(
        driver=driver, pool=Pool(name=node_name), node_name=node_name, devices=devices
    )
    return ResourceSlice(spec=spec)


def may_not(verb: str, plural: str, group: str = "") -> MissingPermission:
    return MissingPermission(group=group, resource=plural, verb=verb)


def test_a_cluster_as_it_should_be() -> None:
    (found,) = cluster_findings(cluster_view(nodes=FULL), now=NOON)
    assert (found.code, found.subject) == ("cluster_read", "https://cluster")
    assert found.message.startswith(
        "Kubernetes v1.36.3 answers to system:serviceaccount:steward:collect, 1 node; "
    )
    assert "Kueue" in found.message


@pytest.mark.parametrize(
    ("missing", "severity", "words", "rule"),
    [
        pytest.param(
            [may_not("list", "pods"), may_not("watch", "pods")],
            "fault",
            "may not list and watch pods",
            '{apiGroups: [""], resources: [pods], verbs: [list, watch]}',
            id="pods",
        ),
        pytest.param(
            [may_not("watch", "nodes"), may_not("list", "events"), may_not("watch", "events")],
            "fault",
            "may not list and watch events; watch nodes",
            '{apiGroups: [""], resources: [events, nodes], verbs: [list, watch]}',
            id="nodes in part",
        ),
        pytest.param(
            [may_not("list", "jobs", "batch")],
            "gap",
            "may not list jobs of batch",
            '{apiGroups: ["batch"], resources: [jobs], verbs: [list, watch]}',
            id="jobs",
        ),
        pytest.param(
            [may_not("list", "pods", "metrics.example.org")],
            "gap",
            "may not list pods of metrics.example.org",
            '{apiGroups: ["metrics.example.org"], resources: [pods], verbs: [list, watch]}',
            id="other pods are not vital",
        ),
        pytest.param(
            [may_not("get", "experiments", "example.org")],
            "gap",
            "may not get experiments of example.org",
            '{apiGroups: ["example.org"], resources: [experiments], verbs: [get]}',
            id="an owner that is asked for by itself",
        ),
    ],
)
def test_missing_permissions(
    missing: list[MissingPermission], severity: str, words: str, rule: str
) -> None:
    view = cluster_view(nodes=FULL, missing=missing)
    (found,) = [one for one in cluster_findings(view, now=NOON) if one.code == "permission_missing"]
    assert (str(found.severity), found.remedy) == (severity, f"add to its ClusterRole: {rule}")
    assert found.message == f"system:serviceaccount:steward:collect {words}"


def test_one_finding_for_each_group() -> None:
    missing = [may_not("list", "pods"), may_not("list", "jobs", "batch")]
    found = cluster_findings(cluster_view(nodes=FULL, missing=missing), now=NOON)
    assert [one.code for one in found].count("permission_missing") == 2


def test_the_role_has_what_is_followed_and_what_else_was_missed() -> None:
    role = needed_role([may_not("get", "experiments", "example.org")], resources=RESOURCES)
    assert role.startswith("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n")
    assert role.endswith(
        '  - apiGroups: ["example.org"]\n    resources: [experiments]\n    verbs: [get]\n'
    )
    assert needed_role([may_not("list", "pods")], resources=RESOURCES).count("verbs: [get]") == 0


@pytest.mark.parametrize(
    ("account", "subject"),
    [
        ("system:serviceaccount:gpu:collect", "--serviceaccount=gpu:collect"),
        ("alice", "--user=alice"),
    ],
)
def test_the_command_that_binds_the_role(account: str, subject: str) -> None:
    assert binding_command(account) == (
        "kubectl create clusterrolebinding steward-collector --clusterrole=steward-collector "
        f"{subject}"
    )
    assert binding_command(None) is None


def test_projects_that_are_not_there() -> None:
    absent = {VOLCANO_QUEUES: None, VOLCANO_POD_GROUPS: None}
    groups: dict[str, frozenset[str]] = {VOLCANO_QUEUES.group: frozenset()}
    view = cluster_view(nodes=FULL, served=absent, groups=groups)
    (found,) = [one for one in cluster_findings(view, now=NOON) if one.code == "kinds_absent"]
    assert found.message == "the cluster does not have Volcano"


def test_a_project_in_versions_that_are_not_read() -> None:
    absent = {KUEUE_WORKLOADS: None, CLUSTER_QUEUES: None, LOCAL_QUEUES: None}
    groups = {KUEUE_WORKLOADS.group: frozenset({"v2"})}
    view = cluster_view(nodes=FULL, served=absent, groups=groups)
    (found,) = [one for one in cluster_findings(view, now=NOON) if one.code == "versions_unknown"]
    assert found.message == (
        "the cluster has kueue.x-k8s.io in v2, and this program reads it in v1beta1, v1beta2"
    )
    partly = cluster_view(nodes=FULL, served=absent)
    assert "versions_unknown" not in [one.code for one in cluster_findings(partly, now=NOON)]


def test_kinds_that_could_not_be_read() -> None:
    view = cluster_view(nodes=FULL, unread={"pods": "2 objects are not of the known shape"})
    (found,) = [one for one in cluster_findings(view, now=NOON) if one.code == "kinds_unread"]
    assert (str(found.severity), found.message) == (
        "gap",
        "pods: 2 objects are not of the known shape",
    )


def test_a_cluster_without_gpus_and_one_that_does_not_tell() -> None:
    plain = node("n1", capacity={"cpu": "8"})
    assert told(cluster_findings(cluster_view(nodes=[plain]), now=NOON)) == [
        ("fine", "cluster_read"),
        ("gap", "gpu_nodes_absent"),
    ]
    assert told(cluster_findings(cluster_view(nodes=None), now=NOON)) == [("fine", "cluster_read")]
    assert node_views(cluster_view(nodes=None)) is None


@pytest.mark.parametrize(
    ("offered", "is_told"),
    [
        pytest.param("7", True, id="one fewer"),
        pytest.param("8", False, id="all"),
        pytest.param("9", False, id="more"),
        pytest.param("0", True, id="none"),
    ],
)
def test_gpus_held_back(offered: str, *, is_told: bool) -> None:
    held = node("n1", allocatable={"nvidia.com/gpu": offered}, labels=PRODUCT)
    healthy = node("n2", labels=PRODUCT)
    found = cluster_findings(cluster_view(nodes=[held, healthy]), now=NOON)
    assert ("gpus_held_back" in [one.code for one in found]) is is_told


def test_nodes_that_do_not_say_their_model() -> None:
    nodes = [node(f"n{number}") for number in range(7)]
    view = cluster_view(
        nodes=[*nodes, *FULL, node("amd", labels={"amd.com/gpu.product-name": "X"})]
    )
    (found,) = [
        one for one in cluster_findings(view, now=NOON) if one.code == "model_labels_absent"
    ]
    assert found.message == (
        "7 of 9 nodes with GPUs do not say which model they have: n0, n1, n2, n3, n4 and 2 more"
    )


@pytest.mark.parametrize(
    ("counts", "held"),
    [
        pytest.param((1,), "1 pod with 1 GPU", id="one"),
        pytest.param((1, 2), "2 pods with 3 GPUs", id="two"),
        pytest.param(
            (1, 2, None), "3 pods with 3 GPUs and GPUs that 1 of them claim", id="claims beside"
        ),
        pytest.param((None,), "1 pod with GPUs that 1 of them claim", id="claims only"),
    ],
)
def test_pods_without_a_team(counts: tuple[int | None, ...], held: str) -> None:
    pods = [
        TeamlessPod(namespace="ba"[number % 2], name=f"p{number}", gpu_count=count)
        for number, count in enumerate(counts)
    ]
    view = cluster_view(nodes=FULL, teamless=pods)
    (found,) = [one for one in cluster_findings(view, now=NOON) if one.code == "pods_without_team"]
    places = "b" if len(pods) == 1 else "a, b"
    assert found.message == f"no team for {held}, in the namespaces {places}"
    quiet = cluster_findings(cluster_view(nodes=FULL), now=NOON)
    assert "pods_without_team" not in [one.code for one in quiet]


def test_how_far_back_events_reach() -> None:
    view = cluster_view(nodes=FULL, oldest_event_at=NOON - timedelta(minutes=58))
    (found,) = [one for one in cluster_findings(view, now=NOON) if one.code == "events_short_lived"]
    assert found.message.startswith("its oldest event is 58 min old:")


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        pytest.param(node("n1"), (8, 8), id="whole GPUs"),
        pytest.param(
            node("n1", capacity={"nvidia.com/gpu": "80"}, labels={"nvidia.com/gpu.count": "8"}),
            (80, 8),
            id="shares, with the count that discovery made",
        ),
        pytest.param(
            node(
                "n1",
                capacity={"nvidia.com/gpu": "80"},
                labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"},
            ),
            (80, None),
            id="shares, without it",
        ),
        pytest.param(
            node("n1", capacity={"nvidia.com/mig-1g.10gb": "7"}), (7, None), id="MIG, mixed"
        ),
        pytest.param(
            node(
                "n1",
                capacity={"nvidia.com/gpu": "7"},
                labels={
                    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
                    "nvidia.com/gpu.count": "7",
                },
            ),
            (7, None),
            id="MIG, single: instances are counted as GPUs",
        ),
        pytest.param(node("n1", capacity={"cpu": "8"}), (0, None), id="no GPU"),
    ],
)
def test_what_a_node_offers(there: object, expected: tuple[int, int | None]) -> None:
    (found,) = node_views(cluster_view(nodes=[there])) or ()  # type: ignore[list-item]  # a node
    assert (found.gpu_count, found.board_count) == expected


def test_gpus_that_are_handed_out_by_claims() -> None:
    plain = node("n1", capacity={"cpu": "8"})
    slices = [dra_slice("n1", "GPU-a", "GPU-b"), dra_slice("n1", "x", driver="nic.example.org")]
    view = cluster_view(nodes=[plain], slices=slices)
    assert node_views(view) == (NodeView(name="n1", gpu_count=2, board_count=2),)
    assert "gpu_nodes_absent" not in [one.code for one in cluster_findings(view, now=NOON)]
