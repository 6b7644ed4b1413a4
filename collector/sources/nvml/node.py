"""All GPUs of a machine: each read in its own lane, collected before one deadline.

A driver that hangs on one GPU costs that GPU: its lane stays in the call, the GPU is called
unreachable, and the others are read as before. It is back in the cycle after the call returned.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collector.sources.nvml import driver
from collector.sources.nvml.board import Board
from collector.sources.nvml.calls import DriverGoneError, GpuLostError
from collector.sources.nvml.lane import Done, Lane
from collector.sources.nvml.records import (
    Absence,
    Device,
    Health,
    Identity,
    Measure,
    NodeReading,
    Readings,
)
from collector.sources.nvml.xids import XidWatch
from steward.errors import SourceError

log = logging.getLogger(__name__)

START_PATIENCE_S: Final = 60.0
"""Without persistence mode the driver wakes each GPU when the library starts."""
NOW: Final = 0.0
"""A deadline in the past: what is not done yet is not waited for."""
LARGEST_PID: Final = 4_194_304
"""The kernel's own limit, used where /proc does not tell this machine's."""


@dataclass(slots=True)
class _Slot:
    """One GPU's place in the driver's list, and the lane that reads it."""

    index: int
    pid_max: int
    lane: Lane[Device]
    identity: Identity | None = None
    misses: int = 0
    health: Health = Health.UP
    _board: Board | None = None
    _starts: int = 0

    def begin(self, starts: int) -> bool:
        """Give the lane a reading; return False while the one before is under way.

        Args:
            starts: how often the driver was started; handles hold for one start only.
        """
        return self.lane.give(lambda: self._read(starts))

    def _read(self, starts: int) -> Device:
        if self._board is None or self._starts != starts:
            self._board, self._starts = Board.open(self.index, pid_max=self.pid_max), starts
            self.identity = self._board.identity
        try:
            return self._board.read()
        except SourceError:
            self._board = None
            raise


@dataclass(slots=True)
class NvmlNode:
    """The GPUs of this machine.

    Args:
        deadline_s: after which a GPU that has not answered is given up for this cycle.
        proc_root: where the machine's ``/proc`` is.
    """

    deadline_s: float
    proc_root: Path
    _control: Lane[int] = field(default_factory=lambda: Lane("driver"))
    _slots: list[_Slot] = field(default_factory=list)
    _known: dict[str, Identity] = field(default_factory=dict)
    _starts: int = 0
    _is_up: bool = False
    _start_failure: str | None = None
    _xids: XidWatch = field(default_factory=XidWatch)

    def open(self) -> int:
        """Start the driver's library; return the number of GPUs.

        Raises:
            SourceError: library or driver are missing, or do not answer.
        """
        self._control.give(driver.start)
        done = self._control.collect(until_s=time.monotonic() + START_PATIENCE_S)
        if done is None:
            raise SourceError(
                f"the NVIDIA driver has not answered for {START_PATIENCE_S:g} s",
                hint="look into the kernel log for a hung GPU; restart the machine",
            )
        if done.failure is not None:
            raise done.failure
        self._begin(done.value or 0)
        return len(self._slots)

    def read(self) -> NodeReading:
        """Return one cycle's reading; it takes the deadline at most, whatever the driver does."""
        until_s = time.monotonic() + self.deadline_s
        if not self._is_up:
            self._try_start(until_s=until_s)
        asked = [slot for slot in self._slots if self._is_up and slot.begin(self._starts)]
        answers = {slot.index: slot.lane.collect(until_s=until_s) for slot in asked}
        devices = [self._take(slot, answers.get(slot.index)) for slot in self._slots]
        return NodeReading(
            devices=tuple(self._with_missing(devices)),
            is_driver_up=self._is_up,
            deadline_misses={slot.index: slot.misses for slot in self._slots},
            xids=self._xids.counts(),
            last_xids=self._xids.last(),
            watched=self._xids.watched,
        )

    def close(self) -> None:
        """Release the driver, unless a lane is still inside it."""
        is_free = self._xids.close()
        for slot in self._slots:
            slot.lane.close()
            is_free = is_free and slot.lane.busy_since_s is None
        if is_free and self._is_up:
            self._control.give(driver.stop)
            self._control.collect(until_s=time.monotonic() + self.deadline_s)
        self._control.close()

    def _begin(self, gpu_count: int) -> None:
        """Use the driver that was just started."""
        self._starts += 1
        self._is_up = True
        pid_max = _pid_max(self.proc_root)
        for index in range(len(self._slots), gpu_count):
            self._slots.append(_Slot(index, pid_max, Lane(f"gpu-{index}")))
        for gone in self._slots[gpu_count:]:
            gone.lane.close()
        del self._slots[gpu_count:]
        self._xids.watch()

    def _try_start(self, *, until_s: float) -> None:
        """Start the driver again after it was gone; where that fails, the next cycle tries."""
        self._xids.leave()
        is_free = self._xids.is_idle and all(slot.lane.busy_since_s is None for slot in self._slots)
        is_asked = self._control.give(driver.restart if is_free else driver.start)
        done = self._control.collect(until_s=until_s if is_asked else NOW)
        if done is None:
            return
        told, self._start_failure = self._start_failure, str(done.failure)
        if done.failure is None:
            self._begin(done.value or 0)
            log.info("the NVIDIA driver answers again: %d GPUs", len(self._slots))
        elif told != self._start_failure:
            log.warning("the NVIDIA driver cannot be started again: %s", done.failure)

    def _take(self, slot: _Slot, done: Done[Device] | None) -> Device:
        """Return the GPU's reading; None is one that has no answer, or was not asked for."""
        device = self._device(slot, done)
        if device.identity is not None:
            self._known[device.identity.uuid] = device.identity
        if device.health is Health.UP:
            self._xids.add(slot.index)
        self._tell(slot, device.health, failure=None if done is None else done.failure)
        return device

    def _device(self, slot: _Slot, done: Done[Device] | None) -> Device:
        """Return the GPU's reading, or what is known of it where there is none."""
        if done is None:
            slot.misses += self._is_up
            return _silent(slot, Health.UNREACHABLE, Absence.TIMEOUT)
        if done.value is not None:
            return done.value
        if isinstance(done.failure, GpuLostError):
            return _silent(slot, Health.LOST, Absence.LOST)
        if isinstance(done.failure, DriverGoneError):
            self._is_up = False
        return _silent(slot, Health.UNREACHABLE, Absence.FAILED)

    def _with_missing(self, devices: list[Device]) -> list[Device]:
        """Return the devices with those that the driver no longer lists."""
        listed = {device.identity.uuid for device in devices if device.identity is not None}
        missing = [
            Device(
                index=identity.index,
                identity=identity,
                health=Health.LOST,
                readings=_nothing(Absence.LOST),
            )
            for uuid, identity in self._known.items()
            if uuid not in listed
        ]
        return sorted([*devices, *missing], key=lambda device: device.index)

    def _tell(self, slot: _Slot, health: Health, *, failure: Exception | None) -> None:
        """Log a GPU whose health changed."""
        before, slot.health = slot.health, health
        if health is before:
            return
        name = slot.identity.uuid if slot.identity is not None else "no UUID known"
        if health is Health.UP:
            log.info("GPU %d (%s) answers again, was %s", slot.index, name, before)
            return
        why = failure or f"it has not answered for {self.deadline_s:g} s"
        log.warning("GPU %d (%s) is %s: %s", slot.index, name, health, why)


def _silent(slot: _Slot, health: Health, reason: Absence) -> Device:
    return Device(
        index=slot.index, identity=slot.identity, health=health, readings=_nothing(reason)
    )


def _nothing(reason: Absence) -> Readings:
    return Readings(absences=dict.fromkeys(Measure, reason))


def _pid_max(proc_root: Path) -> int:
    try:
        return int((proc_root / "sys/kernel/pid_max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return LARGEST_PID
