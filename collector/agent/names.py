"""The agent's public names: one metric per signal, in base units, listed in ``docs/agent.md``."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from collector.agent.text import Family, Kind
from collector.sources.nvml.records import Measure

PREFIX: Final = "steward_gpu"


def _gauge(name: str, text: str) -> Family:
    return Family(f"{PREFIX}_{name}", Kind.GAUGE, text)


def _counter(name: str, text: str) -> Family:
    return Family(f"{PREFIX}_{name}_total", Kind.COUNTER, text)


MEASURES: Final = MappingProxyType(
    {
        Measure.BUSY: _gauge("busy_ratio", "Share of time with at least one kernel resident."),
        Measure.MEMORY_BUSY: _gauge(
            "memory_busy_ratio", "Share of time in which memory was read or written."
        ),
        Measure.GRAPHICS_ACTIVE: _gauge(
            "graphics_active_ratio", "Share of time the graphics or compute engine was active."
        ),
        Measure.SM_ACTIVE: _gauge(
            "sm_active_ratio", "Cycles with a warp resident, averaged over multiprocessors."
        ),
        Measure.SM_OCCUPANCY: _gauge(
            "sm_occupancy_ratio", "Resident warps over the most that fit, per elapsed cycle."
        ),
        Measure.TENSOR_ACTIVE: _gauge("tensor_active_ratio", "Cycles with the tensor pipe active."),
        Measure.DRAM_ACTIVE: _gauge("dram_active_ratio", "Memory bandwidth used over the peak."),
        Measure.FP64_ACTIVE: _gauge("fp64_active_ratio", "Cycles with the FP64 pipe active."),
        Measure.FP32_ACTIVE: _gauge("fp32_active_ratio", "Cycles with the FP32 pipe active."),
        Measure.FP16_ACTIVE: _gauge("fp16_active_ratio", "Cycles with the FP16 pipe active."),
        Measure.INTEGER_ACTIVE: _gauge(
            "integer_active_ratio", "Cycles with the integer pipe active."
        ),
        Measure.ENCODER: _gauge("encoder_ratio", "Share of time the video encoder was busy."),
        Measure.DECODER: _gauge("decoder_ratio", "Share of time the video decoder was busy."),
        Measure.JPEG: _gauge("jpeg_ratio", "Share of time the JPEG engine was busy."),
        Measure.OPTICAL_FLOW: _gauge(
            "optical_flow_ratio", "Share of time the optical flow engine was busy."
        ),
        Measure.MEMORY_USED: _gauge("memory_used_bytes", "Memory in use, without the reserved."),
        Measure.MEMORY_FREE: _gauge("memory_free_bytes", "Memory free."),
        Measure.MEMORY_RESERVED: _gauge(
            "memory_reserved_bytes", "Memory held by driver and firmware."
        ),
        Measure.MEMORY_TOTAL: _gauge("memory_total_bytes", "Memory capacity."),
        Measure.POWER: _gauge("power_watts", "Power drawn by the board."),
        Measure.POWER_AVERAGE: _gauge("power_average_watts", "Power averaged over one second."),
        Measure.POWER_INSTANT: _gauge("power_instant_watts", "Power at this instant."),
        Measure.POWER_LIMIT: _gauge("power_limit_watts", "Power limit in force."),
        Measure.ENERGY: _counter("energy_joules", "Energy since the driver was loaded."),
        Measure.TEMPERATURE: _gauge("temperature_celsius", "Temperature of the GPU."),
        Measure.MEMORY_TEMPERATURE: _gauge(
            "memory_temperature_celsius", "Temperature of the memory."
        ),
        Measure.FAN: _gauge("fan_ratio", "Fan speed over its nominal maximum; may exceed 1."),
        Measure.SM_CLOCK: _gauge("sm_clock_hertz", "Clock of the multiprocessors."),
        Measure.MEMORY_CLOCK: _gauge("memory_clock_hertz", "Clock of the memory."),
        Measure.GRAPHICS_CLOCK: _gauge("graphics_clock_hertz", "Clock of the graphics engine."),
        Measure.VIDEO_CLOCK: _gauge("video_clock_hertz", "Clock of the video engines."),
        Measure.CLOCK_EVENT_REASONS: _gauge(
            "clock_event_reasons", "Bit mask of why clocks are not at their highest."
        ),
        Measure.POWER_THROTTLED: _counter(
            "power_throttled_seconds", "Time slowed down by the power limit."
        ),
        Measure.THERMAL_THROTTLED: _counter(
            "thermal_throttled_seconds", "Time slowed down by temperature."
        ),
        Measure.PCIE_TRANSMIT: _gauge(
            "pcie_transmit_bytes_per_second", "Sent over PCIe by the GPU."
        ),
        Measure.PCIE_RECEIVE: _gauge(
            "pcie_receive_bytes_per_second", "Received over PCIe by the GPU."
        ),
        Measure.PCIE_REPLAYS: _counter("pcie_replays", "PCIe retries."),
        Measure.NVLINK: _gauge(
            "nvlink_bytes_per_second", "NVLink traffic of all links, both directions."
        ),
        Measure.ECC_CORRECTED: _counter("ecc_corrected_errors", "ECC errors that were corrected."),
        Measure.ECC_UNCORRECTED: _counter("ecc_uncorrected_errors", "ECC errors that were not."),
        Measure.ROW_REMAP_CORRECTED: _counter(
            "row_remap_corrected", "Memory rows remapped after correctable errors."
        ),
        Measure.ROW_REMAP_UNCORRECTED: _counter(
            "row_remap_uncorrected", "Memory rows remapped after uncorrectable errors."
        ),
        Measure.ROW_REMAP_PENDING: _gauge(
            "row_remap_pending", "1 where a remapped row needs a reset of the GPU."
        ),
        Measure.ROW_REMAP_FAILED: _gauge("row_remap_failed", "1 where remapping failed."),
        Measure.RETIRED_SINGLE_BIT: _counter(
            "retired_pages_single_bit", "Memory pages retired after single-bit errors."
        ),
        Measure.RETIRED_DOUBLE_BIT: _counter(
            "retired_pages_double_bit", "Memory pages retired after double-bit errors."
        ),
        Measure.PROCESSES: _gauge("processes", "Processes that hold a context."),
    }
)
"""Each signal's metric."""

UP: Final = _gauge("up", "1 where the GPU answers; else 0 with the reason.")
INFO: Final = _gauge("info", "What a GPU or MIG instance is; always 1.")
UNREADABLE: Final = _gauge("unreadable_info", "A signal without a value and why; always 1.")
LAST_XID: Final = _gauge("last_xid", "The last XID reported since the agent started; 0 is none.")
XID_ERRORS: Final = _counter("xid_errors", "XIDs reported since the agent started.")
ALLOCATION: Final = _gauge("allocation_info", "A container that holds a device; always 1.")
PROCESS: Final = _gauge("process_info", "A process that holds a context; always 1.")
PROCESS_MEMORY: Final = _gauge("process_memory_used_bytes", "Memory of one process.")
PROCESS_SM: Final = _gauge("process_sm_ratio", "Multiprocessor utilisation by one process.")

AGENT_INFO: Final = Family("steward_agent_info", Kind.GAUGE, "The agent's version; always 1.")
DRIVER_UP: Final = Family("steward_agent_driver_up", Kind.GAUGE, "1 where the driver answers.")
CYCLES: Final = Family("steward_agent_cycles_total", Kind.COUNTER, "Readings of the whole node.")
CYCLE_DURATION: Final = Family(
    "steward_agent_cycle_duration_seconds", Kind.GAUGE, "How long the last reading took."
)
CYCLE_TIME: Final = Family(
    "steward_agent_last_cycle_timestamp_seconds", Kind.GAUGE, "When the last reading began."
)
DEADLINE_MISSES: Final = Family(
    "steward_agent_deadline_misses_total", Kind.COUNTER, "Readings of a GPU that were given up."
)
POD_RESOURCES_UP: Final = Family(
    "steward_agent_pod_resources_up", Kind.GAUGE, "1 where the kubelet says who holds what."
)
UNRESOLVED: Final = Family(
    "steward_agent_unresolved_devices",
    Kind.GAUGE,
    "Devices given to containers that are not among this node's GPUs.",
)
ALLOCATABLE: Final = Family(
    "steward_agent_allocatable_devices", Kind.GAUGE, "Devices the kubelet can give out."
)
CPU: Final = Family("process_cpu_seconds_total", Kind.COUNTER, "CPU time of the agent.")
RESIDENT: Final = Family(
    "process_resident_memory_bytes", Kind.GAUGE, "Resident memory of the agent."
)
STARTED: Final = Family(
    "process_start_time_seconds", Kind.GAUGE, "When the agent started, in Unix time."
)
OPEN_FILES: Final = Family("process_open_fds", Kind.GAUGE, "Open file descriptors of the agent.")
