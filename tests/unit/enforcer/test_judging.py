"""A verdict on one workload: what makes it BUSY, what leaves it UNKNOWN, what lets it be IDLE."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from enforcer.decisions import Finding, Judgement, Verdict
from enforcer.facts import DeviceEvidence, Evidence, Workload
from enforcer.judging import (
    EVIDENCE_LASTS,
    MEMORY_CHANGE_BYTES,
    MEMORY_HELD_BYTES,
    MEMORY_NONE_BYTES,
    TRAFFIC_ACTIVE_BYTES_PER_S,
    Ground,
    judge,
)
from steward.period import Period
from steward.units import SECONDS_PER_HOUR
from tests.support.enforcer_judged import HOUR, LIMITS, NOON, QUIET, device, evidence, pod, workload

SECOND = timedelta(seconds=1)
IDLE, BUSY, UNKNOWN = Verdict.IDLE, Verdict.BUSY, Verdict.UNKNOWN


def judged(*devices: DeviceEvidence, **told: object) -> Judgement:
    return judge(workload(evidence(*devices, **told)), LIMITS, now=NOON)


def verdict_of(judgement: Judgement) -> tuple[Verdict, tuple[str, ...]]:
    return judgement.verdict, judgement.reasons


def test_a_quiet_workload_is_idle_for_as_long_as_it_was_seen_idle() -> None:
    assert judged() == Judgement(
        verdict=IDLE,
        reasons=(Ground.ALL_QUIET,),
        findings=(),
        coverage_ratio=1.0,
        observed_idle_s=7200.0,
    )


def test_a_workload_of_which_nothing_was_read_is_unknown() -> None:
    assert judge(workload(None), LIMITS, now=NOON) == Judgement(
        verdict=UNKNOWN,
        reasons=(Ground.NOTHING_READ,),
        findings=(),
        coverage_ratio=None,
        observed_idle_s=0.0,
    )


@pytest.mark.parametrize(
    ("told", "verdict", "ground"),
    [
        pytest.param({"profiling_peak_ratio": 0.0}, IDLE, Ground.ALL_QUIET, id="profiling zero"),
        pytest.param({"profiling_peak_ratio": 0.0199}, IDLE, Ground.ALL_QUIET, id="just below"),
        pytest.param({"profiling_peak_ratio": 0.02}, BUSY, Ground.ACTIVITY, id="at the limit"),
        pytest.param({"profiling_peak_ratio": 0.0201}, BUSY, Ground.ACTIVITY, id="just above"),
        pytest.param({"busy_peak_ratio": 0.0199}, IDLE, Ground.ALL_QUIET, id="busy just below"),
        pytest.param({"busy_peak_ratio": 0.02}, BUSY, Ground.ACTIVITY, id="busy at the limit"),
        pytest.param({"busy_peak_ratio": 0.03}, BUSY, Ground.ACTIVITY, id="busy above"),
        pytest.param({"profiling_peak_ratio": None}, IDLE, Ground.ALL_QUIET, id="busy alone"),
        pytest.param({"busy_peak_ratio": None}, IDLE, Ground.ALL_QUIET, id="profiling alone"),
        pytest.param(
            {"profiling_peak_ratio": None, "busy_peak_ratio": None},
            UNKNOWN,
            Ground.NO_ACTIVITY_SIGNAL,
            id="neither told",
        ),
        pytest.param({"power_peak_w": 80.49}, IDLE, Ground.ALL_QUIET, id="power below margin"),
        pytest.param({"power_peak_w": 80.5}, BUSY, Ground.POWER_ABOVE_IDLE, id="power at margin"),
        pytest.param({"power_peak_w": 81.0}, BUSY, Ground.POWER_ABOVE_IDLE, id="power above"),
        pytest.param({"power_peak_w": None}, IDLE, Ground.ALL_QUIET, id="tells no power"),
        pytest.param(
            {"power_idle_w": None}, UNKNOWN, Ground.POWER_LEVEL_NOT_KNOWN, id="rest not learnt"
        ),
        pytest.param(
            {"traffic_peak_bytes_per_s": TRAFFIC_ACTIVE_BYTES_PER_S - 1},
            IDLE,
            Ground.ALL_QUIET,
            id="traffic below",
        ),
        pytest.param(
            {"traffic_peak_bytes_per_s": TRAFFIC_ACTIVE_BYTES_PER_S},
            BUSY,
            Ground.TRAFFIC,
            id="traffic at the limit",
        ),
        pytest.param(
            {"traffic_peak_bytes_per_s": None}, IDLE, Ground.ALL_QUIET, id="tells no traffic"
        ),
        pytest.param(
            {"memory_change_bytes": MEMORY_CHANGE_BYTES - 1}, IDLE, Ground.ALL_QUIET, id="memory"
        ),
        pytest.param(
            {"memory_change_bytes": MEMORY_CHANGE_BYTES},
            BUSY,
            Ground.MEMORY_CHANGED,
            id="memory moved",
        ),
        pytest.param({"memory_change_bytes": None}, IDLE, Ground.ALL_QUIET, id="tells no memory"),
        pytest.param({"coverage_ratio": 0.901}, IDLE, Ground.ALL_QUIET, id="covered"),
        pytest.param({"coverage_ratio": 0.9}, IDLE, Ground.ALL_QUIET, id="just covered"),
        pytest.param({"coverage_ratio": 0.899}, UNKNOWN, Ground.LOW_COVERAGE, id="not covered"),
        pytest.param({"newest_at": NOON - 119 * SECOND}, IDLE, Ground.ALL_QUIET, id="fresh"),
        pytest.param({"newest_at": NOON - 120 * SECOND}, IDLE, Ground.ALL_QUIET, id="still fresh"),
        pytest.param({"newest_at": NOON - 121 * SECOND}, UNKNOWN, Ground.STALE, id="stale"),
        pytest.param({"newest_at": None}, UNKNOWN, Ground.DEVICE_SILENT, id="never read"),
    ],
)
def test_one_signal_of_one_device(
    told: dict[str, object], verdict: Verdict, ground: Ground
) -> None:
    assert verdict_of(judged(device(**told))) == (verdict, (ground,))


@pytest.mark.parametrize(
    ("told", "verdict", "ground"),
    [
        pytest.param({"held_device_count": 2}, UNKNOWN, Ground.DEVICE_SILENT, id="one of two"),
        pytest.param({"held_device_count": 0}, UNKNOWN, Ground.DEVICES_NOT_KNOWN, id="holds none"),
        pytest.param({"idle_since_at": None}, UNKNOWN, Ground.CLOCK_NOT_KNOWN, id="no clock"),
        pytest.param({"observed_idle_s": 0.0}, UNKNOWN, Ground.CLOCK_NOT_KNOWN, id="clock zero"),
        pytest.param(
            {"window": Period.before(NOON, HOUR - SECOND)},
            UNKNOWN,
            Ground.WINDOW_TOO_SHORT,
            id="window shorter than the rule's",
        ),
        pytest.param(
            {"window": Period.before(NOON, 2 * HOUR)}, IDLE, Ground.ALL_QUIET, id="window longer"
        ),
        pytest.param({"request_rate_per_s": 0.0}, IDLE, Ground.ALL_QUIET, id="no request"),
        pytest.param({"request_rate_per_s": 0.01}, BUSY, Ground.REQUESTS_SERVED, id="requests"),
        pytest.param(
            {"level_activity_s": 6 * SECONDS_PER_HOUR - 1.0}, IDLE, Ground.ALL_QUIET, id="not yet"
        ),
        pytest.param(
            {"level_activity_s": 6.0 * SECONDS_PER_HOUR},
            UNKNOWN,
            Ground.LEVEL_ACTIVITY,
            id="level for six hours",
        ),
        pytest.param({"level_activity_s": None}, IDLE, Ground.ALL_QUIET, id="level not told"),
    ],
)
def test_the_workload_as_a_whole(told: dict[str, object], verdict: Verdict, ground: Ground) -> None:
    assert verdict_of(judged(**told)) == (verdict, (ground,))


@pytest.mark.parametrize(
    ("age", "verdict"),
    [
        pytest.param(timedelta(0), IDLE, id="at the end of its window"),
        pytest.param(EVIDENCE_LASTS, IDLE, id="as long as it lasts"),
        pytest.param(EVIDENCE_LASTS + SECOND, UNKNOWN, id="longer"),
        pytest.param(-SECOND, UNKNOWN, id="of the future"),
    ],
)
def test_evidence_says_nothing_of_another_time(age: timedelta, verdict: Verdict) -> None:
    assert judge(workload(), LIMITS, now=NOON + age).verdict is verdict


@pytest.mark.parametrize(
    ("pods", "verdict"),
    [
        pytest.param((pod(gpu_count=1),), IDLE, id="as many as it holds"),
        pytest.param((pod("a"), pod("b")), UNKNOWN, id="one pod's device is not known"),
        pytest.param((pod("a"), pod("b", phase="Pending")), IDLE, id="the other has not begun"),
        pytest.param((), IDLE, id="pods not told"),
    ],
)
def test_devices_that_pods_hold_unseen(pods: tuple[object, ...], verdict: Verdict) -> None:
    assert judge(workload(pods=pods), LIMITS, now=NOON).verdict is verdict


@pytest.mark.parametrize(
    ("told", "findings"),
    [
        pytest.param({"disagreement_ratio": 0.51}, (Finding.COUNTER_FAULT,), id="apart"),
        pytest.param({"disagreement_ratio": 0.5}, (), id="at the border"),
        pytest.param({"disagreement_ratio": None}, (), id="not comparable"),
    ],
)
def test_signals_that_contradict_are_a_finding_and_no_verdict(
    told: dict[str, object], findings: tuple[Finding, ...]
) -> None:
    judgement = judged(device(**told))
    assert judgement.findings == findings
    assert judgement.verdict is (UNKNOWN if findings else IDLE)


GHOST = {
    "busy_peak_ratio": 1.0,
    "disagreement_ratio": 1.0,
    "process_count_peak": 0,
    "memory_used_peak_bytes": 0,
}


@pytest.mark.parametrize(
    ("told", "finding"),
    [
        pytest.param({}, Finding.GHOST_BUSY, id="nothing but the counter"),
        pytest.param({"process_count_peak": None}, Finding.GHOST_BUSY, id="processes not told"),
        pytest.param({"process_count_peak": 1}, Finding.COUNTER_FAULT, id="a process"),
        pytest.param(
            {"memory_used_peak_bytes": MEMORY_NONE_BYTES - 1}, Finding.GHOST_BUSY, id="no memory"
        ),
        pytest.param(
            {"memory_used_peak_bytes": MEMORY_NONE_BYTES}, Finding.COUNTER_FAULT, id="memory"
        ),
        pytest.param({"memory_used_peak_bytes": None}, Finding.COUNTER_FAULT, id="memory not told"),
        pytest.param({"power_peak_w": 300.0}, Finding.COUNTER_FAULT, id="power of work"),
        pytest.param({"power_idle_w": None}, Finding.COUNTER_FAULT, id="rest not known"),
    ],
)
def test_busy_without_anything_to_show_for_it(told: dict[str, object], finding: Finding) -> None:
    judgement = judged(device(**{**GHOST, **told}))
    assert (judgement.verdict, judgement.findings) == (UNKNOWN, (finding,))


def test_a_fault_on_one_device_does_not_hide_work_on_another() -> None:
    working = device(device_uuid="GPU-b", profiling_peak_ratio=0.8, busy_peak_ratio=0.9)
    judgement = judged(device(**GHOST), working)
    assert (judgement.verdict, judgement.findings) == (BUSY, (Finding.GHOST_BUSY,))


@pytest.mark.parametrize(
    ("own", "verdict", "ground"),
    [
        pytest.param(None, UNKNOWN, Ground.SHARED_DEVICE, id="not accounted"),
        pytest.param(0.0, IDLE, Ground.ALL_QUIET, id="own processes at rest"),
        pytest.param(0.02, BUSY, Ground.ACTIVITY, id="own processes at work"),
    ],
)
def test_of_a_shared_device_only_own_processes_count(
    own: float | None, verdict: Verdict, ground: Ground
) -> None:
    others_work = device(
        is_shared=True, own_busy_peak_ratio=own, profiling_peak_ratio=0.9, power_peak_w=400.0
    )
    assert verdict_of(judged(others_work)) == (verdict, (ground,))


def of_class(workload_class: str | None, found: Evidence) -> Workload:
    return workload(found, workload_class=workload_class)


@pytest.mark.parametrize(
    ("memory_bytes", "findings"),
    [
        pytest.param(MEMORY_HELD_BYTES - 1, (), id="less than a context"),
        pytest.param(MEMORY_HELD_BYTES, (Finding.HELD_MEMORY,), id="something to lose"),
        pytest.param(None, (), id="not told"),
    ],
)
def test_memory_that_is_kept_is_told_and_stays_idle(
    memory_bytes: int | None, findings: tuple[Finding, ...]
) -> None:
    judgement = judged(device(memory_used_peak_bytes=memory_bytes))
    assert (judgement.verdict, judgement.findings) == (IDLE, findings)


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        pytest.param(None, UNKNOWN, id="nothing tells requests"),
        pytest.param(0.0, IDLE, id="no request"),
        pytest.param(0.2, BUSY, id="requests"),
    ],
)
def test_a_loaded_model_needs_word_of_requests(rate: float | None, verdict: Verdict) -> None:
    held = evidence(device(memory_used_peak_bytes=MEMORY_HELD_BYTES), request_rate_per_s=rate)
    judgement = judge(of_class("inference", held), LIMITS, now=NOON)
    assert judgement.verdict is verdict
    assert (Finding.LOADED_MODEL in judgement.findings) is (verdict is not BUSY)


def test_inference_without_a_model_needs_none() -> None:
    assert judge(of_class("inference", QUIET), LIMITS, now=NOON).verdict is IDLE


@pytest.mark.parametrize(
    ("ever", "findings"),
    [
        pytest.param(True, (), id="worked"),
        pytest.param(False, (Finding.NEVER_USED,), id="never"),
        pytest.param(None, (), id="not known"),
    ],
)
def test_never_used(ever: bool | None, findings: tuple[Finding, ...]) -> None:
    assert judged(was_ever_active=ever).findings == findings


def test_the_most_decisive_ground_comes_first_and_each_once() -> None:
    working = device(profiling_peak_ratio=0.9, power_peak_w=500.0)
    other = replace(working, device_uuid="GPU-b")
    assert judged(working, other).reasons == (Ground.ACTIVITY, Ground.POWER_ABOVE_IDLE)


def test_the_worst_covered_device_counts() -> None:
    covered = device(coverage_ratio=0.97)
    assert judged(covered, device(device_uuid="GPU-b")).coverage_ratio == 0.97
