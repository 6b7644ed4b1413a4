"""Against real components: each wait has the stated length, and there are as many as there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics import waits
from analytics.inputs import SCHEMAS
from steward.period import Period
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_kueue import QUEUE_LABEL, Kueue
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import job, pod_template
from tests.support.cluster_processes import wait_until
from tests.support.lifecycle_cluster import Follower

WAIT_S = 40
pytestmark = pytest.mark.slow


def attempts(follower: Follower, workload_uid: str) -> list[Mapping[str, object]]:
    """Return the attempts of a workload as analytics measures them."""
    transitions = _frame(follower, "workload_transition", "transition_history", workload_uid)
    workloads = _frame(follower, "workload", "workload_current", workload_uid).tail(1)
    now = datetime.now(UTC)
    period = Period(now - timedelta(days=1), now + timedelta(minutes=1))
    return waits.attempts(transitions, workloads, period).to_dicts()


def _frame(follower: Follower, table: str, query: str, workload_uid: str) -> pl.DataFrame:
    """Return rows as the named query returns them: its columns, whole repeats removed."""
    schema = SCHEMAS[query]
    found = follower.table(table, *schema, workload_uid=workload_uid)
    return pl.DataFrame(found, schema=schema, orient="row").unique(maintain_order=True)


def uid(manifest: Manifest) -> str:
    """Return an object's identity."""
    found: str = manifest["metadata"]["uid"]
    return found


def instant(text: str) -> datetime:
    """Return the instant that the API server wrote."""
    return datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class Story:
    """A Job that waits forty seconds for quota, is preempted, and waits again; with its times."""

    kueue: Kueue
    own: Namespace
    follower: Follower
    at: dict[str, datetime] = field(default_factory=dict)

    def tell(self) -> str:
        """Let it happen, the collector restarted in between; return the Job's uid."""
        with self.follower.following():
            self.submit("first", "low")
            (running,) = self.own.wait_for_pods(1, phase="Running")
            second = self.submit("second", "low")
            self.note(second, 1, "created")
            due = self.at["1 created"] + timedelta(seconds=WAIT_S)
            wait_until(lambda: datetime.now(UTC) >= due, what="the wait", patience_s=WAIT_S + 5)
            self.own.finish_pod(running["metadata"]["name"])
            self.note(second, 1, "quota_reserved", "started")
            third = self.submit("third", "high")
            self.note(second, 1, "preempted")
            self.note(second, 2, "requeued")
            self.follower.wait_for_transition(third, 1, "started")
        with self.follower.following():
            self.finish_the_running_one()
            self.note(second, 2, "quota_reserved", "started")
            self.finish_the_running_one()
            self.note(second, 2, "finished")
        return second

    def set_up(self) -> None:
        """Create a node, a queue of eight GPUs in which rank counts, and two ranks."""
        kueue, name = self.kueue, self.own.name
        kueue.cluster.create_node(f"{name}-node")
        kueue.add_flavor()
        preemption = {"preemption": {"withinClusterQueue": "LowerPriority"}}
        kueue.add_cluster_queue(f"{name}-eight", gpu_count=8, spec=preemption)
        kueue.add_local_queue("team", namespace=name, cluster_queue=f"{name}-eight")
        for rank, value in (("low", 1), ("high", 100)):
            priority_class = {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "WorkloadPriorityClass",
                "metadata": {"name": f"{name}-{rank}"},
                "value": value,
            }
            kueue.cluster.client.apply(priority_class)

    def submit(self, name: str, rank: str) -> str:
        """Create a Job that fills the queue; return its uid."""
        priority = {"kueue.x-k8s.io/priority-class": f"{self.own.name}-{rank}"}
        manifest = job(
            name,
            namespace=self.own.name,
            template=pod_template(gpu_count=8),
            labels={QUEUE_LABEL: "team", **priority},
        )
        return uid(self.own.apply(manifest))

    def finish_the_running_one(self) -> None:
        """End the one pod that runs."""
        (running,) = self.own.wait_for_pods(1, phase="Running")
        self.own.finish_pod(running["metadata"]["name"])

    def note(self, workload_uid: str, attempt: int, *transitions: str) -> None:
        """Keep when these were said to happen."""
        for transition in transitions:
            moment = self.follower.wait_for_transition(workload_uid, attempt, transition)
            self.at[f"{attempt} {transition}"] = moment


def test_wait_for_quota_run_preemption_and_second_wait(
    kueue: Kueue, kueue_namespace: Namespace
) -> None:
    follower = Follower(kueue.cluster.kubeconfig)
    story = Story(kueue, kueue_namespace, follower)
    story.set_up()
    second = story.tell()
    at = story.at
    lives = {1: "preempted", 2: "finished"}
    common = ("quota_reserved", "admitted", "scheduled", "started", "ready")
    passed = [(attempt, each) for attempt in lives for each in common]
    assert Counter(follower.transitions(second)) == Counter(
        [(1, "created"), (2, "requeued"), *passed, *lives.items()]
    )
    waited_s = (at["1 quota_reserved"] - at["1 created"]).total_seconds()
    assert WAIT_S <= waited_s <= WAIT_S + 5
    assert list(at.values()) == sorted(at.values())
    first_wait, second_wait = attempts(follower, second)
    assert first_wait["created_at"] == at["1 created"]
    assert first_wait["ended_at"] == at["1 preempted"]
    assert waited_s <= float(str(first_wait["wait_s"])) <= waited_s + 3
    assert (second_wait["created_at"], second_wait["is_scheduled"]) == (at["2 requeued"], True)
    ended = kueue_namespace.get("batch/v1/Job", "second")["status"]["completionTime"]
    assert second_wait["ended_at"] == instant(ended)
    assert {"WaitingForQuota", "Pending"} & {
        reason
        for (reason,) in follower.table(
            "condition_change", "reason", condition="QuotaReserved", status="False"
        )
    }


def test_gpu_hours_are_those_between_binding_and_end(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node(f"{namespace.name}-node", gpu_count=8)
    follower = Follower(cluster.kubeconfig)
    with follower.following():
        template = pod_template(gpu_count=4, annotations={"steward.test/finish-after": "3s"})
        manifest = job("short", namespace=namespace.name, pod_count=2, template=template)
        short = uid(namespace.apply(manifest))
        follower.wait_for_transition(short, 1, "finished")
    (only,) = attempts(follower, short)
    bound_at = follower.wait_for_transition(short, 1, "scheduled")

    def status() -> Manifest:
        found: Manifest = namespace.get("batch/v1/Job", "short")["status"]
        return found

    # Its pods' ends are told by the pods; the Job's own status comes a moment later.
    namespace.wait_until(lambda: "completionTime" in status(), what="the Job's completion")
    ended = instant(status()["completionTime"])
    held_hours = (ended - bound_at).total_seconds() / 3_600
    assert only["gpu_hours"] == pytest.approx(8 * held_hours)


def test_pod_waits_is_bound_runs_is_evicted_and_retried(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node(f"{namespace.name}-small", gpu_count=1)
    follower = Follower(cluster.kubeconfig)
    with follower.following():
        template = pod_template(gpu_count=1)
        namespace.apply(job("holder", namespace=namespace.name, template=template))
        (holder,) = namespace.wait_for_pods(1, phase="Running")
        spec = {"backoffLimit": 3}
        waiting = uid(
            namespace.apply(job("train", namespace=namespace.name, template=template, spec=spec))
        )
        created_at = follower.wait_for_transition(waiting, 1, "created")
        due = created_at + timedelta(seconds=3)
        wait_until(lambda: datetime.now(UTC) >= due, what="three seconds")
        namespace.finish_pod(holder["metadata"]["name"])
        bound_at = follower.wait_for_transition(waiting, 1, "scheduled")
        follower.wait_for_transition(waiting, 1, "ready")
        (running,) = namespace.wait_for_pods(1, phase="Running")
        namespace.evict_pod(running["metadata"]["name"])
        evicted_at = follower.wait_for_transition(waiting, 1, "evicted")
    with follower.following():
        requeued_at = follower.wait_for_transition(waiting, 2, "requeued")
        follower.wait_for_transition(waiting, 2, "started")
        retried = namespace.wait_for_pods(1, phase="Running")
        namespace.finish_pod(retried[0]["metadata"]["name"])
        follower.wait_for_transition(waiting, 2, "finished")

    assert sorted(follower.transitions(waiting)) == sorted(
        [
            *((1, each) for each in ("created", "scheduled", "started", "ready", "evicted")),
            *((2, each) for each in ("requeued", "scheduled", "started", "ready", "finished")),
        ]
    )
    first, second = attempts(follower, waiting)
    assert first["wait_s"] == (bound_at - created_at).total_seconds() >= 3
    assert (first["ended_at"], second["created_at"]) == (evicted_at, requeued_at)
    assert second["is_scheduled"]
    assert follower.table(
        "kubernetes_event", "reason", reason="FailedScheduling", namespace=namespace.name
    )
