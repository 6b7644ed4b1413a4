"""nvidia_gpu_exporter: what ``nvidia-smi --query-gpu`` prints, in base units by name.

Every series names its device by UUID only; ``nvidia_smi_gpu_info`` holds the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.dialects import NVIDIA_SMI
from collector.normalize.metric import XID, Combine, Metric, Role, metrics, told
from collector.normalize.units import Unit


def _measures(
    column: str, *names: str, unit: Unit, rank: int = 0, combine: Combine = Combine.ONE
) -> dict[str, Metric]:
    return metrics(
        column,
        *((f"nvidia_smi_{name}", unit) for name in names),
        dialect=NVIDIA_SMI,
        is_board_wide=True,
        rank=rank,
        combine=combine,
    )


_ACTIVITY: Final = (
    _measures("busy_ratio", "utilization_gpu_ratio", unit=units.RATIO)
    | _measures("memory_busy_ratio", "utilization_memory_ratio", unit=units.RATIO)
    | _measures("encoder_ratio", "utilization_encoder_ratio", unit=units.RATIO)
    | _measures("decoder_ratio", "utilization_decoder_ratio", unit=units.RATIO)
)
_MEMORY: Final = (
    _measures("memory_used_bytes", "memory_used_bytes", unit=units.BYTES)
    | _measures("memory_free_bytes", "memory_free_bytes", unit=units.BYTES)
    | _measures("memory_reserved_bytes", "memory_reserved_bytes", unit=units.BYTES)
    | _measures("memory_total_bytes", "memory_total_bytes", unit=units.BYTES)
)
_POWER: Final = (
    _measures("power_w", "power_draw_watts", unit=units.WATTS)
    | _measures("power_w", "power_draw_average_watts", unit=units.WATTS, rank=1)
    | _measures("power_w", "power_draw_instant_watts", unit=units.WATTS, rank=2)
    | _measures("power_limit_w", "enforced_power_limit_watts", unit=units.WATTS)
    | _measures("power_limit_w", "power_limit_watts", unit=units.WATTS, rank=1)
)
_CONDITION: Final = (
    _measures("temperature_celsius", "temperature_gpu", unit=units.CELSIUS)
    | _measures("memory_temperature_celsius", "temperature_memory", unit=units.CELSIUS)
    | _measures("sm_clock_hz", "clocks_current_sm_clock_hz", unit=units.HERTZ)
    | _measures("sm_clock_hz", "clocks_current_graphics_clock_hz", unit=units.HERTZ, rank=1)
    | _measures("memory_clock_hz", "clocks_current_memory_clock_hz", unit=units.HERTZ)
    | _measures("fan_ratio", "fan_speed_ratio", unit=units.FAN_RATIO)
    | _measures(
        "clock_event_reason_bits",
        "clocks_event_reasons_active",
        "clocks_throttle_reasons_active",
        unit=units.BITS,
    )
    | _measures(
        "power_throttled_s",
        "clocks_event_reasons_counters_sw_power_cap_seconds",
        unit=units.SECONDS,
    )
    | _measures(
        "thermal_throttled_s",
        "clocks_event_reasons_counters_sw_thermal_slowdown_seconds",
        "clocks_event_reasons_counters_hw_thermal_slowdown_seconds",
        unit=units.SECONDS,
        combine=Combine.SUM,
    )
)
_ERRORS: Final = (
    _measures("ecc_corrected_count", "ecc_errors_corrected_aggregate_total", unit=units.COUNT)
    | _measures(
        "ecc_corrected_count", "ecc_errors_corrected_volatile_total", unit=units.COUNT, rank=1
    )
    | _measures("ecc_uncorrected_count", "ecc_errors_uncorrected_aggregate_total", unit=units.COUNT)
    | _measures(
        "ecc_uncorrected_count", "ecc_errors_uncorrected_volatile_total", unit=units.COUNT, rank=1
    )
    | _measures("row_remap_corrected_count", "remapped_rows_correctable", unit=units.COUNT)
    | _measures("row_remap_uncorrected_count", "remapped_rows_uncorrectable", unit=units.COUNT)
    | _measures("row_remap_failed_count", "remapped_rows_failure", unit=units.COUNT)
    | _measures("process_count", "compute_apps", unit=units.COUNT)
)
_TOLD: Final = (
    told(Role.IDENTITY, ("nvidia_smi_gpu_info", units.COUNT), dialect=NVIDIA_SMI)
    | told(
        Role.PROCESS_MEMORY,
        ("nvidia_smi_compute_app_used_memory_bytes", units.BYTES),
        dialect=NVIDIA_SMI,
        label="pid",
    )
    | told(
        Role.EVENT_COUNT,
        ("nvidia_smi_xid_errors_total", units.COUNT),
        dialect=NVIDIA_SMI,
        kind=XID,
        label="xid",
    )
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    _ACTIVITY | _MEMORY | _POWER | _CONDITION | _ERRORS | _TOLD
)
