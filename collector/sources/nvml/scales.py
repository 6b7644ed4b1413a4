"""NVML's units, the plausible span of each, and the way to base units.

The driver's "no value" (4294967295 and the like) lies outside every span, so it is ruled out before
a factor could make it look like a reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from steward.units import MHZ_HZ, MIB_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How NVML's number becomes a base unit: ``number * factor / divisor``."""

    highest: float
    """Plausible readings lie between lowest and highest, both included, in NVML's unit."""
    lowest: float = 0
    factor: int = 1
    divisor: int = 1

    def base(self, number: float) -> float | None:
        """Return the number in the base unit; None where this signal cannot have it."""
        if not self.lowest <= number <= self.highest:
            return None
        scaled = number * self.factor
        return scaled if self.divisor == 1 else scaled / self.divisor


KIB_BYTES: Final = 1_024
_LARGEST: Final = 1e14
"""Above any byte count or energy (mJ) of one GPU, below what wraps to the top of 64 bits."""
PERCENT: Final = Scale(highest=105, divisor=100)
"""Slightly above 100 happens; the reader of the metric clamps and counts it."""
PROFILING_PERCENT: Final = Scale(highest=200, divisor=100)
"""Profiling signals of MIG instances were seen at 129 %."""
FAN_PERCENT: Final = Scale(highest=200, divisor=100)
BYTES: Final = Scale(highest=_LARGEST)
MILLIWATTS: Final = Scale(highest=10_000_000, divisor=1_000)
MILLIJOULES: Final = Scale(highest=_LARGEST, divisor=1_000)
CELSIUS: Final = Scale(lowest=-50, highest=150)
MEGAHERTZ: Final = Scale(highest=20_000, factor=MHZ_HZ)
COUNT: Final = Scale(highest=2_000_000_000)
BITS: Final = Scale(highest=2**62)
NANOSECONDS: Final = Scale(highest=1e19, divisor=1_000_000_000)
MIB_PER_S: Final = Scale(highest=1e8, factor=MIB_BYTES)
KILOBYTES_PER_S: Final = Scale(highest=1e9, factor=1_000)
