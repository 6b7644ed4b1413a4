"""GPUs that hang, are lost or come back, and drivers that go away: the others are still read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from collector.sources.nvml.node import NvmlNode
from collector.sources.nvml.records import Absence, Health, Measure, NodeReading, XidCount
from steward.errors import SourceError
from tests.support.nvml_stub import UUIDS, Stub

PATIENCE_S = 20.0


def health(reading: NodeReading) -> list[Health]:
    return [device.health for device in reading.devices]


def read_until(node: NvmlNode, wanted: list[Health]) -> NodeReading:
    """Read until the GPUs are in this state."""
    until_s = time.monotonic() + PATIENCE_S
    while health(reading := node.read()) != wanted:
        assert time.monotonic() < until_s, health(reading)
    return reading


def test_eight_gpus_are_read_side_by_side(stub: Stub) -> None:
    """Two calls of 200 ms on each would take 3.2 s one after the other."""
    with stub.node("gpus=8", "no_gpm", "no_fields", "slow_pcie", deadline_s=5.0) as node:
        began_s = time.monotonic()
        reading = node.read()
        took_s = time.monotonic() - began_s
    assert health(reading) == [Health.UP] * 8
    assert 0.4 <= took_s < 1.6


def test_fault_28_lost_gpu_is_reported_and_others_are_read(stub: Stub) -> None:
    with stub.node("ok") as node:
        assert health(node.read()) == [Health.UP, Health.UP]
        stub.play("lost@1")
        reading = node.read()
        assert health(reading) == [Health.UP, Health.LOST]
        lost = reading.devices[1]
        assert lost.identity is not None
        assert lost.identity.uuid == UUIDS[1]
        assert set(lost.readings.absences.values()) == {Absence.LOST}
        assert reading.devices[0].readings.values[Measure.POWER] == 412.345
        stub.play("ok")
        assert health(node.read()) == [Health.UP, Health.UP]


def test_a_gpu_that_is_lost_from_the_start_has_no_identity(stub: Stub) -> None:
    with stub.node("lost@0") as node:
        lost, other = node.read().devices
    assert (lost.health, lost.identity, other.health) == (Health.LOST, None, Health.UP)


def test_fault_29_hanging_call_costs_one_gpu_and_no_time(
    stub: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    with stub.node("gpus=4", "hang@2", "hang_s=5", deadline_s=1.0) as node:
        began_s = time.monotonic()
        first = node.read()
        middle_s = time.monotonic()
        second = node.read()
        end_s = time.monotonic()
        assert health(first) == health(second)
        assert health(first) == [Health.UP, Health.UP, Health.UNREACHABLE, Health.UP]
        assert 1.0 <= middle_s - began_s < 2.0
        assert end_s - middle_s < 0.9  # a lane that is known to hang is not waited for
        assert first.devices[2].identity is not None
        assert set(first.devices[2].readings.absences.values()) == {Absence.TIMEOUT}
        assert second.deadline_misses == {0: 0, 1: 0, 2: 2, 3: 0}
        stub.play("gpus=4")
        read_until(node, [Health.UP] * 4)
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    told = [message for message in warnings if "GPU 2" in message]
    assert told == [f"GPU 2 ({UUIDS[2]}) is unreachable: it has not answered for 1 s"]


def test_a_slow_gpu_is_given_up_and_its_late_answer_is_not_used(stub: Stub) -> None:
    with stub.node("slow@0", deadline_s=1.0) as node:
        assert health(node.read()) == [Health.UNREACHABLE, Health.UP]
        stub.play("ok")
        read_until(node, [Health.UP, Health.UP])


def test_a_gpu_that_refuses_everything_is_unreachable(stub: Stub) -> None:
    with stub.node("ok") as node:
        node.read()
        stub.play("refuse@0")
        reading = node.read()
    assert health(reading) == [Health.UNREACHABLE, Health.UP]
    assert set(reading.devices[0].readings.absences.values()) == {Absence.FAILED}


def test_a_reloaded_driver_is_started_again(stub: Stub) -> None:
    with stub.node("ok") as node:
        assert node.read().is_driver_up
        stub.play("reload=1")
        gone = node.read()
        assert (gone.is_driver_up, health(gone)) == (False, [Health.UNREACHABLE] * 2)
        back = node.read()
        assert (back.is_driver_up, health(back)) == (True, [Health.UP] * 2)
        identity = back.devices[0].identity
        assert identity is not None
        assert identity.driver_version == "580.95.06"
        assert Measure.SM_ACTIVE not in back.devices[0].readings.values


def test_an_unloaded_driver_is_tried_again_in_each_cycle(stub: Stub) -> None:
    with stub.node("ok") as node:
        node.read()
        stub.play("unloaded", "reload=1")
        node.read()
        node.read()
        reading = node.read()
        assert (reading.is_driver_up, health(reading)) == (False, [Health.UNREACHABLE] * 2)
        stub.play("reload=2")
        read_until(node, [Health.UP] * 2)


def test_a_gpu_that_is_no_longer_listed_is_lost(stub: Stub) -> None:
    with stub.node("gpus=3") as node:
        node.read()
        stub.play("gpus=2", "reload=1")
        node.read()
        reading = node.read()
    assert health(reading) == [Health.UP, Health.UP, Health.LOST]
    identity = reading.devices[2].identity
    assert identity is not None
    assert identity.uuid == UUIDS[2]


def test_xids_are_counted_and_the_last_is_kept(stub: Stub) -> None:
    with stub.node("ok") as node:
        reading = node.read()
        for code in (31, 31, 43, 31):
            before = reading.xids
            stub.report_xid(0, code)
            until_s = time.monotonic() + PATIENCE_S
            while (reading := node.read()).xids == before:
                assert time.monotonic() < until_s
        assert reading.xids == (
            XidCount(uuid=UUIDS[0], instance_id=None, xid=31, count=3),
            XidCount(uuid=UUIDS[0], instance_id=None, xid=43, count=1),
        )
        assert reading.last_xids == {(UUIDS[0], None): 31}
        assert reading.watched == {UUIDS[0], UUIDS[1]}


def test_a_gpu_that_hangs_from_the_start_costs_no_xids_of_others(stub: Stub) -> None:
    with stub.node("stuck@0", "hang_s=4", deadline_s=1.0) as node:
        assert health(node.read()) == [Health.UNREACHABLE, Health.UP]
        stub.report_xid(1, 31, "stuck@0", "hang_s=4")
        until_s = time.monotonic() + PATIENCE_S
        while not (reading := node.read()).xids:
            assert time.monotonic() < until_s
        assert reading.last_xids == {(UUIDS[1], None): 31}
        stub.play("ok")
        read_until(node, [Health.UP, Health.UP])


def test_a_guest_reports_no_xids(stub: Stub) -> None:
    with stub.node("vgpu") as node:
        assert node.read().watched == frozenset()


@pytest.mark.parametrize(
    ("word", "message"),
    [
        pytest.param("unloaded", "the NVIDIA driver is not loaded", id="no driver"),
        pytest.param(
            "mismatch",
            "the NVIDIA driver and its library have different versions",
            id="after an upgrade",
        ),
    ],
)
def test_a_driver_that_cannot_be_used_is_one_clear_error(
    stub: Stub, word: str, message: str
) -> None:
    stub.play(word)
    node = NvmlNode(deadline_s=1.0, proc_root=Path("/proc"))
    with pytest.raises(SourceError) as caught:
        node.open()
    node.close()
    assert caught.value.message == message
    assert caught.value.hint
