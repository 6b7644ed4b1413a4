"""Nodes, quotas, priorities, events: one row when the state is another."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from collector.lifecycle import Output
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    CLUSTER_QUEUES,
    EVENTS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    RESOURCE_FLAVORS,
    RESOURCE_QUOTAS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITY_CLASSES,
)
from tests.support.kubernetes_objects import Body, at, condition, metadata, node, stamp
from tests.support.lifecycle_drive import settled

QUOTA = (
    "queue",
    "gpu_model",
    "guaranteed_gpu_count",
    "limit_gpu_count",
    "used_gpu_count",
    "borrowed_gpu_count",
    "pending_workload_count",
)


def test_node() -> None:
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.clique": "domain.1",
        "topology.kubernetes.io/rack": "r7",
        "example.org/other": "x",
    }
    drive = settled()
    offered = {"cpu": "95500m", "memory": "1Ti", "nvidia.com/gpu": "32"}
    drive.put(NODES, node(labels=labels, allocatable=offered))
    columns = ("gpu_model", "gpu_count", "allocatable_gpu_count", "cpu_milli", "memory_bytes")
    assert drive.table("node", *columns) == [("NVIDIA-H100-80GB-HBM3", 8, 32, 95_500, 1024**4)]
    assert drive.table("node", "rack", "nvlink_domain", "is_schedulable", "source") == [
        ("r7", "domain.1", True, "kubernetes")
    ]
    ((kept,),) = drive.table("node", "labels_json")
    assert set(json.loads(str(kept))) == set(labels) - {"example.org/other"}


@pytest.mark.parametrize(
    ("allocatable", "expected"),
    [
        pytest.param({"cpu": "1", "nvidia.com/gpu": "0"}, 0, id="zero"),
        pytest.param({}, None, id="not told yet"),
        pytest.param({"nvidia.com/mig-1g.5gb": "7"}, 7, id="slices"),
        pytest.param({"amd.com/gpu": "4"}, 4, id="AMD"),
        pytest.param({"cpu": "1"}, 0, id="no GPUs"),
    ],
)
def test_gpus_on_offer(allocatable: Mapping[str, str], expected: int | None) -> None:
    drive = settled()
    drive.put(NODES, node(labels={}, allocatable=allocatable))
    assert drive.table("node", "allocatable_gpu_count", "gpu_count") == [(expected, expected)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(str(2**31 - 1), 2**31 - 1, id="just inside"),
        pytest.param(str(2**31), None, id="more than the column holds"),
        pytest.param("9e99", 8, id="no number: as offered"),
    ],
)
def test_absurd_label_is_no_count(text: str, expected: int | None) -> None:
    drive = settled()
    drive.put(NODES, node(labels={"nvidia.com/gpu.count": text}))
    assert drive.table("node", "gpu_count") == [(expected,)]
    assert dict(Output(rows=tuple(drive.rows)).tables())["node"].num_rows == 1


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, True, id="open"),
        pytest.param({"unschedulable": True}, False, id="cordoned"),
        pytest.param(
            {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, True, id="for GPUs"
        ),
        pytest.param(
            {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
            False,
            id="not ready",
        ),
        pytest.param(
            {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "PreferNoSchedule"}]},
            True,
            id="only preferred",
        ),
    ],
)
def test_schedulable(spec: Body, expected: bool) -> None:
    drive = settled()
    drive.put(NODES, node(spec=spec))
    assert drive.table("node", "is_schedulable") == [(expected,)]


def test_cordon_and_taints_are_changes_and_heartbeats_are_none() -> None:
    drive = settled()
    ready = condition("Ready", "True", 0, "KubeletReady")
    drive.put(NODES, node(conditions=[ready]), seen_s=1)
    beat = {**ready, "lastHeartbeatTime": stamp(40)}
    drive.put(NODES, node(conditions=[beat]), seen_s=40)
    assert len(drive.rows) == 2
    taint = {"key": "x", "value": "y", "effect": "NoSchedule"}
    drive.put(NODES, node(conditions=[beat], spec={"unschedulable": True, "taints": [taint]}))
    assert drive.table("node", "is_schedulable", "taints_json")[-1] == (
        False,
        '[{"key": "x", "value": "y", "effect": "NoSchedule"}]',
    )


def test_node_that_is_gone_offers_nothing() -> None:
    drive = settled()
    drive.put(NODES, node())
    drive.delete(NODES, "gpu-0-uid", seen_s=9)
    row = drive.table("node", "node", "observed_at", "gpu_count", "is_schedulable", "cpu_milli")[-1]
    assert row == ("gpu-0", at(9), 0, False, 0)
    assert drive.table("node", "is_present") == [(True,), (False,)]
    assert drive.memory == {}


def test_node_that_came_back_while_nobody_watched_still_offers() -> None:
    drive = settled()
    drive.put(NODES, node())
    drive.delete_unseen(NODES, "gpu-0-uid")
    again = node()
    again["metadata"]["uid"] = "another"
    drive.change_unseen(NODES, again)
    drive.restart(seen_s=60)
    assert drive.table("node", "gpu_count") == [(8,), (8,)]


def test_node_that_went_while_nobody_watched_offers_nothing() -> None:
    drive = settled()
    drive.put(NODES, node())
    drive.delete_unseen(NODES, "gpu-0-uid")
    drive.restart(seen_s=60)
    assert drive.table("node", "gpu_count", "observed_at") == [(8, at(0)), (0, at(60))]


def test_conditions_without_or_of_the_same_type_are_no_endless_news() -> None:
    drive = settled()
    same = [condition("X", "True", 0, "A"), condition("X", "False", 1, "B")]
    nameless = {"status": "Pending", "lastTransitionTime": stamp(0)}
    for seen_s in (1, 2, 3):
        drive.put(NODES, node(conditions=[nameless, *same]), seen_s=seen_s)
    assert drive.table("condition_change", "condition", "status") == [("X", "False")]


def cluster_queue(*, cohort: str | None = None, borrowing: object = None) -> Body:
    """Return a ClusterQueue with 8 GPUs, 10 of them in use where that is possible."""
    quota: Body = {"name": "nvidia.com/gpu", "nominalQuota": 8}
    if borrowing is not None:
        quota["borrowingLimit"] = borrowing
    flavors = [{"name": "h100", "resources": [quota, {"name": "cpu", "nominalQuota": "100"}]}]
    used = [{"name": "nvidia.com/gpu", "total": "10", "borrowed": "2"}]
    spec: Body = {"resourceGroups": [{"coveredResources": [], "flavors": flavors}]}
    return {
        "metadata": metadata("research", namespace=None, uid="cq"),
        "spec": {**spec, **({"cohortName": cohort} if cohort else {})},
        "status": {
            "pendingWorkloads": 3,
            "flavorsUsage": [{"name": "h100", "resources": used}],
        },
    }


@pytest.mark.parametrize(
    ("cohort", "borrowing", "limit"),
    [
        pytest.param(None, None, 8.0, id="alone: no more than its own"),
        pytest.param("all", None, None, id="in a cohort: no end"),
        pytest.param("all", "4", 12.0, id="in a cohort: as much as it may borrow"),
        pytest.param("all", "0", 8.0, id="in a cohort: may borrow nothing"),
    ],
)
def test_cluster_queue(cohort: str | None, borrowing: object, limit: float | None) -> None:
    drive = settled()
    drive.put(CLUSTER_QUEUES, cluster_queue(cohort=cohort, borrowing=borrowing))
    assert drive.table("quota_snapshot", *QUOTA) == [("research", "h100", 8.0, limit, 10.0, 2.0, 3)]


def test_quota_of_an_older_kueue() -> None:
    drive = settled()
    body = cluster_queue()
    body["spec"]["cohort"] = "all"
    drive.put(CLUSTER_QUEUES, body)
    assert drive.table("quota_snapshot", "cohort", "limit_gpu_count") == [("all", None)]


def test_flavor_is_the_model_it_stands_for() -> None:
    drive = settled()
    flavor = {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}
    drive.put(RESOURCE_FLAVORS, {"metadata": metadata("h100", namespace=None), "spec": flavor})
    drive.put(CLUSTER_QUEUES, cluster_queue())
    assert drive.table("quota_snapshot", "gpu_model") == [("NVIDIA-H100-80GB-HBM3",)]


def test_unchanged_quota_is_told_once_and_its_end_too() -> None:
    drive = settled()
    drive.put(CLUSTER_QUEUES, cluster_queue())
    drive.put(CLUSTER_QUEUES, cluster_queue())
    assert len(drive.table("quota_snapshot")) == 1
    drive.delete(CLUSTER_QUEUES, "cq", seen_s=5)
    assert drive.table("quota_snapshot", *QUOTA)[-1] == ("research", "h100", 0.0, 0.0, 0.0, None, 0)


@pytest.mark.parametrize("usage", ["flavorsUsage", "flavorUsage"])
def test_local_queue(usage: str) -> None:
    drive = settled()
    used = [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "4"}]}]
    body = {
        "metadata": metadata("team-a"),
        "spec": {"clusterQueue": "research"},
        "status": {"pendingWorkloads": 0, usage: used},
    }
    drive.put(LOCAL_QUEUES, body)
    assert drive.table("quota_snapshot", "cohort", *QUOTA) == [
        ("research", "research/team-a", "h100", None, None, 4.0, None, 0)
    ]


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param({"requests.nvidia.com/gpu": "0"}, 0.0, id="zero used"),
        pytest.param({}, None, id="not told yet"),
        pytest.param({"requests.nvidia.com/gpu": "5"}, 5.0, id="five used"),
    ],
)
def test_resource_quota(used: Mapping[str, str], expected: float | None) -> None:
    drive = settled()
    drive.put(NAMESPACES, {"metadata": metadata("research", namespace=None, labels={"team": "r"})})
    hard = {"requests.nvidia.com/gpu": "8", "pods": "10", "requests.cpu": "100"}
    body = {"metadata": metadata("gpus"), "status": {"hard": hard, "used": dict(used)}}
    drive.put(RESOURCE_QUOTAS, body)
    assert drive.table("quota_snapshot", "tenant_id", *QUOTA) == [
        ("r", "research/gpus", None, 8.0, 8.0, expected, None, None)
    ]


def test_quota_without_gpus_is_not_told() -> None:
    drive = settled()
    drive.put(RESOURCE_QUOTAS, {"metadata": metadata("pods"), "spec": {"hard": {"pods": "10"}}})
    assert drive.rows == []
    assert drive.memory == {}


def test_volcano_queue() -> None:
    drive = settled()
    body = {
        "metadata": metadata("research", namespace=None),
        "spec": {"deserved": {"nvidia.com/gpu": "8"}, "capability": {"nvidia.com/gpu": "16"}},
        "status": {"allocated": {"nvidia.com/gpu": "2", "cpu": "1"}, "pending": 1},
    }
    drive.put(VOLCANO_QUEUES, body)
    assert drive.table("quota_snapshot", *QUOTA) == [("research", None, 8.0, 16.0, 2.0, None, 1)]


@pytest.mark.parametrize(
    ("quota", "limit", "expected"),
    [
        pytest.param(4, 8, (4.0, 8.0), id="both"),
        pytest.param(0, -1, (0.0, None), id="nothing guaranteed, no end"),
        pytest.param(0.5, 2, (0.5, 2.0), id="half a GPU"),
    ],
)
def test_kai_queue(quota: float, limit: float, expected: tuple[float | None, float | None]) -> None:
    drive = settled()
    body = {
        "metadata": metadata("team", namespace=None),
        "spec": {"parentQueue": "root", "resources": {"gpu": {"quota": quota, "limit": limit}}},
    }
    drive.put(KAI_QUEUES, body)
    assert drive.table("quota_snapshot", "cohort", *QUOTA) == [
        ("root", "team", None, *expected, None, None, None)
    ]


@pytest.mark.parametrize(
    ("resource", "source"),
    [(PRIORITY_CLASSES, "kubernetes"), (WORKLOAD_PRIORITY_CLASSES, "kueue")],
)
def test_priority_class(resource: Resource, source: str) -> None:
    drive = settled()
    body = {
        "metadata": metadata("high", namespace=None),
        "value": 1_000,
        "preemptionPolicy": "Never",
    }
    drive.put(resource, body)
    drive.put(resource, body)
    drive.delete(resource, "high-uid", seen_s=3)
    columns = ("priority_class", "priority", "preemption_policy", "is_present", "source")
    assert drive.table("priority_class", *columns) == [
        ("high", 1_000, "Never", True, source),
        ("high", None, None, False, source),
    ]


def event(reason: str = "FailedScheduling", **more: object) -> Body:
    """Return an event about a pod."""
    about = {"kind": "Pod", "namespace": "research", "name": "p", "uid": "p-uid"}
    return {
        "metadata": metadata("p.1", uid="e"),
        "type": "Warning",
        "reason": reason,
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "involvedObject": about,
        **more,
    }


def test_event_is_told_once_for_each_count() -> None:
    drive = settled()
    drive.put(EVENTS, event(count=1, lastTimestamp=stamp(5)), seen_s=5)
    drive.put(EVENTS, event(count=1, lastTimestamp=stamp(5)), seen_s=6)
    drive.put(EVENTS, event(count=2, lastTimestamp=stamp(9)), seen_s=9)
    columns = ("occurred_at", "event_uid", "kind", "name", "object_uid", "occurrence_count")
    assert drive.table("kubernetes_event", *columns) == [
        (at(5), "e", "Pod", "p", "p-uid", 1),
        (at(9), "e", "Pod", "p", "p-uid", 2),
    ]
    drive.delete(EVENTS, "e", seen_s=60)
    assert len(drive.table("kubernetes_event")) == 2
    assert drive.memory == {}


def test_event_of_the_newer_kind() -> None:
    body = {
        "metadata": metadata("p.1", uid="e", created_s=1),
        "eventTime": "2026-11-30T12:00:02.500000Z",
        "reason": "FailedScheduling",
        "note": "no",
        "regarding": {"kind": "Pod", "name": "p"},
        "series": {"count": 4, "lastObservedTime": "2026-11-30T12:00:30.000000Z"},
    }
    drive = settled()
    drive.put(EVENTS, body)
    assert drive.table("kubernetes_event", "occurred_at", "message", "occurrence_count") == [
        (at(30), "no", 4)
    ]


def test_event_without_any_time_has_that_of_its_object() -> None:
    drive = settled()
    drive.put(EVENTS, event(firstTimestamp=None, lastTimestamp=None))
    assert drive.table("kubernetes_event", "occurred_at", "occurrence_count") == [(at(0), 1)]


@pytest.mark.parametrize(
    ("reason", "is_kept"),
    [
        ("FailedScheduling", True),
        ("Preempted", True),
        ("EvictedDueToPreempted", True),
        ("EvictedDueToPodsReadyTimeout", True),
        ("QuotaReserved", True),
        ("FailedCreate", True),
        ("Pulled", False),
        ("Created", False),
        (None, False),
    ],
)
def test_which_events_are_kept(reason: str | None, is_kept: bool) -> None:
    drive = settled()
    drive.put(EVENTS, {**event(), "reason": reason})
    assert bool(drive.rows) is is_kept
