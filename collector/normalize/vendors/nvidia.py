"""NVIDIA's metric names in their generations, each with the column, unit and scope it means.

Generations: dcgm-exporter up to 4.8 (``DCGM_FI_DEV_GPU_UTIL``), DCGM 4.6 canonical names (same
field and unit, new name), DCGM 4.7 twins (new field, base unit), and the 1.x names
(``dcgm_gpu_utilization``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.metric import Metric, counters, metrics, profiling
from collector.normalize.vendors.nvidia_board import BOARD_METRICS

_BUSY: Final = (
    metrics(
        "busy_ratio",
        ("DCGM_FI_DEV_GPU_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_gpu_utilization", units.PERCENT),
    )
    | metrics(
        "memory_busy_ratio",
        ("DCGM_FI_DEV_MEM_COPY_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_MEMORY_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_mem_copy_utilization", units.PERCENT),
    )
    | metrics(
        "encoder_ratio",
        ("DCGM_FI_DEV_ENC_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_ENC_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_enc_utilization", units.PERCENT),
    )
    | metrics(
        "decoder_ratio",
        ("DCGM_FI_DEV_DEC_UTIL", units.PERCENT),
        ("DCGM_FI_DEV_DEC_UTIL_RATIO", units.DEVICE_RATIO),
        ("dcgm_dec_utilization", units.PERCENT),
    )
)
_PROFILING: Final = (
    profiling(
        "graphics_active_ratio",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
        "dcgm_fi_prof_gr_engine_active",
    )
    | profiling(
        "sm_active_ratio",
        "DCGM_FI_PROF_SM_ACTIVE",
        "DCGM_FI_PROF_SM_UTIL_RATIO",
        "dcgm_fi_prof_sm_active",
    )
    | profiling(
        "sm_occupancy_ratio",
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "DCGM_FI_PROF_SM_OCCUPANCY_RATIO",
        "dcgm_fi_prof_sm_occupancy",
    )
    | profiling(
        "tensor_active_ratio",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_TENSOR_UTIL_RATIO",
        "dcgm_fi_prof_pipe_tensor_active",
    )
    | profiling(
        "dram_active_ratio",
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "DCGM_FI_PROF_DRAM_UTIL_RATIO",
        "dcgm_fi_prof_dram_active",
    )
    | profiling(
        "fp64_active_ratio", "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO"
    )
    | profiling(
        "fp32_active_ratio", "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO"
    )
    | profiling(
        "fp16_active_ratio", "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO"
    )
    | profiling(
        "integer_active_ratio", "DCGM_FI_PROF_PIPE_INT_ACTIVE", "DCGM_FI_PROF_INT_UTIL_RATIO"
    )
)
_MEMORY: Final = (
    metrics(
        "memory_used_bytes",
        ("DCGM_FI_DEV_FB_USED", units.MIB),
        ("DCGM_FI_DEV_FB_USED_BYTES", units.BYTES),
        ("dcgm_fb_used", units.MIB),
    )
    | metrics(
        "memory_free_bytes",
        ("DCGM_FI_DEV_FB_FREE", units.MIB),
        ("DCGM_FI_DEV_FB_FREE_BYTES", units.BYTES),
        ("dcgm_fb_free", units.MIB),
    )
    | metrics(
        "memory_reserved_bytes",
        ("DCGM_FI_DEV_FB_RESERVED", units.MIB),
        ("DCGM_FI_DEV_FB_RESERVED_BYTES", units.BYTES),
    )
    | metrics(
        "memory_total_bytes",
        ("DCGM_FI_DEV_FB_TOTAL", units.MIB),
        ("DCGM_FI_DEV_FB_CAPACITY_BYTES", units.BYTES),
        ("dcgm_fb_total", units.MIB),
    )
)
_ELAPSED: Final = "DCGM_FI_PROF_SM_CYCLES_ELAPSED_TOTAL"


def _cycles(column: str, pipe: str) -> dict[str, Metric]:
    name = f"DCGM_FI_PROF_{pipe}_CYCLES_ACTIVE_TOTAL"
    return counters(column, (name, units.PROFILING_RATIO), reference=_ELAPSED)


_CYCLES: Final = (
    counters("", (_ELAPSED, units.COUNT))
    | _cycles("sm_active_ratio", "SM")
    | _cycles("tensor_active_ratio", "MMA")
    | _cycles("integer_active_ratio", "INT")
    | _cycles("fp64_active_ratio", "FP64")
    | _cycles("fp32_active_ratio", "FP32")
    | _cycles("fp16_active_ratio", "FP16")
    | counters(
        "pcie_transmit_bytes_per_s",
        ("DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL", units.BYTES_PER_S),
        is_board_wide=True,
    )
    | counters(
        "pcie_receive_bytes_per_s",
        ("DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL", units.BYTES_PER_S),
        is_board_wide=True,
    )
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    {**_BUSY, **_PROFILING, **_MEMORY, **_CYCLES, **BOARD_METRICS}
)

PERCENT_GENERATION: Final = frozenset(
    name
    for name, metric in METRICS.items()
    if metric.unit
    in (units.PERCENT, units.FAN_PERCENT, units.MIB, units.MEGAHERTZ, units.MILLIJOULES)
)
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
        "DCGM_FI_DEV_FAN_SPEED_RATIO",
        "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL",
        "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL",
    }
)
"""Names beside which it is field 1613, a ratio."""
