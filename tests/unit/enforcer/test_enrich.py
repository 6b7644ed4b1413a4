"""What live objects say of workloads for which a step is due."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enforcer.decisions import Step
from enforcer.enrich import UNREAD, enriched, surroundings
from enforcer.facts import Disruption, Manager, PodFact, Workload
from enforcer.gateway.memory import Call, MemoryGateway
from steward.errors import ClusterError
from tests.support.enforcer_objects import SPACE, Json, deployment, pod, queue_entry, scaler, thing
from tests.support.enforcer_plan import due, holder, snapshot

OWN: Json = {"batch.kubernetes.io/controller-uid": "uid-Job-one"}
QUEUED: Json = {"labels": {"kueue.x-k8s.io/queue-name": "gpus"}}


def a_job(**changes: object) -> Workload:
    """Return the workload of the Job ``one`` as the warehouse knows it."""
    told = {"name": "one", "namespace": SPACE, "object_uid": "uid-Job-one", "pods": ()}
    return replace(holder("w"), **{**told, "resource_version": UNREAD, **changes})  # type: ignore[arg-type]  # as given


def fact(name: str = "pod", **changes: object) -> PodFact:
    """Return a running pod of two GPUs."""
    found = PodFact(
        uid=f"uid-{name}",
        name=name,
        node=None,
        phase="Running",
        gpu_count=2,
        labels={},
        has_controller=False,
    )
    return replace(found, **changes)  # type: ignore[arg-type]  # as given


def seen(workload: Workload, gateway: MemoryGateway, step: Step | None = Step.SUSPEND) -> Workload:
    """Return a workload after a look at the cluster."""
    (found,) = enriched(snapshot(workload), [due(workload, step)], gateway).workloads
    return found


def test_what_is_due_is_read() -> None:
    gateway = MemoryGateway(
        [
            thing("Job", metadata={**QUEUED, "annotations": {"a": "b"}}),
            pod(labels=OWN),
            pod("ended", labels=OWN, phase="Succeeded"),
            pod("other"),
            queue_entry(thing("Job")),
        ]
    )
    workload = a_job(labels={"team": "x"})
    found = seen(workload, gateway)
    assert found == replace(
        workload,
        resource_version=found.resource_version,
        labels={"team": "x", "kueue.x-k8s.io/queue-name": "gpus"},
        annotations={"a": "b"},
        managers=frozenset({Manager.KUEUE}),
        pods=(fact(labels=OWN),),
    )
    assert found.resource_version != UNREAD


@pytest.mark.parametrize("step", [None, Step.FINDING, Step.NOTIFY])
def test_what_is_only_told_is_not_read(step: Step | None) -> None:
    gateway = MemoryGateway([thing("Job")])
    workload = a_job()
    assert seen(workload, gateway, step) == workload
    assert gateway.call_count == 0


@pytest.mark.parametrize("step", [Step.LOWER_PRIORITY, Step.SUSPEND, Step.EVICT])
def test_what_is_written_is_read(step: Step) -> None:
    assert seen(a_job(), MemoryGateway([thing("Job")]), step).resource_version != UNREAD


@pytest.mark.parametrize("uid", ["uid-Job-one", "an-earlier-one"])
def test_what_is_gone_or_replaced_is_unread(uid: str) -> None:
    objects = [] if uid == "uid-Job-one" else [thing("Job")]
    assert seen(a_job(object_uid=uid), MemoryGateway(objects)).resource_version == UNREAD


def test_what_cannot_be_read_is_unread_and_the_others_go_on() -> None:
    def break_one(call: Call) -> None:
        if call.name == "list" and not call.is_done:
            calls.append(call)
            if len(calls) == 1:
                raise ClusterError("no answer", hint="wait")

    calls: list[Call] = []
    gateway = MemoryGateway([thing("Job"), thing("Job", name="b")], on_call=break_one)
    broken = a_job(uid="a", namespace="broken")
    whole = a_job(uid="b", name="b", object_uid="uid-Job-b")
    found = enriched(snapshot(broken, whole), [due(broken), due(whole)], gateway)
    assert [each.resource_version == UNREAD for each in found.workloads] == [True, False]


def test_a_namespace_is_read_once() -> None:
    gateway = MemoryGateway([thing("Job"), thing("Job", name="b")])
    first, second = a_job(), a_job(uid="b", name="b", object_uid="uid-Job-b")
    enriched(snapshot(first), [due(first)], gateway)
    once, gateway.call_count = gateway.call_count, 0
    enriched(snapshot(first, second), [due(first), due(second)], gateway)
    assert gateway.call_count == once + 1


def test_a_pod_keeps_the_gpus_that_the_warehouse_knows() -> None:
    gateway = MemoryGateway([thing("Job"), pod(labels=OWN)])
    known = fact(gpu_count=7, phase="Pending")
    (found,) = seen(a_job(pods=(known,)), gateway).pods
    assert (found.gpu_count, found.phase) == (7, "Running")


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"nvidia.com/gpu": "2"}, 2),
        ({"nvidia.com/gpu": 2}, 2),
        ({"nvidia.com/mig-1g.10gb": "3"}, 3),
        ({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000", "nvidia.com/gpucores": "50"}, 1),
        ({"huawei.com/Ascend910": "8"}, 8),
        ({"cpu": "4"}, 0),
        ({"nvidia.com/gpu": "0"}, 0),
    ],
)
def test_gpus_are_counted_and_not_their_memory(amounts: Json, expected: int) -> None:
    own: Json = {**pod(labels=OWN), "spec": {"containers": [{"resources": {"limits": amounts}}]}}
    (found,) = seen(a_job(), MemoryGateway([thing("Job"), own])).pods
    assert found.gpu_count == expected


def test_budgets_are_read_and_what_is_no_equality_counts_for_all_pods() -> None:
    def budget(name: str, selector: Json, status: Json) -> Json:
        made = thing("PodDisruptionBudget", name=name, spec={"selector": selector}, status=status)
        return {**made, "apiVersion": "policy/v1"}

    expression: Json = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    gateway = MemoryGateway(
        [
            thing("Job"),
            budget("b", expression, {"disruptionsAllowed": 1}),
            budget("a", {"matchLabels": {"app": "x"}}, {}),
        ]
    )
    workload = a_job()
    stale = Disruption(namespace=SPACE, name="a", match_labels={}, allowed_disruption_count=5)
    before = snapshot(workload, disruptions=(stale,))
    found = enriched(before, [due(workload)], gateway).disruptions
    assert found == (
        Disruption(
            namespace=SPACE, name="a", match_labels={"app": "x"}, allowed_disruption_count=0
        ),
        Disruption(namespace=SPACE, name="b", match_labels={}, allowed_disruption_count=1),
    )


def test_a_job_that_is_volcanos_is_found_there() -> None:
    job = thing("Job", group="batch.volcano.sh")
    found = seen(a_job(), MemoryGateway([job]))
    assert found.api_version == "batch.volcano.sh/v1alpha1"


def test_surroundings_hold_what_may_have_a_word() -> None:
    subject = deployment()
    entry = queue_entry(thing("Job"))
    hpa = scaler("HorizontalPodAutoscaler", "autoscaling/v2", subject)
    keda = scaler("ScaledObject", "keda.sh/v1alpha1", subject)
    found = surroundings(MemoryGateway([entry, hpa, keda]), SPACE)
    assert [len(each) for each in (found.queue_entries, found.autoscalers)] == [1, 1]
    assert len(found.scaled_objects) == 1
