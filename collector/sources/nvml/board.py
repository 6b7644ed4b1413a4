"""One GPU: everything that is read of it in one cycle, in the thread that owns it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pynvml

from collector.sources.nvml.calls import call
from collector.sources.nvml.fields import take_fields
from collector.sources.nvml.gpm import GpmReader, miss_all
from collector.sources.nvml.identity import VGPU_GUEST, fabric_clique, read_identity
from collector.sources.nvml.instances import (
    MigDevice,
    describe,
    is_mig_enabled,
    mig_devices,
)
from collector.sources.nvml.processes import Limits, ProcessReader
from collector.sources.nvml.rates import RateMeter
from collector.sources.nvml.records import (
    Absence,
    Device,
    DeviceProcess,
    Health,
    Identity,
    Instance,
    Measure,
    Readings,
)
from collector.sources.nvml.signals import (
    BOARD_SIGNALS,
    OLD_MEMORY,
    PCIE_THROUGHPUT,
    Handle,
    take,
)
from steward.errors import SourceError


@dataclass(slots=True)
class Board:
    """One GPU since the driver was last started.

    Args:
        index: NVML's number.
        handle: from the driver.
        identity: who it is.
        pid_max: the kernel's largest pid.
    """

    index: int
    handle: Handle
    identity: Identity
    pid_max: int
    _gpm: GpmReader = field(default_factory=GpmReader)
    _meter: RateMeter = field(default_factory=RateMeter)
    _processes: ProcessReader = field(default_factory=ProcessReader)

    @classmethod
    def open(cls, index: int, *, pid_max: int) -> Board:
        """Return the GPU with this number.

        Raises:
            GpuLostError: it is gone.
            DriverGoneError: the driver is gone.
            RefusedError: it does not say who it is.
        """
        handle = call(pynvml.nvmlDeviceGetHandleByIndex, index)
        identity = read_identity(handle, index=index)
        return cls(index=index, handle=handle, identity=identity, pid_max=pid_max)

    def read(self) -> Device:
        """Return all signals of this GPU, its instances and processes.

        Raises:
            GpuLostError: it is gone.
            DriverGoneError: the driver is gone.
            SourceError: no signal can be read at all.
        """
        readings = Readings()
        take(BOARD_SIGNALS, self.handle, into=readings)
        if Measure.MEMORY_TOTAL not in readings.values:
            take((OLD_MEMORY,), self.handle, into=readings)
        if not readings.values:
            raise SourceError(
                f"the driver refuses every signal of GPU {self.index}",
                hint="look into the kernel log; reset the GPU",
            )
        self._join_fabric()
        self._take_traffic(readings)
        self._take_gpm(self.identity.uuid, instance_id=None, into=readings)
        is_mig = is_mig_enabled(self.handle)
        divided = mig_devices(self.handle) if is_mig else []
        self._gpm.keep_only({each.instance_id for each in divided})
        processes = self._read_processes(divided, into=readings)
        return Device(
            index=self.index,
            identity=self.identity,
            health=Health.UP,
            readings=readings,
            instances=tuple(self._instance(each, processes=processes) for each in divided),
            processes=processes,
            is_mig=is_mig,
        )

    def _join_fabric(self) -> None:
        """Learn the NVLink domain: after a start of the machine it is told minutes later."""
        if self.identity.fabric_clique is None:
            clique = fabric_clique(self.handle)
            self.identity = replace(self.identity, fabric_clique=clique)

    def _take_traffic(self, into: Readings) -> None:
        """Keep what PCIe and NVLink carry.

        The direct call for PCIe waits 20 ms for each direction, so it is made only where neither
        the driver's counters nor the profiling ones exist.
        """
        has_counters = take_fields(self.handle, into=into, meter=self._meter)
        if not has_counters and not self._has_gpm():
            take(PCIE_THROUGHPUT, self.handle, into=into)

    def _has_gpm(self) -> bool:
        """Return whether there are profiling signals; a guest's part of a GPU has none."""
        return self.identity.virtualization != VGPU_GUEST and self._gpm.is_supported(self.handle)

    def _take_gpm(self, owner: str, *, instance_id: int | None, into: Readings) -> None:
        if self._has_gpm():
            self._gpm.take(self.handle, owner=owner, instance_id=instance_id, into=into)
        else:
            miss_all(into, Absence.NOT_SUPPORTED)

    def _read_processes(
        self, divided: list[MigDevice], *, into: Readings
    ) -> tuple[DeviceProcess, ...]:
        places: list[tuple[int | None, Handle]] = [
            (each.instance_id, each.handle) for each in divided
        ]
        limits = Limits(pid_max=self.pid_max, memory_bytes=into.values.get(Measure.MEMORY_TOTAL))
        return self._processes.take(places or [(None, self.handle)], limits=limits, into=into)

    def _instance(self, found: MigDevice, *, processes: tuple[DeviceProcess, ...]) -> Instance:
        readings = Readings()
        owner, instance_id = ",".join(found.uuids), found.instance_id
        self._take_gpm(owner, instance_id=instance_id, into=readings)
        inside = {each.pid for each in processes if each.instance_id == instance_id}
        readings.put(Measure.PROCESSES, len(inside))
        return describe(found, board=self.handle, readings=readings)
