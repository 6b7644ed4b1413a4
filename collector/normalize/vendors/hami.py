"""HAMi's device monitor: a device's values, and who holds which part of it.

Names that end in ``_ratio`` carry 0 to 100. A container's series are absent until its first call
of the driver, its utilisation reaches 137 % and its memory is typed a counter, but is a gauge.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from collector.normalize import units
from collector.normalize.dialects import HAMI
from collector.normalize.metric import Combine, Metric, Role, metrics, told

_HOST: Final = (
    metrics(
        "busy_ratio",
        ("hami_host_gpu_utilization_ratio", units.HAMI_PERCENT),
        dialect=HAMI,
    )
    | metrics("busy_ratio", ("HostCoreUtilization", units.HAMI_PERCENT), dialect=HAMI, rank=1)
    | metrics(
        "memory_busy_ratio",
        ("hami_host_gpu_memory_controller_utilization_ratio", units.HAMI_PERCENT),
        dialect=HAMI,
    )
    | metrics(
        "memory_used_bytes",
        ("hami_host_gpu_memory_used_bytes", units.BYTES),
        dialect=HAMI,
    )
    | metrics("memory_used_bytes", ("HostGPUMemoryUsage", units.BYTES), dialect=HAMI, rank=1)
    | metrics("memory_total_bytes", ("hami_host_gpu_memory_total_bytes", units.BYTES), dialect=HAMI)
    | metrics(
        "power_w",
        ("hami_host_gpu_power_usage_watts", units.WATTS),
        dialect=HAMI,
        is_board_wide=True,
    )
    | metrics(
        "temperature_celsius",
        ("hami_host_gpu_temperature_celsius", units.CELSIUS),
        dialect=HAMI,
        is_board_wide=True,
    )
)


def _sums(*names: str) -> dict[str, Metric]:
    """Return names of what containers use; each says the same again, so has its own rank."""
    return {
        key: metric
        for rank, name in enumerate(names, start=2)
        for key, metric in metrics(
            "memory_used_bytes",
            (name, units.BYTES),
            dialect=HAMI,
            rank=rank,
            combine=Combine.SUM,
            is_doubtful=True,
        ).items()
    }


_CONTAINERS: Final = (
    metrics(
        "busy_ratio",
        ("hami_container_device_utilization_ratio", units.HAMI_PERCENT),
        ("Device_utilization_desc_of_container", units.HAMI_PERCENT),
        dialect=HAMI,
        rank=2,
        combine=Combine.MAX,
        is_doubtful=True,
    )
    | _sums(
        "hami_vgpu_memory_used_bytes",
        "hami_container_device_memory_bytes",
        "vGPU_device_memory_usage_in_bytes",
        "Device_memory_desc_of_container",
    )
    | told(
        Role.IDENTITY,
        ("hami_mig_device_info", units.COUNT),
        ("hami_vgpu_memory_limit_bytes", units.BYTES),
        ("vGPU_device_memory_limit_in_bytes", units.BYTES),
        ("hami_container_last_kernel_elapsed_seconds", units.SECONDS),
        ("Device_last_kernel_of_container", units.SECONDS),
        dialect=HAMI,
    )
)

METRICS: Final[Mapping[str, Metric]] = MappingProxyType(_HOST | _CONTAINERS)
