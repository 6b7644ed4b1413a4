"""NVIDIA's metric names in their generations, each with the column, unit and scope it means.

Generations: dcgm-exporter up to 4.8 (``DCGM_FI_DEV_GPU_UTIL``), DCGM 4.6 canonical names (same
field and unit, new name), DCGM 4.7 twins (new field, base unit), and the 1.x names
(``dcgm_gpu_utilization``). ``docs/metrics.md`` prints this table for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.units import Unit
from collector.tables import DEVICE_SAMPLE

_FIRST_MEASURE: Final = "busy_ratio"
_LAST_MEASURE: Final = "nvlink_bytes_per_s"
_NAMES: Final = tuple(DEVICE_SAMPLE.names)
MEASURES: Final = _NAMES[_NAMES.index(_FIRST_MEASURE) : _NAMES.index(_LAST_MEASURE) + 1]
"""The measured columns of ``device_sample``, in their stored order."""
XID: Final = "xid"
"""Not a column: a change of this value is a row of ``device_event``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """What one vendor name means."""

    name: str
    column: str
    """One of ``MEASURES``, or ``XID``."""
    unit: Unit
    is_board_wide: bool
    """One value per physical GPU, even where the exporter repeats it for each MIG instance."""
    may_be_percent: bool
    """Named a ratio, but read as percent where any value of the family is above 1."""
    index: int
    """The column's place among ``MEASURES``; -1 for ``XID``."""


def _metrics(
    column: str, *names: tuple[str, Unit], is_board_wide: bool = False
) -> dict[str, Metric]:
    return {
        name: Metric(
            name=name,
            column=column,
            unit=unit,
            is_board_wide=is_board_wide,
            may_be_percent=unit is units.DEVICE_RATIO,
            index=-1 if column == XID else MEASURES.index(column),
        )
        for name, unit in names
    }


def _profiling(column: str, *names: str) -> dict[str, Metric]:
    return _metrics(column, *((name, units.PROFILING_RATIO) for name in names))


_BUSY: Final = (
    _metrics(
        "busy_ratio",
        ("DCGM_FI_DEV_GPU_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_gpu_utilization", units.PERCENT),
    )
    | _metrics(
        "memory_busy_ratio",
        ("DCGM_FI_DEV_MEM_COPY_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_mem_copy_utilization", units.PERCENT),
    )
    | _metrics(
        "encoder_ratio",
        ("DCGM_FI_DEV_ENC_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_ENC_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_enc_utilization", units.PERCENT),
    )
    | _metrics(
        "decoder_ratio",
        ("DCGM_FI_DEV_DEC_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_DEC_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_dec_utilization", units.PERCENT),
    )
)
_PROFILING: Final = (
    _profiling(
        "graphics_active_ratio",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
        "dcgm_fi_prof_gr_engine_active",
    )
    | _profiling(
        "sm_active_ratio",
        "DCGM_FI_PROF_SM_ACTIVE",
        "DCGM_FI_PROF_SM_UTIL_RATIO",
        "dcgm_fi_prof_sm_active",
    )
    | _profiling(
        "sm_occupancy_ratio",
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "DCGM_FI_PROF_SM_OCCUPANCY_RATIO",
        "dcgm_fi_prof_sm_occupancy",
    )
    | _profiling(
        "tensor_active_ratio",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_TENSOR_UTIL_RATIO",
        "dcgm_fi_prof_pipe_tensor_active",
    )
    | _profiling(
        "dram_active_ratio",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "DCGM_FI_PROF_DRAM_UTIL_RATIO",
        "dcgm_fi_prof_dram_active",
    )
    | _profiling(
        "fp64_active_ratio", "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO"
    )
    | _profiling(
        "fp32_active_ratio", "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"
    )
    | _profiling(
        "fp16_active_ratio", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO"
    )
)
_MEMORY: Final = (
    _metrics(
        "memory_used_bytes",
        ("DCGM_FI_DEV_FB_USED", units.MIB),
        ("DCGM_FI_DEV_FB_USED_BYTES", units.BYTES),
        ("dcgm_fb_used", units.MIB),
    )
    | _metrics(
        "memory_free_bytes",
        ("DCGM_FI_DEV_FB_FREE", units.MIB),
        ("DCGM_FI_DEV_FB_FREE_BYTES", units.BYTES),
        ("dcgm_fb_free", units.MIB),
    )
    | _metrics(
        "memory_reserved_bytes",
        ("DCGM_FI_DEV_FB_RESERVED", units.MIB),
        ("DCGM_FI_DEV_FB_RESERVED_BYTES", units.BYTES),
    )
    | _metrics(
        "memory_total_bytes",
        ("DCGM_FI_DEV_FB_TOTAL", units.MIB),
        ("DCGM_FI_DEV_FB_CAPACITY_BYTES", units.BYTES),
        ("dcgm_fb_total", units.MIB),
    )
)
_POWER: Final = _metrics(
    "power_w",
    ("DCGM_FI_DEV_POWER_USAGE", units.WATTS),
    ("DCGM_FI_DEV_BOARD_POWER_WATTS", units.WATTS),
    ("dcgm_power_usage", units.WATTS),
    is_board_wide=True,
) | _metrics(
    "energy_j",
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", units.MILLIJOULES),
    ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", units.JOULES),
    ("dcgm_total_energy_consumption", units.MILLIJOULES),
    is_board_wide=True,
)
_CONDITION: Final = (
    _metrics(
        "temperature_celsius",
        ("DCGM_FI_DEV_GPU_TEMP", units.CELSIUS),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", units.CELSIUS),
        ("dcgm_gpu_temp", units.CELSIUS),
        is_board_wide=True,
    )
    | _metrics(
        "memory_temperature_celsius",
        ("DCGM_FI_DEV_MEMORY_TEMP", units.CELSIUS),
        ("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", units.CELSIUS),
        ("dcgm_memory_temp", units.CELSIUS),
        is_board_wide=True,
    )
    | _metrics(
        "sm_clock_hz",
        ("DCGM_FI_DEV_SM_CLOCK", units.MEGAHERTZ),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", units.HERTZ),
        ("dcgm_sm_clock", units.MEGAHERTZ),
        is_board_wide=True,
    )
    | _metrics(
        "memory_clock_hz",
        ("DCGM_FI_DEV_MEM_CLOCK", units.MEGAHERTZ),
        ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", units.HERTZ),
        ("dcgm_memory_clock", units.MEGAHERTZ),
        is_board_wide=True,
    )
)
_LINKS: Final = (
    _metrics(
        "pcie_transmit_bytes_per_s",
        ("DCGM_FI_PROF_PCIE_TX_BYTES", units.BYTES_PER_S),
        ("dcgm_fi_prof_pcie_tx_bytes", units.BYTES_PER_S),
        ("dcgm_pcie_tx_throughput", units.KILOBYTES_PER_S),
        is_board_wide=True,
    )
    | _metrics(
        "pcie_receive_bytes_per_s",
        ("DCGM_FI_PROF_PCIE_RX_BYTES", units.BYTES_PER_S),
        ("dcgm_fi_prof_pcie_rx_bytes", units.BYTES_PER_S),
        ("dcgm_pcie_rx_throughput", units.KILOBYTES_PER_S),
        is_board_wide=True,
    )
    | _metrics(
        "pcie_replay_count",
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", units.COUNT),
        ("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", units.COUNT),
        ("dcgm_pcie_replay_counter", units.COUNT),
        is_board_wide=True,
    )
    | _metrics(
        "nvlink_bytes_per_s",
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", units.NVLINK_MEGABYTES_PER_S),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", units.NVLINK_MEGABYTES_PER_S),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", units.BYTES_PER_S),
        ("dcgm_nvlink_bandwidth_total", units.NVLINK_MEGABYTES_PER_S),
        is_board_wide=True,
    )
)
_EVENTS: Final = _metrics(
    XID,
    ("DCGM_FI_DEV_XID_ERRORS", units.EVENT_CODE),
    ("DCGM_FI_DEV_XID_ERROR", units.EVENT_CODE),
    ("dcgm_xid_errors", units.EVENT_CODE),
    is_board_wide=True,
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    _BUSY | _PROFILING | _MEMORY | _POWER | _CONDITION | _LINKS | _EVENTS
)
"""Every known name; any other is counted and left out."""

PERCENT_GENERATION: Final = frozenset(
    name for name, metric in METRICS.items() if metric.unit in (units.PERCENT, units.MIB)
) | {"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}
"""Names beside which ``DCGM_FI_DEV_GPU_UTIL_RATIO`` is field 203, an integer percent."""
RATIO_GENERATION: Final = frozenset(
    {
        "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
        "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ",
        "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND",
        "DCGM_FI_DEV_SM_CLOCK_HERTZ",
        "DCGM_FI_DEV_FB_CAPACITY_BYTES",
        "DCGM_FI_DEV_FB_FREE_BYTES",
        "DCGM_FI_DEV_FB_RESERVED_BYTES",
        "DCGM_FI_DEV_FB_USED_BYTES",
        "DCGM_FI_DEV_MEMORY_UTIL_RATIO",
        "DCGM_FI_DEV_ENC_UTIL_RATIO",
        "DCGM_FI_DEV_DEC_UTIL_RATIO",
    }
)
"""Names beside which it is field 1613, a ratio."""
