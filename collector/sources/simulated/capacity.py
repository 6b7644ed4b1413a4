"""What is free on each node, and where a gang fits: best fit, by model, slots, CPU and memory."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass

from collector.sources.simulated.fleet import Fleet, Node
from collector.sources.simulated.history import PodPlacement, Run
from collector.sources.simulated.requests import Request


@dataclass(slots=True, kw_only=True)
class NodeFree:
    """The free part of one node."""

    node: Node
    cpu_milli: int
    memory_bytes: int
    slots: dict[str, list[int]]
    """Free slots by resource, ascending."""
    is_schedulable: bool = True

    def room_for(self, request: Request) -> int:
        """Return how many pods of the request fit now."""
        rooms = [
            self.cpu_milli // max(1, request.cpu_milli),
            self.memory_bytes // max(1, request.memory_bytes),
        ]
        if request.slots_per_pod > 0:
            rooms.append(len(self.slots.get(request.resource, ())) // request.slots_per_pod)
        return min(rooms)

    def obstacle(self, request: Request, model: str) -> str | None:
        """Return why not even one pod fits, in the scheduler's own words; None: it fits."""
        if not self.is_schedulable:
            return "node(s) were unschedulable"
        if self.node.shape.model.name != model:
            return "node(s) didn't match Pod's node affinity/selector"
        if len(self.slots.get(request.resource, ())) < request.slots_per_pod:
            return f"Insufficient {request.resource}"
        if self.cpu_milli < request.cpu_milli:
            return "Insufficient cpu"
        return "Insufficient memory" if self.memory_bytes < request.memory_bytes else None


class Capacity:
    """The free resources of a fleet; the only place that hands out slots."""

    def __init__(self, fleet: Fleet) -> None:
        """Start with everything free."""
        self._fleet = fleet
        self._lost_devices: set[int] = set()
        self.nodes = [
            NodeFree(
                node=node,
                cpu_milli=node.shape.cpu_milli,
                memory_bytes=node.shape.memory_bytes,
                slots={},
            )
            for node in fleet.nodes
        ]
        for slot in fleet.slots:
            self._give_back(slot.index)

    def placement(self, request: Request, model: str) -> tuple[PodPlacement, ...] | None:
        """Return where the whole gang fits now, fullest nodes first; None: it does not."""
        rooms = [
            (len(free.slots.get(request.resource, ())), free.cpu_milli, index, room)
            for index, free in enumerate(self.nodes)
            if free.is_schedulable and free.node.shape.model.name == model
            for room in [free.room_for(request)]
            if room > 0
        ]
        if sum(room for *_, room in rooms) < request.pod_count:
            return None
        pods: list[PodPlacement] = []
        for *_, index, room in sorted(rooms):
            count = min(room, request.pod_count - len(pods))
            pods.extend(self._pods_on(index, request, count=count))
        return tuple(pods)

    def _pods_on(self, index: int, request: Request, *, count: int) -> list[PodPlacement]:
        free, size = self.nodes[index].slots.get(request.resource, []), request.slots_per_pod
        return [
            PodPlacement(
                node_index=index, slot_indices=tuple(free[ordinal * size : (ordinal + 1) * size])
            )
            for ordinal in range(count)
        ]

    def take(self, request: Request, pods: tuple[PodPlacement, ...]) -> None:
        """Hand out what the placement names."""
        for pod in pods:
            free = self.nodes[pod.node_index]
            free.cpu_milli -= request.cpu_milli
            free.memory_bytes -= request.memory_bytes
            for slot_index in pod.slot_indices:
                free.slots[request.resource].remove(slot_index)

    def release(self, run: Run) -> None:
        """Take back what a run held; slots of a lost board stay away."""
        for pod in run.pods:
            free = self.nodes[pod.node_index]
            free.cpu_milli += run.request.cpu_milli
            free.memory_bytes += run.request.memory_bytes
            for slot_index in pod.slot_indices:
                if self._fleet.slots[slot_index].device.index not in self._lost_devices:
                    self._give_back(slot_index)

    def lose(self, device_index: int) -> None:
        """Withdraw a board: its free slots vanish, held ones when they are released."""
        self._lost_devices.add(device_index)
        node = self.nodes[self._fleet.devices[device_index].node_index]
        for resource, slots in node.slots.items():
            node.slots[resource] = [
                each for each in slots if self._fleet.slots[each].device.index != device_index
            ]

    def recover(self, device_index: int) -> None:
        """Offer a lost board again."""
        self._lost_devices.discard(device_index)
        for slot in self._fleet.slots:
            if slot.device.index == device_index:
                self._give_back(slot.index)

    def explain(self, request: Request, model: str) -> str:
        """Return the FailedScheduling message: how many nodes fail for which reason."""
        reasons = Counter(
            free.obstacle(request, model) or "node(s) cannot hold the whole gang"
            for free in self.nodes
        )
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return f"0/{len(self.nodes)} nodes are available: {listed}."

    def _give_back(self, slot_index: int) -> None:
        slot = self._fleet.slots[slot_index]
        slots = self.nodes[slot.device.node_index].slots
        insort(slots.setdefault(slot.resource, []), slot_index)
