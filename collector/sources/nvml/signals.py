"""The signals that one call each gives: which call, which measures, in which unit.

All of them exist for a board; those of ``INSTANCE_SIGNALS`` for a MIG instance too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import pynvml

from collector.sources.nvml import scales
from collector.sources.nvml.calls import RefusedError, call
from collector.sources.nvml.records import Absence, Measure, Readings
from collector.sources.nvml.scales import Scale

Handle: TypeAlias = "pynvml.c_nvmlDevice_t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One call and what its numbers mean, in their order."""

    read: Callable[[Handle], tuple[float, ...]]
    measures: tuple[Measure, ...]
    scale: Scale


def take(signals: Iterable[Signal], handle: Handle, *, into: Readings) -> None:
    """Make these calls and keep each number, or the reason why there is none.

    Raises:
        GpuLostError: the GPU is gone.
        DriverGoneError: the driver is gone.
    """
    for signal in signals:
        try:
            numbers = call(signal.read, handle)
        except RefusedError as refused:
            for measure in signal.measures:
                into.miss(measure, refused.reason)
            continue
        for measure, number in zip(signal.measures, numbers, strict=True):
            keep(into, measure, number, scale=signal.scale)


def keep(into: Readings, measure: Measure, number: float, *, scale: Scale) -> None:
    """Keep a number of the driver in its base unit, if it is plausible."""
    value = scale.base(number)
    if value is None:
        into.miss(measure, Absence.OUT_OF_RANGE)
    else:
        into.put(measure, value)


def _utilization(handle: Handle) -> tuple[float, ...]:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu, rates.memory


def _memory(handle: Handle) -> tuple[float, ...]:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    return memory.used, memory.free, memory.reserved, memory.total


def _old_memory(handle: Handle) -> tuple[float, ...]:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return memory.free, memory.total


def _temperature(handle: Handle) -> tuple[float, ...]:
    sensor = pynvml.NVML_TEMPERATURE_GPU
    try:
        return (pynvml.nvmlDeviceGetTemperatureV(handle, sensor),)
    except pynvml.NVMLError:  # an older driver; whatever else is wrong, the older call says too
        return (pynvml.nvmlDeviceGetTemperature(handle, sensor),)


def _clock_event_reasons(handle: Handle) -> tuple[float, ...]:
    try:
        return (pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle),)
    except pynvml.NVMLError:  # the same
        return (pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),)


def _one(read: Callable[[Handle], float], measure: Measure, scale: Scale) -> Signal:
    def numbers(handle: Handle) -> tuple[float, ...]:
        return (read(handle),)

    return Signal(read=numbers, measures=(measure,), scale=scale)


def _clock(kind: int, measure: Measure) -> Signal:
    return _one(
        lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, kind), measure, scales.MEGAHERTZ
    )


def _ecc(kind: int, measure: Measure) -> Signal:
    """The count since the chip was made: it survives a reload of the driver."""
    counter = pynvml.NVML_AGGREGATE_ECC
    return _one(
        lambda handle: pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter),
        measure,
        scales.COUNT,
    )


def _engine(read: Callable[[Handle], list[int]], measure: Measure) -> Signal:
    return _one(lambda handle: read(handle)[0], measure, scales.PERCENT)


def _pcie(counter: int, measure: Measure) -> Signal:
    return _one(
        lambda handle: pynvml.nvmlDeviceGetPcieThroughput(handle, counter),
        measure,
        scales.KILOBYTES_PER_S,
    )


_UTILIZATION: Final = Signal(
    read=_utilization, measures=(Measure.BUSY, Measure.MEMORY_BUSY), scale=scales.PERCENT
)
_MEMORY: Final = Signal(
    read=_memory,
    measures=(
        Measure.MEMORY_USED,
        Measure.MEMORY_FREE,
        Measure.MEMORY_RESERVED,
        Measure.MEMORY_TOTAL,
    ),
    scale=scales.BYTES,
)
OLD_MEMORY: Final = Signal(
    read=_old_memory, measures=(Measure.MEMORY_FREE, Measure.MEMORY_TOTAL), scale=scales.BYTES
)
"""Where the driver lacks the newer call: its "used" includes the reserved part, so is not told."""
BOARD_SIGNALS: Final = (
    _UTILIZATION,
    _MEMORY,
    _one(pynvml.nvmlDeviceGetPowerUsage, Measure.POWER, scales.MILLIWATTS),
    _one(pynvml.nvmlDeviceGetTotalEnergyConsumption, Measure.ENERGY, scales.MILLIJOULES),
    _one(pynvml.nvmlDeviceGetEnforcedPowerLimit, Measure.POWER_LIMIT, scales.MILLIWATTS),
    Signal(read=_temperature, measures=(Measure.TEMPERATURE,), scale=scales.CELSIUS),
    _clock(pynvml.NVML_CLOCK_SM, Measure.SM_CLOCK),
    _clock(pynvml.NVML_CLOCK_MEM, Measure.MEMORY_CLOCK),
    _clock(pynvml.NVML_CLOCK_GRAPHICS, Measure.GRAPHICS_CLOCK),
    _clock(pynvml.NVML_CLOCK_VIDEO, Measure.VIDEO_CLOCK),
    Signal(read=_clock_event_reasons, measures=(Measure.CLOCK_EVENT_REASONS,), scale=scales.BITS),
    _one(pynvml.nvmlDeviceGetFanSpeed, Measure.FAN, scales.FAN_PERCENT),
    _engine(pynvml.nvmlDeviceGetEncoderUtilization, Measure.ENCODER),
    _engine(pynvml.nvmlDeviceGetDecoderUtilization, Measure.DECODER),
    _engine(pynvml.nvmlDeviceGetJpgUtilization, Measure.JPEG),
    _engine(pynvml.nvmlDeviceGetOfaUtilization, Measure.OPTICAL_FLOW),
    _one(pynvml.nvmlDeviceGetPcieReplayCounter, Measure.PCIE_REPLAYS, scales.COUNT),
    _ecc(pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, Measure.ECC_CORRECTED),
    _ecc(pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, Measure.ECC_UNCORRECTED),
    Signal(
        read=pynvml.nvmlDeviceGetRemappedRows,
        measures=(
            Measure.ROW_REMAP_CORRECTED,
            Measure.ROW_REMAP_UNCORRECTED,
            Measure.ROW_REMAP_PENDING,
            Measure.ROW_REMAP_FAILED,
        ),
        scale=scales.COUNT,
    ),
)
INSTANCE_SIGNALS: Final = (_MEMORY,)
"""Utilisation, power, clocks and the like are not supported on an instance."""
PCIE_THROUGHPUT: Final = (
    _pcie(pynvml.NVML_PCIE_UTIL_TX_BYTES, Measure.PCIE_TRANSMIT),
    _pcie(pynvml.NVML_PCIE_UTIL_RX_BYTES, Measure.PCIE_RECEIVE),
)
"""Each of these calls takes 20 ms."""
