"""From pods to workloads, over followed kinds and over kinds nobody follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from collector.lifecycle.memory import Memory, PodEntry
from collector.sources.kubernetes.objects import Metadata
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    CRON_JOBS,
    CUSTOM_MAKERS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from steward.errors import InputError
from tests.support.kubernetes_objects import Body, job, metadata, owner_reference, pod
from tests.support.lifecycle_drive import Drive, settled

BY_KIND = {each.kind: each for each in CUSTOM_MAKERS if each.group != "batch.volcano.sh"}


@dataclass
class FixedMetadata:
    """Answers from a table, and counts the questions."""

    known: Mapping[str, Body]
    asked: list[str] = field(default_factory=list)

    def get_metadata(
        self, *, api_version: str, kind: str, namespace: str | None, name: str
    ) -> Metadata | None:
        """Return what the table has."""
        self.asked.append(f"{api_version}/{kind} {namespace}/{name}")
        found = self.known.get(name)
        return None if found is None else msgspec.convert(found, Metadata)


def told_root(drive: Drive) -> tuple[object, ...]:
    """Return kind and name of the last workload told."""
    return drive.table("workload", "kind", "name", "workload_uid")[-1]


@pytest.mark.parametrize(
    ("links", "root"),
    [
        pytest.param([], ("Pod", "p", "p-uid"), id="bare pod"),
        pytest.param(
            [(REPLICA_SETS, "web-1"), (DEPLOYMENTS, "web")],
            ("Deployment", "web", "web-uid"),
            id="Deployment",
        ),
        pytest.param([(STATEFUL_SETS, "db")], ("StatefulSet", "db", "db-uid"), id="StatefulSet"),
        pytest.param([(JOBS, "train")], ("Job", "train", "train-uid"), id="Job"),
        pytest.param(
            [(JOBS, "night-1"), (CRON_JOBS, "night")],
            ("CronJob", "night", "night-uid"),
            id="CronJob",
        ),
        pytest.param(
            [(STATEFUL_SETS, "nb"), (BY_KIND["Notebook"], "lab")],
            ("Notebook", "lab", "lab-uid"),
            id="Notebook",
        ),
        pytest.param(
            [(JOBS, "js-a"), (BY_KIND["JobSet"], "js"), (BY_KIND["TrainJob"], "tj")],
            ("TrainJob", "tj", "tj-uid"),
            id="TrainJob",
        ),
        pytest.param(
            [(BY_KIND["RayCluster"], "rc"), (BY_KIND["RayJob"], "rj")],
            ("RayJob", "rj", "rj-uid"),
            id="RayJob",
        ),
        *(
            pytest.param([(BY_KIND[kind], "x")], (kind, "x", "x-uid"), id=kind)
            for kind in (
                "JobSet",
                "PyTorchJob",
                "TFJob",
                "MPIJob",
                "XGBoostJob",
                "PaddleJob",
                "JAXJob",
                "RayService",
                "InferenceService",
                "LeaderWorkerSet",
                "Workflow",
            )
        ),
    ],
)
def test_chain_over_followed_kinds(
    links: list[tuple[Resource, str]], root: tuple[str, str, str]
) -> None:
    drive = settled()
    owners = [owner_reference(resource.kind, name) for resource, name in links]
    for index, (resource, name) in enumerate(links):
        owner = owners[index + 1] if index + 1 < len(owners) else None
        drive.put(resource, {"metadata": metadata(name, owner=owner)})
    drive.put(PODS, pod("p", owner=owners[0] if owners else None))
    assert told_root(drive) == root


def test_static_pod_is_a_workload_of_its_own() -> None:
    drive = settled()
    drive.put(PODS, pod("kube-proxy-n1", owner=owner_reference("Node", "n1", api_version="v1")))
    assert told_root(drive) == ("Pod", "kube-proxy-n1", "kube-proxy-n1-uid")


def test_unknown_kinds_are_asked_for_once_and_followed_to_the_top() -> None:
    source = FixedMetadata(
        {
            "trial": metadata("trial", owner=owner_reference("Experiment", "exp")),
            "exp": metadata("exp", labels={"team": "nas"}),
        }
    )
    drive = settled(source=source)
    trial = owner_reference("Trial", "trial", api_version="example.org/v1")
    drive.put(PODS, pod("a", owner=trial))
    drive.put(PODS, pod("b", owner=trial))
    assert told_root(drive) == ("Experiment", "exp", "exp-uid")
    assert drive.table("workload", "tenant_id")[-1] == ("nas",)
    assert source.asked == [
        "example.org/v1/Trial research/trial",
        "batch/v1/Experiment research/exp",
    ]


def test_without_an_answer_the_chain_ends_at_the_name() -> None:
    drive = settled()
    drive.put(PODS, pod("a", owner=owner_reference("Trial", "trial")))
    assert told_root(drive) == ("Trial", "trial", "trial-uid")


def test_answer_for_another_object_of_the_name_is_no_answer() -> None:
    source = FixedMetadata({"trial": metadata("trial", uid="younger", labels={"team": "x"})})
    drive = settled(source=source)
    drive.put(PODS, pod("a", owner=owner_reference("Trial", "trial")))
    assert told_root(drive) == ("Trial", "trial", "trial-uid")
    assert drive.table("workload", "tenant_id")[-1] == (None,)


def test_circle_of_owners_ends() -> None:
    source = FixedMetadata(
        {
            "a": metadata("a", owner=owner_reference("B", "b")),
            "b": metadata("b", owner=owner_reference("A", "a")),
        }
    )
    drive = settled(source=source)
    drive.put(PODS, pod("p", owner=owner_reference("A", "a")))
    assert told_root(drive)[0] == "B"


def test_pod_keeps_its_workload_when_the_replica_set_goes_first() -> None:
    drive = settled()
    drive.put(DEPLOYMENTS, {"metadata": metadata("web")})
    drive.put(REPLICA_SETS, {"metadata": metadata("web-1", owner=owner_reference("D", "web"))})
    drive.put(PODS, pod("p", owner=owner_reference("ReplicaSet", "web-1"), scheduled_s=1))
    drive.delete(REPLICA_SETS, "web-1-uid", seen_s=5)
    drive.put(
        PODS, pod("p", owner=owner_reference("ReplicaSet", "web-1"), scheduled_s=1, started_s=6)
    )
    assert set(drive.table("pod", "workload_uid")) == {("web-uid",)}
    assert {each[2] for each in drive.table("workload", "kind", "name", "workload_uid")} == {
        "web-uid"
    }


def test_owner_that_comes_after_its_pods_in_the_first_lists() -> None:
    drive = Drive()
    drive.put(PODS, pod("p", owner=owner_reference("Job", "train")))
    drive.put(JOBS, job(created_s=-5))
    drive.sync()
    assert told_root(drive) == ("Job", "train", "train-uid")
    assert drive.transitions() == [(1, "created", -5, "Job")]


def test_memory_of_another_version_is_one_clear_error() -> None:
    memory = Memory({"pod/x": b"\x93\x01\x02\x03"})
    with pytest.raises(InputError, match="pod/x"):
        memory.get("pod/x", PodEntry)
