"""Kueue: quota, admission, eviction, requeue; suspension of Jobs that Kueue does not manage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from collector.sources.kubernetes.resources import (
    CRON_JOBS,
    CUSTOM_MAKERS,
    JOBS,
    KUEUE_WORKLOADS,
    PODS,
    VOLCANO_POD_GROUPS,
)
from tests.support.kubernetes_objects import (
    Body,
    condition,
    job,
    kueue_workload,
    metadata,
    owner_reference,
    pod,
    stamp,
)
from tests.support.lifecycle_drive import Drive, settled

OF_JOB = owner_reference("Job", "train")
QUEUED = {"kueue.x-k8s.io/queue-name": "team-a"}
WAITING = [condition("QuotaReserved", "False", 0, "WaitingForQuota", "not enough")]
ADMITTED = [
    condition("QuotaReserved", "True", 40, "QuotaReserved"),
    condition("Admitted", "True", 42, "Admitted"),
]
PREEMPTED = [
    condition("Evicted", "True", 100, "Preempted", "to make room"),
    condition("Preempted", "True", 100, "InClusterQueue"),
]
RELEASED = [
    condition("QuotaReserved", "False", 103, "Pending"),
    condition("Admitted", "False", 103, "NoReservation"),
    condition("Requeued", "True", 103, "Preempted"),
]
AGAIN = [
    condition("QuotaReserved", "True", 150, "QuotaReserved"),
    condition("Admitted", "True", 150, "Admitted"),
    condition("Evicted", "False", 150, "QuotaReserved", "Previously: to make room"),
    condition("Requeued", "True", 103, "Preempted"),
]


def put(drive: Drive, conditions: Sequence[Body], *, seen_s: float, **more: object) -> None:
    """Show the Workload with these conditions."""
    body = kueue_workload(conditions=conditions, **more)  # type: ignore[arg-type]  # free options
    drive.put(KUEUE_WORKLOADS, body, seen_s=seen_s)


def test_wait_for_quota_preemption_and_second_wait() -> None:
    drive = settled()
    drive.put(JOBS, job(labels=QUEUED, suspend=True))
    put(drive, WAITING, seen_s=0)
    put(drive, ADMITTED, seen_s=42)
    drive.put(JOBS, job(labels=QUEUED), seen_s=42)
    drive.put(PODS, pod("a", owner=OF_JOB, created_s=43, scheduled_s=44, started_s=45), seen_s=45)
    put(drive, [*ADMITTED, *PREEMPTED], seen_s=100)
    suspended = [condition("Suspended", "True", 101, "JobSuspended")]
    drive.put(JOBS, job(labels=QUEUED, suspend=True, conditions=suspended), seen_s=101)
    drive.delete(PODS, "a-uid", seen_s=102)
    put(drive, [*RELEASED, *PREEMPTED], seen_s=103)
    put(drive, AGAIN, seen_s=150)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=151, scheduled_s=152), seen_s=152)
    assert drive.transitions() == [
        (1, "created", 0, "Job"),
        (1, "quota_reserved", 40, "QuotaReserved"),
        (1, "admitted", 42, "Admitted"),
        (1, "scheduled", 44, None),
        (1, "started", 45, None),
        (1, "preempted", 100, "InClusterQueue"),
        (2, "requeued", 103, "Preempted"),
        (2, "quota_reserved", 150, "QuotaReserved"),
        (2, "admitted", 150, "Admitted"),
        (2, "scheduled", 152, None),
    ]


def test_each_reason_for_waiting_is_kept() -> None:
    drive = settled()
    put(drive, WAITING, seen_s=0)
    put(drive, [condition("QuotaReserved", "False", 0, "TopologyPlacementFailed")], seen_s=9)
    rows = drive.table("condition_change", "kind", "condition", "status", "reason")
    assert rows == [
        ("Workload", "QuotaReserved", "False", "WaitingForQuota"),
        ("Workload", "QuotaReserved", "False", "TopologyPlacementFailed"),
    ]


def test_second_preemption_without_a_new_requeued_time() -> None:
    drive = settled()
    for conditions, seen_s in (
        (ADMITTED, 42),
        ([*ADMITTED, *PREEMPTED], 100),
        ([*RELEASED, *PREEMPTED], 103),
        (AGAIN, 150),
    ):
        put(drive, conditions, seen_s=seen_s)
    evicted = [
        condition("Evicted", "True", 200, "Preempted"),
        condition("Preempted", "True", 200, "InCohortReclamation"),
    ]
    put(drive, [*AGAIN[:2], *evicted, AGAIN[3]], seen_s=200)
    put(
        drive, [condition("QuotaReserved", "False", 204, "Pending"), *evicted, AGAIN[3]], seen_s=204
    )
    assert drive.transitions()[-2:] == [
        (2, "preempted", 200, "InCohortReclamation"),
        (3, "requeued", 204, "Preempted"),
    ]


def test_backing_off_is_not_yet_queued() -> None:
    drive = settled()
    put(drive, ADMITTED, seen_s=42)
    evicted = [condition("Evicted", "True", 100, "PodsReadyTimeout")]
    put(drive, [*ADMITTED, *evicted], seen_s=100)
    off = [condition("QuotaReserved", "False", 101, "Pending"), *evicted]
    put(drive, [*off, condition("Requeued", "False", 101, "PodsReadyTimeout")], seen_s=101)
    assert drive.transitions()[-1] == (1, "evicted", 100, "PodsReadyTimeout")
    put(drive, [*off, condition("Requeued", "True", 160, "BackoffFinished")], seen_s=160)
    assert drive.transitions()[-1] == (2, "requeued", 160, "BackoffFinished")


def test_deactivated_and_activated_again() -> None:
    drive = settled()
    put(drive, ADMITTED, seen_s=42)
    evicted = [condition("Evicted", "True", 100, "Deactivated")]
    off = [condition("QuotaReserved", "False", 102, "Pending"), *evicted]
    put(drive, [*off, condition("Requeued", "False", 102, "Deactivated")], seen_s=102)
    put(drive, [*off, condition("Requeued", "True", 300, "Reactivated")], seen_s=300)
    assert drive.transitions()[-2:] == [
        (1, "evicted", 100, "Deactivated"),
        (2, "requeued", 300, "Reactivated"),
    ]


def test_eviction_while_nobody_watched_is_said_to_be_so() -> None:
    drive = settled()
    put(drive, ADMITTED, seen_s=42)
    drive.change_unseen(KUEUE_WORKLOADS, kueue_workload(conditions=AGAIN))
    drive.restart(seen_s=500)
    assert drive.transitions()[-4:] == [
        (1, "evicted", 103, "Unobserved"),
        (2, "requeued", 103, "Preempted"),
        (2, "quota_reserved", 150, "QuotaReserved"),
        (2, "admitted", 150, "Admitted"),
    ]


@pytest.mark.parametrize(
    ("count", "attempt"),
    [
        pytest.param(0, 2, id="not counted: at least once"),
        pytest.param(1, 2, id="once"),
        pytest.param(4, 5, id="four times"),
    ],
)
def test_first_sight_of_a_workload_that_was_evicted_before(count: int, attempt: int) -> None:
    drive = settled()
    put(drive, AGAIN, seen_s=500, past_eviction_count=count)
    assert drive.transitions() == [
        (attempt, "requeued", 103, "Preempted"),
        (attempt, "quota_reserved", 150, "QuotaReserved"),
        (attempt, "admitted", 150, "Admitted"),
    ]


def test_drained_pod_of_an_admitted_job_is_replaced_without_kueue() -> None:
    drive = settled()
    put(drive, ADMITTED, seen_s=42)
    drive.put(PODS, pod("a", owner=OF_JOB, created_s=43, scheduled_s=44), seen_s=44)
    taken = pod(
        "a", owner=OF_JOB, created_s=43, scheduled_s=44, disrupted=(90, "EvictionByEvictionAPI")
    )
    drive.put(PODS, taken, seen_s=90)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=91, scheduled_s=95), seen_s=95)
    assert drive.transitions()[-3:] == [
        (1, "evicted", 90, "EvictionByEvictionAPI"),
        (2, "requeued", 91, "PodReplaced"),
        (2, "scheduled", 95, None),
    ]


def test_pod_seen_before_its_requeue_belongs_to_the_next_attempt() -> None:
    drive = settled()
    put(drive, ADMITTED, seen_s=42)
    drive.put(PODS, pod("a", owner=OF_JOB, created_s=43, scheduled_s=44), seen_s=44)
    put(drive, [*ADMITTED, *PREEMPTED], seen_s=100)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=151, scheduled_s=152), seen_s=152)
    put(drive, AGAIN, seen_s=153)
    told = [each for each in drive.transitions() if each[0] == 2]
    assert sorted(told, key=lambda each: (each[2], each[1])) == [
        (2, "requeued", 103, "Preempted"),
        (2, "admitted", 150, "Admitted"),
        (2, "quota_reserved", 150, "QuotaReserved"),
        (2, "scheduled", 152, None),
    ]


def test_queue_and_priority_are_kueues() -> None:
    drive = settled()
    drive.put(JOBS, job(labels=QUEUED))
    put(drive, ADMITTED, seen_s=42, pod_count=4, gpu_count=8)
    rows = drive.table("workload", "kind", "queue", "priority_class", "priority", "gpu_count")
    assert rows[-1] == ("Job", "research/team-a", "urgent", 100, 32)


def test_finished_workload() -> None:
    drive = settled()
    put(drive, [*ADMITTED, condition("Finished", "True", 90, "Succeeded")], seen_s=90)
    assert drive.transitions()[-1] == (1, "finished", 90, "Succeeded")


@pytest.mark.parametrize("reason", ["WorkloadSliceReplaced", "OutOfSync"])
def test_replaced_workload_object_does_not_end_the_job(reason: str) -> None:
    drive = settled()
    put(drive, [*ADMITTED, condition("Finished", "True", 90, reason)], seen_s=90)
    assert drive.transitions()[-1][1] == "admitted"


def test_group_of_plain_pods_is_one_workload_in_any_order() -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "gang", **QUEUED}
    owners = {
        "metadata": metadata("gang"),
        "spec": {"queueName": "team-a", "podSets": []},
        "status": {"conditions": ADMITTED},
    }
    owners["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"{name}-uid"}
        for name in ("a", "b")
    ]
    drive = settled()
    drive.put(PODS, pod("a", labels=labels, scheduled_s=43))
    drive.put(KUEUE_WORKLOADS, owners, seen_s=42)
    drive.put(PODS, pod("b", labels=labels, scheduled_s=44))
    uids = set(drive.table("workload_transition", "workload_uid", "attempt"))
    assert uids == {("pod-group/research/gang", 1)}


def test_suspended_and_resumed_job_waits_again() -> None:
    drive = settled()
    drive.put(JOBS, job())
    drive.put(PODS, pod("a", owner=OF_JOB, scheduled_s=1), seen_s=1)
    suspended = [condition("Suspended", "True", 50, "JobSuspended")]
    drive.put(JOBS, job(suspend=True, conditions=suspended), seen_s=50)
    drive.delete(PODS, "a-uid", seen_s=51)
    resumed = [condition("Suspended", "False", 90, "JobResumed")]
    drive.put(JOBS, job(conditions=resumed), seen_s=90)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=90, scheduled_s=95), seen_s=95)
    assert drive.transitions()[2:] == [
        (1, "suspended", 50, "JobSuspended"),
        (2, "requeued", 90, "Resumed"),
        (2, "resumed", 90, "Resumed"),
        (2, "scheduled", 95, None),
    ]


def test_job_created_suspended_has_not_begun() -> None:
    drive = settled()
    suspended = [condition("Suspended", "True", 0, "JobSuspended")]
    drive.put(JOBS, job(suspend=True, conditions=suspended))
    assert drive.transitions() == [(1, "created", 0, "Job")]


def test_each_run_of_a_schedule_is_an_attempt() -> None:
    drive = settled()
    drive.put(CRON_JOBS, {"metadata": metadata("nightly", created_s=-9_000)})
    nightly = owner_reference("CronJob", "nightly")
    for index, start in enumerate((0, 1_000), start=1):
        name = f"run-{index}"
        drive.put(JOBS, job(name, owner=nightly, created_s=start), seen_s=start)
        own = owner_reference("Job", name)
        drive.put(
            PODS,
            pod(f"p{index}", owner=own, created_s=start, scheduled_s=start + 5),
            seen_s=start + 5,
        )
        done = [condition("Complete", "True", start + 60, "CompletionsReached")]
        drive.put(
            JOBS, job(name, owner=nightly, created_s=start, conditions=done), seen_s=start + 60
        )
    assert drive.transitions() == [
        (1, "created", 0, "Job"),
        (1, "scheduled", 5, None),
        (1, "finished", 60, "CompletionsReached"),
        (2, "created", 1_000, "Job"),
        (2, "scheduled", 1_005, None),
        (2, "finished", 1_060, "CompletionsReached"),
    ]
    assert set(drive.table("workload_transition", "workload_uid")) == {("nightly-uid",)}


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        pytest.param(
            "workflows.argoproj.io",
            {
                "phase": "Failed",
                "finishedAt": stamp(90),
                "conditions": [{"type": "Completed", "status": "True"}],
            },
            (1, "finished", 90, "Failed"),
            id="Argo",
        ),
        pytest.param(
            "rayjobs.ray.io",
            {"jobStatus": "SUCCEEDED", "endTime": stamp(80)},
            (1, "finished", 80, "SUCCEEDED"),
            id="RayJob",
        ),
        pytest.param(
            "jobs.batch.volcano.sh",
            {"state": {"phase": "Aborted", "lastTransitionTime": stamp(70)}},
            (1, "finished", 70, "Aborted"),
            id="Volcano",
        ),
        pytest.param(
            "pytorchjobs.kubeflow.org",
            {"conditions": [condition("Succeeded", "True", 60, "PyTorchJobSucceeded")]},
            (1, "finished", 60, "PyTorchJobSucceeded"),
            id="Kubeflow",
        ),
        pytest.param(
            "jobsets.jobset.x-k8s.io",
            {"conditions": [condition("Failed", "True", 50, "FailedJobs")]},
            (1, "finished", 50, "FailedJobs"),
            id="JobSet",
        ),
        pytest.param(
            "rayjobs.ray.io", {"jobStatus": "RUNNING"}, (1, "created", 0, "RayJob"), id="running"
        ),
        pytest.param(
            "rayclusters.ray.io", {"state": "ready"}, None, id="a service does not end by itself"
        ),
    ],
)
def test_end_of_other_projects_jobs(
    kind: str, status: Body, expected: tuple[object, ...] | None
) -> None:
    drive = settled()
    resource = next(each for each in CUSTOM_MAKERS if each.name == kind)
    drive.put(resource, {"metadata": metadata("x"), "status": status}, seen_s=100)
    assert (drive.transitions() or [None])[-1] == expected


def test_volcano_lets_a_gang_in() -> None:
    drive = settled()
    drive.put(JOBS, job())
    gang = {
        "metadata": metadata("podgroup-train", owner=OF_JOB),
        "spec": {"minMember": 4, "queue": "research"},
        "status": {"phase": "Pending"},
    }
    drive.put(VOLCANO_POD_GROUPS, gang, seen_s=1)
    drive.put(VOLCANO_POD_GROUPS, {**gang, "status": {"phase": "Inqueue"}}, seen_s=30.5)
    drive.put(VOLCANO_POD_GROUPS, {**gang, "status": {"phase": "Running"}}, seen_s=40)
    assert drive.transitions() == [
        (1, "created", 0, "Job"),
        (1, "quota_reserved", 30, "Inqueue"),
    ]
