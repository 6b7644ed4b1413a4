"""The test cluster is real: the scheduler binds, Jobs end, what does not fit waits and says why."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest, Manifests
from tests.support.cluster_namespace import Namespace
from tests.support.cluster_objects import (
    deployment,
    gpu_node,
    job,
    pod,
    pod_template,
    priority_class,
)

pytestmark = pytest.mark.slow


def terminated(pod: Manifest) -> Manifest:
    """Return how the pod's container ended."""
    state: Manifest = pod["status"]["containerStatuses"][0]["state"]
    assert list(state) == ["terminated"]
    ended: Manifest = state["terminated"]
    return ended


def running_since(pod: Manifest) -> str:
    """Return since when the pod's container runs."""
    state = pod["status"]["containerStatuses"][0]["state"]
    assert list(state) == ["running"]
    since: str = state["running"]["startedAt"]
    return since


def test_a_job_of_three_whole_nodes_runs_and_ends_when_told(
    cluster: Cluster, namespace: Namespace
) -> None:
    for number in range(3):
        cluster.create_node(f"node-{number}")
    template = pod_template(gpu_count=8)
    namespace.apply(job("train", namespace=namespace.name, pod_count=3, template=template))
    running = namespace.wait_for_pods(3, phase="Running")
    assert {p["spec"]["nodeName"] for p in running} == {"node-0", "node-1", "node-2"}
    for one in running:
        namespace.finish_pod(one["metadata"]["name"])
    namespace.wait_until(
        lambda: namespace.get("batch/v1/Job", "train")["status"].get("succeeded") == 3,
        what="the Job to complete",
    )
    for one in namespace.pods("Succeeded"):
        assert terminated(one)["reason"] == "Completed"


def test_what_does_not_fit_stays_pending_with_the_schedulers_own_words(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node("only")
    template = pod_template(gpu_count=6)
    namespace.apply(
        deployment("wide", namespace=namespace.name, replica_count=2, template=template)
    )
    namespace.wait_for_pods(1, phase="Running")
    (waiting,) = namespace.wait_for_pods(1, phase="Pending", where=is_unschedulable)
    (condition,) = waiting["status"]["conditions"]
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu")
    event = event_about(namespace, waiting["metadata"]["name"], reason="FailedScheduling")
    assert event["note"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu")
    cluster.create_node("second")
    namespace.wait_for_pods(2, phase="Running")


def test_a_failing_pod_keeps_its_start_and_tells_its_exit_code(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.create_node("node")
    namespace.apply(pod("train", namespace=namespace.name))
    (running,) = namespace.wait_for_pods(1, phase="Running")
    namespace.finish_pod("train", exit_code=137, reason="OOMKilled")
    (failed,) = namespace.wait_for_pods(1, phase="Failed")
    ended = terminated(failed)
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert ended["startedAt"] == running_since(running)
    assert ended["finishedAt"] >= ended["startedAt"]


def test_a_held_pod_is_bound_and_starts_when_let_go(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    held = pod_template(annotations={"steward.test/hold": "image pull"})
    namespace.apply(pod("slow", namespace=namespace.name, template=held))
    (bound,) = namespace.wait_for_pods(1, phase="Pending", where=is_creating)
    assert bound["spec"]["nodeName"] == "node"
    namespace.annotate("slow", hold=None)
    namespace.wait_for_pods(1, phase="Running")


def test_delays_by_annotation_start_and_end_a_pod(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    delays = {"steward.test/start-after": "1s", "steward.test/finish-after": "1s"}
    template = pod_template(annotations=delays)
    namespace.apply(job("short", namespace=namespace.name, template=template))
    (done,) = namespace.wait_for_pods(1, phase="Succeeded")
    assert terminated(done)["startedAt"] > done["status"]["startTime"]
    assert terminated(done)["finishedAt"] > terminated(done)["startedAt"]


def test_containers_restart_in_place(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    template = pod_template(spec={"restartPolicy": "Always"})
    namespace.apply(pod("flaky", namespace=namespace.name, template=template))
    namespace.wait_for_pods(1, phase="Running")
    namespace.annotate("flaky", restarts="2")
    (flaky,) = namespace.wait_for_pods(
        1, phase="Running", where=lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 2
    )
    assert running_since(flaky)
    assert flaky["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


def test_a_deleted_pod_ends_before_it_goes(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    slow_end = pod_template(annotations={"steward.test/stop-after": "1s"})
    namespace.apply(pod("train", namespace=namespace.name, template=slow_end))
    (running,) = namespace.wait_for_pods(1, phase="Running")
    version = running["metadata"]["resourceVersion"]
    namespace.evict_pod("train")
    seen: Manifests = []
    with namespace.client.watch(
        "v1/Pod", namespace=namespace.name, resourceVersion=version, timeoutSeconds=20
    ) as events:
        for event in events:
            seen.append(event["object"])
            if event["type"] == "DELETED":
                break
    conditions = {c["type"]: c for c in seen[-1]["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"
    assert terminated(seen[-1])["exitCode"] == 143
    assert seen[0]["status"]["phase"] == "Running"


def test_an_urgent_pod_preempts_another(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("node")
    cluster.client.apply(priority_class("urgent", 1_000))
    namespace.apply(pod("victim", namespace=namespace.name, template=pod_template(gpu_count=8)))
    namespace.wait_for_pods(1, phase="Running")
    urgent = pod_template(gpu_count=8, spec={"priorityClassName": "urgent"})
    namespace.apply(pod("winner", namespace=namespace.name, template=urgent))
    (running,) = namespace.wait_for_pods(1, phase="Running", where=is_named("winner"))
    assert running["spec"]["priority"] == 1_000
    event = event_about(namespace, "victim", reason="Preempted")
    assert event["action"] == "Preempting"


def test_a_cordoned_and_a_tainted_node_take_no_pod(cluster: Cluster, namespace: Namespace) -> None:
    cluster.create_node("cordoned")
    cluster.client.patch("v1/Node", "cordoned", {"spec": {"unschedulable": True}})
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    cluster.add_node(gpu_node("tainted", taints=(taint,)))
    namespace.apply(pod("train", namespace=namespace.name))
    namespace.wait_for_pods(1, phase="Pending", where=is_unschedulable)
    cluster.client.patch("v1/Node", "cordoned", {"spec": {"unschedulable": None}})
    (running,) = namespace.wait_for_pods(1, phase="Running")
    assert running["spec"]["nodeName"] == "cordoned"


def is_unschedulable(pod: Manifest) -> bool:
    """Whether the scheduler tried and found no place."""
    conditions = pod["status"].get("conditions", [])
    return any(c.get("reason") == "Unschedulable" for c in conditions)


def is_creating(pod: Manifest) -> bool:
    """Whether the kubelet creates the pod's containers."""
    states = [c["state"] for c in pod["status"].get("containerStatuses", [])]
    return [list(state) for state in states] == [["waiting"]]


def is_named(name: str) -> Callable[[Manifest], bool]:
    """Return whether a pod has this name."""
    return lambda pod: pod["metadata"]["name"] == name


def event_about(namespace: Namespace, pod_name: str, *, reason: str) -> Manifest:
    """Return an event about a pod, once there is one."""
    found: Manifests = []

    def some() -> bool:
        events = namespace.list("events.k8s.io/v1/Event")
        found[:] = [
            event
            for event in events
            if event["reason"] == reason and event["regarding"]["name"] == pod_name
        ]
        return bool(found)

    namespace.wait_until(some, what=f"an event {reason} about {pod_name}")
    return found[0]
