"""Signals that come as field values: one call for all, each field with a return code of its own.

Only field ids that kept their meaning over driver versions are used: 251 to 273 did not (the
slowdown counters moved from 251-253 to 269-271).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pynvml

from collector.sources.nvml import scales
from collector.sources.nvml.calls import RefusedError, call
from collector.sources.nvml.rates import RateMeter
from collector.sources.nvml.records import Absence, Measure, Readings
from collector.sources.nvml.scales import Scale
from collector.sources.nvml.signals import Handle, keep

ALL_LINKS: Final = 0xFFFF_FFFF
"""As scope of an NVLink field: the sum over all links."""
_VALUES: Final[MappingProxyType[int, Callable[[pynvml.c_nvmlValue_t], float]]] = MappingProxyType(
    {
        pynvml.NVML_VALUE_TYPE_DOUBLE: lambda value: value.dVal,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: lambda value: value.uiVal,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: lambda value: value.ulVal,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: lambda value: value.ullVal,
        pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: lambda value: value.sllVal,
        pynvml.NVML_VALUE_TYPE_SIGNED_INT: lambda value: value.siVal,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: lambda value: value.usVal,
    }
)
_WIDE: Final = frozenset(
    {
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG,
        pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
        pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG,
    }
)
_GAUGES: Final[MappingProxyType[int, tuple[Measure, Scale]]] = MappingProxyType(
    {
        pynvml.NVML_FI_DEV_MEMORY_TEMP: (Measure.MEMORY_TEMPERATURE, scales.CELSIUS),
        pynvml.NVML_FI_DEV_POWER_AVERAGE: (Measure.POWER_AVERAGE, scales.MILLIWATTS),
        pynvml.NVML_FI_DEV_POWER_INSTANT: (Measure.POWER_INSTANT, scales.MILLIWATTS),
        pynvml.NVML_FI_DEV_PERF_POLICY_POWER: (Measure.POWER_THROTTLED, scales.NANOSECONDS),
        pynvml.NVML_FI_DEV_PERF_POLICY_THERMAL: (Measure.THERMAL_THROTTLED, scales.NANOSECONDS),
        pynvml.NVML_FI_DEV_RETIRED_SBE: (Measure.RETIRED_SINGLE_BIT, scales.COUNT),
        pynvml.NVML_FI_DEV_RETIRED_DBE: (Measure.RETIRED_DOUBLE_BIT, scales.COUNT),
    }
)
_PCIE: Final = MappingProxyType(
    {
        pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES: Measure.PCIE_TRANSMIT,
        pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES: Measure.PCIE_RECEIVE,
    }
)
_LINKS: Final = (
    pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
    pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
)
_ASKED: Final[tuple[int | tuple[int, int], ...]] = (
    *_GAUGES,
    *_PCIE,
    *((link, ALL_LINKS) for link in _LINKS),
)


@dataclass(frozen=True, slots=True)
class _Field:
    """One field's answer."""

    number: float | None
    """None where there is none, or where it is no type we know."""
    is_wide: bool
    is_supported: bool


def take_fields(handle: Handle, *, into: Readings, meter: RateMeter) -> bool:
    """Read all fields; counters become rates from the second reading on.

    Returns whether the driver counts PCIe bytes in 64 bits.

    Args:
        handle: a board.
        into: takes the values.
        meter: remembers this board's counters.
    """
    try:
        answers = call(pynvml.nvmlDeviceGetFieldValues, handle, list(_ASKED))
    except RefusedError as refused:
        for measure, _scale in _GAUGES.values():
            into.miss(measure, refused.reason)
        return False
    found = {answer.fieldId: _field(answer) for answer in answers}
    now_s = time.monotonic()
    for field_id, (measure, scale) in _GAUGES.items():
        _take_gauge(into, measure, found[field_id], scale=scale)
    for field_id, measure in _PCIE.items():
        _take_pcie(into, measure, found[field_id], meter=meter, now_s=now_s)
    _take_links(into, [found[field_id] for field_id in _LINKS], meter=meter, now_s=now_s)
    return all(found[field_id].is_wide and found[field_id].is_supported for field_id in _PCIE)


def _field(answer: pynvml.c_nvmlFieldValue_t) -> _Field:
    is_supported = answer.nvmlReturn == pynvml.NVML_SUCCESS
    read = _VALUES.get(answer.valueType)
    return _Field(
        number=read(answer.value) if is_supported and read is not None else None,
        is_wide=answer.valueType in _WIDE,
        is_supported=is_supported,
    )


def _take_gauge(into: Readings, measure: Measure, field: _Field, *, scale: Scale) -> None:
    if field.number is None:
        into.miss(measure, Absence.FAILED if field.is_supported else Absence.NOT_SUPPORTED)
    else:
        keep(into, measure, field.number, scale=scale)


def _take_pcie(
    into: Readings, measure: Measure, field: _Field, *, meter: RateMeter, now_s: float
) -> None:
    """Keep the rate of a 64-bit counter; a 32-bit one wraps several times within an interval."""
    if field.number is None or not field.is_wide:
        return
    rate = meter.rate(measure, field.number, now_s=now_s)
    if rate is not None:
        keep(into, measure, rate, scale=scales.BYTES)


def _take_links(into: Readings, fields: list[_Field], *, meter: RateMeter, now_s: float) -> None:
    numbers = [field.number for field in fields if field.number is not None]
    if len(numbers) < len(fields):
        into.miss(Measure.NVLINK, Absence.NOT_SUPPORTED)
        return
    rate = meter.rate(Measure.NVLINK, sum(numbers) * scales.KIB_BYTES, now_s=now_s)
    if rate is not None:
        keep(into, Measure.NVLINK, rate, scale=scales.BYTES)
