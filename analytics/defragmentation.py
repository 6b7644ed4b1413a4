"""Which few workloads, moved where, would free the most room for large workers. A hint, no order.

Only work that can be started anew elsewhere moves, only to a node where it fits, never at the cost
of a slot there; the gain is counted again on the nodes as they would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

from steward.units import GPU_MILLI

SLOT_GPUS: Final = 8
"""Whole GPUs of the worker that room is made for."""
MOVABLE_CLASSES: Final = ("training", "development")
"""Training restarts from its last checkpoint and development is paused and resumed; inference is
left alone because it serves while it moves, and system work because it belongs to its node."""
UNTOUCHABLE_PRIORITIES: Final = ("production", "critical")
"""Priority classes whose work is never moved for room, whatever its class."""
MOST_MOVES: Final = 8
"""A hint of more moves than this would be a migration project."""
SOURCES_TRIED: Final = 25
"""Of the nodes that could be cleared, the cheapest are tried: bounds the time on large fleets."""
EXACT_WORKLOADS: Final = 6
EXACT_NODES: Final = 4
EXACT_MOVES: Final = 3
"""Up to these numbers every combination of moves is tried beside the quick search."""

Key = tuple[str, str]
"""Cluster and node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Work that may move: it holds GPUs of one node only and what it needs is known."""

    key: Key
    uid: str
    name: str
    tenant_id: str | None
    pieces: tuple[tuple[str, float], ...]
    """Device and milli-GPU held of it."""
    cpu_milli: float
    memory_bytes: float
    models: tuple[str, ...]
    """Where it may run; empty: on the model where it runs."""

    @property
    def gpu_count(self) -> float:
        """Return the GPUs it holds."""
        return sum(milli for _, milli in self.pieces) / GPU_MILLI


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node as it is or would be."""

    model: str | None
    is_schedulable: bool
    devices: Mapping[str, float]
    """Free milli-GPU of each usable device."""
    cpu_milli: float | None
    memory_bytes: float | None

    @property
    def whole_idle_count(self) -> int:
        """Return devices held by nobody."""
        return sum(free >= GPU_MILLI for free in self.devices.values())


Fleet = Mapping[Key, Node]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One workload from its node to another."""

    workload: Workload
    to: Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Moves in their order and the room for large workers before and after all of them."""

    moves: tuple[Move, ...]
    slots_before_count: int
    slots_after_count: int

    @property
    def gain_count(self) -> int:
        """Return the slots won."""
        return self.slots_after_count - self.slots_before_count


def slots(fleet: Fleet, *, size: int = SLOT_GPUS) -> int:
    """Return the workers of ``size`` whole GPUs for which there is room."""
    return sum(node.whole_idle_count // size for node in fleet.values() if node.is_schedulable)


def hint(fleet: Fleet, workloads: Sequence[Workload], *, size: int = SLOT_GPUS) -> Hint:
    """Return the moves that free the most slots found, the fewest of them; none without a gain."""
    found = [_quick(fleet, workloads, size)]
    if len(workloads) <= EXACT_WORKLOADS and len(fleet) <= EXACT_NODES:
        found.extend(_every(fleet, workloads))
    before = slots(fleet, size=size)
    best: tuple[int, int] = (0, 0)
    chosen: tuple[Move, ...] = ()
    for moves in found:
        after = moved(fleet, moves)
        worth = (0 if after is None else slots(after, size=size) - before, -len(moves))
        if worth > best:
            best, chosen = worth, moves
    return Hint(moves=chosen, slots_before_count=before, slots_after_count=before + best[0])


def moved(fleet: Fleet, moves: Sequence[Move]) -> Fleet | None:
    """Return the nodes after all moves, one after the other.

    None where a workload does not fit for sure, or would leave its cluster.
    """
    now: Fleet = fleet
    for move in moves:
        home = move.workload.key
        target = _with(now[move.to], move.workload, now[home].model)
        if target is None or move.to == home or move.to[0] != home[0]:
            return None
        now = {**now, home: _without(now[home], move.workload), move.to: target}
    return now


def _without(node: Node, workload: Workload) -> Node:
    freed = dict(node.devices)
    for device, milli in workload.pieces:
        freed[device] = min(float(GPU_MILLI), round(freed[device] + milli, 6))
    return replace(
        node,
        devices=freed,
        cpu_milli=None if node.cpu_milli is None else node.cpu_milli + workload.cpu_milli,
        memory_bytes=(
            None if node.memory_bytes is None else node.memory_bytes + workload.memory_bytes
        ),
    )


def _with(node: Node, workload: Workload, model: str | None) -> Node | None:
    """Return a node with one more workload; None where it does not fit for sure."""
    if not node.is_schedulable or not _is_allowed(node.model, workload, model):
        return None
    if node.cpu_milli is None or node.memory_bytes is None:
        return None
    cpu = node.cpu_milli - workload.cpu_milli
    memory = node.memory_bytes - workload.memory_bytes
    devices = _taken(node, workload)
    if devices is None or cpu < 0 or memory < 0:
        return None
    return replace(node, devices=devices, cpu_milli=cpu, memory_bytes=memory)


def _is_allowed(there: str | None, workload: Workload, here: str | None) -> bool:
    allowed = workload.models or (() if here is None else (here,))
    written = {name.replace(" ", "-") for name in allowed}
    return there is not None and there.replace(" ", "-") in written


def _taken(node: Node, workload: Workload) -> Mapping[str, float] | None:
    """Return the devices with the workload's pieces on them.

    A part of a GPU goes to a device that is shared already: others may not be set up for sharing.
    """
    free = dict(node.devices)
    for _, milli in sorted(workload.pieces, key=lambda piece: -piece[1]):
        if milli >= GPU_MILLI:
            able = [uuid for uuid, left in free.items() if left >= GPU_MILLI]
        else:
            able = [uuid for uuid, left in free.items() if milli <= left < GPU_MILLI]
        if not able:
            return None
        uuid = min(able, key=lambda each: (free[each], each))
        free[uuid] = round(free[uuid] - milli, 6)
    return free


def _every(fleet: Fleet, workloads: Sequence[Workload]) -> Iterator[tuple[Move, ...]]:
    """Yield every set of up to ``EXACT_MOVES`` moves."""
    for count in range(1, EXACT_MOVES + 1):
        for chosen in combinations(workloads, count):
            for targets in product(sorted(fleet), repeat=count):
                pairs = zip(chosen, targets, strict=True)
                yield tuple(Move(workload=each, to=to) for each, to in pairs)


def _quick(fleet: Fleet, workloads: Sequence[Workload], size: int) -> tuple[Move, ...]:
    """Clear one node after the other, the cheapest first, while there is a gain."""
    now = fleet
    moves: tuple[Move, ...] = ()
    there: dict[Key, list[Workload]] = {}
    for each in workloads:
        there.setdefault(each.key, []).append(each)
    plans = {key: _to_clear(fleet[key], there[key], size) for key in sorted(there)}
    while len(moves) < MOST_MOVES:
        step = _cheapest(now, plans, size=size, most=MOST_MOVES - len(moves))
        after = None if step is None else moved(now, step)
        if step is None or after is None:
            break
        now, moves = after, (*moves, *step)
        for move in step:
            there[move.workload.key].remove(move.workload)
        for key in {key for move in step for key in (move.workload.key, move.to)}:
            plans[key] = _to_clear(now[key], there.get(key, []), size)
    return moves


Plans = Mapping[Key, Sequence[Workload] | None]


def _cheapest(fleet: Fleet, plans: Plans, *, size: int, most: int) -> tuple[Move, ...] | None:
    """Return the moves that clear the node with the fewest of them, of those that find a place."""
    ranked = sorted(
        (len(leaving), sum(each.gpu_count for each in leaving), key)
        for key, leaving in plans.items()
        if leaving is not None and len(leaving) <= most
    )
    chosen = (plans[key] for _, _, key in ranked[:SOURCES_TRIED])
    steps = (_placed(fleet, leaving, size) for leaving in chosen if leaving is not None)
    return next((step for step in steps if step is not None), None)


def _to_clear(node: Node, there: Sequence[Workload], size: int) -> list[Workload] | None:
    """Return few workloads whose leaving gives the node one more slot, None where none do."""
    idle = node.whole_idle_count
    missing = (idle // size + 1) * size - idle
    holders = _clearable(node, there)
    if not node.is_schedulable or len(holders) < missing:
        return None
    chosen: frozenset[int] = frozenset()
    while _cleared(holders, chosen) < missing:
        groups = [group - chosen for group in holders if not group <= chosen]
        chosen |= min(
            groups,
            key=lambda group: (
                len(group), -_cleared(holders, chosen | group), min(there[n].uid for n in group)
            ),
        )  # fmt: skip
    for each in sorted(chosen):
        without = chosen - {each}
        chosen = without if _cleared(holders, without) >= missing else chosen
    return [there[each] for each in sorted(chosen)]


def _cleared(holders: Sequence[frozenset[int]], leaving: frozenset[int]) -> int:
    return sum(group <= leaving for group in holders)


def _clearable(node: Node, there: Sequence[Workload]) -> list[frozenset[int]]:
    """Return, for each held device that could be cleared, the numbers of those who hold it."""
    held: dict[str, float] = dict.fromkeys(node.devices, 0.0)
    groups: dict[str, set[int]] = {}
    for number, each in enumerate(there):
        for device, milli in each.pieces:
            held[device] += milli
            groups.setdefault(device, set()).add(number)
    return [
        frozenset(group)
        for device, group in sorted(groups.items())
        if round(node.devices[device] + held[device], 6) >= GPU_MILLI > node.devices[device]
    ]


def _placed(fleet: Fleet, leaving: Sequence[Workload], size: int) -> tuple[Move, ...] | None:
    """Return moves to nodes that lose no slot by them, None where one finds no place."""
    now = fleet
    moves: tuple[Move, ...] = ()
    for each in sorted(leaving, key=lambda workload: (-workload.gpu_count, workload.uid)):
        to = _target(now, each, size)
        after = None if to is None else moved(now, [Move(workload=each, to=to)])
        if to is None or after is None:
            return None
        now, moves = after, (*moves, Move(workload=each, to=to))
    return moves


def _target(fleet: Fleet, workload: Workload, size: int) -> Key | None:
    """Return the node that would be left with the fewest idle GPUs outside of slots."""
    best: tuple[int, Key] | None = None
    whole = sum(milli >= GPU_MILLI for _, milli in workload.pieces)
    for key, node in fleet.items():
        idle = node.whole_idle_count
        if key == workload.key or key[0] != workload.key[0] or idle % size < whole:
            continue
        after = _with(node, workload, fleet[workload.key].model)
        if after is None or after.whole_idle_count // size < idle // size:
            continue
        rank = (after.whole_idle_count % size, key)
        if best is None or rank < best:
            best = rank
    return None if best is None else best[1]
