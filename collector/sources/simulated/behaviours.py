"""What holders do with a GPU: the levels their counters show, and how these move over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from steward.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

Floats = npt.NDArray[np.float64]

STEADY: Final = "steady"
CHECKPOINTED: Final = "checkpointed"
DIURNAL: Final = "diurnal"
BURSTS: Final = "bursts"
SILENT: Final = "silent"

_CHECKPOINT_EVERY_S: Final = SECONDS_PER_HOUR
_CHECKPOINT_LASTS_S: Final = 240
_BURST_BLOCK_S: Final = 1_800
_PEAK_HOUR: Final = 13.0
_WEEKEND_FACTOR: Final = 0.65
_EPOCH_DAY_TO_MONDAY: Final = 3
"""1970-01-01 was a Thursday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Counter levels at full activity; ratios of the slot, 0..1."""

    pattern: str
    busy_ratio: float
    graphics_active_ratio: float
    sm_active_ratio: float
    occupancy_when_active_ratio: float
    tensor_active_ratio: float
    dram_active_ratio: float
    fp32_active_ratio: float
    fp16_active_ratio: float
    memory_used_ratio: float
    pcie_ratio: float
    nvlink_ratio: float
    decoder_ratio: float


def _levels(pattern: str, **levels: float) -> Behaviour:
    """Return a behaviour whose unnamed levels are a true zero."""
    names = (each.name for each in fields(Behaviour) if each.name != "pattern")
    return Behaviour(pattern=pattern, **(dict.fromkeys(names, 0.0) | levels))


BEHAVIOURS: Final[Mapping[str, Behaviour]] = MappingProxyType(
    {
        "training": _levels(
            CHECKPOINTED,
            busy_ratio=0.98,
            graphics_active_ratio=0.95,
            sm_active_ratio=0.84,
            occupancy_when_active_ratio=0.38,
            tensor_active_ratio=0.58,
            dram_active_ratio=0.42,
            fp32_active_ratio=0.08,
            fp16_active_ratio=0.03,
            memory_used_ratio=0.82,
            pcie_ratio=0.05,
            nvlink_ratio=0.30,
        ),
        "input_bound": _levels(
            CHECKPOINTED,
            busy_ratio=0.61,
            graphics_active_ratio=0.52,
            sm_active_ratio=0.41,
            occupancy_when_active_ratio=0.33,
            tensor_active_ratio=0.19,
            dram_active_ratio=0.16,
            fp32_active_ratio=0.06,
            fp16_active_ratio=0.01,
            memory_used_ratio=0.55,
            pcie_ratio=0.22,
            nvlink_ratio=0.06,
        ),
        "memory_bound": _levels(
            STEADY,
            busy_ratio=1.0,
            graphics_active_ratio=0.9999,
            sm_active_ratio=0.93,
            occupancy_when_active_ratio=0.62,
            tensor_active_ratio=0.0001,
            dram_active_ratio=0.648,
            fp32_active_ratio=0.11,
            memory_used_ratio=0.58,
            pcie_ratio=0.01,
        ),
        "one_sm": _levels(
            STEADY,
            busy_ratio=1.0,
            graphics_active_ratio=0.9998,
            sm_active_ratio=0.0076,
            occupancy_when_active_ratio=0.5,
            dram_active_ratio=0.0004,
            fp32_active_ratio=0.003,
            memory_used_ratio=0.22,
        ),
        "deadlock": _levels(
            STEADY,
            busy_ratio=1.0,
            graphics_active_ratio=1.0,
            sm_active_ratio=0.995,
            occupancy_when_active_ratio=0.12,
            memory_used_ratio=0.79,
        ),
        "short_kernels": _levels(
            STEADY,
            busy_ratio=0.95,
            graphics_active_ratio=0.34,
            sm_active_ratio=0.2,
            occupancy_when_active_ratio=0.25,
            tensor_active_ratio=0.03,
            dram_active_ratio=0.07,
            fp32_active_ratio=0.04,
            memory_used_ratio=0.31,
            pcie_ratio=0.09,
        ),
        "serving": _levels(
            DIURNAL,
            busy_ratio=0.88,
            graphics_active_ratio=0.79,
            sm_active_ratio=0.63,
            occupancy_when_active_ratio=0.29,
            tensor_active_ratio=0.31,
            dram_active_ratio=0.52,
            fp32_active_ratio=0.07,
            fp16_active_ratio=0.02,
            memory_used_ratio=0.86,
            pcie_ratio=0.08,
            decoder_ratio=0.12,
        ),
        "notebook": _levels(
            BURSTS,
            busy_ratio=0.64,
            graphics_active_ratio=0.5,
            sm_active_ratio=0.37,
            occupancy_when_active_ratio=0.31,
            tensor_active_ratio=0.14,
            dram_active_ratio=0.2,
            fp32_active_ratio=0.09,
            memory_used_ratio=0.4,
            pcie_ratio=0.04,
        ),
        "idle": _levels(SILENT, memory_used_ratio=0.27),
    }
)


def activity(pattern: str, epoch_s: Floats, *, started_s: float, seed: int) -> Floats:
    """Return how active a holder is at each instant, 0..1 of its full levels.

    Args:
        pattern: one of the patterns above.
        epoch_s: the instants, in seconds since 1970, ascending.
        started_s: when the holder started, in the same seconds.
        seed: decides the blocks of work of a ``BURSTS`` holder.
    """
    if pattern == SILENT:
        return np.zeros_like(epoch_s)
    if pattern == DIURNAL:
        return _diurnal(epoch_s)
    if pattern == CHECKPOINTED:
        is_saving = (epoch_s - started_s) % _CHECKPOINT_EVERY_S < _CHECKPOINT_LASTS_S
        return np.where(is_saving, 0.08, 1.0)
    if pattern == BURSTS:
        return _bursts(epoch_s, seed=seed)
    return np.ones_like(epoch_s)


def _diurnal(epoch_s: Floats) -> Floats:
    """Return the load of a service: peak at midday, trough at night, quieter weekends."""
    hour = (epoch_s % SECONDS_PER_DAY) / SECONDS_PER_HOUR
    swing = 0.55 + 0.4 * np.cos((hour - _PEAK_HOUR) * (2 * np.pi / 24))
    day = (epoch_s // SECONDS_PER_DAY + _EPOCH_DAY_TO_MONDAY) % 7
    return np.where(day >= 5, swing * _WEEKEND_FACTOR, swing)


def _bursts(epoch_s: Floats, *, seed: int) -> Floats:
    """Return a person's work: half hours on or off, mostly on working days, never at night."""
    block = (epoch_s // _BURST_BLOCK_S).astype(np.uint64)
    mixed = (block + np.uint64(seed % 2**31)) * np.uint64(0x9E3779B97F4A7C15)
    draw = (mixed >> np.uint64(40)).astype(np.float64) / 2**24
    hour = (epoch_s % SECONDS_PER_DAY) / SECONDS_PER_HOUR
    day = (epoch_s // SECONDS_PER_DAY + _EPOCH_DAY_TO_MONDAY) % 7
    chance = np.where((hour >= 8) & (hour < 20), np.where(day < 5, 0.55, 0.12), 0.03)
    return np.where(draw < chance, 0.4 + draw, 0.0)
