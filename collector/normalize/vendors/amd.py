"""AMD's device-metrics-exporter: all gauges, in lower case, with a prefix of the operator's choice.

Percent, MB that are MiB, microjoules. The largest number of a field's width means "not available",
and a guest that may not read a sensor prints 0 degrees.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.dialects import DEVICE_METRICS_EXPORTER
from collector.normalize.metric import Combine, Metric, Role, counters, metrics, told
from collector.normalize.units import Unit

AFID: Final = "afid"
"""An AMD field identifier: the code of a reliability event."""
CLOCK_TYPE: Final = "clock_type"


def _measures(
    column: str, *names: str, unit: Unit, rank: int = 0, combine: Combine = Combine.ONE
) -> dict[str, Metric]:
    return metrics(
        column,
        *((name, unit) for name in names),
        dialect=DEVICE_METRICS_EXPORTER,
        is_board_wide=True,
        rank=rank,
        combine=combine,
    )


_ACTIVITY: Final = (
    _measures("busy_ratio", "gpu_gfx_activity", unit=units.AMD_PERCENT)
    | _measures("memory_busy_ratio", "gpu_umc_activity", unit=units.AMD_PERCENT)
    | _measures("graphics_active_ratio", "gpu_prof_gui_util_percent", unit=units.AMD_PERCENT)
    | _measures("sm_active_ratio", "gpu_prof_sm_active", unit=units.AMD_PERCENT)
    | _measures("sm_occupancy_ratio", "gpu_prof_occupancy_percent", unit=units.AMD_PERCENT)
    | _measures("tensor_active_ratio", "gpu_prof_tensor_active_percent", unit=units.AMD_PERCENT)
)
_MEMORY: Final = (
    _measures("memory_used_bytes", "gpu_used_vram", unit=units.AMD_MIB)
    | _measures("memory_free_bytes", "gpu_free_vram", unit=units.AMD_MIB)
    | _measures("memory_total_bytes", "gpu_total_vram", unit=units.AMD_MIB)
)
_CONDITION: Final = (
    _measures("power_w", "gpu_package_power", unit=units.AMD_WATTS)
    | _measures("power_w", "gpu_average_package_power", unit=units.AMD_WATTS, rank=1)
    | _measures("power_w", "gpu_power_usage", unit=units.AMD_WATTS, rank=2)
    | _measures("energy_j", "gpu_energy_consumed", unit=units.AMD_MICROJOULES)
    | _measures("temperature_celsius", "gpu_junction_temperature", unit=units.AMD_CELSIUS)
    | _measures("temperature_celsius", "gpu_edge_temperature", unit=units.AMD_CELSIUS, rank=1)
    | _measures("memory_temperature_celsius", "gpu_memory_temperature", unit=units.AMD_CELSIUS)
    | _measures(
        "memory_temperature_celsius",
        "gpu_hbm_temperature",
        unit=units.AMD_CELSIUS,
        rank=1,
        combine=Combine.MAX,
    )
    | _measures(
        "sm_clock_hz",
        "gpu_clock{clock_type=system}",
        "gpu_clock{clock_type=GPU_CLOCK_TYPE_SYSTEM}",
        unit=units.AMD_MEGAHERTZ,
        combine=Combine.MAX,
    )
    | _measures(
        "memory_clock_hz",
        "gpu_clock{clock_type=memory}",
        "gpu_clock{clock_type=GPU_CLOCK_TYPE_MEMORY}",
        unit=units.AMD_MEGAHERTZ,
        combine=Combine.MAX,
    )
)
_ERRORS: Final = (
    _measures("pcie_replay_count", "pcie_replay_count", unit=units.AMD_COUNT)
    | _measures("ecc_corrected_count", "gpu_ecc_correct_total", unit=units.AMD_COUNT)
    | _measures("ecc_uncorrected_count", "gpu_ecc_uncorrect_total", unit=units.AMD_COUNT)
)
_COUNTERS: Final = counters(
    "nvlink_bytes_per_s",
    ("gpu_xgmi_link_rx", units.KILOBYTES_PER_S),
    ("gpu_xgmi_link_tx", units.KILOBYTES_PER_S),
    dialect=DEVICE_METRICS_EXPORTER,
    is_board_wide=True,
)
_TOLD: Final = told(
    Role.LAST_EVENT,
    ("gpu_afid_errors", units.AMD_CODE),
    dialect=DEVICE_METRICS_EXPORTER,
    kind=AFID,
) | told(
    Role.PROCESS,
    ("gpu_process_cu_occupancy", units.AMD_COUNT),
    dialect=DEVICE_METRICS_EXPORTER,
    label="process_id",
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    _ACTIVITY | _MEMORY | _CONDITION | _ERRORS | _COUNTERS | _TOLD
)
SPLIT_BY: Final[Mapping[str, str]] = MappingProxyType({"gpu_clock": CLOCK_TYPE})
"""Families that hold several measures, and the label that tells them apart."""
