"""MIG instances of one board: which there are, what part of it each is, and their signals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pynvml

from collector.sources.nvml.calls import optional
from collector.sources.nvml.records import Instance, Placement, Readings
from collector.sources.nvml.signals import INSTANCE_SIGNALS, Handle, take

MIG_ENABLED: Final = 1
MEMORY_SLICES: Final = 8
"""Memory of every MIG board is divided into eighths."""
_NAME_MARK: Final = " MIG "


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """A board's largest instance: what shares are shares of."""

    slice_count: int
    multiprocessor_count: int
    memory_mib: int


@dataclass(slots=True, kw_only=True)
class MigDevice:
    """One instance while it is gathered: a compute instance each, joined by GPU instance."""

    instance_id: int
    handle: Handle
    uuids: list[str]


def is_mig_enabled(handle: Handle) -> bool:
    """Return whether the board is divided; False where MIG does not exist."""
    modes = optional(pynvml.nvmlDeviceGetMigMode, handle)
    return modes is not None and modes[0] == MIG_ENABLED


def mig_devices(board: Handle) -> list[MigDevice]:
    """Return the instances by id, asked anew each time since they come and go."""
    found: dict[int, MigDevice] = {}
    for handle in _mig_handles(board):
        instance_id = optional(pynvml.nvmlDeviceGetGpuInstanceId, handle)
        uuid = optional(pynvml.nvmlDeviceGetUUID, handle)
        if instance_id is None or uuid is None:
            continue
        known = found.setdefault(
            instance_id, MigDevice(instance_id=instance_id, handle=handle, uuids=[])
        )
        known.uuids.append(uuid)
    return [found[instance_id] for instance_id in sorted(found)]


def _mig_handles(board: Handle) -> Iterator[Handle]:
    count = optional(pynvml.nvmlDeviceGetMaxMigDeviceCount, board) or 0
    for place in range(count):
        handle = optional(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, board, place)
        if handle is not None:
            yield handle


def describe(device: MigDevice, *, board: Handle, readings: Readings) -> Instance:
    """Return the instance with its shares; its own signals are read here."""
    take(INSTANCE_SIGNALS, device.handle, into=readings)
    sm_share_ratio, memory_share_ratio = _shares(device.handle, board=board)
    return Instance(
        instance_id=device.instance_id,
        uuids=tuple(device.uuids),
        profile=_profile(device.handle),
        sm_share_ratio=sm_share_ratio,
        memory_share_ratio=memory_share_ratio,
        placement=_placement(board, device.instance_id),
        readings=readings,
    )


def _profile(handle: Handle) -> str | None:
    """Return ``1g.10gb`` of ``NVIDIA H100 80GB HBM3 MIG 1g.10gb``."""
    name = optional(pynvml.nvmlDeviceGetName, handle) or ""
    return name.partition(_NAME_MARK)[2].strip() or None


def _whole(board: Handle) -> _Whole | None:
    for profile in (
        pynvml.NVML_GPU_INSTANCE_PROFILE_7_SLICE,
        pynvml.NVML_GPU_INSTANCE_PROFILE_4_SLICE,  # an A30 has no larger one
    ):
        largest = optional(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, board, profile)
        if largest is not None and largest.multiprocessorCount and largest.memorySizeMB:
            return _Whole(
                slice_count=largest.sliceCount,
                multiprocessor_count=largest.multiprocessorCount,
                memory_mib=largest.memorySizeMB,
            )
    return None


def _shares(handle: Handle, *, board: Handle) -> tuple[float | None, float | None]:
    """Return the instance's part of multiprocessors and of memory.

    The driver tells the multiprocessors of a compute instance: where that is not the whole GPU
    instance, slices are counted instead. Memory comes in eighths, of which a little is reserved.
    """
    attributes = optional(pynvml.nvmlDeviceGetAttributes, handle)
    whole = _whole(board)
    if attributes is None or whole is None:
        return None, None
    is_whole = attributes.computeInstanceSliceCount == attributes.gpuInstanceSliceCount
    if is_whole and attributes.multiprocessorCount:
        sm_ratio = attributes.multiprocessorCount / whole.multiprocessor_count
    else:
        sm_ratio = attributes.gpuInstanceSliceCount / whole.slice_count
    eighths = round(attributes.memorySizeMB / whole.memory_mib * MEMORY_SLICES)
    return min(sm_ratio, 1.0), min(max(eighths, 1) / MEMORY_SLICES, 1.0)


def _placement(board: Handle, instance_id: int) -> Placement | None:
    """Return where the instance lies; None without the right to ask."""
    handle = optional(pynvml.nvmlDeviceGetGpuInstanceById, board, instance_id)
    if handle is None:
        return None
    found = optional(pynvml.nvmlGpuInstanceGetInfo, handle)
    if found is None:
        return None
    return Placement(profile_id=found.profileId, start=found.placement.start)
