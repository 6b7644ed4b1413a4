"""What happened while nobody watched: closed, and told with what is known of its time."""

from __future__ import annotations

import pytest

from collector.sources.kubernetes.resources import (
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCES,
)
from tests.support.kubernetes_objects import (
    at,
    condition,
    job,
    metadata,
    node,
    owner_reference,
    pod,
)
from tests.support.lifecycle_drive import Drive, settled

DAY_S = 86_400
OF_JOB = owner_reference("Job", "train")
OF_WEB = owner_reference("Deployment", "web")
VANISHED = "vanished_unobserved"


def test_vanished_pod_ended_when_its_successor_was_created() -> None:
    drive = settled()
    drive.put(DEPLOYMENTS, {"metadata": metadata("web")})
    drive.put(PODS, pod("a", owner=OF_WEB, scheduled_s=1, started_s=2), seen_s=2)
    drive.delete_unseen(PODS, "a-uid")
    drive.change_unseen(PODS, pod("b", owner=OF_WEB, created_s=500, scheduled_s=510))
    drive.restart(seen_s=900)
    assert drive.transitions()[3:] == [
        (1, "finished", 500, VANISHED),
        (2, "requeued", 500, "PodReplaced"),
        (2, "scheduled", 510, None),
    ]
    assert [(end.pod, end.finished_at) for end in drive.ends] == [("a", at(500))]
    gone = drive.table("pod", "pod", "phase", "reason", "finished_at", "deleted_at")[-2]
    assert gone == ("a", "Unknown", VANISHED, at(500), at(900))


def test_vanished_pod_without_a_successor_ended_when_that_was_noticed() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=1, started_s=2), seen_s=2)
    drive.delete_unseen(PODS, "p-uid")
    drive.restart(seen_s=900.4)
    assert drive.transitions()[-1] == (1, "finished", 900, VANISHED)
    assert drive.memory == {}


def test_pod_that_had_ended_before_it_vanished_ends_once() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=1, started_s=2, finished_s=60), seen_s=60)
    drive.delete_unseen(PODS, "p-uid")
    drive.restart(seen_s=900)
    assert [each for each in drive.transitions() if each[1] == "finished"] == [
        (1, "finished", 60, "Completed")
    ]
    assert len(drive.ends) == 1


def test_pod_that_ended_while_nobody_watched_has_the_servers_time() -> None:
    drive = settled()
    drive.put(JOBS, job())
    drive.put(PODS, pod("a", owner=OF_JOB, scheduled_s=1, started_s=2), seen_s=2)
    done = [condition("Complete", "True", 61, "CompletionsReached")]
    drive.change_unseen(JOBS, job(conditions=done))
    drive.change_unseen(PODS, pod("a", owner=OF_JOB, scheduled_s=1, started_s=2, finished_s=60))
    drive.restart(seen_s=900)
    assert drive.ends[-1].finished_at == at(60)
    assert drive.transitions()[-1] == (1, "finished", 61, "CompletionsReached")


def test_retry_while_nobody_watched_is_a_second_attempt() -> None:
    drive = settled()
    drive.put(JOBS, job())
    drive.put(PODS, pod("a", owner=OF_JOB, scheduled_s=1, started_s=2), seen_s=2)
    failed = pod("a", owner=OF_JOB, scheduled_s=1, started_s=2, finished_s=30, exit_code=1)
    drive.change_unseen(PODS, failed)
    drive.change_unseen(PODS, pod("b", owner=OF_JOB, created_s=40, scheduled_s=45))
    drive.restart(seen_s=900)
    assert drive.transitions()[3:] == [
        (1, "finished", 30, "Error"),
        (2, "requeued", 40, "PodReplaced"),
        (2, "scheduled", 45, None),
    ]


@pytest.mark.parametrize(
    ("is_seen", "reason", "ended_s"),
    [
        pytest.param(True, "Deleted", 50, id="watched"),
        pytest.param(False, VANISHED, 900, id="not watched"),
    ],
)
def test_workload_that_is_deleted_is_over(is_seen: bool, reason: str, ended_s: float) -> None:
    drive = settled()
    drive.put(DEPLOYMENTS, {"metadata": metadata("web")})
    drive.put(PODS, pod("a", owner=OF_WEB, scheduled_s=1), seen_s=2)
    if is_seen:
        drive.delete(DEPLOYMENTS, "web-uid", seen_s=50)
        drive.delete(PODS, "a-uid", seen_s=51)
    else:
        drive.delete_unseen(DEPLOYMENTS, "web-uid")
    drive.restart(seen_s=900)
    assert (1, "finished", ended_s, reason) in drive.transitions()
    assert [each[1] for each in drive.transitions()].count("finished") == 1


def test_everything_else_that_vanished_is_closed() -> None:
    drive = settled()
    drive.put(NODES, node())
    drive.put(PRIORITY_CLASSES, {"metadata": metadata("high", namespace=None), "value": 5})
    event = {"metadata": metadata("e"), "reason": "FailedScheduling"}
    drive.put(EVENTS, event)
    for resource, uid in ((NODES, "gpu-0-uid"), (PRIORITY_CLASSES, "high-uid"), (EVENTS, "e-uid")):
        drive.delete_unseen(resource, uid)
    drive.restart(seen_s=900)
    assert drive.table("node", "gpu_count")[-1] == (0,)
    assert drive.table("priority_class", "is_present")[-1] == (False,)
    assert drive.memory == {}


def test_kind_that_is_not_listed_yet_has_not_vanished() -> None:
    drive = settled()
    drive.put(NODES, node())
    drive.restart(seen_s=900, resources=[each for each in RESOURCES if each is not NODES])
    drive.advance(931)
    assert drive.table("node", "gpu_count") == [(8,)]
    drive.sync([NODES], seen_s=940)
    assert drive.table("node", "gpu_count") == [(8,), (0,)]


@pytest.mark.parametrize(
    ("later_s", "is_known"),
    [
        pytest.param(7 * DAY_S - 1, True, id="just inside"),
        pytest.param(7 * DAY_S, False, id="exactly at"),
        pytest.param(7 * DAY_S + 1, False, id="just past"),
    ],
)
def test_run_of_an_unknown_kind_is_remembered_for_a_week(later_s: float, is_known: bool) -> None:
    drive = settled()
    drive.put(PODS, pod("a", owner=owner_reference("Trial", "t"), scheduled_s=1))
    drive.delete(PODS, "a-uid", seen_s=0)
    drive.restart(seen_s=later_s)
    assert ("run/t-uid" in drive.memory) is is_known


def test_history_of_a_cluster_that_is_seen_for_the_first_time() -> None:
    drive = Drive()
    done = [condition("Complete", "True", 201, "CompletionsReached")]
    drive.put(JOBS, job(conditions=done))
    second = pod("b", owner=OF_JOB, created_s=40, scheduled_s=45, started_s=46, finished_s=200)
    first = pod("a", owner=OF_JOB, scheduled_s=1, started_s=2, finished_s=30, exit_code=1)
    drive.put(PODS, second)
    drive.put(PODS, first)
    drive.sync(seen_s=5_000)
    assert drive.transitions() == [
        (1, "created", 0, "Job"),
        (1, "scheduled", 1, None),
        (1, "started", 2, None),
        (1, "finished", 30, "Error"),
        (2, "requeued", 40, "PodReplaced"),
        (2, "scheduled", 45, None),
        (2, "started", 46, None),
        (2, "finished", 201, "CompletionsReached"),
    ]
