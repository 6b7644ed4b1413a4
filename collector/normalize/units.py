"""What vendors count in, and the plausible span of each: from there to base units.

The only place that knows percent, MiB, MHz and mJ on the way in. Sentinels are ruled out before a
factor is applied: a blank value divided by a million would look like a plausible reading.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from collector.normalize.absence import Absence
from steward.units import MHZ_HZ, MIB_BYTES

_LARGEST_COUNTER: Final = 1e14
"""Below DCGM's blank for 64-bit floats, 2**47; above any byte count or energy of one GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """How a vendor's number becomes a base unit: ``value * multiplier / divisor``.

    Two factors, since a division by 1,000 rounds once where a multiplication by 0.001 rounds twice.
    """

    name: str
    lowest: float
    """Plausible readings lie between lowest and highest, both included, in the vendor's unit."""
    highest: float
    multiplier: int = 1
    divisor: int = 1
    is_integer: bool = False
    clamp_at: float | None = None
    """A plausible reading above this is a known flaw of vendors: taken as this, and counted."""
    may_exceed_int32: bool = False
    """Wide counters may truly read 2147483632, which is "blank" in a narrow field."""
    sentinels: tuple[tuple[float, Absence], ...] = ()
    """Numbers outside the span that this vendor means as "no value", beside those of DCGM."""


PERCENT: Final = Unit(name="percent", lowest=0.0, highest=105.0, divisor=100, clamp_at=100.0)
DEVICE_RATIO: Final = Unit(name="ratio", lowest=0.0, highest=1.05, clamp_at=1.0)
UNSETTLED_RATIO: Final = Unit(name="ratio or percent", lowest=0.0, highest=105.0, clamp_at=0.0)
"""Nothing tells which of the two; only 0 means the same in both."""
PROFILING_RATIO: Final = Unit(name="ratio", lowest=0.0, highest=2.0, clamp_at=1.0)
"""Profiling ratios reach 1.294 on MIG instances; beyond 2 they are no ratio."""
MIB: Final = Unit(name="MiB", lowest=0.0, highest=1e8, multiplier=MIB_BYTES, is_integer=True)
BYTES: Final = Unit(
    name="bytes", lowest=0.0, highest=_LARGEST_COUNTER, is_integer=True, may_exceed_int32=True
)
WATTS: Final = Unit(name="W", lowest=0.0, highest=10_000.0)
MILLIJOULES: Final = Unit(
    name="mJ", lowest=0.0, highest=_LARGEST_COUNTER, divisor=1_000, may_exceed_int32=True
)
JOULES: Final = Unit(name="J", lowest=0.0, highest=1e11, may_exceed_int32=True)
CELSIUS: Final = Unit(name="degrees Celsius", lowest=-50.0, highest=150.0)
MEGAHERTZ: Final = Unit(
    name="MHz", lowest=0.0, highest=20_000.0, multiplier=MHZ_HZ, is_integer=True
)
HERTZ: Final = Unit(name="Hz", lowest=0.0, highest=2e10, is_integer=True, may_exceed_int32=True)
COUNT: Final = Unit(name="count", lowest=0.0, highest=2_000_000_000.0, is_integer=True)
BYTES_PER_S: Final = Unit(
    name="bytes/s", lowest=0.0, highest=_LARGEST_COUNTER, may_exceed_int32=True
)
KILOBYTES_PER_S: Final = Unit(name="KB/s", lowest=0.0, highest=1e9, multiplier=1_000)
NVLINK_MEGABYTES_PER_S: Final = Unit(name="MB/s", lowest=0.0, highest=1e8, multiplier=1_024_000)
"""DCGM divides KiB/s by 1,000 and calls it MB/s; its newer byte field is KiB/s times 1,024."""
EVENT_CODE: Final = Unit(name="code", lowest=0.0, highest=99_999.0, is_integer=True)
NANOSECONDS: Final = Unit(
    name="ns", lowest=0.0, highest=1e18, divisor=1_000_000_000, may_exceed_int32=True
)
"""A 64-bit integer field: passes DCGM's blank for floats after 39 hours of throttling."""
SECONDS: Final = Unit(name="s", lowest=0.0, highest=1e9)
FAN_RATIO: Final = Unit(name="ratio", lowest=0.0, highest=3.0, clamp_at=1.0)
"""Of the nominal speed, which a fan may exceed."""
FAN_PERCENT: Final = Unit(name="percent", lowest=0.0, highest=300.0, divisor=100, clamp_at=100.0)
BITS: Final = Unit(name="bits", lowest=0.0, highest=2_000_000_000.0, is_integer=True)
RATIO: Final = Unit(name="ratio", lowest=0.0, highest=1.05, clamp_at=1.0)
"""A ratio by its name and in every version."""
GIGABYTES_PER_S: Final = Unit(
    name="GB/s", lowest=0.0, highest=1e6, multiplier=1_000_000_000, is_integer=False
)
MICROJOULES: Final = Unit(
    name="uJ", lowest=0.0, highest=1e17, divisor=1_000_000, may_exceed_int32=True
)
KIB: Final = Unit(name="KiB", lowest=0.0, highest=2e9, multiplier=1_024, is_integer=True)
HAMI_PERCENT: Final = Unit(name="percent", lowest=0.0, highest=1_000.0, divisor=100, clamp_at=100.0)
"""Sums over processes and sampling slips reach 137 %."""

_LARGEST: Final = (2**64 - 1, 2.0**64, 2.0**32 - 1, 2.0**31 - 1, 2.0**16 - 1, 2.0**8 - 1)
"""AMD's libraries mean "not available" by the largest number of a field's width."""


def _of_amd(unit: Unit, *, lowest: float | None = None) -> Unit:
    """Return the unit with AMD's sentinels: those that no reading of it can be (255 W can)."""
    sentinels = tuple((value, Absence.NOT_SUPPORTED) for value in _LARGEST if value > unit.highest)
    if lowest is None:
        return replace(unit, sentinels=sentinels)
    return replace(unit, lowest=lowest, sentinels=((0.0, Absence.NOT_SUPPORTED), *sentinels))


AMD_PERCENT: Final = _of_amd(PERCENT)
AMD_WATTS: Final = _of_amd(WATTS)
AMD_MICROJOULES: Final = _of_amd(MICROJOULES)
AMD_CELSIUS: Final = _of_amd(CELSIUS, lowest=1.0)
"""A guest that may not read a sensor prints 0, which no running board has."""
AMD_MEGAHERTZ: Final = _of_amd(MEGAHERTZ)
AMD_MIB: Final = _of_amd(MIB)
AMD_COUNT: Final = _of_amd(COUNT)
AMD_CODE: Final = _of_amd(EVENT_CODE)

_FAILED: Final = ((-1.0, Absence.BLANK), (float(2**32 - 1), Absence.BLANK))
"""npu-exporter's marks for a call that failed, signed and unsigned."""
ASCEND_PERCENT: Final = replace(PERCENT, sentinels=_FAILED)
ASCEND_WATTS: Final = replace(WATTS, sentinels=_FAILED)
ASCEND_CELSIUS: Final = replace(CELSIUS, lowest=0.0, sentinels=_FAILED)
ASCEND_MEGAHERTZ: Final = replace(MEGAHERTZ, sentinels=_FAILED)
ASCEND_MIB: Final = replace(MIB, sentinels=_FAILED)
ASCEND_KIB: Final = replace(KIB, sentinels=_FAILED)
ASCEND_COUNT: Final = replace(COUNT, sentinels=_FAILED)
ASCEND_GIGABYTES_PER_S: Final = replace(GIGABYTES_PER_S, sentinels=_FAILED)
ASCEND_CODE: Final = Unit(
    name="code",
    lowest=0.0,
    highest=2.0**32 - 2,
    is_integer=True,
    may_exceed_int32=True,
    sentinels=_FAILED,
)
"""Error codes are 32-bit patterns such as 0x80E01801."""
