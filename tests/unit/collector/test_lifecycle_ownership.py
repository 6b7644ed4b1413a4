"""Whose a workload is and what it is for, by labels and rules."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from collector.lifecycle import OwnershipRules, ownership_rules
from collector.lifecycle.declared import declared_pods
from collector.lifecycle.ownership_rules import Subject, class_rule
from collector.lifecycle.requests import request_of
from collector.ownership import OwnershipLevel
from collector.sources.kubernetes.objects_workloads import Maker
from collector.sources.kubernetes.resources import (
    CLUSTER_QUEUES,
    CUSTOM_MAKERS,
    JOBS,
    KAI_POD_GROUPS,
    KUEUE_WORKLOADS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    VOLCANO_POD_GROUPS,
)
from steward.errors import SettingsError
from steward.settings import OwnershipSettings, load
from tests.support.kubernetes_objects import (
    Body,
    condition,
    job,
    kueue_workload,
    metadata,
    node,
    owner_reference,
    pod,
    pod_spec,
)
from tests.support.lifecycle_drive import settled

OF_JOB = owner_reference("Job", "train")
QUEUED = {"kueue.x-k8s.io/queue-name": "team-a"}


def subject(
    kind: str = "Job",
    *,
    namespace: str | None = "research",
    queue: str | None = None,
    priority_class: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Subject:
    """Return a subject with harmless defaults."""
    return Subject(
        kind=kind,
        namespace=namespace,
        queue=queue,
        priority_class=priority_class,
        labels=labels or {},
    )


@pytest.mark.parametrize(
    ("pod_labels", "job_labels", "namespace_labels", "queue", "expected"),
    [
        pytest.param(
            {"team": "p"}, {"team": "w"}, {"team": "n"}, True, ("p", "pod"), id="pod first"
        ),
        pytest.param({}, {"team": "w"}, {"team": "n"}, True, ("w", "workload"), id="then workload"),
        pytest.param({}, {}, {"team": "n"}, True, ("n", "namespace"), id="then namespace"),
        pytest.param({}, {}, {}, True, ("team-a", "queue"), id="then queue"),
        pytest.param({}, {}, {}, False, (None, "unattributed"), id="nobody"),
        pytest.param(
            {"project": "p", "tenant": "t"}, {}, {}, False, ("t", "pod"), id="first key counts"
        ),
        pytest.param({"team": ""}, {"team": "w"}, {}, False, ("w", "workload"), id="empty is none"),
    ],
)
def test_tenant(
    pod_labels: Mapping[str, str],
    job_labels: Mapping[str, str],
    namespace_labels: Mapping[str, str],
    queue: bool,
    expected: tuple[str | None, str],
) -> None:
    drive = settled()
    labels = {**job_labels, **(QUEUED if queue else {})}
    drive.put(
        NAMESPACES, {"metadata": metadata("research", namespace=None, labels=namespace_labels)}
    )
    drive.put(JOBS, job(labels=labels))
    drive.put(PODS, pod("p", owner=OF_JOB, labels=pod_labels))
    owner = drive.lifecycle.owner_of("research", "p")
    assert owner is not None
    assert (owner.tenant_id, owner.level.value) == expected
    assert drive.table("workload", "tenant_id")[-1] == (expected[0],)


@pytest.mark.parametrize(
    ("local_labels", "cluster_labels", "expected"),
    [
        pytest.param({"team": "l"}, {"team": "c"}, "l", id="LocalQueue's own"),
        pytest.param({}, {"team": "c"}, "c", id="its ClusterQueue's"),
        pytest.param({}, {}, "team-a", id="its name"),
    ],
)
def test_tenant_of_a_queue(
    local_labels: Mapping[str, str], cluster_labels: Mapping[str, str], expected: str
) -> None:
    drive = settled()
    drive.put(CLUSTER_QUEUES, {"metadata": metadata("main", namespace=None, labels=cluster_labels)})
    local = {"metadata": metadata("team-a", labels=local_labels), "spec": {"clusterQueue": "main"}}
    drive.put(LOCAL_QUEUES, local)
    drive.put(PODS, pod("p", labels=QUEUED))
    owner = drive.lifecycle.owner_of("research", "p")
    assert owner is not None
    assert (owner.tenant_id, owner.level) == (expected, OwnershipLevel.QUEUE)


def test_namespace_name_as_team() -> None:
    rules = OwnershipRules(team_labels=("team", "metadata.namespace"))
    drive = settled(rules=rules)
    drive.put(PODS, pod("p", labels=QUEUED))
    owner = drive.lifecycle.owner_of("research", "p")
    assert owner is not None
    assert (owner.tenant_id, owner.level) == ("research", OwnershipLevel.NAMESPACE)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Job", "training"),
        ("PyTorchJob", "training"),
        ("JobSet", "training"),
        ("CronJob", "training"),
        ("Workflow", "training"),
        ("Notebook", "development"),
        ("InferenceService", "inference"),
        ("Deployment", "inference"),
        ("LeaderWorkerSet", "inference"),
        ("DaemonSet", "system"),
        ("StatefulSet", None),
        ("Pod", None),
    ],
)
def test_class_by_kind(kind: str, expected: str | None) -> None:
    assert OwnershipRules().workload_class(subject(kind)) == expected


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ("development: kind=Job", True),
        ("development: kind=job", False),
        ("development: namespace=res*", True),
        ("development: namespace=prod-*", False),
        ("development: queue=*/team-a", True),
        ("development: priority-class=high*", True),
        ("development: label.app=jupyter", True),
        ("development: label.example.org/tier=gold", True),
        ("development: label.missing=*", False),
        ("development: kind=Job namespace=prod-*", False),
        ("development: kind=Job label.app=j*", True),
    ],
)
def test_rule(rule: str, fits: bool) -> None:
    found = class_rule(rule).fits(
        subject(
            queue="research/team-a",
            priority_class="high-1",
            labels={"app": "jupyter", "example.org/tier": "gold"},
        )
    )
    assert found is fits


def test_own_rules_come_before_the_built_in_ones_and_the_first_counts() -> None:
    settings = OwnershipSettings(
        class_rules=("system: kind=Deployment namespace=infra", "development: kind=Deployment")
    )
    rules = ownership_rules(settings)
    assert rules.workload_class(subject("Deployment", namespace="infra")) == "system"
    assert rules.workload_class(subject("Deployment")) == "development"
    assert rules.workload_class(subject("Job")) == "training"


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        pytest.param("batch: kind=Job", "begin with one of", id="no such class"),
        pytest.param("training kind=Job", "begin with one of", id="no colon"),
        pytest.param("training: ", "no condition", id="nothing behind it"),
        pytest.param("training: knd=Job", "'knd' is none of", id="no such field"),
        pytest.param("training: label.=x", "'label.' is none of", id="label without a key"),
        pytest.param("training: kind", "needs a pattern", id="no pattern"),
        pytest.param("training: kind=", "needs a pattern", id="empty pattern"),
    ],
)
def test_wrong_rule_is_one_clear_error(rule: str, what: str) -> None:
    with pytest.raises(SettingsError, match=r"ownership.class_rules") as caught:
        ownership_rules(OwnershipSettings(class_rules=("training: kind=Job", rule)))
    assert what in str(caught.value)
    assert "kind=Deployment" in caught.value.hint


def test_settings_from_the_environment() -> None:
    found = load(
        environ={
            "STEWARD_OWNERSHIP_TEAM_LABELS": "example.org/team,metadata.namespace",
            "STEWARD_OWNERSHIP_CLASS_RULES": "inference: kind=Deployment,training: queue=*/batch",
        }
    ).ownership
    assert found.team_labels == ("example.org/team", "metadata.namespace")
    assert len(ownership_rules(found).class_rules) == 2 + len(OwnershipRules().class_rules)


def test_person() -> None:
    drive = settled()
    drive.put(JOBS, job(labels={"owner": "ada"}))
    drive.put(PODS, pod("p", owner=OF_JOB))
    assert drive.table("workload", "owner")[-1] == ("ada",)


def test_workload_is_told_when_it_changes_only() -> None:
    drive = settled()
    drive.put(JOBS, job(pod_count=2, gpu_count=4))
    drive.put(PODS, pod("a", owner=OF_JOB, gpu_count=4))
    before = len(drive.table("workload"))
    drive.put(PODS, pod("b", owner=OF_JOB, gpu_count=4))
    drive.put(PODS, pod("b", owner=OF_JOB, gpu_count=4, scheduled_s=4))
    assert len(drive.table("workload")) == before
    drive.put(JOBS, job(pod_count=3, gpu_count=4))
    assert drive.table("workload", "gpu_count", "cpu_milli")[-1] == (12, 12_000)


def test_workload_that_does_not_say_its_size_is_the_sum_of_its_pods() -> None:
    drive = settled()
    trial = owner_reference("Trial", "t")
    drive.put(PODS, pod("a", owner=trial, gpu_count=1))
    drive.put(PODS, pod("b", owner=trial, gpu_count=2))
    drive.put(PODS, pod("b", owner=trial, gpu_count=2, scheduled_s=1))
    assert drive.table("workload", "gpu_count") == [(1,), (3,)]
    assert drive.table("workload", "cpu_milli")[-1] == (8_000,)


def test_share_is_told_when_the_node_is_known() -> None:
    drive = settled()
    drive.put(NODES, node(labels={"nvidia.com/gpu.replicas": "4"}))
    asked = {"requests": {"nvidia.com/gpu.shared": "1"}}
    drive.put(PODS, pod("p", gpu_count=0, spec=asked))
    drive.put(PODS, pod("p", gpu_count=0, spec=asked, scheduled_s=3))
    assert drive.table("workload", "gpu_count", "gpu_milli") == [(1, None), (1, 250)]


def test_priority_of_a_job_without_pods_is_its_class_value() -> None:
    drive = settled()
    drive.put(PRIORITY_CLASSES, {"metadata": metadata("high", namespace=None), "value": 1_000})
    body = job()
    body["spec"]["template"]["spec"]["priorityClassName"] = "high"
    drive.put(JOBS, body)
    assert drive.table("workload", "priority_class", "priority") == [("high", 1_000)]


def test_size_of_a_queued_workload_is_known_before_any_pod() -> None:
    drive = settled()
    waiting = [condition("QuotaReserved", "False", 0, "WaitingForQuota")]
    drive.put(KUEUE_WORKLOADS, kueue_workload(pod_count=16, gpu_count=8, conditions=waiting))
    assert drive.table("workload", "kind", "gpu_count", "gpu_milli") == [("Job", 128, 1_000)]


def template(gpu_count: int) -> Body:
    """Return what pods are made from."""
    return {"spec": pod_spec(gpu_count=gpu_count)}


ROLES = {
    "Master": {"replicas": 1, "template": template(8)},
    "Worker": {"replicas": 3, "template": template(8)},
}
RAY = {
    "headGroupSpec": {"template": template(0)},
    "workerGroupSpecs": [
        {"replicas": 2, "numOfHosts": 2, "template": template(4)},
        {"template": template(1)},
    ],
}


@pytest.mark.parametrize(
    ("spec", "gpu_count"),
    [
        pytest.param({}, None, id="says nothing"),
        pytest.param({"replicas": 0, "template": template(8)}, None, id="wants none now"),
        pytest.param({"replicas": 3, "template": template(2)}, 6, id="Deployment"),
        pytest.param({"template": template(2)}, 2, id="one where none is said"),
        pytest.param(
            {"parallelism": 4, "completions": 2, "template": template(1)}, 2, id="Job of two pods"
        ),
        pytest.param({"pytorchReplicaSpecs": ROLES}, 32, id="PyTorchJob"),
        pytest.param({"tfReplicaSpecs": ROLES}, 32, id="TFJob"),
        pytest.param({"mpiReplicaSpecs": {"Worker": {"template": template(2)}}}, 2, id="MPIJob"),
        pytest.param(
            {
                "replicatedJobs": [
                    {
                        "replicas": 2,
                        "template": {"spec": {"parallelism": 4, "template": template(8)}},
                    }
                ]
            },
            64,
            id="JobSet",
        ),
        pytest.param(RAY, 17, id="RayCluster"),
        pytest.param({"rayClusterSpec": RAY}, 17, id="RayJob"),
        pytest.param(
            {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template(8)}},
            64,
            id="LeaderWorkerSet",
        ),
        pytest.param(
            {
                "leaderWorkerTemplate": {
                    "size": 4,
                    "leaderTemplate": template(1),
                    "workerTemplate": template(8),
                }
            },
            25,
            id="LeaderWorkerSet with another leader",
        ),
        pytest.param(
            {"tasks": [{"replicas": 2, "template": template(4)}, {"template": template(0)}]},
            8,
            id="Volcano job",
        ),
    ],
)
def test_size_that_a_workload_declares(spec: Body, gpu_count: int | None) -> None:
    maker = msgspec.convert({"spec": spec}, Maker)
    wanted = declared_pods(maker)
    total = sum(count * (request_of(each.spec).gpu_count or 0) for count, each in wanted)
    assert (total if wanted else None) == gpu_count


@pytest.mark.parametrize(
    ("labels", "annotations", "queue"),
    [
        pytest.param({}, {}, None, id="none"),
        pytest.param({"kai.scheduler/queue": "k"}, {}, "k", id="KAI"),
        pytest.param({"runai/queue": "r"}, {}, "r", id="KAI's older label"),
        pytest.param({"volcano.sh/queue-name": "v"}, {}, "v", id="Volcano's label"),
        pytest.param({}, {"scheduling.volcano.sh/queue-name": "a"}, "a", id="its annotation"),
        pytest.param({}, {"kueue.x-k8s.io/queue-name": "q"}, "research/q", id="Kueue's annotation"),
        pytest.param(
            {"kai.scheduler/queue": "k", **QUEUED}, {}, "research/team-a", id="Kueue first"
        ),
        pytest.param({}, {"scheduling.k8s.io/group-name": "gang"}, "of-gang", id="Volcano's gang"),
        pytest.param({}, {"pod-group-name": "gang"}, "of-kai-gang", id="KAI's gang"),
    ],
)
def test_queue_of_a_pod(
    labels: Mapping[str, str], annotations: Mapping[str, str], queue: str | None
) -> None:
    drive = settled()
    for resource, name in ((VOLCANO_POD_GROUPS, "of-gang"), (KAI_POD_GROUPS, "of-kai-gang")):
        gang = {"metadata": metadata("gang", uid=name), "spec": {"queue": name}}
        drive.put(resource, gang)
    drive.put(PODS, pod("p", labels=labels, annotations=annotations))
    owner = drive.lifecycle.owner_of("research", "p")
    assert owner is not None
    assert owner.queue == queue


def test_queue_of_a_volcano_job_is_its_own_field() -> None:
    drive = settled()
    resource = next(each for each in CUSTOM_MAKERS if each.group == "batch.volcano.sh")
    body = {"metadata": metadata("v"), "spec": {"queue": "research", "tasks": []}}
    drive.put(resource, body)
    assert drive.table("workload", "queue") == [("research",)]
