"""Processes on a device: who holds a context, how much memory, how busy.

Traps of the driver: an idle GPU answers "not found" or an error with code 0, which are both no
error; "no value" stands for memory that may not be told; a driver and a binding that disagree on
the record's layout swap pid and memory, so impossible records are left out; the utilisation ring
also holds processes that have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

import pynvml

from collector.sources.nvml import scales
from collector.sources.nvml.calls import RefusedError, call
from collector.sources.nvml.records import Absence, DeviceProcess, Measure, Readings
from collector.sources.nvml.signals import Handle

T = TypeVar("T")

NO_INSTANCE: Final = 0xFFFF_FFFF
_Listing = Callable[[Handle], list[pynvml.nvmlFriendlyObject]]
_COMPUTE: Final[tuple[_Listing, ...]] = (
    pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
    pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
)
_OTHERS: Final[tuple[_Listing, ...]] = (
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
)
_EMPTY_CODES: Final = frozenset({pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND})
"""``pynvml`` raises code 0 where asking for the size succeeds since there is nothing to size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a record can say at all."""

    pid_max: int
    """The kernel's largest pid."""
    memory_bytes: float | None
    """The device's memory; None where it is not told."""


class ProcessReader:
    """Processes of one GPU; remembers which utilisation samples it has seen."""

    def __init__(self) -> None:
        """Start before the first sample."""
        self._seen_us = 0

    def take(
        self, handles: Iterable[tuple[int | None, Handle]], *, limits: Limits, into: Readings
    ) -> tuple[DeviceProcess, ...]:
        """Return the processes by pid, and keep their number.

        Args:
            handles: the board, or each instance with its id where the board is divided.
            limits: what is possible on this machine.
            into: takes the number of processes, or why there is none.
        """
        found: dict[tuple[int, int | None], DeviceProcess] = {}
        refusals: list[Absence] = []
        for instance_id, handle in handles:
            try:
                listed = _listed(handle)
            except RefusedError as refused:
                refusals.append(refused.reason)
                continue
            ratios = {} if instance_id is not None else self._sm_ratios(handle)
            for record in listed:
                if not _is_possible(record, limits):
                    refusals.append(Absence.OUT_OF_RANGE)
                    continue
                _add(found, record, instance_id=instance_id, ratios=ratios)
        if refusals:
            into.miss(Measure.PROCESSES, refusals[0])
        else:
            into.put(Measure.PROCESSES, len({pid for pid, _ in found}))
        return tuple(found[key] for key in sorted(found, key=_order))

    def _sm_ratios(self, handle: Handle) -> dict[int, float]:
        """Return the latest share of multiprocessors by pid, of samples not seen before."""
        try:
            samples = _or_empty(pynvml.nvmlDeviceGetProcessUtilization, handle, self._seen_us)
        except RefusedError:
            return {}
        ratios: dict[int, float] = {}
        for sample in sorted(samples, key=lambda sample: sample.timeStamp):
            if sample.timeStamp <= self._seen_us:
                continue
            ratio = scales.PERCENT.base(sample.smUtil)
            if ratio is None:
                ratios.pop(sample.pid, None)
            else:
                ratios[sample.pid] = ratio
        self._seen_us = max((sample.timeStamp for sample in samples), default=self._seen_us)
        return ratios


def _order(key: tuple[int, int | None]) -> tuple[int, int]:
    pid, instance_id = key
    return pid, -1 if instance_id is None else instance_id


def _listed(handle: Handle) -> list[pynvml.nvmlFriendlyObject]:
    """Return compute, graphics and MPS processes; only the first kind must be readable."""
    newest, older = _COMPUTE
    try:
        records = _or_empty(newest, handle)
    except RefusedError as refused:
        if refused.reason is not Absence.NOT_SUPPORTED:
            raise
        records = _or_empty(older, handle)
    for listing in _OTHERS:
        try:
            records += _or_empty(listing, handle)
        except RefusedError:
            continue
    return records


def _or_empty(function: Callable[..., list[T]], *arguments: object) -> list[T]:
    """Return what the driver lists; nothing where it says that there is nothing."""

    def listing() -> list[T]:
        try:
            return function(*arguments)
        except pynvml.NVMLError as error:
            if error.value in _EMPTY_CODES:
                return []
            raise

    return call(listing)


def _is_possible(record: pynvml.nvmlFriendlyObject, limits: Limits) -> bool:
    """Tell whether a record can be true: no such pid exists where it was swapped with memory."""
    memory = record.usedGpuMemory
    fits = memory is None or limits.memory_bytes is None or memory <= limits.memory_bytes
    return fits and 0 < record.pid <= limits.pid_max


def _add(
    found: dict[tuple[int, int | None], DeviceProcess],
    record: pynvml.nvmlFriendlyObject,
    *,
    instance_id: int | None,
    ratios: dict[int, float],
) -> None:
    """Add a record; of two records of one process the larger memory holds."""
    memory = record.usedGpuMemory
    told = record.gpuInstanceId
    instance = told if instance_id is None and told != NO_INSTANCE else instance_id
    key = (record.pid, instance)
    known = found.get(key)
    known_bytes = None if known is None else known.memory_used_bytes
    both = [amount for amount in (known_bytes, memory) if amount is not None]
    found[key] = DeviceProcess(
        pid=record.pid,
        instance_id=instance,
        memory_used_bytes=max(both, default=None),
        sm_ratio=ratios.get(record.pid),
    )
