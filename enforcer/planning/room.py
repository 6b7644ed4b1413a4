"""Whether a waiting workload really fits: what is free, and what would be if others let go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from enforcer.facts import NodeRoom, QuotaUse, Workload
from enforcer.planning.due import present_pods
from enforcer.planning.waiting import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """GPUs or instances, processors and memory on one node."""

    gpu_count: int = 0
    cpu_milli: int | None = 0
    """None: not known."""
    memory_bytes: int | None = 0

    def __add__(self, other: Space) -> Space:
        """Return both together; what is not known of one is not known of both."""
        return Space(
            gpu_count=self.gpu_count + other.gpu_count,
            cpu_milli=_sum(self.cpu_milli, other.cpu_milli),
            memory_bytes=_sum(self.memory_bytes, other.memory_bytes),
        )

    def pods(self, need: Need) -> int:
        """Return how many pods of a need this holds; processors not known hold none."""
        counts = [self.gpu_count // need.gpu_count]
        for free, asked in (
            (self.cpu_milli, need.cpu_milli),
            (self.memory_bytes, need.memory_bytes),
        ):
            if asked:
                counts.append(0 if free is None else free // asked)
        return max(0, min(counts))


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def freed_by(workload: Workload) -> dict[str, Space]:
    """Return what each node gains when all of the workload's pods are gone.

    Nothing where it holds parts of GPUs: what is left of them others hold. Processors and memory
    that it asked for are split by GPUs; where they are not known, none are counted.
    """
    evidence = workload.evidence
    if evidence is not None and any(device.is_shared for device in evidence.devices):
        return {}
    found: defaultdict[str, int] = defaultdict(int)
    for pod in present_pods(workload):
        if pod.node is not None:
            found[pod.node] += pod.gpu_count
    total = sum(found.values())
    holds_parts = workload.mig_profile is None and total != workload.gpu_count
    if not total or holds_parts:
        return {}
    cpu, memory = workload.cpu_milli, workload.memory_bytes
    return {
        node: Space(
            gpu_count=count,
            cpu_milli=0 if cpu is None else cpu * count // total,
            memory_bytes=0 if memory is None else memory * count // total,
        )
        for node, count in found.items()
        if count
    }


Freed = Mapping[str, Space]
"""What nodes gain, by their name."""
ANYWHERE: Final = ""
"""The place of every node where a need may lie anywhere."""


def together(freed: Iterable[Freed]) -> dict[str, Space]:
    """Return what nodes gain from several workloads."""
    found: dict[str, Space] = {}
    for one in freed:
        for node, space in one.items():
            found[node] = found[node] + space if node in found else space
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node that a need accepts, with what is free on it."""

    model: str | None
    place: str
    """The rack or NVLink domain in which the need must stay, or ``ANYWHERE``."""
    total_count: int
    space: Space


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One need beside the nodes that it accepts and the quotas that it falls under."""

    need: Need
    nodes: Mapping[str, Node]
    quotas: Sequence[QuotaUse]
    free_pods: Mapping[tuple[str, str | None], int]
    """Pods that fit now, by place and model."""
    freed: Mapping[str, Freed]
    """What nodes gain by whom, by uid, for those of whom it was worked out before."""

    def fits(self, victims: Sequence[Workload] = ()) -> bool:
        """Tell whether all of its pods can start once these workloads are gone."""
        return self.place_for(victims) is not None

    def place_for(self, victims: Sequence[Workload] = ()) -> str | None:
        """Return the first place by name that takes all of its pods; None: there is none."""
        pods = dict(self.free_pods)
        gained = together(self.freed_by(one) for one in victims)
        for name, space in gained.items():
            node = self.nodes.get(name)
            if node is not None:
                more = (node.space + space).pods(self.need) - node.space.pods(self.need)
                key = (node.place, node.model)
                pods[key] = pods.get(key, 0) + more
        sums: defaultdict[str, int] = defaultdict(int)
        admitted = {model: self.admits(model, victims) for model in {key[1] for key in pods}}
        for (place, model), count in pods.items():
            sums[place] += count if admitted[model] else 0
        return min((at for at, count in sums.items() if count >= self.need.pod_count), default=None)

    def freed_by(self, victim: Workload) -> Freed:
        """Return what nodes gain for it: GPUs only where they are offered as it wants them."""
        known = self.freed.get(victim.uid)
        freed = freed_by(victim) if known is None else known
        if victim.mig_profile == self.need.workload.mig_profile:
            return freed
        return {node: replace(space, gpu_count=0) for node, space in freed.items()}

    def admits(self, model: str | None, victims: Sequence[Workload] = ()) -> bool:
        """Tell whether its quota lets it use a model; victims in its own queue give theirs back.

        A limit beside a use that is not known admits nothing.
        """
        return all(
            self._is_within(quota, victims)
            for quota in self.quotas
            if quota.gpu_model is None or _same_model(quota.gpu_model, model)
        )

    def _is_within(self, quota: QuotaUse, victims: Sequence[Workload]) -> bool:
        limit, used = quota.limit_gpu_count, quota.used_gpu_count
        if limit is None:
            return True
        if used is None:
            return False
        given = fsum(one.gpu_count for one in victims if is_counted(quota, one))
        return used - given + self.need.workload.gpu_count <= limit


def is_counted(quota: QuotaUse, workload: Workload) -> bool:
    """Tell whether a workload's GPUs count in a quota."""
    if (workload.cluster, workload.queue) != (quota.cluster, quota.queue):
        return False
    models = workload.gpu_models
    return quota.gpu_model is None or (
        bool(models) and all(_same_model(quota.gpu_model, model) for model in models)
    )


def _same_model(one: str, other: str | None) -> bool:
    return other is not None and one.replace(" ", "-") == other.replace(" ", "-")


NOBODY: Final[Mapping[str, Freed]] = {}


def demand_of(
    need: Need,
    rooms: Sequence[NodeRoom],
    quotas: Sequence[QuotaUse],
    *,
    freed: Mapping[str, Freed] = NOBODY,
) -> Demand:
    """Return a need beside what there is; a node that does not tell its place is in none.

    Args:
        need: of one waiting workload.
        rooms: of its cluster.
        quotas: of its queue.
        freed: what nodes gain by whom, by uid, where it was worked out before.
    """
    workload = need.workload
    nodes: dict[str, Node] = {}
    free: defaultdict[tuple[str, str | None], int] = defaultdict(int)
    accepts = need.acceptance()
    for room in rooms:
        place = _place(room, workload.stays_within)
        if place is not None and accepts(room):
            space = space_of(room)
            nodes[room.node] = Node(
                model=room.gpu_model, place=place, total_count=room.total_count, space=space
            )
            free[place, room.gpu_model] += space.pods(need)
    return Demand(need=need, nodes=nodes, quotas=quotas, free_pods=dict(free), freed=freed)


def _place(room: NodeRoom, level: str | None) -> str | None:
    if level is None:
        return ANYWHERE
    return room.rack if level == "rack" else room.nvlink_domain


def space_of(room: NodeRoom) -> Space:
    """Return what is free on a node."""
    return Space(
        gpu_count=room.free_count,
        cpu_milli=room.free_cpu_milli,
        memory_bytes=room.free_memory_bytes,
    )


def with_freed(rooms: Sequence[NodeRoom], gone: Iterable[Workload]) -> list[NodeRoom]:
    """Return the rooms once these workloads have let go."""
    gains: dict[str | None, dict[str, Space]] = {}
    for one in gone:
        gains[one.mig_profile] = together([gains.get(one.mig_profile, {}), freed_by(one)])
    found = list(rooms)
    for profile, gained in gains.items():
        found = [
            _with(room, gained[room.node], profile) if room.node in gained else room
            for room in found
        ]
    return found


def _with(room: NodeRoom, gained: Space, profile: str | None) -> NodeRoom:
    gpus = gained.gpu_count if room.mig_profile == profile else 0
    space = space_of(room) + replace(gained, gpu_count=gpus)
    return replace(
        room,
        free_count=min(space.gpu_count, room.total_count),
        free_cpu_milli=space.cpu_milli,
        free_memory_bytes=space.memory_bytes,
    )


def without_placed(rooms: Sequence[NodeRoom], demand: Demand) -> list[NodeRoom]:
    """Return the rooms once the need took its pods' room: fullest nodes first, ties by name."""
    place, need = demand.place_for(), demand.need
    able = [
        (node.space.pods(need), name)
        for name, node in demand.nodes.items()
        if node.place == place and demand.admits(node.model) and node.space.pods(need)
    ]
    left, takes = need.pod_count, dict[str, int]()
    for count, name in sorted(able):
        takes[name] = min(count, left)
        left -= takes[name]
    return [_less(room, takes.get(room.node, 0), need) for room in rooms]


def _less(room: NodeRoom, count: int, need: Need) -> NodeRoom:
    if not count:
        return room
    is_same = room.mig_profile == need.workload.mig_profile
    taken = Space(
        gpu_count=-count * need.gpu_count if is_same else 0,
        cpu_milli=-count * (need.cpu_milli or 0),
        memory_bytes=-count * (need.memory_bytes or 0),
    )
    space = space_of(room) + taken
    return replace(
        room,
        free_count=space.gpu_count,
        free_cpu_milli=space.cpu_milli,
        free_memory_bytes=space.memory_bytes,
    )
