"""Histories of small clusters for Hypothesis: what happened to each workload, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    DEPLOYMENTS,
    JOBS,
    KUEUE_WORKLOADS,
    PODS,
    REPLICA_SETS,
)
from tests.support.kubernetes_objects import (
    Body,
    condition,
    job,
    kueue_workload,
    metadata,
    owner_reference,
    pod,
)
from tests.support.lifecycle_drive import Drive


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one object; without a body it is deleted."""

    seen_s: float
    resource: Resource
    uid: str
    body: Body | None

    def show(self, drive: Drive) -> None:
        """Let it happen while somebody watches."""
        if self.body is None:
            drive.delete(self.resource, self.uid, seen_s=self.seen_s)
        else:
            drive.put(self.resource, self.body, seen_s=self.seen_s)

    def hide(self, drive: Drive) -> None:
        """Let it happen while nobody watches."""
        if self.body is None:
            drive.delete_unseen(self.resource, self.uid)
        else:
            drive.change_unseen(self.resource, self.body)


History = list[Step]


def _step(seen_s: float, resource: Resource, body: Body) -> Step:
    return Step(seen_s, resource, body["metadata"]["uid"], body)


def _pod_life(name: str, owner: Body | None, times: Sequence[int], *, exit_code: int) -> History:
    """Return created, bound, running, ended."""
    created, bound, started, ended = times
    common = {"owner": owner, "created_s": created}
    states = (
        (created, pod(name, **common)),
        (bound, pod(name, scheduled_s=bound, **common)),
        (started, pod(name, scheduled_s=bound, started_s=started, ready_s=started, **common)),
        (
            ended,
            pod(
                name,
                scheduled_s=bound,
                started_s=started,
                ready_s=ended,
                finished_s=ended,
                exit_code=exit_code,
                **common,
            ),
        ),
    )
    return [_step(seen, PODS, body) for seen, body in states]


@st.composite
def bare_pods(draw: st.DrawFn, index: int) -> History:
    """Return a bare pod's life, perhaps with its deletion."""
    name = f"bare-{index}"
    times = draw(ascending(4))
    life = _pod_life(name, None, times, exit_code=draw(st.sampled_from([0, 1])))
    return [*life, Step(times[-1] + 30, PODS, f"{name}-uid", None)]


@st.composite
def retried_jobs(draw: st.DrawFn, index: int) -> History:
    """Return a Job whose first pod fails and whose second succeeds."""
    name = f"job-{index}"
    owner = owner_reference("Job", name)
    times = draw(ascending(9))
    common = {"created_s": times[0]}
    done = [condition("Complete", "True", times[8], "CompletionsReached")]
    return [
        _step(times[0], JOBS, job(name, **common)),
        *_pod_life(f"{name}-a", owner, times[:4], exit_code=1),
        *_pod_life(f"{name}-b", owner, times[4:8], exit_code=0),
        _step(times[8], JOBS, job(name, conditions=done, **common)),
        Step(times[8] + 60, PODS, f"{name}-a-uid", None),
        Step(times[8] + 60, PODS, f"{name}-b-uid", None),
        Step(times[8] + 61, JOBS, f"{name}-uid", None),
    ]


@st.composite
def preempted_jobs(draw: st.DrawFn, index: int) -> History:
    """Return a Job that waits for Kueue's quota, is preempted, and waits again."""
    name = f"queued-{index}"
    owner = owner_reference("Job", name)
    born, first, taken, back, again, *rest = draw(ascending(12))
    labels = {"kueue.x-k8s.io/queue-name": "team-a"}
    reserved = [condition("QuotaReserved", "True", first), condition("Admitted", "True", first)]
    evicted = [
        condition("Evicted", "True", taken, "Preempted"),
        condition("Preempted", "True", taken, "InClusterQueue"),
    ]
    requeued = condition("Requeued", "True", back, "Preempted")
    after = [
        condition("QuotaReserved", "True", again),
        condition("Admitted", "True", again),
        condition("Evicted", "False", again, "QuotaReserved"),
        requeued,
    ]

    def workload(seen_s: int, conditions: list[Body]) -> Step:
        body = kueue_workload(f"w-{name}", owner=owner, conditions=conditions, created_s=born)
        return _step(seen_s, KUEUE_WORKLOADS, body)

    first_pod = pod(f"{name}-a", owner=owner, created_s=first, scheduled_s=first + 1)
    return [
        _step(born, JOBS, job(name, labels=labels, suspend=True, created_s=born)),
        workload(born, [condition("QuotaReserved", "False", born, "WaitingForQuota")]),
        workload(first, reserved),
        _step(first, JOBS, job(name, labels=labels, created_s=born)),
        _step(first + 1, PODS, first_pod),
        workload(taken, [*reserved, *evicted]),
        _step(taken, JOBS, job(name, labels=labels, suspend=True, created_s=born)),
        Step(taken, PODS, f"{name}-a-uid", None),
        workload(back, [condition("QuotaReserved", "False", back, "Pending"), *evicted, requeued]),
        workload(again, after),
        _step(again, JOBS, job(name, labels=labels, created_s=born)),
        *_pod_life(f"{name}-b", owner, rest[:4], exit_code=0),
    ]


@st.composite
def drained_services(draw: st.DrawFn, index: int) -> History:
    """Return a Deployment whose pod is drained from its node and replaced."""
    name = f"web-{index}"
    times = draw(ascending(6))
    owner = owner_reference("ReplicaSet", f"{name}-1")
    above = owner_reference("Deployment", name)
    common = {"owner": owner, "created_s": times[0], "scheduled_s": times[1]}
    return [
        _step(times[0], DEPLOYMENTS, {"metadata": metadata(name, created_s=times[0])}),
        _step(
            times[0],
            REPLICA_SETS,
            {"metadata": metadata(f"{name}-1", owner=above, created_s=times[0])},
        ),
        _step(times[1], PODS, pod(f"{name}-a", **common)),
        _step(
            times[2],
            PODS,
            pod(f"{name}-a", disrupted=(times[2], "EvictionByEvictionAPI"), **common),
        ),
        _step(times[3], PODS, pod(f"{name}-b", owner=owner, created_s=times[3])),
        Step(times[4], PODS, f"{name}-a-uid", None),
        _step(
            times[5],
            PODS,
            pod(f"{name}-b", owner=owner, created_s=times[3], scheduled_s=times[5]),
        ),
    ]


def ascending(count: int) -> st.SearchStrategy[list[int]]:
    """Return so many instants, at least two seconds apart."""
    gaps = st.lists(st.integers(2, 300), min_size=count, max_size=count)
    return gaps.map(lambda each: [sum(each[: index + 1]) for index in range(count)])


@st.composite
def clusters(draw: st.DrawFn) -> list[History]:
    """Return the histories of a few workloads, each cut off somewhere."""
    makers = draw(
        st.lists(
            st.sampled_from([bare_pods, retried_jobs, preempted_jobs, drained_services]),
            min_size=1,
            max_size=4,
        )
    )
    histories = [draw(maker(index)) for index, maker in enumerate(makers)]
    return [history[: draw(st.integers(1, len(history)))] for history in histories]


@st.composite
def interleaved(draw: st.DrawFn, histories: list[History]) -> History:
    """Return the histories in one order in which each keeps its own."""
    rests = [list(history) for history in histories]
    merged: History = []
    while any(rests):
        index = draw(st.sampled_from([i for i, rest in enumerate(rests) if rest]))
        merged.append(rests[index].pop(0))
    return merged
