"""The fixed figures of each series of telemetry, and which of them a series offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from collector.sources.simulated.behaviours import Floats
from collector.sources.simulated.fleet import Fleet
from collector.sources.simulated.loads import Loads
from collector.sources.simulated.models import GpuModel

Flags = npt.NDArray[np.bool_]
Columns = dict[str, Floats]

UNDER_MIG_ABSENT: Final = frozenset(
    {"busy_ratio", "memory_busy_ratio", "encoder_ratio", "decoder_ratio"}
)
BOARD_COLUMNS: Final = frozenset(
    {
        "power_w",
        "energy_j",
        "temperature_celsius",
        "memory_temperature_celsius",
        "sm_clock_hz",
        "memory_clock_hz",
        "pcie_transmit_bytes_per_s",
        "pcie_receive_bytes_per_s",
        "pcie_replay_count",
        "nvlink_bytes_per_s",
    }
)
PROF_COLUMNS: Final = (
    "dram_active_ratio",
    "fp16_active_ratio",
    "fp32_active_ratio",
    "fp64_active_ratio",
    "graphics_active_ratio",
    "pcie_receive_bytes_per_s",
    "pcie_transmit_bytes_per_s",
    "sm_active_ratio",
    "sm_occupancy_ratio",
    "tensor_active_ratio",
)
"""What the profiling module measures, in alphabetical order; lost together."""


class SeriesLayout:
    """The fixed figures of each series, as arrays over the series."""

    def __init__(self, fleet: Fleet) -> None:
        """Read them from the fleet."""
        series = fleet.series
        instances = [each.instance for each in series]
        self._models = [each.device.model for each in series]
        self.is_instance: Flags = np.array([each is not None for each in instances])
        self.is_mig_board: Flags = ~self.is_instance & np.array(
            [bool(each.device.instances) for each in series]
        )
        self.device_index = np.array([each.device.index for each in series])
        self.node_index = np.array([each.device.node_index for each in series])
        self.board_of_device = {
            each.device.index: i for i, each in enumerate(series) if each.instance is None
        }
        self.sm_share: Floats = np.array(
            [1.0 if each is None else each.sm_share_ratio for each in instances]
        )
        memory_share: Floats = np.array(
            [1.0 if each is None else each.memory_share_ratio for each in instances]
        )
        self.memory_bytes = np.floor(self._each(lambda m: m.memory_bytes) * memory_share)
        self.memory_reserved_bytes = np.floor(
            self._each(lambda m: m.memory_reserved_bytes) * memory_share
        )
        self._read_nameplates()

    def _read_nameplates(self) -> None:
        self.idle_w: Floats = np.where(
            self.is_mig_board, self._each(lambda m: m.mig_idle_w), self._each(lambda m: m.idle_w)
        )
        self.limit_w = self._each(lambda m: m.limit_w)
        self.full_sm_clock_hz = self._each(lambda m: m.full_sm_clock_hz)
        self.idle_sm_clock_hz = self._each(lambda m: m.idle_sm_clock_hz)
        self.full_memory_clock_hz = self._each(lambda m: m.full_memory_clock_hz)
        self.idle_memory_clock_hz = self._each(lambda m: m.idle_memory_clock_hz)
        self.pcie_bytes_per_s = self._each(lambda m: m.pcie_bytes_per_s)
        self.nvlink_bytes_per_s = self._each(
            lambda m: np.nan if m.nvlink_bytes_per_s is None else m.nvlink_bytes_per_s
        )
        self.has_memory_temperature: Flags = np.array(
            [model.has_memory_temperature for model in self._models]
        )

    def _each(self, figure: Callable[[GpuModel], float]) -> Floats:
        return np.array([float(figure(model)) for model in self._models])

    def as_boards(self, loads: Loads) -> Columns:
        """Return loads in which each board in MIG mode carries the sum of its instances."""
        board = {"busy": loads.busy.copy()} | {
            name: level.copy() for name, level in loads.active.items()
        }
        for column in np.flatnonzero(self.is_mig_board):
            is_mine = self.is_instance & (self.device_index == self.device_index[column])
            for level in board.values():
                level[:, column] = level[:, is_mine] @ self.sm_share[is_mine]
        return board

    def blank_where_not_offered(self, columns: Columns) -> None:
        """Set NaN: board values off instances, engine and memory values off boards in MIG mode."""
        in_mig = self.is_instance | self.is_mig_board
        for name, values in columns.items():
            if name in UNDER_MIG_ABSENT:
                values[:, in_mig] = np.nan
            elif name in BOARD_COLUMNS:
                values[:, self.is_instance] = np.nan
            else:
                values[:, self.is_mig_board] = np.nan
        columns["memory_temperature_celsius"][:, ~self.has_memory_temperature] = np.nan
