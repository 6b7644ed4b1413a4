"""Ascend's npu-exporter: percent, MB that are MiB, KB for virtual NPUs, and own timestamps.

A call that failed is printed as -1 or 4294967295, or its line is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.dialects import NPU_EXPORTER
from collector.normalize.metric import Combine, Metric, Role, metrics, told
from collector.normalize.units import Unit

NPU_ERROR: Final = "npu_error"
_MOST_ERROR_CODES: Final = 10


def _measures(
    column: str, *names: str, unit: Unit, rank: int = 0, combine: Combine = Combine.ONE
) -> dict[str, Metric]:
    return metrics(
        column,
        *((name, unit) for name in names),
        dialect=NPU_EXPORTER,
        rank=rank,
        combine=combine,
    )


_ACTIVITY: Final = (
    _measures(
        "busy_ratio",
        "npu_chip_info_overall_utilization",
        "vnpu_pod_aicore_utilization",
        unit=units.ASCEND_PERCENT,
    )
    | _measures("busy_ratio", "npu_chip_info_utilization", unit=units.ASCEND_PERCENT, rank=1)
    | _measures("tensor_active_ratio", "npu_chip_info_cube_utilization", unit=units.ASCEND_PERCENT)
    | _measures(
        "dram_active_ratio", "npu_chip_info_hbm_bandwidth_utilization", unit=units.ASCEND_PERCENT
    )
)
_MEMORY: Final = (
    _measures("memory_used_bytes", "npu_chip_info_hbm_used_memory", unit=units.ASCEND_MIB)
    | _measures("memory_total_bytes", "npu_chip_info_hbm_total_memory", unit=units.ASCEND_MIB)
    | _measures("memory_used_bytes", "npu_chip_info_used_memory", unit=units.ASCEND_MIB, rank=1)
    | _measures("memory_total_bytes", "npu_chip_info_total_memory", unit=units.ASCEND_MIB, rank=1)
    | _measures("memory_used_bytes", "vnpu_pod_used_memory", unit=units.ASCEND_KIB)
    | _measures("memory_total_bytes", "vnpu_pod_total_memory", unit=units.ASCEND_KIB)
)
_CONDITION: Final = (
    _measures("power_w", "npu_chip_info_power", unit=units.ASCEND_WATTS)
    | _measures("temperature_celsius", "npu_chip_info_temperature", unit=units.ASCEND_CELSIUS)
    | _measures(
        "memory_temperature_celsius", "npu_chip_info_hbm_temperature", unit=units.ASCEND_CELSIUS
    )
    | _measures("sm_clock_hz", "npu_chip_info_aicore_current_freq", unit=units.ASCEND_MEGAHERTZ)
    | _measures(
        "nvlink_bytes_per_s",
        "npu_chip_info_hccs_bandwidth_info_total_tx",
        "npu_chip_info_hccs_bandwidth_info_total_rx",
        unit=units.ASCEND_GIGABYTES_PER_S,
        combine=Combine.SUM,
    )
)
_ERRORS: Final = (
    _measures(
        "ecc_corrected_count",
        "npu_chip_info_hbm_ecc_total_single_bit_error_cnt",
        unit=units.ASCEND_COUNT,
    )
    | _measures(
        "ecc_corrected_count",
        "npu_chip_info_hbm_ecc_single_bit_error_cnt",
        unit=units.ASCEND_COUNT,
        rank=1,
    )
    | _measures(
        "ecc_uncorrected_count",
        "npu_chip_info_hbm_ecc_total_double_bit_error_cnt",
        unit=units.ASCEND_COUNT,
    )
    | _measures(
        "ecc_uncorrected_count",
        "npu_chip_info_hbm_ecc_double_bit_error_cnt",
        unit=units.ASCEND_COUNT,
        rank=1,
    )
    | _measures("process_count", "npu_chip_info_process_info_num", unit=units.ASCEND_COUNT)
)
_TOLD: Final = (
    told(
        Role.LAST_EVENT,
        ("npu_chip_info_error_code", units.ASCEND_CODE),
        *(
            (f"npu_chip_info_error_code_{number}", units.ASCEND_CODE)
            for number in range(1, _MOST_ERROR_CODES)
        ),
        dialect=NPU_EXPORTER,
        kind=NPU_ERROR,
    )
    | told(
        Role.PROCESS_MEMORY,
        ("npu_chip_info_process_info", units.ASCEND_MIB),
        dialect=NPU_EXPORTER,
        label="process_id",
    )
    | told(
        Role.IDENTITY,
        ("npu_chip_info_name", units.COUNT),
        ("npu_container_info", units.COUNT),
        ("container_npu_utilization", units.ASCEND_PERCENT),
        ("container_npu_total_memory", units.ASCEND_MIB),
        ("container_npu_used_memory", units.ASCEND_MIB),
        dialect=NPU_EXPORTER,
    )
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    _ACTIVITY | _MEMORY | _CONDITION | _ERRORS | _TOLD
)
