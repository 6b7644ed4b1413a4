"""From loads to what a board would report: noise, power, energy, temperatures and clocks."""

from __future__ import annotations

from typing import Final

import numpy as np

from collector.sources.simulated.behaviours import Floats
from collector.sources.simulated.layout import Columns, SeriesLayout
from collector.sources.simulated.loads import Loads, Ticks
from collector.sources.simulated.world import World

_STREAM: Final = 3
_RATIO_NOISE: Final = 0.03
_POWER_WEIGHTS: Final = {
    "sm_active_ratio": 0.16,
    "tensor_active_ratio": 0.52,
    "dram_active_ratio": 0.32,
}
_BUSY_POWER_WEIGHT: Final = 0.06
_AMBIENT_CELSIUS: Final = 29.0
_LOAD_CELSIUS: Final = 43.0
_MEMORY_WARMER_CELSIUS: Final = 7.0
_THROTTLED_CLOCK_RATIO: Final = 0.14


class Instruments:
    """Reads the boards of one world, stretch after stretch; keeps the energy counters."""

    def __init__(self, world: World) -> None:
        """Take the fixed figures of each series; each counter starts where its driver left it."""
        self._world = world
        self._layout = SeriesLayout(world.fleet)
        random = np.random.default_rng([world.parameters.seed, _STREAM])
        self._energy_j: Floats = random.uniform(5e7, 5e8, size=len(world.fleet.series))
        self._inlet_celsius: Floats = random.normal(0.0, 1.5, size=len(world.fleet.series))

    @property
    def layout(self) -> SeriesLayout:
        """Return which series are boards, instances and boards in MIG mode."""
        return self._layout

    def read(self, loads: Loads, ticks: Ticks, random: np.random.Generator) -> Columns:
        """Return every measurement as ticks by series; NaN where the device offers none."""
        noise = random.standard_normal(loads.busy.shape)
        columns = _engine_columns(loads, noise)
        columns |= self._memory_columns(loads)
        board = self._layout.as_boards(loads)
        columns |= self._board_columns(board, noise, ticks)
        columns |= self._traffic_columns(board, noise)
        self._layout.blank_where_not_offered(columns)
        return columns

    def _memory_columns(self, loads: Loads) -> Columns:
        total, reserved = self._layout.memory_bytes, self._layout.memory_reserved_bytes
        used = np.minimum(np.floor(loads.memory_used * total), total - reserved)
        return {
            "memory_used_bytes": used,
            "memory_free_bytes": total - reserved - used,
            "memory_reserved_bytes": np.broadcast_to(reserved, used.shape).copy(),
            "memory_total_bytes": np.broadcast_to(total, used.shape).copy(),
        }

    def _board_columns(self, board: Columns, noise: Floats, ticks: Ticks) -> Columns:
        layout = self._layout
        effort = board["busy"] * _BUSY_POWER_WEIGHT
        for name, weight in _POWER_WEIGHTS.items():
            effort = effort + board[name] * weight
        effort = np.clip(effort * (1 + _RATIO_NOISE * noise), 0.0, 1.0)
        power_w = np.round(layout.idle_w + (layout.limit_w - layout.idle_w) * effort, 1)
        celsius = _AMBIENT_CELSIUS + self._inlet_celsius + _LOAD_CELSIUS * np.sqrt(effort)
        is_working = board["busy"] > 0
        clock = layout.full_sm_clock_hz * (1 - _THROTTLED_CLOCK_RATIO * effort**2)
        step_hz = 15e6
        return {
            "power_w": power_w,
            "energy_j": self._count_energy(power_w, ticks),
            "temperature_celsius": np.rint(celsius),
            "memory_temperature_celsius": np.rint(celsius + _MEMORY_WARMER_CELSIUS),
            "sm_clock_hz": np.where(
                is_working, np.rint(clock / step_hz) * step_hz, layout.idle_sm_clock_hz
            ),
            "memory_clock_hz": np.where(
                is_working, layout.full_memory_clock_hz, layout.idle_memory_clock_hz
            ),
        }

    def _traffic_columns(self, board: Columns, noise: Floats) -> Columns:
        jitter = np.clip(1 + 3 * _RATIO_NOISE * noise, 0.0, None)
        pcie = board["pcie_ratio"] * self._layout.pcie_bytes_per_s * jitter
        return {
            "pcie_transmit_bytes_per_s": np.rint(0.4 * pcie),
            "pcie_receive_bytes_per_s": np.rint(pcie),
            "pcie_replay_count": np.zeros_like(pcie),
            "nvlink_bytes_per_s": np.rint(
                board["nvlink_ratio"] * self._layout.nvlink_bytes_per_s * jitter
            ),
        }

    def _count_energy(self, power_w: Floats, ticks: Ticks) -> Floats:
        """Return the counters; a board that comes back from being lost starts again at zero."""
        energy_j = self._energy_j + np.cumsum(power_w * ticks.cadence_s, axis=0)
        for span in self._world.faults.lost_devices:
            if span.until_s is not None and ticks.from_s <= span.until_s < ticks.until_s:
                tick = ticks.first_at_or_after(span.until_s)
                column = self._layout.board_of_device[span.index]
                if tick < ticks.count:
                    energy_j[tick:, column] -= energy_j[tick, column]
        self._energy_j = energy_j[-1].copy()
        return np.asarray(np.rint(energy_j))


def _engine_columns(loads: Loads, noise: Floats) -> Columns:
    def noisy(level: Floats) -> Floats:
        return _rounded(np.clip(level * (1 + _RATIO_NOISE * noise), 0.0, 1.0), 4)

    busy = np.where(loads.busy >= 0.995, loads.busy, noisy(loads.busy))
    sm_active = noisy(loads.active["sm_active_ratio"])
    dram_active = noisy(loads.active["dram_active_ratio"])
    return {
        "busy_ratio": _rounded(busy, 2),
        "memory_busy_ratio": _rounded(np.clip(dram_active * 1.1, 0.0, 1.0), 2),
        "graphics_active_ratio": noisy(loads.active["graphics_active_ratio"]),
        "sm_active_ratio": sm_active,
        "sm_occupancy_ratio": np.minimum(noisy(loads.occupancy), sm_active),
        "tensor_active_ratio": noisy(loads.active["tensor_active_ratio"]),
        "dram_active_ratio": dram_active,
        "fp64_active_ratio": np.zeros_like(busy),
        "fp32_active_ratio": noisy(loads.active["fp32_active_ratio"]),
        "fp16_active_ratio": noisy(loads.active["fp16_active_ratio"]),
        "encoder_ratio": np.zeros_like(busy),
        "decoder_ratio": _rounded(noisy(loads.active["decoder_ratio"]), 2),
    }


def _rounded(values: Floats, digit_count: int) -> Floats:
    rounded: Floats = np.around(values, digit_count)
    return rounded
