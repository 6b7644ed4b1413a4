"""Calls into the driver: error codes become reasons, or end the reading where nothing can follow.

``pynvml`` looks symbols up when they are called, so a function that an older driver lacks fails
like one that the device does not support.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final, TypeVar

import pynvml

from collector.sources.nvml.records import Absence
from steward.errors import SourceError

T = TypeVar("T")

_ABSENCES: Final = MappingProxyType(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED: Absence.NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: Absence.NOT_SUPPORTED,
        pynvml.NVML_ERROR_INVALID_ARGUMENT: Absence.NOT_SUPPORTED,
        pynvml.NVML_ERROR_NOT_FOUND: Absence.NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_DATA: Absence.NOT_SUPPORTED,
        pynvml.NVML_ERROR_VGPU_ECC_NOT_SUPPORTED: Absence.NOT_SUPPORTED,
        pynvml.NVML_ERROR_NO_PERMISSION: Absence.NO_PERMISSION,
        pynvml.NVML_ERROR_TIMEOUT: Absence.TIMEOUT,
    }
)
_LOST: Final = frozenset(
    {
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        pynvml.NVML_ERROR_GPU_NOT_FOUND,
    }
)
_GONE: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)


class GpuLostError(SourceError):
    """The driver says that the GPU is gone or needs a reset."""


class DriverGoneError(SourceError):
    """The driver was unloaded or replaced; the library must be initialised again."""


class RefusedError(SourceError):
    """One call gave no value.

    Args:
        reason: why.
    """

    def __init__(self, reason: Absence, *, message: str) -> None:
        """Keep the reason beside the driver's words."""
        super().__init__(message, hint="other signals of the GPU are still read")
        self.reason = reason


def call(function: Callable[..., T], *arguments: object) -> T:
    """Return what the driver answers.

    Raises:
        GpuLostError: the GPU is gone.
        DriverGoneError: the driver is gone.
        RefusedError: this call has no answer; others may have one.
    """
    try:
        return function(*arguments)
    except pynvml.NVMLLibraryMismatchError as error:
        raise RefusedError(Absence.NOT_SUPPORTED, message=str(error)) from error
    except UnicodeDecodeError as error:
        raise RefusedError(Absence.FAILED, message=f"a text is not UTF-8: {error}") from error
    except pynvml.NVMLError as error:
        raise _meaning(error, getattr(function, "__name__", "NVML")) from error


def _meaning(error: pynvml.NVMLError, name: str) -> SourceError:
    message = f"{name}: {error}"
    if error.value in _LOST:
        return GpuLostError(message, hint="look into the kernel log; reset or replace the GPU")
    if error.value in _GONE:
        return DriverGoneError(message, hint="the agent initialises the library again")
    return RefusedError(_ABSENCES.get(error.value, Absence.FAILED), message=message)


def optional(function: Callable[..., T], *arguments: object) -> T | None:
    """Return what the driver answers, or None where this call has no answer.

    Raises:
        GpuLostError: the GPU is gone.
        DriverGoneError: the driver is gone.
    """
    try:
        return call(function, *arguments)
    except RefusedError:
        return None
