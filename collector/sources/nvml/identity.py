"""Who a GPU is: read once after each start of the driver."""

from __future__ import annotations

import ctypes
from types import MappingProxyType
from typing import Final
from uuid import UUID

import pynvml

from collector.sources.nvml.calls import RefusedError, call, optional
from collector.sources.nvml.records import Identity
from collector.sources.nvml.signals import Handle

_VIRTUALIZATIONS: Final = MappingProxyType(
    {
        pynvml.NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH: "passthrough",
        pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU: "vgpu",
        pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU: "host_vgpu",
        pynvml.NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA: "host_vsga",
    }
)
VGPU_GUEST: Final = _VIRTUALIZATIONS[pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU]


def read_identity(handle: Handle, *, index: int) -> Identity:
    """Return who this GPU is.

    Raises:
        GpuLostError: the GPU is gone.
        DriverGoneError: the driver is gone.
        RefusedError: it has no UUID, without which no series could be told from another's.
    """
    pci = optional(pynvml.nvmlDeviceGetPciInfo, handle)
    mode = optional(pynvml.nvmlDeviceGetVirtualizationMode, handle)
    return Identity(
        uuid=call(pynvml.nvmlDeviceGetUUID, handle),
        index=index,
        minor=optional(pynvml.nvmlDeviceGetMinorNumber, handle),
        model=optional(pynvml.nvmlDeviceGetName, handle) or None,
        pci_bus_id=None if pci is None else pci.busId or None,
        serial=optional(pynvml.nvmlDeviceGetSerial, handle) or None,
        driver_version=optional(pynvml.nvmlSystemGetDriverVersion) or None,
        fabric_clique=fabric_clique(handle),
        virtualization=None if mode is None else _VIRTUALIZATIONS.get(mode),
    )


def fabric_clique(handle: Handle) -> str | None:
    """Return the NVLink domain; None before it is registered, and on GPUs outside of one.

    Raises:
        GpuLostError: the GPU is gone.
        DriverGoneError: the driver is gone.
    """
    answer = pynvml.c_nvmlGpuFabricInfo_v2_t()
    try:
        call(pynvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(answer))
    except RefusedError:
        return None
    cluster = bytes(answer.clusterUuid)
    if answer.state != pynvml.NVML_GPU_FABRIC_STATE_COMPLETED or not any(cluster):
        return None
    return f"{UUID(bytes=cluster)}.{answer.cliqueId}"
