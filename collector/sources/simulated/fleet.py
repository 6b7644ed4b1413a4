"""The simulated hardware: nodes, boards, MIG instances, and the slots a workload can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid5

from collector.sources.simulated.models import A100, H100, L40S, T4, GpuModel

NAMESPACE: Final = UUID("6f1d2f4e-7c1b-4d0e-9a55-0f5d3c1e7a10")
"""Every simulated identity is derived within this namespace."""
GIB_BYTES: Final = 1_073_741_824
WHOLE_GPU: Final = "nvidia.com/gpu"
SHARED_GPU: Final = "nvidia.com/gpu.shared"
NO_GPU: Final = "cpu"
REPLICA_COUNT: Final = 4
MIG_BOARDS: Final = 4
"""Boards in MIG mode on the last A100 node."""
MIG_MEMORY_EIGHTHS: Final = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}
MIG_LAYOUTS: Final = (
    ("1g.5gb", "1g.5gb", "2g.10gb"),
    ("3g.20gb", "3g.20gb"),
    ("2g.10gb", "2g.10gb", "3g.20gb"),
    ("1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "3g.20gb"),
)
"""Slices left over stay unconfigured, as on real boards."""
_FIRST_INSTANCE_ID: Final = {1: 7, 2: 3, 3: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """How a node of one model is built."""

    model: GpuModel
    gpu_count: int
    cpu_milli: int
    memory_bytes: int
    weight: int
    """Nodes of this shape among 24."""


SHAPES: Final = (
    NodeShape(model=H100, gpu_count=8, cpu_milli=192_000, memory_bytes=2048 * GIB_BYTES, weight=7),
    NodeShape(model=A100, gpu_count=8, cpu_milli=128_000, memory_bytes=1024 * GIB_BYTES, weight=5),
    NodeShape(model=L40S, gpu_count=8, cpu_milli=64_000, memory_bytes=512 * GIB_BYTES, weight=4),
    NodeShape(model=T4, gpu_count=4, cpu_milli=48_000, memory_bytes=192 * GIB_BYTES, weight=8),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """One GPU instance of a board."""

    instance_id: int
    profile: str

    @property
    def slice_count(self) -> int:
        """Return the compute slices, of seven."""
        return int(self.profile.partition("g")[0])

    @property
    def sm_share_ratio(self) -> float:
        """Return the share of the board's multiprocessors."""
        return self.slice_count / 7

    @property
    def memory_share_ratio(self) -> float:
        """Return the share of the board's memory."""
        return MIG_MEMORY_EIGHTHS[self.slice_count] / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One board."""

    index: int
    node_index: int
    position: int
    uuid: str
    model: GpuModel
    instances: tuple[MigInstance, ...]
    is_time_sliced: bool

    @property
    def sharing_mode(self) -> str:
        """Return how the board is handed out."""
        if self.instances:
            return "mig"
        return "shared_equal" if self.is_time_sliced else "exclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine."""

    index: int
    name: str
    shape: NodeShape
    rack: str
    nvlink_domain: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One row of each scrape: a board, or an instance of a board in MIG mode."""

    device: Device
    instance: MigInstance | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The unit a pod is given: a whole GPU, a MIG instance, or one replica of a shared GPU."""

    index: int
    device: Device
    series_index: int
    resource: str
    gpu_share_ratio: float
    instance_id: int | None
    replica: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The whole hardware, in a fixed order."""

    nodes: tuple[Node, ...]
    devices: tuple[Device, ...]
    series: tuple[Series, ...]
    slots: tuple[Slot, ...]


def build_fleet(*, seed: int, node_count: int) -> Fleet:
    """Return the hardware of a fleet of this many nodes; identities depend on the seed."""
    nodes = _nodes(node_count)
    devices = _devices(nodes, seed=seed)
    series: list[Series] = []
    slots: list[Slot] = []
    for device in devices:
        first = len(series)
        series.append(Series(device=device, instance=None))
        series.extend(Series(device=device, instance=each) for each in device.instances)
        slots.extend(_slots(device, first_series=first, first_slot=len(slots)))
    return Fleet(nodes=nodes, devices=devices, series=tuple(series), slots=tuple(slots))


def _node_counts(node_count: int) -> list[int]:
    """Share the nodes out over the shapes: one each, the rest by weight, largest remainder."""
    spare = node_count - len(SHAPES)
    weights = [shape.weight - 1 for shape in SHAPES]
    exact = [spare * weight / sum(weights) for weight in weights]
    counts = [int(each) for each in exact]
    by_remainder = sorted(range(len(SHAPES)), key=lambda i: counts[i] - exact[i])
    for i in by_remainder[: spare - sum(counts)]:
        counts[i] += 1
    return [1 + count for count in counts]


def _nodes(node_count: int) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for shape, count in zip(SHAPES, _node_counts(node_count), strict=True):
        family = shape.model.name.partition("-")[0].lower()
        for ordinal in range(count):
            has_nvlink = shape.model.nvlink_bytes_per_s is not None
            name = f"{family}-{ordinal:02d}"
            nodes.append(
                Node(
                    index=len(nodes),
                    name=name,
                    shape=shape,
                    rack=f"rack-{len(nodes) // 4 + 1:02d}",
                    nvlink_domain=f"nvl-{name}" if has_nvlink else None,
                )
            )
    return tuple(nodes)


def _last_of(nodes: tuple[Node, ...], model: GpuModel) -> int:
    return max(node.index for node in nodes if node.shape.model is model)


def _devices(nodes: tuple[Node, ...], *, seed: int) -> tuple[Device, ...]:
    mig_node, shared_node = _last_of(nodes, A100), _last_of(nodes, T4)
    devices: list[Device] = []
    for node in nodes:
        for position in range(node.shape.gpu_count):
            is_mig = node.index == mig_node and position < MIG_BOARDS
            devices.append(
                Device(
                    index=len(devices),
                    node_index=node.index,
                    position=position,
                    uuid=f"GPU-{uuid5(NAMESPACE, f'{seed}/{node.name}/{position}')}",
                    model=node.shape.model,
                    instances=_instances(MIG_LAYOUTS[position]) if is_mig else (),
                    is_time_sliced=node.index == shared_node,
                )
            )
    return tuple(devices)


def _instances(layout: tuple[str, ...]) -> tuple[MigInstance, ...]:
    next_ids = dict(_FIRST_INSTANCE_ID)
    instances: list[MigInstance] = []
    for profile in layout:
        slice_count = int(profile.partition("g")[0])
        instances.append(MigInstance(instance_id=next_ids[slice_count], profile=profile))
        next_ids[slice_count] += 1
    return tuple(instances)


def _slots(device: Device, *, first_series: int, first_slot: int) -> list[Slot]:
    if device.instances:
        return [
            Slot(
                index=first_slot + offset,
                device=device,
                series_index=first_series + 1 + offset,
                resource=f"nvidia.com/mig-{instance.profile}",
                gpu_share_ratio=instance.sm_share_ratio,
                instance_id=instance.instance_id,
                replica=None,
            )
            for offset, instance in enumerate(device.instances)
        ]
    count = REPLICA_COUNT if device.is_time_sliced else 1
    return [
        Slot(
            index=first_slot + offset,
            device=device,
            series_index=first_series,
            resource=SHARED_GPU if device.is_time_sliced else WHOLE_GPU,
            gpu_share_ratio=1 / count,
            instance_id=None,
            replica=offset if device.is_time_sliced else None,
        )
        for offset in range(count)
    ]
