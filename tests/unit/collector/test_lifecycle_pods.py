"""The life of pods: conditions, rows, transitions, ends."""

from __future__ import annotations

import pytest

from collector.sources.kubernetes.resources import EVENTS, JOBS, NODES, PODS
from tests.support.kubernetes_objects import (
    Body,
    at,
    condition,
    job,
    node,
    owner_reference,
    pod,
    stamp,
)
from tests.support.lifecycle_drive import Drive, settled

OF_JOB = owner_reference("Job", "train")


def test_life_of_a_bare_pod() -> None:
    drive = settled()
    drive.put(PODS, pod("p"), seen_s=1)
    drive.put(PODS, pod("p", scheduled_s=5), seen_s=5)
    drive.put(PODS, pod("p", scheduled_s=5, started_s=7, ready_s=8), seen_s=8)
    drive.put(PODS, pod("p", scheduled_s=5, started_s=7, ready_s=60, finished_s=60), seen_s=60)
    assert drive.transitions() == [
        (1, "created", 0, "Pod"),
        (1, "scheduled", 5, None),
        (1, "started", 7, None),
        (1, "ready", 8, None),
        (1, "finished", 60, "Completed"),
    ]
    assert [(end.pod, end.finished_at) for end in drive.ends] == [("p", at(60))]


def test_transition_knows_its_pod_and_both_times() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=5), seen_s=9)
    rows = drive.table(
        "workload_transition", "workload_uid", "pod_uid", "occurred_at", "observed_at", "source"
    )
    assert rows == [
        ("p-uid", None, at(0), at(9), "kubernetes"),
        ("p-uid", "p-uid", at(5), at(9), "kubernetes"),
    ]


def test_each_change_of_a_condition_is_one_row() -> None:
    drive = settled()
    drive.put(PODS, pod("p"), seen_s=1)
    drive.put(PODS, pod("p", scheduled_s=5), seen_s=6)
    drive.put(PODS, pod("p", scheduled_s=5, started_s=6), seen_s=7)
    rows = drive.table("condition_change", "condition", "status", "reason", "occurred_at")
    assert rows == [
        ("PodScheduled", "False", "Unschedulable", at(0)),
        ("PodScheduled", "True", None, at(5)),
    ]


def test_new_words_of_an_old_condition_have_the_time_of_observation() -> None:
    drive = settled()
    drive.put(PODS, pod("p", conditions=[condition("X", "False", 0, "A", "one")]), seen_s=1)
    drive.put(PODS, pod("p", conditions=[condition("X", "False", 0, "A", "two")]), seen_s=7)
    rows = drive.table("condition_change", "condition", "message", "occurred_at")
    assert rows[-2:] == [("X", "one", at(0)), ("X", "two", at(7))]


def test_condition_that_is_taken_away_is_told() -> None:
    drive = settled()
    drive.put(PODS, pod("p", conditions=[condition("X", "True", 3)]), seen_s=4)
    drive.put(PODS, pod("p"), seen_s=9)
    rows = drive.table("condition_change", "condition", "status", "occurred_at")
    assert rows[-1] == ("X", "Removed", at(9))


def test_pod_row_only_when_something_changed() -> None:
    drive = settled()
    drive.put(PODS, pod("p"), seen_s=1)
    drive.put(PODS, pod("p"), seen_s=2)
    drive.put(PODS, pod("p", scheduled_s=3), seen_s=3)
    drive.delete(PODS, "p-uid", seen_s=4)
    rows = drive.table("pod", "phase", "node", "scheduled_at", "deleted_at", "reason")
    assert rows == [
        ("Pending", None, None, None, None),
        ("Pending", "gpu-0", at(3), None, None),
        ("Pending", "gpu-0", at(3), at(4), "PodDeleted"),
    ]


@pytest.mark.parametrize(
    ("gpu_count", "resource"),
    [pytest.param(0, None, id="none asked for"), pytest.param(2, "nvidia.com/gpu", id="two")],
)
def test_pod_row_counts_gpus(gpu_count: int, resource: str | None) -> None:
    drive = settled()
    drive.put(PODS, pod("p", gpu_count=gpu_count))
    assert drive.table("pod", "gpu_count", "gpu_resource") == [(gpu_count, resource)]


def test_restart_in_place_keeps_the_first_start() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=1, started_s=2), seen_s=2)
    again = pod("p", scheduled_s=1, started_s=50)
    again["status"]["containerStatuses"][0]["restartCount"] = 3
    drive.put(PODS, again, seen_s=51)
    assert drive.table("pod", "started_at", "restart_count") == [(at(2), 0), (at(2), 3)]


def test_pod_without_containers_has_no_restart_count() -> None:
    drive = settled()
    drive.put(PODS, pod("p"))
    assert drive.table("pod", "restart_count") == [(None,)]


def test_replaced_pod_of_a_job_is_a_second_attempt() -> None:
    drive = settled()
    drive.put(JOBS, job())
    drive.put(PODS, pod("a", owner=OF_JOB, scheduled_s=1, started_s=2), seen_s=2)
    failed = pod("a", owner=OF_JOB, scheduled_s=1, started_s=2, finished_s=30, exit_code=1)
    drive.put(PODS, failed, seen_s=30)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=40), seen_s=40)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=40, scheduled_s=70), seen_s=70)
    assert drive.transitions()[3:] == [
        (1, "finished", 30, "Error"),
        (2, "requeued", 40, "PodReplaced"),
        (2, "scheduled", 70, None),
    ]


def test_failed_job_ends_once() -> None:
    drive = settled()
    drive.put(JOBS, job())
    failed = pod("a", owner=OF_JOB, scheduled_s=1, started_s=2, finished_s=30, exit_code=1)
    drive.put(PODS, failed, seen_s=30)
    drive.put(JOBS, job(conditions=[condition("Failed", "True", 31, "BackoffLimitExceeded")]))
    drive.put(JOBS, job(conditions=[condition("Failed", "True", 31, "BackoffLimitExceeded")]))
    assert drive.transitions()[3:] == [(1, "finished", 31, "BackoffLimitExceeded")]


@pytest.mark.parametrize(
    ("reason", "transition"),
    [
        pytest.param("EvictionByEvictionAPI", "evicted", id="drained"),
        pytest.param("DeletionByTaintManager", "evicted", id="node unreachable"),
        pytest.param("PreemptionByScheduler", "preempted", id="preempted"),
    ],
)
def test_pod_taken_away_and_replaced_waits_twice(reason: str, transition: str) -> None:
    drive = settled()
    drive.put(JOBS, job())
    drive.put(PODS, pod("a", owner=OF_JOB, scheduled_s=10, started_s=11), seen_s=11)
    taken = pod("a", owner=OF_JOB, scheduled_s=10, started_s=11, disrupted=(100, reason))
    drive.put(PODS, taken, seen_s=100)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=100), seen_s=100)
    drive.delete(PODS, "a-uid", seen_s=101)
    drive.put(PODS, pod("b", owner=OF_JOB, created_s=100, scheduled_s=160), seen_s=160)
    assert drive.transitions() == [
        (1, "created", 0, "Job"),
        (1, "scheduled", 10, None),
        (1, "started", 11, None),
        (1, transition, 100, reason),
        (2, "requeued", 100, "PodReplaced"),
        (2, "scheduled", 160, None),
    ]


def test_gang_taken_away_together_waits_once_more() -> None:
    drive = settled()
    drive.put(JOBS, job(pod_count=3))
    for name in ("a", "b", "c"):
        drive.put(PODS, pod(name, owner=OF_JOB, scheduled_s=1), seen_s=1)
    for name in ("a", "b", "c"):
        taken = pod(name, owner=OF_JOB, scheduled_s=1, disrupted=(50, "DeletionByTaintManager"))
        drive.put(PODS, taken, seen_s=50)
    for name in ("d", "e", "f"):
        drive.put(PODS, pod(name, owner=OF_JOB, created_s=51, scheduled_s=60), seen_s=60)
    told = drive.transitions()
    assert [each for each in told if each[1] in {"evicted", "requeued"}] == [
        (1, "evicted", 50, "DeletionByTaintManager"),
        (2, "requeued", 51, "PodReplaced"),
    ]
    assert [each[0] for each in told if each[1] == "scheduled"] == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("created_s", "is_told"),
    [
        pytest.param(59, True, id="just inside"),
        pytest.param(60, True, id="exactly at"),
        pytest.param(61, False, id="just past"),
    ],
)
def test_pod_added_to_a_running_workload_is_no_wait_of_it(created_s: float, is_told: bool) -> None:
    drive = settled()
    drive.put(PODS, pod("a", owner=owner_reference("Deployment", "web"), scheduled_s=1))
    added = pod(
        "b",
        owner=owner_reference("Deployment", "web"),
        created_s=created_s,
        scheduled_s=created_s + 1,
    )
    drive.put(PODS, added, seen_s=created_s + 1)
    assert [each[2] for each in drive.transitions() if each[1] == "scheduled"] == (
        [1, created_s + 1] if is_told else [1]
    )


def test_service_scaled_to_nothing_and_back_waits_again() -> None:
    drive = settled()
    web = owner_reference("Deployment", "web")
    drive.put(PODS, pod("a", owner=web, scheduled_s=1, started_s=2), seen_s=2)
    drive.delete(PODS, "a-uid", seen_s=500)
    drive.put(PODS, pod("b", owner=web, created_s=9_000, scheduled_s=9_005), seen_s=9_005)
    assert drive.transitions()[3:] == [
        (1, "finished", 500, "PodDeleted"),
        (2, "requeued", 9_000, "PodReplaced"),
        (2, "scheduled", 9_005, None),
    ]


def test_deleted_pod_ends_when_its_deletion_was_due() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=1, started_s=2), seen_s=2)
    drive.put(PODS, pod("p", scheduled_s=1, started_s=2, deleted_s=60), seen_s=30)
    drive.delete(PODS, "p-uid", seen_s=45.7)
    assert drive.ends[0].finished_at == at(45)
    assert drive.transitions()[-1] == (1, "finished", 45, "PodDeleted")


def test_evicted_bare_pod_ends_twice_over_but_waits_once() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=1, disrupted=(9, "EvictionByEvictionAPI")), seen_s=9)
    drive.delete(PODS, "p-uid", seen_s=12)
    assert drive.transitions()[2:] == [
        (1, "evicted", 9, "EvictionByEvictionAPI"),
        (1, "finished", 12, "PodDeleted"),
    ]


def test_pod_evicted_by_a_node_under_pressure() -> None:
    drive = settled()
    evicted = pod("p", scheduled_s=1, started_s=2, finished_s=40, exit_code=137, reason="Evicted")
    drive.put(PODS, evicted, seen_s=41)
    assert drive.transitions()[3:] == [
        (1, "evicted", 40, "Evicted"),
        (1, "finished", 40, "Evicted"),
    ]


def test_pods_are_forgotten_when_they_are_gone() -> None:
    drive = settled()
    drive.put(PODS, pod("p", scheduled_s=1))
    drive.delete(PODS, "p-uid", seen_s=5)
    assert drive.memory == {}


def test_owner_is_known_by_name() -> None:
    drive = settled()
    drive.put(PODS, pod("p", labels={"team": "vision"}, spec={"priority": 7}))
    owner = drive.lifecycle.owner_of("research", "p")
    assert owner is not None
    assert (owner.pod_uid, owner.tenant_id, owner.level, owner.priority) == (
        "p-uid",
        "vision",
        "pod",
        7,
    )


@pytest.mark.parametrize(
    ("namespace", "name"),
    [
        pytest.param("research", "q", id="no such pod"),
        pytest.param("other", "p", id="no such namespace"),
        pytest.param(None, "p", id="namespace not said"),
    ],
)
def test_owner_of_a_pod_that_is_not_known(namespace: str | None, name: str) -> None:
    drive = settled()
    drive.put(PODS, pod("p"))
    assert drive.lifecycle.owner_of(namespace, name) is None


def test_new_pod_of_an_old_name_is_another_pod() -> None:
    drive = settled()
    drive.put(PODS, pod("db-0", uid="one"))
    drive.delete(PODS, "one", seen_s=5)
    drive.put(PODS, pod("db-0", uid="two", created_s=6))
    owner = drive.lifecycle.owner_of("research", "db-0")
    assert owner is not None
    assert owner.pod_uid == "two"


def test_lists_are_held_until_all_required_ones_are_complete() -> None:
    drive = Drive()
    drive.put(PODS, pod("p"))
    drive.sync([PODS, NODES])
    assert not drive.lifecycle.is_settled
    assert drive.rows == []
    drive.sync()
    assert drive.lifecycle.is_settled
    assert drive.transitions() == [(1, "created", 0, "Pod")]


@pytest.mark.parametrize(
    ("later_s", "is_told"),
    [
        pytest.param(29, False, id="just inside"),
        pytest.param(30, True, id="exactly at"),
        pytest.param(31, True, id="just past"),
    ],
)
def test_list_that_stays_out_is_waited_for_so_long(later_s: float, is_told: bool) -> None:
    drive = Drive()
    drive.put(PODS, pod("p"))
    drive.sync([PODS])
    drive.advance(later_s)
    assert drive.lifecycle.is_settled is is_told


def test_rows_fit_their_tables() -> None:
    drive = settled()
    drive.put(NODES, node())
    drive.put(JOBS, job())
    drive.put(PODS, pod("a", owner=OF_JOB, scheduled_s=1, started_s=2))
    drive.put(
        EVENTS,
        {
            "metadata": {"name": "e", "uid": "e", "namespace": "research"},
            "reason": "FailedScheduling",
            "involvedObject": {"kind": "Pod", "name": "a"},
        },
    )
    drive.delete(PODS, "a-uid", seen_s=9)
    drive.delete(NODES, "gpu-0-uid", seen_s=9)
    from collector.lifecycle import Output

    tables = dict(Output(rows=tuple(drive.rows)).tables())
    assert {name: table.num_rows > 0 for name, table in tables.items()} == dict.fromkeys(
        (
            "node",
            "workload_transition",
            "workload",
            "condition_change",
            "pod",
            "kubernetes_event",
        ),
        True,
    )


@pytest.mark.parametrize(
    ("conditions", "deleted_s", "expected_s"),
    [
        pytest.param([condition("DisruptionTarget", "True", 7, "X")], None, 7, id="taken away"),
        pytest.param([condition("Ready", "False", 8)], None, 8, id="not ready since"),
        pytest.param([], None, 0, id="not bound since"),
    ],
)
def test_end_of_a_pod_whose_containers_never_ran(
    conditions: list[Body], deleted_s: float | None, expected_s: float
) -> None:
    drive = settled()
    body = pod("p", conditions=conditions, deleted_s=deleted_s, reason="NodeAffinity")
    drive.put(PODS, body, seen_s=50)
    assert [end.finished_at for end in drive.ends] == [at(expected_s)]


def test_failed_pod_of_which_nothing_is_known_is_not_over() -> None:
    drive = settled()
    body = pod("p", reason="NodeAffinity")
    body["status"]["conditions"] = []
    drive.put(PODS, body, seen_s=50)
    assert drive.ends == []
    drive.delete(PODS, "p-uid", seen_s=60)
    assert [end.finished_at for end in drive.ends] == [at(60)]


def test_reason_and_message_are_those_of_the_container_that_failed() -> None:
    drive = settled()
    body = pod("p", scheduled_s=1, started_s=2, finished_s=9, exit_code=137)
    ended = body["status"]["containerStatuses"]
    killed = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": stamp(9)}
    fine = {"exitCode": 0, "reason": "Completed", "finishedAt": stamp(12)}
    ended[0]["state"] = {"terminated": killed}
    ended.insert(0, {"name": "side", "restartCount": 0, "state": {"terminated": fine}})
    drive.put(PODS, body, seen_s=12)
    rows = drive.table("workload_transition", "transition", "occurred_at", "reason", "message")
    assert rows[-1] == ("finished", at(12), "OOMKilled", "exit code 137")


def test_waiting_container_says_why() -> None:
    drive = settled()
    body = pod("p", scheduled_s=1)
    waiting = {"name": "main", "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}}
    body["status"]["containerStatuses"] = [waiting]
    drive.put(PODS, body)
    assert drive.table("pod", "reason", "restart_count") == [("ErrImagePull", 0)]


def test_bound_pod_without_conditions_was_bound_when_the_kubelet_took_it() -> None:
    drive = settled()
    body = pod("static", node="n1")
    body["status"] = {"phase": "Running", "startTime": stamp(4)}
    drive.put(PODS, body)
    assert drive.table("pod", "scheduled_at", "node") == [(at(4), "n1")]
