"""Series of kube-state-metrics become objects again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.backfill.kubernetes.names import resource_name, sanitized, true_labels
from collector.backfill.kubernetes.past import KubePast
from collector.backfill.kubernetes.pods import pods_of
from collector.backfill.kubernetes.series import KubeHour, Value
from collector.backfill.kubernetes.things import things_of
from collector.lifecycle.ownership_rules import OwnershipRules
from collector.lifecycle.pod_facts import end, ready_at, scheduled_at, started_at
from collector.sources.kubernetes.objects_cluster import Node
from collector.sources.kubernetes.objects_workloads import Maker
from steward.period import Period

NINE = datetime(2026, 5, 1, 9, tzinfo=UTC)
HOUR = Period(NINE, NINE + timedelta(hours=1))
POD = {"namespace": "lab", "pod": "fit-1", "uid": "u1"}
JOB = {"namespace": "lab", "job_name": "fit"}


def at(minutes: float) -> float:
    """Return the instant so many minutes after nine as kube-state-metrics prints it."""
    return (NINE + timedelta(minutes=minutes)).timestamp()


def hour(**metrics: list[tuple[dict[str, str], float]]) -> KubeHour:
    """Return an hour with these metrics of one pod."""
    values = {
        f"kube_{name}": [Value({**labels}, number) for labels, number in each]
        for name, each in metrics.items()
    }
    return KubeHour(values=values, present=frozenset({"u1"}))


RUNNING = {
    "pod_info": [
        ({**POD, "node": ""}, 1.0),
        ({**POD, "node": "n1", "priority_class": "high"}, 1.0),
    ],
    "pod_created": [(POD, at(1))],
    "pod_status_scheduled_time": [(POD, at(5))],
    "pod_container_state_started": [({**POD, "container": "main"}, at(6))],
    "pod_status_ready_time": [(POD, at(7))],
    "pod_status_phase": [({**POD, "phase": "Running"}, 1.0)],
    "pod_owner": [({**POD, "owner_kind": "Job", "owner_name": "fit"}, 1.0)],
    "pod_container_resource_requests": [
        ({**POD, "container": "main", "resource": "nvidia_com_gpu"}, 8.0)
    ],
}
DONE = {
    **RUNNING,
    "pod_status_phase": [({**POD, "phase": "Succeeded"}, 1.0), ({**POD, "phase": "Running"}, 1.0)],
    "pod_completion_time": [(POD, at(50))],
}


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_gpu_shared", "nvidia.com/gpu.shared"),
        ("nvidia_com_mig_1g_5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia_com_mig_1g_5gb_shared", "nvidia.com/mig-1g.5gb.shared"),
        ("nvidia_com_mig_1g_10gb_me", "nvidia.com/mig-1g.10gb.me"),
        ("amd_com_gpu", "amd.com/gpu"),
        ("huawei_com_Ascend910B", "huawei.com/Ascend910B"),
        ("gpu_intel_com_i915", "gpu.intel.com/i915"),
        ("cpu", "cpu"),
    ],
)
def test_resource_names_are_found_again(spelling: str, name: str) -> None:
    assert resource_name(spelling) == name


def test_labels_are_found_again_where_their_names_are_known() -> None:
    said = {
        "label_nvidia_com_gpu_product": "A100",
        "label_lab_team": "x",
        "label_odd_one": "y",
        "job": "z",
    }
    assert sanitized("lab/team") == "lab_team"
    assert true_labels(said, known=["lab/team"]) == {
        "nvidia.com/gpu.product": "A100",
        "lab/team": "x",
        "odd_one": "y",
    }


def test_a_running_pod() -> None:
    (pod,) = pods_of(hour(**RUNNING), known_labels=()).values()
    moments = [scheduled_at(pod), started_at(pod), ready_at(pod)]
    assert [each and each.timestamp() for each in moments] == [at(5), at(6), at(7)]
    assert (pod.spec.node_name, pod.spec.priority_class_name) == ("n1", "high")
    assert end(pod) is None
    (container,) = pod.spec.containers or ()
    assert container.resources is not None
    assert container.resources.requests == {"nvidia.com/gpu": 8.0}
    (owner,) = pod.metadata.owner_references or ()
    assert (owner.kind, owner.uid) == ("Job", "past/Job/lab/fit")


def test_a_pod_that_ended_wins_over_a_stale_word() -> None:
    (pod,) = pods_of(hour(**DONE), known_labels=()).values()
    ended = end(pod)
    assert ended is not None
    assert (ended.at.timestamp(), ended.reason) == (at(50), "Succeeded")


@pytest.mark.parametrize("seen", [None, NINE + timedelta(minutes=44)])
def test_an_end_without_a_time_is_when_it_was_first_seen(seen: datetime | None) -> None:
    evicted = hour(
        pod_info=RUNNING["pod_info"],
        pod_created=RUNNING["pod_created"],
        pod_status_phase=[({**POD, "phase": "Failed"}, 1.0)],
        pod_status_reason=[({**POD, "reason": "Evicted"}, 1.0)],
    )
    evicted.first_ended = {} if seen is None else {"u1": seen}
    (pod,) = pods_of(evicted, known_labels=()).values()
    ended = end(pod)
    assert (None if ended is None else (ended.at, ended.reason)) == (seen and (seen, "Evicted"))


def test_names_that_a_server_moved_win() -> None:
    moved = {
        "namespace": "monitoring",
        "pod": "ksm",
        "exported_namespace": "lab",
        "exported_pod": "p",
    }
    found = pods_of(hour(pod_info=[({**moved, "uid": "u1"}, 1.0)]), known_labels=())
    assert (found["u1"].metadata.namespace, found["u1"].metadata.name) == ("lab", "p")


def test_owners_and_nodes() -> None:
    things = things_of(
        hour(
            job_created=[(JOB, at(0))],
            job_owner=[({**JOB, "owner_kind": "CronJob", "owner_name": "nightly"}, 1.0)],
            job_spec_parallelism=[(JOB, 2.0)],
            job_status_completion_time=[(JOB, at(55))],
            job_complete=[({**JOB, "condition": "true"}, 1.0)],
            node_info=[({"node": "n1"}, 1.0)],
            node_status_allocatable=[({"node": "n1", "resource": "nvidia_com_gpu"}, 8.0)],
            node_spec_unschedulable=[({"node": "n1"}, 1.0)],
            node_spec_taint=[
                ({"node": "n1", "key": "gpu", "value": "", "effect": "NoSchedule"}, 1.0)
            ],
        ),
        known_labels=(),
    )
    job, node = things["jobs.batch", "past/Job/lab/fit"], things["nodes", "past/Node//n1"]
    assert isinstance(job, Maker)
    assert job.spec is not None
    assert job.status is not None
    assert (job.spec.parallelism, job.spec.completions) == (2, None)
    assert job.status.completion_time == NINE + timedelta(minutes=55)
    assert job.metadata.owner_references is not None
    assert job.metadata.owner_references[0].uid == "past/CronJob/lab/nightly"
    assert isinstance(node, Node)
    assert node.status.allocatable == {"nvidia.com/gpu": 8.0}
    assert node.spec.unschedulable
    assert node.spec.taints is not None
    assert (node.spec.taints[0].key, node.spec.taints[0].value) == ("gpu", None)


def test_an_hour_without_anybody_watching_its_end_takes_nothing_away() -> None:
    past = KubePast(cluster="c", rules=OwnershipRules(), memory={})
    list(past.begin(hour(**RUNNING), HOUR))
    list(past.end())
    unwatched = hour(**RUNNING)
    unwatched.present = None
    later = Period(HOUR.until_at, HOUR.until_at + timedelta(hours=1))
    rows = [row for output in past.begin(unwatched, later) for row in output.rows]
    rows += [row for output in past.end() for row in output.rows]
    assert rows == []
    assert past.lifecycle.owner_of("lab", "fit-1") is not None


def test_a_primed_past_tells_nothing_anew() -> None:
    whole = KubePast(cluster="c", rules=OwnershipRules(), memory={})
    list(whole.begin(hour(**RUNNING), HOUR))
    list(whole.end())
    again = KubePast(cluster="c", rules=OwnershipRules(), memory=whole.remembered)
    again.prime(hour(**RUNNING), HOUR)
    assert again.remembered == whole.remembered
    later = Period(HOUR.until_at, HOUR.until_at + timedelta(hours=1))

    def rows(past: KubePast) -> list[object]:
        told: list[object] = []
        told += [row for output in past.begin(hour(**DONE), later) for row in output.rows]
        return told + [row for output in past.end() for row in output.rows]

    assert rows(again) == rows(whole) != []
