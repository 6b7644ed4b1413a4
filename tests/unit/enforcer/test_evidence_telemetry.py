"""Telemetry that is withheld, frozen, halved, contradicting or late makes nobody idle."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from enforcer.decisions import Verdict
from enforcer.judging import Ground
from tests.support.enforcer_world import HOUR, MINUTE, REST_W, START, WORKING, World

IDLE, UNKNOWN = Verdict.IDLE, Verdict.UNKNOWN
SPOILT_AT = START + 4 * HOUR
END = START + 8 * HOUR
UUIDS = ("GPU-a", "GPU-b")


def resting() -> World:
    """Return two GPUs that have rested all the time."""
    world = World().node().job(*UUIDS)
    for uuid in UUIDS:
        world.reads(uuid, until_at=END)
    return world


def is_spoilt(at: datetime) -> bool:
    return at >= SPOILT_AT


def every_second(at: datetime, uuid: str) -> bool:
    return is_spoilt(at) and uuid != "" and int(at.timestamp() // 60) % 2 == 1


def one_device(at: datetime, uuid: str) -> bool:
    return is_spoilt(at) and uuid == "GPU-b"


def all_of_it(at: datetime, uuid: str) -> bool:
    return is_spoilt(at) and uuid != ""


@pytest.mark.parametrize(
    "is_lost",
    [
        pytest.param(all_of_it, id="withheld"),
        pytest.param(one_device, id="withheld for one of two GPUs"),
        pytest.param(every_second, id="halved"),
    ],
)
def test_lost_readings_leave_a_resting_workload_unknown(
    is_lost: Callable[[datetime, str], bool],
) -> None:
    spoilt = resting().without(is_lost)
    assert resting().judged(END).verdict is IDLE
    for later in (30 * MINUTE, HOUR, 4 * HOUR):
        judgement = spoilt.judged(SPOILT_AT + later)
        assert judgement.verdict is UNKNOWN
        assert judgement.observed_idle_s == 0


def test_the_clock_stands_while_readings_are_withheld() -> None:
    spoilt = resting().without(all_of_it)
    before_s = spoilt.evidence(SPOILT_AT).observed_idle_s
    after_s = [spoilt.evidence(SPOILT_AT + hours * HOUR).observed_idle_s for hours in (1, 2, 4)]
    assert after_s == [before_s] * 3


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"energy_j": 5_000.0}, id="energy stands still"),
        pytest.param({"energy_j": None}, id="no energy, and nothing else moves"),
    ],
)
def test_frozen_readings_are_no_readings(told: dict[str, object]) -> None:
    world = World().node().job("GPU-a").reads(until_at=SPOILT_AT)
    world.reads(from_at=SPOILT_AT, until_at=END, **told)
    frozen = world.judged(END)
    assert frozen.verdict is UNKNOWN
    assert {Ground.STALE, Ground.LOW_COVERAGE} <= set(frozen.reasons)
    jump = world.evidence(END).observed_idle_s - world.evidence(SPOILT_AT).observed_idle_s
    assert timedelta(seconds=jump) <= 10 * MINUTE


def test_a_resting_board_whose_power_trembles_is_not_frozen() -> None:
    world = World().node().job("GPU-a")
    at, number = START, 0
    while at < START + 3 * HOUR:
        power_w = REST_W + 0.1 * (number % 3)
        world.reads(from_at=at, until_at=at + MINUTE, energy_j=None, power_w=power_w)
        at, number = at + MINUTE, number + 1
    assert world.judged(START + 3 * HOUR).verdict is IDLE


@pytest.mark.parametrize(
    "told",
    [
        pytest.param({"busy_ratio": 1.0}, id="busy without profiling"),
        pytest.param({"power_w": 400.0}, id="power without activity"),
        pytest.param({"nvlink_bytes_per_s": 1e9}, id="traffic without activity"),
    ],
)
def test_contradicting_readings_are_not_idle(told: dict[str, object]) -> None:
    world = World().node().job("GPU-a").reads(until_at=SPOILT_AT)
    world.reads(from_at=SPOILT_AT, until_at=END, **told)
    assert world.judged(END).verdict is not IDLE
    assert world.evidence(END).observed_idle_s == 0


DOWN_FROM, DOWN_UNTIL = START + 3 * HOUR, START + 5 * HOUR


def is_down(at: datetime, _uuid: str) -> bool:
    return DOWN_FROM <= at < DOWN_UNTIL


def test_a_backend_down_for_two_hours_acts_on_nobody_and_clocks_do_not_jump() -> None:
    world = resting().without(is_down)
    at_start_s = world.evidence(DOWN_FROM).observed_idle_s
    for minutes in range(5, 120, 23):
        assert world.judged(DOWN_FROM + minutes * MINUTE).verdict is UNKNOWN
    assert world.evidence(DOWN_UNTIL).observed_idle_s == at_start_s
    recovered = world.evidence(DOWN_UNTIL + 10 * MINUTE)
    assert timedelta(seconds=recovered.observed_idle_s - at_start_s) <= 10 * MINUTE
    assert world.judged(DOWN_UNTIL + 30 * MINUTE).verdict is UNKNOWN
    assert world.judged(DOWN_UNTIL + HOUR + MINUTE).verdict is IDLE
    later = world.evidence(END).observed_idle_s
    assert timedelta(seconds=later) <= (END - START) - (DOWN_UNTIL - DOWN_FROM)


def test_a_gap_hides_work_but_not_the_clock_of_what_worked_after_it() -> None:
    world = World().node().job("GPU-a").reads(until_at=DOWN_FROM)
    world.reads(from_at=DOWN_UNTIL, until_at=DOWN_UNTIL + 5 * MINUTE, **WORKING)
    world.reads(from_at=DOWN_UNTIL + 5 * MINUTE, until_at=END)
    found = world.evidence(END)
    assert found.idle_since_at == DOWN_UNTIL + 4 * MINUTE
    assert timedelta(seconds=found.observed_idle_s) <= END - DOWN_UNTIL


def test_two_gpus_read_in_turns_were_never_seen_idle_together() -> None:
    def in_turns(at: datetime, uuid: str) -> bool:
        is_odd_hour = int((at - START) / HOUR) % 2 == 1
        return is_odd_hour if uuid == "GPU-a" else not is_odd_hour

    found = resting().without(in_turns).evidence(END)
    assert timedelta(seconds=found.observed_idle_s) <= 8 * MINUTE


@pytest.mark.parametrize(
    ("minutes", "verdict"),
    [
        pytest.param(59, Verdict.BUSY, id="the burst lies in the window"),
        pytest.param(61, IDLE, id="the burst has left the window"),
    ],
)
def test_one_busy_reading_resets_the_clock(minutes: int, verdict: Verdict) -> None:
    burst_at = START + 4 * HOUR
    world = World().node().job("GPU-a").reads(until_at=burst_at)
    world.reads(from_at=burst_at, until_at=burst_at + MINUTE, **WORKING)
    world.reads(from_at=burst_at + MINUTE, until_at=END)
    at = burst_at + minutes * MINUTE
    assert world.judged(at).verdict is verdict
    assert timedelta(seconds=world.evidence(at).observed_idle_s) <= minutes * MINUTE
