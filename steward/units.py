"""Units: the factors between what vendors print and the base units that rooms exchange.

Inside Steward there are bytes, hertz, watts, joules, seconds and ratios 0..1 only. Percent, MiB,
MHz and mJ exist where data enters (``collector.normalize``) and where people read.
"""

from __future__ import annotations

from typing import Final

PERCENT: Final = 0.01
MIB_BYTES: Final = 1_048_576
MHZ_HZ: Final = 1_000_000
MILLI: Final = 0.001
MICROS_PER_SECOND: Final = 1_000_000
MILLIS_PER_SECOND: Final = 1_000
SECONDS_PER_MINUTE: Final = 60
SECONDS_PER_HOUR: Final = 3_600
SECONDS_PER_DAY: Final = 86_400
GPU_MILLI: Final = 1_000
"""Milli-GPU in one GPU: the share in which openb and FGD count."""
TICKS_PER_MICROSECOND: Final = 5_040
"""Device-time is counted in ticks, so that sevenths (MIG), eighths, tenths and sixteenths of each
microsecond of a GPU are whole numbers."""
TICKS_PER_SECOND: Final = TICKS_PER_MICROSECOND * MICROS_PER_SECOND
TICKS_PER_GPU_HOUR: Final = TICKS_PER_SECOND * SECONDS_PER_HOUR
CURRENCY_MICROS: Final = 1_000_000
"""Prices are whole millionths of a currency unit."""
PARTS_PER_CURRENCY_UNIT: Final = CURRENCY_MICROS * TICKS_PER_GPU_HOUR
"""Money in computation is counted in parts: ticks x price in millionths per GPU-hour, a whole
number; it is rounded to minor units in one place only."""
