"""The four GPU models of the simulated fleet: nameplate figures, rounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from steward.units import MHZ_HZ, MIB_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    """What bounds a GPU's readings; the idle floors are those that real boards show."""

    name: str
    memory_bytes: int
    memory_reserved_bytes: int
    idle_w: float
    mig_idle_w: float
    """A board in MIG mode idles higher: its contexts stay resident."""
    limit_w: float
    idle_sm_clock_hz: int
    full_sm_clock_hz: int
    idle_memory_clock_hz: int
    full_memory_clock_hz: int
    pcie_bytes_per_s: float
    nvlink_bytes_per_s: float | None
    """None: no NVLink on this board."""
    has_memory_temperature: bool


H100: Final = GpuModel(
    name="H100-SXM-80GB",
    memory_bytes=81_559 * MIB_BYTES,
    memory_reserved_bytes=551 * MIB_BYTES,
    idle_w=70.0,
    mig_idle_w=95.0,
    limit_w=700.0,
    idle_sm_clock_hz=345 * MHZ_HZ,
    full_sm_clock_hz=1_980 * MHZ_HZ,
    idle_memory_clock_hz=2_619 * MHZ_HZ,
    full_memory_clock_hz=2_619 * MHZ_HZ,
    pcie_bytes_per_s=55e9,
    nvlink_bytes_per_s=450e9,
    has_memory_temperature=True,
)
A100: Final = GpuModel(
    name="A100-SXM4-40GB",
    memory_bytes=40_960 * MIB_BYTES,
    memory_reserved_bytes=424 * MIB_BYTES,
    idle_w=46.0,
    mig_idle_w=76.0,
    limit_w=400.0,
    idle_sm_clock_hz=210 * MHZ_HZ,
    full_sm_clock_hz=1_410 * MHZ_HZ,
    idle_memory_clock_hz=1_215 * MHZ_HZ,
    full_memory_clock_hz=1_215 * MHZ_HZ,
    pcie_bytes_per_s=26e9,
    nvlink_bytes_per_s=300e9,
    has_memory_temperature=True,
)
L40S: Final = GpuModel(
    name="L40S",
    memory_bytes=46_068 * MIB_BYTES,
    memory_reserved_bytes=611 * MIB_BYTES,
    idle_w=33.0,
    mig_idle_w=33.0,
    limit_w=350.0,
    idle_sm_clock_hz=210 * MHZ_HZ,
    full_sm_clock_hz=2_520 * MHZ_HZ,
    idle_memory_clock_hz=405 * MHZ_HZ,
    full_memory_clock_hz=9_001 * MHZ_HZ,
    pcie_bytes_per_s=26e9,
    nvlink_bytes_per_s=None,
    has_memory_temperature=False,
)
T4: Final = GpuModel(
    name="T4",
    memory_bytes=15_360 * MIB_BYTES,
    memory_reserved_bytes=255 * MIB_BYTES,
    idle_w=10.0,
    mig_idle_w=10.0,
    limit_w=70.0,
    idle_sm_clock_hz=300 * MHZ_HZ,
    full_sm_clock_hz=1_590 * MHZ_HZ,
    idle_memory_clock_hz=405 * MHZ_HZ,
    full_memory_clock_hz=5_001 * MHZ_HZ,
    pcie_bytes_per_s=13e9,
    nvlink_bytes_per_s=None,
    has_memory_temperature=False,
)
MODELS: Final = (H100, A100, L40S, T4)
