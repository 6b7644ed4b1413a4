"""Every scene that NVIDIA's library can play, read through the true ``pynvml``."""

from __future__ import annotations

import time

import pytest

from collector.sources.nvml.records import (
    Absence,
    Device,
    DeviceProcess,
    Health,
    Identity,
    Measure,
    NodeReading,
    Placement,
)
from tests.support.nvml_stub import UUIDS, Stub

PROFILING = {
    Measure.GRAPHICS_ACTIVE: 0.71,
    Measure.SM_ACTIVE: 0.64,
    Measure.SM_OCCUPANCY: 0.38,
    Measure.INTEGER_ACTIVE: 0.11,
    Measure.TENSOR_ACTIVE: 0.29,
    Measure.DRAM_ACTIVE: 0.44,
    Measure.FP64_ACTIVE: 0.0,
    Measure.FP32_ACTIVE: 0.0,
    Measure.FP16_ACTIVE: 0.0,
}
STEADY = {
    Measure.BUSY: 0.73,
    Measure.MEMORY_BUSY: 0.41,
    Measure.ENCODER: 0.03,
    Measure.DECODER: 0.07,
    Measure.JPEG: 0.05,
    Measure.OPTICAL_FLOW: 0.06,
    Measure.MEMORY_USED: 5_368_709_120,
    Measure.MEMORY_FREE: 79_456_894_976,
    Measure.MEMORY_RESERVED: 1_073_741_824,
    Measure.MEMORY_TOTAL: 85_899_345_920,
    Measure.POWER: 412.345,
    Measure.POWER_AVERAGE: 433.0,
    Measure.POWER_INSTANT: 455.0,
    Measure.POWER_LIMIT: 700.0,
    Measure.TEMPERATURE: 54,
    Measure.MEMORY_TEMPERATURE: 61,
    Measure.SM_CLOCK: 1_980_000_000,
    Measure.MEMORY_CLOCK: 2_619_000_000,
    Measure.GRAPHICS_CLOCK: 1_980_000_000,
    Measure.VIDEO_CLOCK: 1_545_000_000,
    Measure.CLOCK_EVENT_REASONS: 0x24,
    Measure.POWER_THROTTLED: 2.5,
    Measure.THERMAL_THROTTLED: 1.5,
    Measure.PCIE_REPLAYS: 12,
    Measure.ECC_CORRECTED: 40,
    Measure.ECC_UNCORRECTED: 1,
    Measure.ROW_REMAP_CORRECTED: 2,
    Measure.ROW_REMAP_UNCORRECTED: 1,
    Measure.ROW_REMAP_PENDING: 1,
    Measure.ROW_REMAP_FAILED: 0,
    Measure.RETIRED_SINGLE_BIT: 3,
    Measure.RETIRED_DOUBLE_BIT: 4,
    Measure.PROCESSES: 2,
}
MIB = 1_048_576


def second_reading(stub: Stub, *words: str) -> NodeReading:
    """Return the second reading: rates and profiling need one before."""
    with stub.node(*words) as node:
        node.read()
        time.sleep(0.11)  # profiling samples must lie 100 ms apart: the driver's rule
        return node.read()


def first_gpu(stub: Stub, *words: str) -> Device:
    return second_reading(stub, *words).devices[0]


def test_all_signals_of_a_hopper(stub: Stub) -> None:
    device = first_gpu(stub, "ok")
    values = dict(device.readings.values)
    energy_j, nvlink = values.pop(Measure.ENERGY), values.pop(Measure.NVLINK)
    assert values == STEADY | PROFILING | {
        Measure.PCIE_TRANSMIT: 1024 * MIB,
        Measure.PCIE_RECEIVE: 512 * MIB,
    }
    assert 600 <= energy_j < 700
    assert nvlink == pytest.approx(4 * 1_024 * 1_000, rel=0.05)
    assert device.readings.absences == {Measure.FAN: Absence.NOT_SUPPORTED}
    assert device.health is Health.UP


def test_who_a_gpu_is(stub: Stub) -> None:
    device = first_gpu(stub, "fabric")
    assert device.identity == Identity(
        uuid=UUIDS[0],
        index=0,
        minor=1,
        model="NVIDIA H100 80GB HBM3",
        pci_bus_id="00000000:1B:00.0",
        serial="165042000000",
        driver_version="580.95.05",
        fabric_clique="abababab-abab-abab-abab-abababababab.32766",
        virtualization=None,
    )


def test_the_nvlink_domain_is_learned_when_it_is_told(stub: Stub) -> None:
    with stub.node("ok") as node:
        before = node.read().devices[0].identity
        stub.play("fabric")
        after = node.read().devices[0].identity
    assert before is not None
    assert after is not None
    assert (before.fabric_clique, after.fabric_clique) == (
        None,
        "abababab-abab-abab-abab-abababababab.32766",
    )


def test_first_sight_has_no_profiling_row_and_no_rate(stub: Stub) -> None:
    with stub.node("ok") as node:
        (device, _) = node.read().devices
    missing = {*PROFILING, Measure.PCIE_TRANSMIT, Measure.PCIE_RECEIVE, Measure.NVLINK}
    assert missing.isdisjoint(device.readings.values)
    assert missing.isdisjoint(device.readings.absences)


def test_busy_with_one_thread(stub: Stub) -> None:
    """A duty cycle of 100 % says nothing of load: 0.76 % of the multiprocessors work."""
    values = first_gpu(stub, "busy_tiny").readings.values
    assert values[Measure.BUSY] == 1.0
    assert values[Measure.SM_ACTIVE] == pytest.approx(0.0076)
    assert values[Measure.TENSOR_ACTIVE] == 0.0


def test_fan_of_a_board_that_has_one(stub: Stub) -> None:
    assert second_reading(stub, "ok").devices[1].readings.values[Measure.FAN] == 0.42


def test_mig(stub: Stub) -> None:
    device = first_gpu(stub, "mig")
    assert device.is_mig
    assert device.readings.absences[Measure.BUSY] is Absence.NOT_SUPPORTED
    assert device.readings.values[Measure.POWER] == 412.345
    large, small, other = device.instances
    assert [each.instance_id for each in device.instances] == [7, 8, 9]
    assert (large.profile, small.profile) == ("3g.40gb", "1g.10gb")
    assert (large.sm_share_ratio, large.memory_share_ratio) == (60 / 132, 4 / 8)
    assert (small.sm_share_ratio, small.memory_share_ratio) == (16 / 132, 1 / 8)
    assert large.placement == Placement(profile_id=9, start=0)
    assert other.placement == Placement(profile_id=19, start=5)
    assert small.readings.values == PROFILING | {
        Measure.DRAM_ACTIVE: 0.648,
        Measure.MEMORY_USED: 5_368_709_120,
        Measure.MEMORY_FREE: 4_294_967_296,
        Measure.MEMORY_RESERVED: 1_073_741_824,
        Measure.MEMORY_TOTAL: 10_737_418_240,
        Measure.PROCESSES: 1,
    }


def test_two_compute_instances_are_one_instance(stub: Stub) -> None:
    large = first_gpu(stub, "mig", "mig_two_ci").instances[0]
    assert large.uuids == (
        "MIG-5e700000-0000-0000-0000-000000000007",
        "MIG-5e700000-0000-0000-0001-000000000007",
    )
    assert large.sm_share_ratio == 3 / 7


def test_instances_come_and_go(stub: Stub) -> None:
    with stub.node("ok") as node:
        assert node.read().devices[0].instances == ()
        stub.play("mig")
        assert len(node.read().devices[0].instances) == 3
        time.sleep(0.11)  # as above
        values = node.read().devices[0].instances[0].readings.values
        assert values[Measure.SM_ACTIVE] == 0.64
        stub.play("ok")
        assert node.read().devices[0].instances == ()


def test_garbage_is_no_reading(stub: Stub) -> None:
    readings = first_gpu(stub, "garbage").readings
    silent = {
        *(Measure.BUSY, Measure.MEMORY_BUSY, Measure.POWER, Measure.ENERGY, Measure.TEMPERATURE),
        *(Measure.MEMORY_USED, Measure.SM_OCCUPANCY, Measure.GRAPHICS_ACTIVE),
    }
    assert {readings.absences[measure] for measure in silent} == {Absence.OUT_OF_RANGE}
    assert silent.isdisjoint(readings.values)
    assert readings.values[Measure.SM_ACTIVE] == pytest.approx(1.294)


def test_fault_33_unified_memory(stub: Stub) -> None:
    device = first_gpu(stub, "uma")
    memory = [
        measure for measure in Measure if measure.startswith("memory_") and "bytes" in measure
    ]
    assert {device.readings.absences[measure] for measure in memory} == {Absence.NOT_SUPPORTED}
    assert device.identity is not None
    assert device.identity.model == "NVIDIA GB10"
    assert device.readings.values[Measure.BUSY] == 0.73


def test_no_permission(stub: Stub) -> None:
    device = first_gpu(stub, "no_permission")
    refused = {*PROFILING, Measure.PROCESSES}
    assert {device.readings.absences[measure] for measure in refused} == {Absence.NO_PERMISSION}
    assert device.processes == ()
    assert device.readings.values[Measure.POWER] == 412.345


def test_guest_of_a_vgpu(stub: Stub) -> None:
    device = first_gpu(stub, "vgpu")
    assert device.identity is not None
    assert device.identity.virtualization == "vgpu"
    not_for_guests = {*PROFILING, Measure.POWER, Measure.ENERGY}
    reasons = {device.readings.absences[measure] for measure in not_for_guests}
    assert reasons == {Absence.NOT_SUPPORTED}
    assert device.readings.values[Measure.MEMORY_TOTAL] == 85_899_345_920


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        pytest.param(("no_gpm",), 2_000_000, id="64-bit counters"),
        pytest.param(("no_gpm", "pcie32"), 4_096_000, id="32-bit counters wrap: the direct call"),
        pytest.param(("no_gpm", "no_fields"), 4_096_000, id="no counters: the direct call"),
        pytest.param(("pcie32",), 1024 * MIB, id="profiling counters instead"),
    ],
)
def test_pcie_traffic_without_waiting_where_possible(
    stub: Stub, words: tuple[str, ...], sent: float
) -> None:
    values = first_gpu(stub, *words).readings.values
    assert values[Measure.PCIE_TRANSMIT] == pytest.approx(sent, rel=0.05)


def test_fault_31_idle_gpu_has_no_process_and_no_error(stub: Stub) -> None:
    device = first_gpu(stub, "idle")
    assert device.processes == ()
    assert device.readings.values[Measure.PROCESSES] == 0


def test_processes(stub: Stub) -> None:
    """The second may not be told its memory; the utilisation of an ended one is nobody's."""
    assert first_gpu(stub, "ok").processes == (
        DeviceProcess(pid=1234, instance_id=None, memory_used_bytes=2_147_483_648, sm_ratio=None),
        DeviceProcess(pid=4242, instance_id=None, memory_used_bytes=None, sm_ratio=0.37),
    )


def test_a_size_of_nothing_is_no_error(stub: Stub) -> None:
    processes = first_gpu(stub, "no_samples").processes
    assert [(each.pid, each.sm_ratio) for each in processes] == [(1234, None), (4242, None)]


def test_impossible_utilisation_of_a_process_is_none(stub: Stub) -> None:
    assert {each.sm_ratio for each in first_gpu(stub, "garbage").processes} == {None}


def test_processes_of_instances(stub: Stub) -> None:
    places = {(each.pid, each.instance_id) for each in first_gpu(stub, "mig").processes}
    assert places == {(1234, 7), (4242, 7), (1234, 8), (1234, 9)}


def test_fault_32_swapped_process_records_are_left_out(stub: Stub) -> None:
    device = first_gpu(stub, "swapped")
    assert device.processes == ()
    assert device.readings.absences[Measure.PROCESSES] is Absence.OUT_OF_RANGE


def test_fault_35_the_minor_number_is_not_the_index(stub: Stub) -> None:
    devices = second_reading(stub, "ok").devices
    names = [
        (each.identity.uuid, each.index, each.identity.minor) for each in devices if each.identity
    ]
    assert names == [(UUIDS[0], 0, 1), (UUIDS[1], 1, 0)]
