"""Complaints about other systems, from readings in the warehouse to the verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from enforcer.decisions import TAKING_STEPS, Finding, Step, Verdict
from enforcer.judging import Ground
from enforcer.policies.shipped import default_policy
from tests.support.enforcer_judged import LIMITS
from tests.support.enforcer_world import (
    GIB_BYTES,
    HOUR,
    MINUTE,
    REST_W,
    START,
    WORKING,
    World,
)

IDLE, BUSY, UNKNOWN = Verdict.IDLE, Verdict.BUSY, Verdict.UNKNOWN
AFTER_8_HOURS = START + 8 * HOUR


def notebook() -> World:
    return World().node().job("GPU-a", kind="Notebook", workload_class="development")


def test_scenario_01_a_long_cell_without_a_browser_is_busy() -> None:
    world = notebook().reads(until_at=AFTER_8_HOURS, **WORKING)
    judgement = world.judged(AFTER_8_HOURS)
    assert judgement.verdict is BUSY
    assert judgement.reasons[0] == Ground.ACTIVITY


def test_scenario_03_open_tabs_do_not_keep_a_quiet_gpu() -> None:
    end = START + 24 * HOUR
    world = notebook().reads(until_at=end, every=2 * MINUTE, memory_used_bytes=20 * GIB_BYTES)
    judgement = world.judged(end)
    assert (judgement.verdict, judgement.findings) == (
        IDLE,
        (Finding.HELD_MEMORY, Finding.NEVER_USED),
    )
    assert judgement.observed_idle_s == pytest.approx(24 * 3600, abs=120)


@pytest.mark.parametrize("rule", default_policy().rules, ids=lambda rule: rule.name)
def test_scenario_03_each_shipped_ladder_tells_before_it_takes(rule: object) -> None:
    steps = [rung.step for rung in rule.ladder]  # type: ignore[attr-defined] # a rule
    taking = [number for number, step in enumerate(steps) if step in TAKING_STEPS]
    assert all(Step.NOTIFY in steps[:number] for number in taking)


def test_scenario_04_work_from_a_terminal_is_busy() -> None:
    world = notebook().reads(until_at=AFTER_8_HOURS, busy_ratio=0.6, graphics_active_ratio=0.55)
    assert world.judged(AFTER_8_HOURS).verdict is BUSY


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        pytest.param({}, IDLE, id="code-server at rest for 8 h"),
        pytest.param({"busy_ratio": 0.4, "sm_active_ratio": 0.3}, BUSY, id="at work on the GPU"),
    ],
)
def test_scenario_05_an_editor_without_kernels(told: dict[str, object], verdict: Verdict) -> None:
    world = notebook().reads(until_at=AFTER_8_HOURS, **told)
    assert world.judged(AFTER_8_HOURS).verdict is verdict


BROKEN_PROFILING = {"busy_ratio": 1.0, "power_w": 300.0}
"""Profiling says 0, everything else says work."""


def test_scenario_08_profiling_that_broke_after_an_xid_is_a_counter_fault() -> None:
    broke_at = START + 4 * HOUR
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(until_at=broke_at, **WORKING)
        .reads(from_at=broke_at, until_at=AFTER_8_HOURS, **BROKEN_PROFILING)
    )
    judgement = world.judged(AFTER_8_HOURS)
    assert (judgement.verdict, judgement.findings) == (UNKNOWN, (Finding.COUNTER_FAULT,))
    assert judgement.reasons[0] == Ground.SIGNALS_CONTRADICT
    assert world.evidence(AFTER_8_HOURS).observed_idle_s == 0


def test_finding_f2_a_broken_profiling_counter_never_reads_as_idle() -> None:
    world = World().node().job("GPU-a").reads(until_at=AFTER_8_HOURS, **BROKEN_PROFILING)
    for hours in range(1, 9):
        assert world.judged(START + hours * HOUR).verdict is not IDLE


NO_PROFILING = dict.fromkeys(
    ("graphics_active_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")
)


@pytest.mark.parametrize(
    ("busy_ratio", "verdict"),
    [
        pytest.param(0.9, BUSY, id="utilisation says work"),
        pytest.param(0.0, UNKNOWN, id="utilisation says rest: half the signals are lost"),
    ],
)
def test_scenario_09_profiling_that_vanishes_makes_nobody_idle(
    busy_ratio: float, verdict: Verdict
) -> None:
    lost_at = START + 4 * HOUR
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(until_at=lost_at, **WORKING)
        .reads(from_at=lost_at, until_at=AFTER_8_HOURS, **NO_PROFILING, busy_ratio=busy_ratio)
    )
    for minutes in range(0, 240, 30):
        at = lost_at + (minutes + 1) * MINUTE
        assert world.judged(at).verdict in {BUSY, UNKNOWN}
    assert world.judged(AFTER_8_HOURS).verdict is verdict


def test_scenario_11_a_gpu_latched_at_100_percent_is_a_ghost() -> None:
    latched_at = START + 4 * HOUR
    nothing = {"memory_used_bytes": 0, "process_count": 0}
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(until_at=latched_at, **nothing)
        .reads(
            from_at=latched_at,
            until_at=AFTER_8_HOURS,
            **nothing,
            **NO_PROFILING,
            busy_ratio=1.0,
            power_w=REST_W,
        )
    )
    judgement = world.judged(AFTER_8_HOURS)
    assert (judgement.verdict, judgement.findings) == (UNKNOWN, (Finding.GHOST_BUSY,))


def test_scenario_13_a_pod_without_gpu_series_is_unknown() -> None:
    world = World().node().job("GPU-a", workload_class="inference", kind="Deployment")
    judgement = world.judged(AFTER_8_HOURS)
    assert (judgement.verdict, judgement.reasons[0]) == (UNKNOWN, Ground.DEVICE_SILENT)


@pytest.mark.parametrize(
    "below_ratio", [pytest.param(0.02, id="a low limit"), pytest.param(0.08, id="a high limit")]
)
def test_scenario_17_tiny_regular_kernels_are_for_a_person_and_never_idle(
    below_ratio: float,
) -> None:
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(until_at=AFTER_8_HOURS, busy_ratio=0.05, graphics_active_ratio=0.05)
    )
    judgement = world.judged(AFTER_8_HOURS, limits=replace(LIMITS, below_ratio=below_ratio))
    assert judgement.verdict is not IDLE
    assert Finding.SUSPECTED_HOLD in judgement.findings


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"graphics_active_ratio": 0.4, "busy_ratio": 0.4}, id="real work"),
        pytest.param(
            {"graphics_active_ratio": 0.05, "pcie_receive_bytes_per_s": 1e9}, id="data moves"
        ),
    ],
)
def test_scenario_17_work_is_no_suspected_hold(told: dict[str, object]) -> None:
    world = World().node().job("GPU-a").reads(until_at=AFTER_8_HOURS, **told)
    assert world.judged(AFTER_8_HOURS).findings == ()


def test_finding_f1_one_idle_gpu_of_eight_does_not_make_a_pod_idle() -> None:
    uuids = [f"GPU-{number}" for number in range(8)]
    end = START + 3 * HOUR
    world = World().node().job(*uuids).reads(uuids[0], until_at=end)
    for uuid in uuids[1:]:
        world.reads(uuid, until_at=end, **WORKING)
    judgement = world.judged(end)
    assert judgement.verdict is BUSY
    assert world.evidence(end).observed_idle_s == 0


def test_finding_f1_eight_idle_gpus_do() -> None:
    uuids = [f"GPU-{number}" for number in range(8)]
    end = START + 3 * HOUR
    world = World().node().job(*uuids)
    for uuid in uuids:
        world.reads(uuid, until_at=end)
    assert world.judged(end).verdict is IDLE


def test_finding_f3_one_zero_sample_in_a_window_is_not_enough() -> None:
    end = START + 3 * HOUR
    limits = replace(LIMITS, window=30 * MINUTE)
    only = end - 15 * MINUTE
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(until_at=START + HOUR, **WORKING)
        .reads(from_at=only, until_at=only + MINUTE)
    )
    judgement = world.judged(end, limits=limits)
    assert judgement.verdict is UNKNOWN
    assert Ground.LOW_COVERAGE in judgement.reasons


def test_finding_f4_a_hole_between_two_zeros_is_no_idleness() -> None:
    end = START + 4 * HOUR
    limits = replace(LIMITS, window=2 * HOUR)
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(until_at=START + 121 * MINUTE)
        .reads(from_at=end - MINUTE, until_at=end)
    )
    judgement = world.judged(end, limits=limits)
    assert (judgement.verdict, judgement.reasons[0]) == (UNKNOWN, Ground.LOW_COVERAGE)


def test_finding_f5_one_idle_replica_of_ten_leaves_the_deployment_busy() -> None:
    end = START + 3 * HOUR
    world = World().node().workload("d1", gpu_count=10, kind="Deployment")
    for number in range(10):
        uuid, pod = f"GPU-{number}", f"d1-{number}"
        world.gpu(uuid).pod(pod, uid="d1").holds(uuid, uid="d1", pod=pod, pod_uid=pod)
        world.reads(uuid, until_at=end, **({} if number == 0 else WORKING))
    assert world.judged(end, "d1").verdict is BUSY


def test_finding_f6_no_sample_yet_is_not_zero_percent() -> None:
    assert World().node().job("GPU-a").judged(START + MINUTE).verdict is UNKNOWN


def test_finding_f6_the_last_value_does_not_count_for_ever() -> None:
    end = START + 3 * HOUR
    world = World().node().job("GPU-a").reads(until_at=end)
    clock_s = world.evidence(end).observed_idle_s
    for later in (3 * MINUTE, HOUR, 24 * HOUR):
        judgement = world.judged(end + later)
        assert judgement.verdict is UNKNOWN
        assert Ground.STALE in judgement.reasons
        assert world.evidence(end + later).observed_idle_s == clock_s
        assert judgement.observed_idle_s == 0
    assert timedelta(seconds=clock_s) == 3 * HOUR - MINUTE
