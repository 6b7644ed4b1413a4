"""The node agent's names (``steward agent``): base units throughout, listed in docs/agent.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.dialects import AGENT
from collector.normalize.metric import XID, Metric, Role, metrics, told
from collector.normalize.units import Unit

_PREFIX: Final = "steward_gpu_"
POD_RESOURCES_UP: Final = "steward_agent_pod_resources_up"
"""1 where the kubelet says who holds what; without it nobody can be said to hold nothing."""
_INSTANCE: Final[Mapping[str, tuple[str, Unit]]] = MappingProxyType(
    {
        "busy_ratio": ("busy_ratio", units.RATIO),
        "memory_busy_ratio": ("memory_busy_ratio", units.RATIO),
        "graphics_active_ratio": ("graphics_active_ratio", units.PROFILING_RATIO),
        "sm_active_ratio": ("sm_active_ratio", units.PROFILING_RATIO),
        "sm_occupancy_ratio": ("sm_occupancy_ratio", units.PROFILING_RATIO),
        "tensor_active_ratio": ("tensor_active_ratio", units.PROFILING_RATIO),
        "dram_active_ratio": ("dram_active_ratio", units.PROFILING_RATIO),
        "fp64_active_ratio": ("fp64_active_ratio", units.PROFILING_RATIO),
        "fp32_active_ratio": ("fp32_active_ratio", units.PROFILING_RATIO),
        "fp16_active_ratio": ("fp16_active_ratio", units.PROFILING_RATIO),
        "integer_active_ratio": ("integer_active_ratio", units.PROFILING_RATIO),
        "encoder_ratio": ("encoder_ratio", units.RATIO),
        "decoder_ratio": ("decoder_ratio", units.RATIO),
        "memory_used_bytes": ("memory_used_bytes", units.BYTES),
        "memory_free_bytes": ("memory_free_bytes", units.BYTES),
        "memory_reserved_bytes": ("memory_reserved_bytes", units.BYTES),
        "memory_total_bytes": ("memory_total_bytes", units.BYTES),
        "processes": ("process_count", units.COUNT),
    }
)
"""Name to column and unit, of what holds for an instance too."""
_BOARD: Final[Mapping[str, tuple[str, Unit]]] = MappingProxyType(
    {
        "power_watts": ("power_w", units.WATTS),
        "energy_joules_total": ("energy_j", units.JOULES),
        "temperature_celsius": ("temperature_celsius", units.CELSIUS),
        "memory_temperature_celsius": ("memory_temperature_celsius", units.CELSIUS),
        "sm_clock_hertz": ("sm_clock_hz", units.HERTZ),
        "memory_clock_hertz": ("memory_clock_hz", units.HERTZ),
        "pcie_transmit_bytes_per_second": ("pcie_transmit_bytes_per_s", units.BYTES_PER_S),
        "pcie_receive_bytes_per_second": ("pcie_receive_bytes_per_s", units.BYTES_PER_S),
        "pcie_replays_total": ("pcie_replay_count", units.COUNT),
        "nvlink_bytes_per_second": ("nvlink_bytes_per_s", units.BYTES_PER_S),
        "power_limit_watts": ("power_limit_w", units.WATTS),
        "fan_ratio": ("fan_ratio", units.FAN_RATIO),
        "clock_event_reasons": ("clock_event_reason_bits", units.BITS),
        "power_throttled_seconds_total": ("power_throttled_s", units.SECONDS),
        "thermal_throttled_seconds_total": ("thermal_throttled_s", units.SECONDS),
        "ecc_corrected_errors_total": ("ecc_corrected_count", units.COUNT),
        "ecc_uncorrected_errors_total": ("ecc_uncorrected_count", units.COUNT),
        "row_remap_corrected_total": ("row_remap_corrected_count", units.COUNT),
        "row_remap_uncorrected_total": ("row_remap_uncorrected_count", units.COUNT),
        "row_remap_failed": ("row_remap_failed_count", units.COUNT),
    }
)
"""The same, of what a board has once."""


def _measures(names: Mapping[str, tuple[str, Unit]], *, is_board_wide: bool) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for name, (column, unit) in names.items():
        found |= metrics(column, (_PREFIX + name, unit), dialect=AGENT, is_board_wide=is_board_wide)
    return found


def _told(
    role: Role, name: str, *, unit: Unit = units.COUNT, kind: str = "", label: str | None = None
) -> dict[str, Metric]:
    return told(role, (_PREFIX + name, unit), dialect=AGENT, kind=kind, label=label)


METRICS: Final[Mapping[str, Metric]] = MappingProxyType(
    _measures(_INSTANCE, is_board_wide=False)
    | _measures(_BOARD, is_board_wide=True)
    | _told(Role.IDENTITY, "info")
    | _told(Role.IDENTITY, "allocation_info")
    | _told(Role.PRESENCE, "up")
    | _told(Role.ABSENCE, "unreadable_info")
    | _told(Role.LAST_EVENT, "last_xid", unit=units.EVENT_CODE, kind=XID)
    | _told(Role.EVENT_COUNT, "xid_errors_total", kind=XID, label="xid")
    | _told(Role.PROCESS, "process_info", label="pid")
    | _told(Role.PROCESS_MEMORY, "process_memory_used_bytes", unit=units.BYTES, label="pid")
    | _told(Role.PROCESS_RATIO, "process_sm_ratio", unit=units.RATIO, label="pid")
)
"""Everything the agent tells of GPUs; its own metrics (``steward_agent_…``) are not stored."""
