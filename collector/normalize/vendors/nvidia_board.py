"""NVIDIA's names for what belongs to the whole board: power, heat, clocks, links, errors, XIDs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.metric import XID, Combine, Metric, Role, metrics, told
from collector.normalize.units import Unit

_LANES: Final = range(18)
_POWER: Final = metrics(
    "power_w",
    ("DCGM_FI_DEV_POWER_USAGE", units.WATTS),
    ("DCGM_FI_DEV_BOARD_POWER_WATTS", units.WATTS),
    ("dcgm_power_usage", units.WATTS),
    is_board_wide=True,
) | metrics(
    "energy_j",
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", units.MILLIJOULES),
    ("DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", units.JOULES),
    ("dcgm_total_energy_consumption", units.MILLIJOULES),
    is_board_wide=True,
)
_CONDITION: Final = (
    metrics(
        "temperature_celsius",
        ("DCGM_FI_DEV_GPU_TEMP", units.CELSIUS),
        ("DCGM_FI_DEV_GPU_TEMP_CELSIUS", units.CELSIUS),
        ("dcgm_gpu_temp", units.CELSIUS),
        is_board_wide=True,
    )
    | metrics(
        "memory_temperature_celsius",
        ("DCGM_FI_DEV_MEMORY_TEMP", units.CELSIUS),
        ("DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", units.CELSIUS),
        ("dcgm_memory_temp", units.CELSIUS),
        is_board_wide=True,
    )
    | metrics(
        "sm_clock_hz",
        ("DCGM_FI_DEV_SM_CLOCK", units.MEGAHERTZ),
        ("DCGM_FI_DEV_SM_CLOCK_HERTZ", units.HERTZ),
        ("dcgm_sm_clock", units.MEGAHERTZ),
        is_board_wide=True,
    )
    | metrics(
        "memory_clock_hz",
        ("DCGM_FI_DEV_MEM_CLOCK", units.MEGAHERTZ),
        ("DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", units.HERTZ),
        ("dcgm_memory_clock", units.MEGAHERTZ),
        is_board_wide=True,
    )
)
_LINKS: Final = (
    metrics(
        "pcie_transmit_bytes_per_s",
        ("DCGM_FI_PROF_PCIE_TX_BYTES", units.BYTES_PER_S),
        ("dcgm_fi_prof_pcie_tx_bytes", units.BYTES_PER_S),
        ("dcgm_pcie_tx_throughput", units.KILOBYTES_PER_S),
        is_board_wide=True,
    )
    | metrics(
        "pcie_receive_bytes_per_s",
        ("DCGM_FI_PROF_PCIE_RX_BYTES", units.BYTES_PER_S),
        ("dcgm_fi_prof_pcie_rx_bytes", units.BYTES_PER_S),
        ("dcgm_pcie_rx_throughput", units.KILOBYTES_PER_S),
        is_board_wide=True,
    )
    | metrics(
        "pcie_replay_count",
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", units.COUNT),
        ("DCGM_FI_DEV_PCIE_REPLAY_TOTAL", units.COUNT),
        ("dcgm_pcie_replay_counter", units.COUNT),
        is_board_wide=True,
    )
    | metrics(
        "nvlink_bytes_per_s",
        ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", units.NVLINK_MEGABYTES_PER_S),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", units.NVLINK_MEGABYTES_PER_S),
        ("DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", units.BYTES_PER_S),
        ("dcgm_nvlink_bandwidth_total", units.NVLINK_MEGABYTES_PER_S),
        is_board_wide=True,
    )
)


def _lanes(name: str, *, rank: int, unit: Unit = units.NVLINK_MEGABYTES_PER_S) -> dict[str, Metric]:
    """Return the names of all lanes, whose sum is the device's; each generation its own rank."""
    return metrics(
        "nvlink_bytes_per_s",
        *((name.format(lane=lane), unit) for lane in _LANES),
        is_board_wide=True,
        rank=rank,
        combine=Combine.SUM,
    )


_PER_LINK: Final = (
    metrics(
        "nvlink_bytes_per_s",
        ("DCGM_FI_PROF_NVLINK_TX_BYTES", units.BYTES_PER_S),
        ("DCGM_FI_PROF_NVLINK_RX_BYTES", units.BYTES_PER_S),
        is_board_wide=True,
        rank=1,
        combine=Combine.SUM,
    )
    | _lanes(
        "DCGM_FI_DEV_NVLINK_THROUGHPUT_L{lane}_BYTES_PER_SECOND", rank=2, unit=units.BYTES_PER_S
    )
    | _lanes("DCGM_FI_DEV_NVLINK_THROUGHPUT_L{lane}", rank=3)
    | _lanes("DCGM_FI_DEV_NVLINK_BANDWIDTH_L{lane}", rank=4)
    | metrics(
        "pcie_transmit_bytes_per_s",
        ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", units.KILOBYTES_PER_S),
        is_board_wide=True,
        rank=1,
    )
    | metrics(
        "pcie_receive_bytes_per_s",
        ("DCGM_FI_DEV_PCIE_RX_THROUGHPUT", units.KILOBYTES_PER_S),
        is_board_wide=True,
        rank=1,
    )
)
_LIMITS: Final = (
    metrics(
        "power_limit_w",
        ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", units.WATTS),
        ("DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS", units.WATTS),
        is_board_wide=True,
    )
    | metrics(
        "power_limit_w",
        ("DCGM_FI_DEV_POWER_MGMT_LIMIT", units.WATTS),
        ("DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS", units.WATTS),
        is_board_wide=True,
        rank=1,
    )
    | metrics(
        "power_w",
        ("DCGM_FI_DEV_POWER_USAGE_INSTANT", units.WATTS),
        ("DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", units.WATTS),
        is_board_wide=True,
        rank=1,
    )
    | metrics(
        "fan_ratio",
        ("DCGM_FI_DEV_FAN_SPEED", units.FAN_PERCENT),
        ("DCGM_FI_DEV_FAN_SPEED_RATIO", units.FAN_RATIO),
        is_board_wide=True,
    )
    | metrics(
        "clock_event_reason_bits",
        ("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", units.BITS),
        ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", units.BITS),
        is_board_wide=True,
    )
    | metrics(
        "power_throttled_s",
        ("DCGM_FI_DEV_POWER_VIOLATION", units.NANOSECONDS),
        ("DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", units.SECONDS),
        ("dcgm_power_violation", units.NANOSECONDS),
        is_board_wide=True,
    )
    | metrics(
        "thermal_throttled_s",
        ("DCGM_FI_DEV_THERMAL_VIOLATION", units.NANOSECONDS),
        ("DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL", units.SECONDS),
        ("dcgm_thermal_violation", units.NANOSECONDS),
        is_board_wide=True,
    )
)
_ERRORS: Final = (
    metrics(
        "ecc_corrected_count",
        ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", units.COUNT),
        ("dcgm_ecc_sbe_aggregate_total", units.COUNT),
        is_board_wide=True,
    )
    | metrics(
        "ecc_corrected_count",
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", units.COUNT),
        ("dcgm_ecc_sbe_volatile_total", units.COUNT),
        is_board_wide=True,
        rank=1,
    )
    | metrics(
        "ecc_uncorrected_count",
        ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", units.COUNT),
        ("dcgm_ecc_dbe_aggregate_total", units.COUNT),
        is_board_wide=True,
    )
    | metrics(
        "ecc_uncorrected_count",
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", units.COUNT),
        ("dcgm_ecc_dbe_volatile_total", units.COUNT),
        is_board_wide=True,
        rank=1,
    )
    | metrics(
        "row_remap_corrected_count",
        ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", units.COUNT),
        ("DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", units.COUNT),
        is_board_wide=True,
    )
    | metrics(
        "row_remap_uncorrected_count",
        ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", units.COUNT),
        ("DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", units.COUNT),
        is_board_wide=True,
    )
    | metrics(
        "row_remap_failed_count",
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", units.COUNT),
        ("DCGM_FI_DEV_ROW_REMAP_FAILED", units.COUNT),
        is_board_wide=True,
    )
)
_EVENTS: Final = told(
    Role.LAST_EVENT,
    ("DCGM_FI_DEV_XID_ERRORS", units.EVENT_CODE),
    ("DCGM_FI_DEV_XID_ERROR", units.EVENT_CODE),
    ("dcgm_xid_errors", units.EVENT_CODE),
    kind=XID,
) | told(
    Role.EVENT_COUNT,
    ("DCGM_EXP_XID_ERRORS_COUNT", units.COUNT),
    ("DCGM_EXP_XID_ERRORS_TOTAL", units.COUNT),
    kind=XID,
    label="xid",
)

BOARD_METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    _POWER | _CONDITION | _LINKS | _PER_LINK | _LIMITS | _ERRORS | _EVENTS
)
"""Told by the board, or repeated for each of its MIG instances."""
