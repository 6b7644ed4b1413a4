"""What one reading of a machine's GPUs gives: base units, and a reason where nothing was read."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Absence(StrEnum):
    """Why a signal has no value."""

    NOT_SUPPORTED = "not_supported"
    """The device or its driver does not offer it."""
    NO_PERMISSION = "no_permission"
    """The agent may not read it."""
    OUT_OF_RANGE = "out_of_range"
    """The driver gave a number that this signal cannot have."""
    LOST = "lost"
    """The GPU fell off the bus, or needs a reset."""
    TIMEOUT = "timeout"
    """The driver did not answer before the deadline."""
    FAILED = "blank"
    """The driver answered with another error."""


class Measure(StrEnum):
    """A signal, by its name in base units; the columns of ``device_sample`` come first."""

    BUSY = "busy_ratio"
    MEMORY_BUSY = "memory_busy_ratio"
    GRAPHICS_ACTIVE = "graphics_active_ratio"
    SM_ACTIVE = "sm_active_ratio"
    SM_OCCUPANCY = "sm_occupancy_ratio"
    TENSOR_ACTIVE = "tensor_active_ratio"
    DRAM_ACTIVE = "dram_active_ratio"
    FP64_ACTIVE = "fp64_active_ratio"
    FP32_ACTIVE = "fp32_active_ratio"
    FP16_ACTIVE = "fp16_active_ratio"
    ENCODER = "encoder_ratio"
    DECODER = "decoder_ratio"
    MEMORY_USED = "memory_used_bytes"
    MEMORY_FREE = "memory_free_bytes"
    MEMORY_RESERVED = "memory_reserved_bytes"
    MEMORY_TOTAL = "memory_total_bytes"
    POWER = "power_w"
    ENERGY = "energy_j"
    TEMPERATURE = "temperature_celsius"
    MEMORY_TEMPERATURE = "memory_temperature_celsius"
    SM_CLOCK = "sm_clock_hz"
    MEMORY_CLOCK = "memory_clock_hz"
    PCIE_TRANSMIT = "pcie_transmit_bytes_per_s"
    PCIE_RECEIVE = "pcie_receive_bytes_per_s"
    PCIE_REPLAYS = "pcie_replay_count"
    NVLINK = "nvlink_bytes_per_s"
    INTEGER_ACTIVE = "integer_active_ratio"
    POWER_LIMIT = "power_limit_w"
    FAN = "fan_ratio"
    CLOCK_EVENT_REASONS = "clock_event_reason_bits"
    POWER_THROTTLED = "power_throttled_s"
    THERMAL_THROTTLED = "thermal_throttled_s"
    ECC_CORRECTED = "ecc_corrected_count"
    ECC_UNCORRECTED = "ecc_uncorrected_count"
    ROW_REMAP_CORRECTED = "row_remap_corrected_count"
    ROW_REMAP_UNCORRECTED = "row_remap_uncorrected_count"
    ROW_REMAP_FAILED = "row_remap_failed_count"
    PROCESSES = "process_count"
    POWER_AVERAGE = "power_average_w"
    POWER_INSTANT = "power_instant_w"
    GRAPHICS_CLOCK = "graphics_clock_hz"
    VIDEO_CLOCK = "video_clock_hz"
    JPEG = "jpeg_ratio"
    OPTICAL_FLOW = "optical_flow_ratio"
    ROW_REMAP_PENDING = "row_remap_pending_count"
    RETIRED_SINGLE_BIT = "retired_pages_single_bit_count"
    RETIRED_DOUBLE_BIT = "retired_pages_double_bit_count"


class Health(StrEnum):
    """Whether a GPU answers; the value is the metric's ``reason`` label."""

    UP = ""
    LOST = "lost"
    """The driver says that the GPU is gone, or it is no longer listed."""
    UNREACHABLE = "unreachable"
    """The driver did not answer in time, or refused everything."""


@dataclass(slots=True)
class Readings:
    """The signals of one device or instance."""

    values: dict[Measure, float] = field(default_factory=dict)
    """In base units; zero is a measured zero."""
    absences: dict[Measure, Absence] = field(default_factory=dict)
    """Signals that were asked for and have no value."""

    def miss(self, measure: Measure, reason: Absence) -> None:
        """Note why there is no value, unless there already is one."""
        if measure not in self.values:
            self.absences[measure] = reason

    def put(self, measure: Measure, value: float) -> None:
        """Keep a value; a reason noted before is void."""
        self.values[measure] = value
        self.absences.pop(measure, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What does not change of a GPU; None is not told."""

    uuid: str
    index: int
    """NVML's number: not stable over restarts, and not the minor number."""
    minor: int | None
    model: str | None
    pci_bus_id: str | None
    serial: str | None
    driver_version: str | None
    fabric_clique: str | None
    """``<cluster UUID>.<clique>``: GPUs with the same text share an NVLink domain."""
    virtualization: str | None
    """``passthrough``, ``vgpu`` (a guest), ``host_vgpu``, ``host_vsga``; None on bare metal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where an instance lies on its GPU, in memory slices; names it in DRA device names."""

    profile_id: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One MIG instance with its signals."""

    instance_id: int
    """GPU instance id, unique on its GPU."""
    uuids: tuple[str, ...]
    """One ``MIG-…`` UUID per compute instance in it."""
    profile: str | None
    sm_share_ratio: float | None
    memory_share_ratio: float | None
    placement: Placement | None
    readings: Readings


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProcess:
    """One process that holds a context on a device."""

    pid: int
    """In the host's pid namespace."""
    instance_id: int | None
    memory_used_bytes: int | None
    sm_ratio: float | None
    """None where the driver lists no sample of it: it was idle, or is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One GPU in one cycle."""

    index: int
    identity: Identity | None
    """None where the GPU never answered since the agent started."""
    health: Health
    readings: Readings
    instances: tuple[Instance, ...] = ()
    processes: tuple[DeviceProcess, ...] = ()
    is_mig: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class XidCount:
    """How often an XID was reported since the agent started."""

    uuid: str
    instance_id: int | None
    xid: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    """One cycle over all GPUs of a machine."""

    devices: tuple[Device, ...]
    """By index."""
    is_driver_up: bool
    deadline_misses: dict[int, int]
    """Readings given up since the start, by GPU index."""
    xids: tuple[XidCount, ...]
    last_xids: dict[tuple[str, int | None], int]
    """The last XID by GPU and instance."""
    watched: frozenset[str]
    """UUIDs whose XIDs are reported by the driver."""
