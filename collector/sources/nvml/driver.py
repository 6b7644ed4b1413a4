"""Starting the driver's library, and starting it again after the driver was unloaded."""

from __future__ import annotations

import contextlib
from types import MappingProxyType
from typing import Final

import pynvml

from steward.errors import SourceError

_CONTAINER: Final = "in a container, use NVIDIA's runtime with NVIDIA_DRIVER_CAPABILITIES=utility"
_FAULTS: Final = MappingProxyType(
    {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
            "NVIDIA's management library (libnvidia-ml.so.1) is not found",
            f"run the agent where the NVIDIA driver is installed; {_CONTAINER}",
        ),
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
            "the NVIDIA driver is not loaded",
            f"load it with `modprobe nvidia` and look into the kernel log; {_CONTAINER}",
        ),
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "the NVIDIA driver and its library have different versions",
            "reload the driver or restart the machine after the upgrade",
        ),
        pynvml.NVML_ERROR_NO_PERMISSION: (
            "the NVIDIA driver may not be used",
            "give the agent access to /dev/nvidiactl and /dev/nvidia*",
        ),
    }
)


def start() -> int:
    """Initialise the library; return the number of GPUs that it lists.

    Raises:
        SourceError: library or driver are missing or do not fit.
    """
    try:
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        message, hint = _FAULTS.get(
            error.value,
            (f"the NVIDIA driver cannot be used: {error}", "look into the kernel log"),
        )
        raise SourceError(message, hint=hint) from error


def stop() -> int:
    """Release the library; a driver that is gone needs none. Returns that no GPU is left."""
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()
    return 0


def restart() -> int:
    """Release and initialise the library; return the number of GPUs that it lists.

    Raises:
        SourceError: library or driver are missing or do not fit.
    """
    stop()
    return start()
