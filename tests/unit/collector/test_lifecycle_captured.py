"""Objects as a real API server (1.36) and a real Kueue (0.17) wrote them, decoded and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collector.sources.kubernetes.objects import Metadata, Pod
from collector.sources.kubernetes.objects_workloads import KueueWorkload
from collector.sources.kubernetes.resources import RESOURCES
from tests.support import kubernetes_objects
from tests.support.kubernetes_objects import decoded
from tests.support.lifecycle_drive import Drive, settled

CAPTURED: dict[str, Any] = json.loads(
    Path(kubernetes_objects.__file__).with_name("kubernetes_captured.json").read_text("utf-8")
)
BY_NAME = {each.name: each for each in RESOURCES}


def told(*names: str) -> Drive:
    """Return a drive to which these captured objects were shown."""
    drive = settled()
    for name in names:
        each = CAPTURED[name]
        drive.put(BY_NAME[each["resource"]], each["object"], seen_s=10**6)
    return drive


@pytest.mark.parametrize("name", sorted(CAPTURED))
def test_captured_object_is_decoded_and_told_once(name: str) -> None:
    each = CAPTURED[name]
    resource = BY_NAME[each["resource"]]
    found = decoded(resource, each["object"])
    assert isinstance(found.metadata, Metadata)
    assert found.metadata.uid == each["object"]["metadata"]["uid"]
    assert found.metadata.creation_timestamp is not None
    drive = told(name)
    before = len(drive.rows)
    drive.restart(seen_s=10**6)
    assert drive.rows[before:] == []


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda each: each.name)
def test_every_kind_withstands_objects_that_say_nothing(resource: Any) -> None:  # noqa: ANN401 - a Resource
    drive = settled()
    drive.put(resource, {"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}})
    drive.put(
        resource,
        {
            "metadata": {"name": "x", "uid": "u", "labels": None, "creationTimestamp": None},
            "somethingNew": {"of": ["a later version"]},
        },
    )
    drive.delete(resource, "u", seen_s=5)
    assert not any(key.startswith(("pod/", "thing/")) for key in drive.memory)


def test_running_pod() -> None:
    drive = told("job", "running pod")
    transitions = [each[1] for each in drive.transitions()]
    assert transitions == ["created", "scheduled", "started", "ready"]
    assert drive.table("pod", "phase", "node", "gpu_count", "gpu_resource") == [
        ("Running", "gpu-0", 8, "nvidia.com/gpu")
    ]
    assert drive.table("workload", "kind", "gpu_count", "gpu_milli", "workload_class")[-1] == (
        "Job",
        8,
        1_000,
        "training",
    )


def test_pending_pod_of_a_deployment() -> None:
    drive = told("deployment", "replica set", "pending pod")
    assert drive.table("workload", "kind", "name")[-1] == ("Deployment", "web")
    (row,) = drive.table("condition_change", "condition", "status", "reason", "message")
    assert row[:3] == ("PodScheduled", "False", "Unschedulable")
    assert "Insufficient nvidia.com/gpu" in str(row[3])


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_workloads_of_kueue(version: str) -> None:
    first = decoded(
        BY_NAME["workloads.kueue.x-k8s.io"], CAPTURED[f"first workload {version}"]["object"]
    )
    assert isinstance(first, KueueWorkload)
    drive = told(f"first workload {version}", f"second workload {version}")
    assert [each[1] for each in drive.transitions()] == [
        "created",
        "quota_reserved",
        "admitted",
        "created",
    ]
    namespace = CAPTURED["namespace"]["object"]["metadata"]["name"]
    assert set(drive.table("workload", "queue", "gpu_count")) == {(f"{namespace}/team", 8)}


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_queues_of_kueue(version: str) -> None:
    drive = told(f"cluster queue {version}", f"local queue {version}")
    columns = ("queue", "cohort", "gpu_model", "guaranteed_gpu_count", "used_gpu_count")
    whole, local = drive.table("quota_snapshot", *columns)
    assert whole[:4] == ("research", "all", "default", 8.0)
    assert (str(local[0]).rpartition("/")[2], local[1]) == ("team", "research")


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1beta2"])
def test_devices_and_claims(version: str) -> None:
    drive = told(f"slice {version}", f"claim {version}")
    assert drive.table("device", "node", "device_uuid", "model", "memory_total_bytes") == [
        (
            "gpu-0",
            "GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c",
            "NVIDIA H100 80GB HBM3",
            81_559 * 1024**2,
        )
    ]
    (held,) = drive.lifecycle.holdings()["gpu-0"]
    assert (held.pod, held.device_uuid) == ("p", "GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c")


def test_event_of_the_scheduler() -> None:
    drive = told("scheduling event")
    (row,) = drive.table("kubernetes_event", "kind", "type", "reason", "occurrence_count")
    assert row == ("Pod", "Warning", "FailedScheduling", 1)


def test_pods_hold_no_more_than_what_is_used() -> None:
    body = json.dumps(CAPTURED["running pod"]["object"]).encode()
    kept = msgspec.json.encode(msgspec.json.decode(body, type=Pod))
    assert b"managedFields" not in kept
    assert b"tolerations" not in kept
