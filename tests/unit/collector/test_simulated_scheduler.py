"""Who is placed where, who waits, and who is moved aside."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.sources.simulated.faults import FaultPlan, Span
from collector.sources.simulated.fleet import WHOLE_GPU, build_fleet
from collector.sources.simulated.history import History
from collector.sources.simulated.requests import Request
from collector.sources.simulated.scheduler import schedule

HOUR = 3_600
FLEET = build_fleet(seed=1, node_count=24)
CALM = FaultPlan(xids=(), lost_devices=(), silent_nodes=(), prof_losses=(), cordoned_nodes=())
H100 = "H100-SXM-80GB"
L40S = "L40S"
ASKED = Request(
    index=0,
    uid="w0",
    name="w0",
    tenant="search",
    owner="o",
    workload_class="training",
    priority_class="standard",
    created_s=0,
    runtime_s=HOUR,
    patience_s=100 * HOUR,
    pod_count=1,
    resource=WHOLE_GPU,
    slots_per_pod=1,
    cpu_milli=1_000,
    memory_bytes=1,
    models=(H100,),
    behaviour="training",
    outcome="Succeeded",
)


def asked(index: int, **changes: object) -> Request:
    """Return a harmless request with this index, changed as told."""
    named = {"index": index, "uid": f"w{index}", "name": f"w{index}"}
    return replace(ASKED, **(named | changes))  # type: ignore[arg-type]  # names are checked by replace


def happened(*requests: Request, faults: FaultPlan = CALM) -> History:
    """Return what happens to the requests within ten hours."""
    return schedule(FLEET, requests, faults, duration_s=10 * HOUR)


def life(history: History, index: int) -> list[tuple[int, str]]:
    """Return attempt and transition of one request, in order."""
    return [
        (each.attempt, each.transition)
        for each in history.transitions
        if each.request.index == index
    ]


def test_a_request_that_fits_starts_at_once_and_finishes() -> None:
    history = happened(asked(0))
    (run,) = history.runs
    assert run.scheduled_s == 0
    assert run.ended_s == run.started_s + HOUR
    assert life(history, 0) == [
        (1, name)
        for name in (
            "created",
            "quota_reserved",
            "admitted",
            "scheduled",
            "started",
            "ready",
            "finished",
        )
    ]


def test_small_requests_are_packed_on_one_node() -> None:
    history = happened(*(asked(i, created_s=i) for i in range(8)))
    assert len({run.pods[0].node_index for run in history.runs}) == 1


@pytest.mark.parametrize(
    ("gpu_count", "is_placed"),
    [
        pytest.param(30, True, id="within the limit"),
        pytest.param(31, True, id="the last whole GPU below the limit"),
        pytest.param(32, False, id="beyond the limit"),
    ],
)
def test_the_limit_of_a_tenant(gpu_count: int, is_placed: bool) -> None:
    # search: 28 % of 56 H100, and 40 % of the rest: 15.68 + 16.128 = 31.808
    history = happened(asked(0, pod_count=gpu_count))
    assert bool(history.runs) is is_placed
    assert [each.reason for each in history.complaints] == ([] if is_placed else ["Pending"])


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    fillers = [
        asked(i, tenant=tenant, slots_per_pod=4, runtime_s=2 * HOUR, pod_count=count)
        for i, (tenant, count) in enumerate(
            [("search", 7), ("ads", 3), ("vision", 3)],
        )
    ]
    gang = asked(9, tenant="research", slots_per_pod=8, pod_count=2, created_s=10)
    history = happened(*fillers, gang)
    (run,) = [each for each in history.runs if each.request.index == 9]
    assert run.scheduled_s >= 2 * HOUR
    assert [len(pod.slot_indices) for pod in run.pods] == [8, 8]


def test_a_request_without_processors_waits_and_says_why() -> None:
    hogs = [
        asked(i, models=(L40S,), cpu_milli=60_000, tenant=tenant)
        for i, tenant in enumerate(["search", "search", "ads", "ads"])
    ]
    history = happened(*hogs, asked(9, models=(L40S,), cpu_milli=6_000, created_s=1))
    (first, *_) = history.complaints
    assert first.reason == "FailedScheduling"
    assert "4 Insufficient cpu" in first.message
    assert history.runs[-1].scheduled_s > HOUR


def test_production_moves_best_effort_aside_which_then_tries_again() -> None:
    small = [
        asked(i, models=(L40S,), slots_per_pod=8, priority_class="best-effort", tenant=tenant)
        for i, tenant in enumerate(["search", "ads", "vision", "research"])
    ]
    urgent = asked(
        9,
        models=(L40S,),
        slots_per_pod=8,
        priority_class="production",
        created_s=1_800,
        tenant="speech",
    )
    history = happened(*small, urgent)
    assert (1, "scheduled") in life(history, 9)
    (victim,) = {each.request.index for each in history.transitions if each.attempt == 2}
    steps = life(history, victim)
    assert (1, "preempted") in steps
    assert steps[-1] == (2, "finished")


def test_a_lost_gpu_evicts_its_holder_and_is_not_handed_out() -> None:
    calm = happened(asked(0))
    held = FLEET.slots[calm.runs[0].pods[0].slot_indices[0]].device.index
    lost = replace(CALM, lost_devices=(Span(index=held, from_s=600, until_s=5 * HOUR),))
    history = happened(asked(0), faults=lost)
    assert (1, "evicted") in life(history, 0)
    second = history.runs[1]
    assert FLEET.slots[second.pods[0].slot_indices[0]].device.index != held


def test_a_cordoned_node_receives_nothing_new() -> None:
    calm = happened(asked(0))
    node = calm.runs[0].pods[0].node_index
    cordon = replace(CALM, cordoned_nodes=(Span(index=node, from_s=0, until_s=None),))
    history = happened(asked(0, created_s=1), faults=cordon)
    assert history.runs[0].pods[0].node_index != node


def test_who_waits_beyond_patience_was_never_scheduled() -> None:
    history = happened(asked(0, pod_count=99, patience_s=HOUR))
    assert life(history, 0) == [(1, "created"), (1, "finished")]
    assert history.transitions[-1].reason == "Cancelled"
    assert history.transitions[-1].at_s == HOUR
