"""Who holds a device at one moment, as one source says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

DeviceKey: TypeAlias = tuple[str, int | None]
"""Device UUID and MIG instance; None is the board itself."""


class HoldingSource(StrEnum):
    """Where it is said, from the most to the least trustworthy."""

    PODRESOURCES = "podresources"
    """The kubelet's PodResources socket, read by the node agent."""
    DRA = "dra"
    """ResourceClaims and ResourceSlices."""
    VENDOR = "vendor"
    """A vendor's monitor: HAMi, npu-exporter, device-metrics-exporter."""
    EXPORTER_LABEL = "exporter_label"
    """Pod labels of dcgm-exporter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One container holding one device, MIG instance or replica of a shared device."""

    node: str
    device_uuid: str
    instance_id: int | None
    replica: int | None
    """Number of the share of a time-sliced or MPS device; None where it is not shared that way."""
    namespace: str | None
    pod: str
    container: str | None
    claim: str | None
    """``namespace/name`` of the ResourceClaim behind it."""
    resource: str | None
    """The resource name asked for, such as ``nvidia.com/gpu.shared``."""
    source: HoldingSource
    pod_uid: str | None = None
    """Where the source says it: two pods of one name are told apart by it."""
    is_admin_access: bool = False
    """A claim for monitoring: it sees the device and consumes nothing of it."""
    unresolved: str | None = None
    """The device's name where it could not be told: ``device_uuid`` is then its board, else
    ``node/name``."""
