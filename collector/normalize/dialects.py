"""How each exporter spells who a series speaks of: its labels for device, instance and pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from collector.holdings import HoldingSource

NVIDIA: Final = "nvidia"
AMD: Final = "amd"
HUAWEI: Final = "huawei"
MAKERS: Final = MappingProxyType(
    {"GPU-": NVIDIA, "MIG-": NVIDIA, "NVIDIA": NVIDIA, "AMD": AMD, "Ascend": HUAWEI}
)
"""How UUIDs and models begin, for exporters that serve several makers' devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLabels:
    """One spelling of a holder; of several labels the first that is there counts."""

    pod: str
    namespace: tuple[str, ...]
    container: tuple[str, ...]


_RELABELLED: Final = PodLabels(
    pod="exported_pod", namespace=("exported_namespace",), container=("exported_container",)
)
"""A server that relabels puts the exporter's own pod into the plain names, so this comes first."""
_PLAIN: Final = PodLabels(pod="pod", namespace=("namespace",), container=("container",))
_OLD: Final = PodLabels(
    pod="pod_name",
    namespace=("exported_namespace", "pod_namespace", "namespace"),
    container=("exported_container_name", "container_name"),
)
_HAMI_OLD: Final = PodLabels(
    pod="podname", namespace=("podnamespace",), container=("ctrname", "container")
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dialect:
    """One exporter's labels. Of several names the first that says something counts."""

    name: str
    vendor: str | None
    """Maker of the devices; None where the exporter serves several."""
    precedence: int
    """Of two exporters of one device the one with the higher number is kept: it tells more."""
    uuid: tuple[str, ...]
    index: tuple[str, ...]
    uuid_prefix: str = ""
    """What the exporter cut off the UUID that everybody else prints."""
    instance: tuple[str, ...] = ()
    profile: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    driver: tuple[str, ...] = ()
    replica: tuple[str, ...] = ()
    """Number of the share of a device that is shared in time."""
    claim: tuple[str, str] = ("", "")
    """Namespace and name of the ResourceClaim."""
    resource: tuple[str, ...] = ()
    partition: str | None = None
    """Label of an AMD partition: what partition 0 tells holds for the whole board."""
    host: tuple[str, ...] = ("Hostname", "hostname")
    pods: tuple[PodLabels, ...] = (_RELABELLED, _PLAIN, _OLD, _HAMI_OLD)
    pod_uid: tuple[str, ...] = ("pod_uid",)
    holding_source: HoldingSource = HoldingSource.EXPORTER_LABEL
    kept: Mapping[str, str] = field(default_factory=dict)
    """Labels that are stored as they are, under the name of their first generation."""
    shares: tuple[str, str] = ("", "")
    """Labels that tell an instance's part of the multiprocessors and of the memory."""
    parts: tuple[str, ...] = ()
    """Labels that tell parts apart which are summed; series equal in these are copies."""
    has_partial_rows: bool = False
    """Some series name a device by its UUID only, some by its index only."""
    hides_divided_board: bool = True
    """Where instances are shown, instance-scoped values of the board itself mean nothing."""


DCGM: Final = Dialect(
    name="dcgm",
    vendor=NVIDIA,
    precedence=3,
    uuid=("UUID", "uuid", "gpu_uuid"),
    index=("gpu",),
    instance=("GPU_I_ID",),
    profile=("GPU_I_PROFILE", "dra_mig_profile"),
    model=("modelName", "model_name"),
    driver=("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
    replica=("vgpu",),
    claim=("dra_claim_namespace", "dra_claim_name"),
    parts=("nvlink",),
    kept=MappingProxyType(
        {
            "pci_bus_id": "pci_bus_id",
            "DCGM_FI_CUDA_DRIVER_VERSION": "DCGM_FI_CUDA_DRIVER_VERSION",
            "DCGM_FI_DEV_BRAND": "DCGM_FI_DEV_BRAND",
            "DCGM_FI_DEV_GPU_BRAND": "DCGM_FI_DEV_BRAND",
            "DCGM_FI_DEV_MINOR_NUMBER": "DCGM_FI_DEV_MINOR_NUMBER",
            "DCGM_FI_DEV_GPU_MINOR_NUMBER": "DCGM_FI_DEV_MINOR_NUMBER",
            "DCGM_FI_DEV_SERIAL": "DCGM_FI_DEV_SERIAL",
            "DCGM_FI_DEV_BOARD_SERIAL": "DCGM_FI_DEV_SERIAL",
            "DCGM_FI_DEV_VBIOS_VERSION": "DCGM_FI_DEV_VBIOS_VERSION",
            "DCGM_FI_NVML_VERSION": "DCGM_FI_NVML_VERSION",
            "DCGM_FI_SYSTEM_NVML_VERSION": "DCGM_FI_NVML_VERSION",
            "dra_mig_device_uuid": "dra_mig_device_uuid",
        }
    ),
)
AGENT: Final = Dialect(
    name="agent",
    vendor=NVIDIA,
    precedence=4,
    uuid=("uuid",),
    index=("gpu",),
    instance=("instance_id",),
    profile=("mig_profile",),
    model=("model",),
    driver=("driver_version",),
    replica=("replica",),
    claim=("", "claim"),
    resource=("resource",),
    host=("node",),
    pods=(_RELABELLED, _PLAIN),
    holding_source=HoldingSource.PODRESOURCES,
    kept=MappingProxyType(
        {
            name: name
            for name in (
                *("pci_bus_id", "minor", "serial", "fabric_clique", "virtualization"),
                *("mig_mode", "mig_uuid"),
            )
        }
    ),
    shares=("sm_share_ratio", "memory_share_ratio"),
)
NVIDIA_SMI: Final = Dialect(
    name="nvidia_smi",
    vendor=NVIDIA,
    precedence=2,
    uuid=("uuid",),
    uuid_prefix="GPU-",
    index=("index",),
    model=("name",),
    driver=("driver_version",),
    kept=MappingProxyType({"pci_bus_id": "pci_bus_id", "vbios_version": "vbios_version"}),
    has_partial_rows=True,
)
DEVICE_METRICS_EXPORTER: Final = Dialect(
    name="device_metrics_exporter",
    vendor=AMD,
    precedence=3,
    uuid=("gpu_uuid",),
    index=("gpu_id",),
    model=("card_series", "card_model"),
    driver=("driver_version",),
    parts=("link_index",),
    pod_uid=("pod_uuid",),
    partition="gpu_partition_id",
    pods=(_RELABELLED, _PLAIN),
    holding_source=HoldingSource.VENDOR,
    kept=MappingProxyType(
        {
            name: name
            for name in (
                "card_model",
                "gpu_compute_partition_type",
                "gpu_memory_partition_type",
                "serial_number",
                "vbios_version",
            )
        }
    ),
)
NPU_EXPORTER: Final = Dialect(
    name="npu_exporter",
    vendor=HUAWEI,
    precedence=3,
    uuid=("vdie_id",),
    index=("id", "npuID"),
    instance=("v_dev_id",),
    model=("model_name",),
    pods=(_RELABELLED, _OLD),
    holding_source=HoldingSource.VENDOR,
    kept=MappingProxyType({"pcie_bus_info": "pcie_bus_info", "aicore_count": "aicore_count"}),
    has_partial_rows=True,
    hides_divided_board=False,
)
HAMI: Final = Dialect(
    name="hami",
    vendor=None,
    precedence=1,
    uuid=("device_uuid", "deviceuuid"),
    index=("device_index", "deviceidx"),
    instance=("gpu_instance_id",),
    profile=("profile",),
    model=("device_type",),
    pods=(_RELABELLED, _HAMI_OLD, _PLAIN),
    holding_source=HoldingSource.VENDOR,
    parts=(
        *("namespace", "pod", "container", "vdevice_index"),
        *("podnamespace", "podname", "ctrname", "vdeviceid"),
        *("exported_namespace", "exported_pod", "exported_container"),
    ),
)
