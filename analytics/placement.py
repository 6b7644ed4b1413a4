"""What of a request would fit now and where, what blocks the rest, and what would fit instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from analytics.mig_geometry import board_of, is_offered, room_for, short_name
from analytics.request import Request
from analytics.rooms import MigBoard, NodeRoom
from steward.units import GPU_MILLI

BLOCKERS: Final = ("model", "cordoned", "lost", "gpus", "cpu", "memory", "cpu_unknown",
                   "memory_unknown")  # fmt: skip
"""Why a node takes no worker: the first in this order that keeps it out.

``lost``: it would have the GPUs, were none of its devices lost."""
LIFTABLE: Final = ("model", "cordoned", "lost", "gpus", "cpu", "memory")
"""What could be lifted to make room. ``gpus``: every holder of the node's GPUs lets go."""
CPU_CUTS: Final = (Fraction(3, 4), Fraction(1, 2), Fraction(1, 4))
"""Parts of the processors and memory asked for that are tried for a smaller request."""

_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How many workers of a request fit, node by node."""

    request: Request
    worker_count: int
    """On all nodes; MIG: if instances lie as badly as they may."""
    at_most_count: int
    """The same, except for MIG: if instances lie as well as they may, or were created anew."""
    by_node: tuple[tuple[NodeRoom, int], ...]
    """Nodes that take a worker, most first, ties by cluster and name."""
    blocked: tuple[tuple[str, int], ...]
    """Nodes that take none by blocker, in the order of ``BLOCKERS``."""
    if_lifted: tuple[tuple[str, int], ...]
    """Workers that would fit more if one thing were lifted everywhere, in the order of
    ``LIFTABLE``."""


def fit(rooms: Sequence[NodeRoom], asked: Request) -> Fit:
    """Return how much of a request fits now."""
    counts = [(room, workers_on(room, asked)) for room in rooms]
    total = sum(count for _, count in counts)
    taking = [(room, count) for room, count in counts if count > 0]
    taking.sort(key=lambda pair: (-pair[1], pair[0].cluster, pair[0].node))
    reasons = [blocker(room, asked) for room, count in counts if count == 0]
    lifted = ((name, _total(rooms, asked, lift=frozenset({name}))) for name in LIFTABLE)
    return Fit(
        request=asked,
        worker_count=total,
        at_most_count=sum(workers_on(room, asked, is_at_best=True) for room in rooms),
        by_node=tuple(taking),
        blocked=tuple((name, reasons.count(name)) for name in BLOCKERS if name in reasons),
        if_lifted=tuple((name, count - total) for name, count in lifted if count > total),
    )


def _total(rooms: Sequence[NodeRoom], asked: Request, *, lift: frozenset[str] = _NOTHING) -> int:
    return sum(workers_on(room, asked, lift=lift) for room in rooms)


def workers_on(
    room: NodeRoom,
    asked: Request,
    *,
    lift: frozenset[str] = _NOTHING,
    is_at_best: bool = False,
) -> int:
    """Return how many workers one node takes now.

    Args:
        room: the node.
        asked: the request; its number of workers does not matter here.
        lift: names of ``LIFTABLE`` to be left out of account.
        is_at_best: MIG instances lie as well as they may, instead of as badly.

    Returns:
        0 too where processors or memory are asked for and the node's are unknown
    """
    if not _has_model(room, asked) and "model" not in lift:
        return 0
    if not room.is_schedulable and "cordoned" not in lift:
        return 0
    limits = [_by_gpus(room, asked, lift=lift, is_at_best=is_at_best)]
    for name, wanted, free in _parts(room, asked):
        if wanted is not None and name not in lift:
            limits.append(0 if free is None else int(free // wanted))
    return min(limits)


def _parts(room: NodeRoom, asked: Request) -> Iterator[tuple[str, int | None, float | None]]:
    yield "cpu", asked.cpu_milli, room.cpu_free_milli
    yield "memory", asked.memory_bytes, room.memory_free_bytes


def _has_model(room: NodeRoom, asked: Request) -> bool:
    written = {name.replace(" ", "-") for name in asked.models}
    return not written or (room.model or "").replace(" ", "-") in written


def _by_gpus(room: NodeRoom, asked: Request, *, lift: frozenset[str], is_at_best: bool) -> int:
    if asked.mig_profile is not None:
        boards = [_instances(each, room, asked, is_at_best=is_at_best) for each in room.mig_boards]
        return sum(boards) // asked.gpu_count
    free = room.free_milli
    if "gpus" in lift:
        free = (float(GPU_MILLI),) * len(free)
    if "lost" in lift:
        free = (*free, *(float(GPU_MILLI),) * room.lost_count)
    if asked.gpu_milli < GPU_MILLI:
        return sum(int(each // asked.gpu_milli) for each in free)
    return sum(each >= GPU_MILLI for each in free) // asked.gpu_count


def _instances(board: MigBoard, room: NodeRoom, asked: Request, *, is_at_best: bool) -> int:
    """Return instances nobody holds, and those that could be created beside the ones there."""
    kind, profile = board_of(room.model), str(asked.mig_profile)
    if not is_offered(profile, kind, memory_gb=board.memory_gb):
        return 0
    name = short_name(profile, kind, memory_gb=board.memory_gb)
    more = room_for(board.profiles, str(name), kind)
    created = 0 if more is None else (more.at_most if is_at_best else more.at_least)
    return board.free_profiles.count(profile) + created


def blocker(room: NodeRoom, asked: Request) -> str:
    """Return the first of ``BLOCKERS`` that keeps a node from taking one worker."""
    if not _has_model(room, asked):
        return "model"
    if not room.is_schedulable:
        return "cordoned"
    if not _by_gpus(room, asked, lift=_NOTHING, is_at_best=False):
        has_more = _by_gpus(room, asked, lift=frozenset({"lost"}), is_at_best=False)
        return "lost" if has_more else "gpus"
    for name, wanted, free in _parts(room, asked):
        if wanted is not None and (free is None or free < wanted):
            return f"{name}_unknown" if free is None else name
    return "gpus"


def alternatives(rooms: Sequence[NodeRoom], asked: Request) -> tuple[tuple[str, Request], ...]:
    """Return other requests that would fit whole, each with what is changed, the nearest first.

    Returns:
        empty where the request fits as it is; at most one request per kind of change
    """
    if _total(rooms, asked) >= asked.worker_count:
        return ()
    found: list[tuple[str, Request]] = []
    for what, others in _changes(rooms, asked):
        fitting = (each for each in others if _total(rooms, each) >= each.worker_count)
        other = next(fitting, None)
        if other is not None and other not in (known for _, known in found):
            found.append((what, other))
    return tuple(found)


def _changes(rooms: Sequence[NodeRoom], asked: Request) -> Iterator[tuple[str, list[Request]]]:
    if asked.models:
        yield "any model", [replace(asked, models=())]
    if asked.cpu_milli is not None or asked.memory_bytes is not None:
        yield "less CPU and memory", [_scaled(asked, cut) for cut in CPU_CUTS]
    if asked.gpu_count > 1:
        yield "smaller workers, more of them", list(_smaller(asked))
    total = _total(rooms, asked)
    if total:
        yield "fewer workers", [replace(asked, worker_count=min(total, asked.worker_count))]
    elif asked.gpu_count > 1:
        yield "fewer, smaller workers", list(_fewer_and_smaller(rooms, asked))


def _scaled(asked: Request, part: Fraction) -> Request:
    cpu, memory = asked.cpu_milli, asked.memory_bytes
    return replace(
        asked,
        cpu_milli=None if cpu is None else max(1, int(cpu * part)),
        memory_bytes=None if memory is None else max(1, int(memory * part)),
    )


def _smaller(asked: Request) -> Iterator[Request]:
    """Yield the same GPUs in all, in ever smaller workers."""
    for size in range(asked.gpu_count - 1, 0, -1):
        if asked.gpu_count % size == 0:
            times = asked.gpu_count // size
            smaller = _scaled(asked, Fraction(1, times))
            yield replace(smaller, gpu_count=size, worker_count=asked.worker_count * times)


def _fewer_and_smaller(rooms: Sequence[NodeRoom], asked: Request) -> Iterator[Request]:
    """Yield ever smaller workers, as many as fit."""
    for size in range(asked.gpu_count - 1, 0, -1):
        smaller = replace(_scaled(asked, Fraction(size, asked.gpu_count)), gpu_count=size)
        total = _total(rooms, smaller)
        if total:
            most = asked.worker_count * asked.gpu_count // size
            yield replace(smaller, worker_count=min(total, most))
