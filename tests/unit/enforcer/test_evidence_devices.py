"""What one GPU tells of who holds it: instances, shares, several sources, handovers, rest power."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from enforcer.decisions import Verdict
from enforcer.judging import Ground
from steward.units import MIB_BYTES
from tests.support.enforcer_world import GIB_BYTES, HOUR, MINUTE, START, WORKING, World

IDLE, BUSY, UNKNOWN = Verdict.IDLE, Verdict.BUSY, Verdict.UNKNOWN
END = START + 3 * HOUR
NOT_OF_AN_INSTANCE = {
    "busy_ratio": None,
    "power_w": None,
    "power_limit_w": None,
    "energy_j": None,
    "temperature_celsius": None,
    "pcie_transmit_bytes_per_s": None,
    "pcie_receive_bytes_per_s": None,
    "nvlink_bytes_per_s": None,
}


def two_instances() -> World:
    """Return a board in MIG mode: w1 holds one instance, w2 the other."""
    world = World().node().gpu("GPU-a")
    for uid, instance_id in (("w1", 3), ("w2", 7)):
        world.workload(uid).gpu("GPU-a", instance_id=instance_id, mig_profile="1g.10gb")
        world.holds("GPU-a", uid=uid, instance_id=instance_id, sharing_mode="mig")
    return world.reads(until_at=END, busy_ratio=None, power_w=200.0)


def test_an_instance_is_judged_by_its_own_engine() -> None:
    world = two_instances()
    world.reads(until_at=END, instance_id=3, **NOT_OF_AN_INSTANCE)
    world.reads(until_at=END, instance_id=7, **{**WORKING, **NOT_OF_AN_INSTANCE})
    assert [world.judged(END, uid).verdict for uid in ("w1", "w2")] == [IDLE, BUSY]
    (device,) = world.evidence(END, "w1").devices
    assert (device.instance_id, device.power_peak_w, device.is_shared) == (3, None, False)


def test_an_instance_whose_engine_tells_nothing_is_unknown() -> None:
    world = two_instances()
    nothing = {**NOT_OF_AN_INSTANCE, **dict.fromkeys(ENGINES)}
    world.reads(until_at=END, instance_id=3, **nothing)
    judgement = world.judged(END, "w1")
    assert judgement.verdict is UNKNOWN
    assert Ground.NO_ACTIVITY_SIGNAL in judgement.reasons


def test_an_instance_is_frozen_with_its_board() -> None:
    world = World().node().gpu("GPU-a").workload().gpu("GPU-a", instance_id=3)
    world.holds("GPU-a", instance_id=3, sharing_mode="mig")
    world.reads(until_at=END, energy_j=1_000.0).reads(
        until_at=END, instance_id=3, **NOT_OF_AN_INSTANCE
    )
    assert world.judged(END).verdict is UNKNOWN


ENGINES = ("graphics_active_ratio", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")


def two_holders(**told: object) -> World:
    """Return a time-sliced GPU that w1 and w2 hold halves of."""
    world = World().node().gpu("GPU-a").reads(until_at=END, **told)
    for number, uid in enumerate(("w1", "w2")):
        world.workload(uid).holds(
            uid=uid, replica=number, gpu_share_ratio=0.5, sharing_mode="shared_equal"
        )
    return world


def test_a_shared_gpu_at_rest_convicts_nobody_without_its_processes() -> None:
    judgement = two_holders(process_count=2).judged(END)
    assert (judgement.verdict, judgement.reasons[0]) == (UNKNOWN, Ground.SHARED_DEVICE)


def with_processes(**own: float | None) -> World:
    """Return the same with processes of pods told every minute."""
    world = two_holders(process_count=2, **WORKING)
    at = START
    while at < END:
        for pod, sm_ratio in own.items():
            world.process(at=at, pod_uid=pod.replace("_", "-"), sm_ratio=sm_ratio)
        at += MINUTE
    return world


@pytest.mark.parametrize(
    ("own", "verdicts"),
    [
        pytest.param({"w1_0": 0.0, "w2_0": 0.9}, [IDLE, BUSY], id="one works"),
        pytest.param({"w2_0": 0.9}, [IDLE, BUSY], id="one has no process"),
        pytest.param({"w1_0": None, "w2_0": 0.9}, [UNKNOWN, BUSY], id="one does not tell"),
        pytest.param({"of_nobody": 0.9, "w2_0": 0.0}, [UNKNOWN, UNKNOWN], id="whose is not known"),
    ],
)
def test_a_shared_gpu_is_judged_by_each_holders_own_processes(
    own: dict[str, float | None], verdicts: list[Verdict]
) -> None:
    world = with_processes(**own)
    assert [world.judged(END, uid).verdict for uid in ("w1", "w2")] == verdicts


def test_a_shared_gpu_without_any_process_is_at_rest_for_all() -> None:
    world = two_holders(process_count=0)
    assert [world.judged(END, uid).verdict for uid in ("w1", "w2")] == [IDLE, IDLE]


def test_two_workloads_on_one_gpu_share_it_whatever_its_mode_is_called() -> None:
    world = World().node().gpu("GPU-a").reads(until_at=END)
    for uid in ("w1", "w2"):
        world.workload(uid).holds(uid=uid)
    assert world.judged(END).reasons[0] == Ground.SHARED_DEVICE


def test_what_the_holder_before_did_is_not_charged_to_the_next() -> None:
    taken_at = START + HOUR
    world = World().node().gpu("GPU-a").workload("w0").workload("w1")
    world.holds(uid="w0", ended_at=taken_at).holds(uid="w1", at=taken_at)
    world.reads(until_at=taken_at + MINUTE, **WORKING).reads(
        from_at=taken_at + MINUTE, until_at=END, memory_used_bytes=WORKING_MEMORY
    )
    judgement = world.judged(END, "w1")
    assert judgement.verdict is IDLE
    assert timedelta(seconds=judgement.observed_idle_s) <= END - taken_at


WORKING_MEMORY = 500 * MIB_BYTES


def test_work_on_a_gpu_that_was_let_go_counts_as_the_workloads_last() -> None:
    moved_at = START + HOUR
    world = World().node().workload().gpu("GPU-a").gpu("GPU-b")
    world.holds("GPU-a", ended_at=moved_at).holds("GPU-b", at=moved_at)
    world.reads("GPU-a", until_at=moved_at, **WORKING).reads("GPU-b", until_at=END)
    found = world.evidence(END)
    assert found.was_ever_active is True
    assert [device.device_uuid for device in found.devices] == ["GPU-b"]


def test_two_sources_of_one_gpu_are_not_two_readings_of_it() -> None:
    no_engines = dict.fromkeys(ENGINES)
    both = World().node().job("GPU-a")
    both.reads(until_at=END, source="dcgm", busy_ratio=None)
    shifted = START + timedelta(seconds=20)
    both.reads(from_at=shifted, until_at=END, source="agent", energy_j=None, **no_engines)
    assert both.judged(END).verdict is IDLE
    (device,) = both.evidence(END).devices
    assert (device.profiling_peak_ratio, device.busy_peak_ratio) == (0.0, 0.0)
    assert device.coverage_ratio > 0.98


def test_either_source_may_say_that_it_works() -> None:
    world = World().node().job("GPU-a").reads(until_at=END, source="dcgm")
    world.reads(until_at=END, source="agent", **{**dict.fromkeys(ENGINES), "busy_ratio": 0.7})
    assert world.judged(END).verdict is BUSY


def test_rest_power_is_learnt_from_the_boards_own_rest() -> None:
    world = World().node().job("GPU-a").reads(until_at=END, power_w=64.5)
    (device,) = world.evidence(END).devices
    assert device.power_idle_w == pytest.approx(64.5)


def test_a_board_that_never_rested_while_seen_has_no_rest_power() -> None:
    world = World().node().job("GPU-a").reads(until_at=END, **WORKING)
    (device,) = world.evidence(END).devices
    assert device.power_idle_w is None


def test_counters_that_broke_at_work_do_not_teach_rest() -> None:
    """Both counters say nothing happens, at 300 W of 700: no board rests so high."""
    world = World().node().job("GPU-a").reads(until_at=END, power_w=300.0)
    judgement = world.judged(END)
    assert (judgement.verdict, judgement.reasons[0]) == (UNKNOWN, Ground.POWER_LEVEL_NOT_KNOWN)


def test_a_board_is_compared_with_others_of_its_model() -> None:
    world = World().node()
    for uuid in ("GPU-b", "GPU-c", "GPU-d"):
        world.gpu(uuid).reads(uuid, until_at=END)
    world.job("GPU-a").reads(until_at=END, power_w=160.0)
    judgement = world.judged(END)
    assert (judgement.verdict, judgement.reasons) == (BUSY, (Ground.POWER_ABOVE_IDLE,))


def test_an_open_context_rests_higher_than_an_empty_board() -> None:
    empty_until = START + HOUR
    world = World().node().job("GPU-a")
    world.reads(until_at=empty_until, memory_used_bytes=0, power_w=50.0, process_count=0)
    world.reads(from_at=empty_until, until_at=END, power_w=75.0)
    assert world.judged(END).verdict is IDLE


@pytest.mark.parametrize(
    ("grown_bytes", "verdict"),
    [
        pytest.param(MIB_BYTES - 1, IDLE, id="less than is read"),
        pytest.param(MIB_BYTES, BUSY, id="one MiB"),
        pytest.param(-10 * GIB_BYTES, BUSY, id="given back"),
    ],
)
def test_memory_that_moves_is_a_sign_of_work(grown_bytes: int, verdict: Verdict) -> None:
    moved_at = END - 30 * MINUTE
    held = 20 * GIB_BYTES
    world = World().node().job("GPU-a").reads(until_at=moved_at, memory_used_bytes=held)
    world.reads(from_at=moved_at, until_at=END, memory_used_bytes=held + grown_bytes)
    assert world.judged(END).verdict is verdict


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [pytest.param(15, IDLE, id="every 15 s"), pytest.param(600, IDLE, id="every 10 min")],
)
def test_any_steady_interval_will_do(seconds: int, verdict: Verdict) -> None:
    end = START + (6 * HOUR if seconds > 60 else HOUR)
    world = World().node().job("GPU-a").reads(until_at=end, every=timedelta(seconds=seconds))
    assert world.judged(end).verdict is verdict


def test_missing_power_and_traffic_are_not_zero_and_not_needed() -> None:
    world = (
        World()
        .node()
        .job("GPU-a")
        .reads(
            until_at=END,
            power_w=None,
            energy_j=None,
            pcie_transmit_bytes_per_s=None,
            pcie_receive_bytes_per_s=None,
            nvlink_bytes_per_s=None,
            memory_used_bytes=None,
        )
    )
    (device,) = world.evidence(END).devices
    told = (device.power_peak_w, device.traffic_peak_bytes_per_s, device.memory_change_bytes)
    assert told == (None, None, None)
    assert world.judged(END).verdict is IDLE


def test_history_cut_at_an_instant_is_the_history_of_that_instant() -> None:
    world = World().node().job("GPU-a").reads(until_at=START + HOUR, **WORKING)
    world.reads(from_at=START + HOUR, until_at=END)
    at: datetime = START + 2 * HOUR + 17 * MINUTE
    known_then = World.snapshot_of(world.history(at), at)
    known_later = World.snapshot_of(world.history(END), at)
    assert known_then == known_later
