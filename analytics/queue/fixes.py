"""The nearest thing that would let a waiting job go on, computed from free room and quota.

Tried in this order: what costs nobody work (GPUs at rest, guarantees that nobody uses), then what
the job itself can change (fewer GPUs, another model). Each is told only where the numbers show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from analytics.queue.asks import Ask, Gang, Resting, Scene, gang_of
from analytics.queue.causes import CAPACITY, PLACEMENT, QUOTA
from analytics.queue.quotas import Quota
from analytics.queue.rooms import Room
from analytics.queue.words import amount, counted, nearest_quota, of_model, shortage
from steward.units import SECONDS_PER_HOUR

NO_GPUS: Final = "none found: GPUs must come free"
NO_QUOTA: Final = "none found: quota must come free"
NEVER: Final = "none found: as it is, it can never start"
NOT_COMPUTED: Final = "not a matter of GPUs"
ONLY_WHOLE: Final = "not computed for parts of a GPU"
_NEARLY: Final = 1e-9


def nearest_fix(ask: Ask, scene: Scene) -> str:
    """Return the first fix that the numbers show."""
    if ask.wait_class == QUOTA:
        return next(_quota_fixes(ask, scene), NO_QUOTA if _is_ever_allowed(ask, scene) else NEVER)
    if ask.wait_class not in {PLACEMENT, CAPACITY}:
        return NOT_COMPUTED
    if not ask.is_whole:
        return ONLY_WHOLE
    return next(_room_fixes(ask, scene), NO_GPUS if _is_ever_room(ask, scene) else NEVER)


def _is_ever_allowed(ask: Ask, scene: Scene) -> bool:
    """Return whether the queue may ever hold as much, as far as its limits are known."""
    limits = [each.limit_gpu_count for each in scene.quotas_of(ask)]
    known = [limit for limit in limits if limit is not None]
    return len(known) < len(limits) or not known or ask.gpus <= max(known) + _NEARLY


def _is_ever_room(ask: Ask, scene: Scene) -> bool:
    """Return whether there are as many GPUs at all."""
    totals = [sum(room.whole_count for room in rooms) for rooms in scene.accepted(ask).values()]
    return ask.gpus <= max(totals, default=0)


def _room_fixes(ask: Ask, scene: Scene) -> Iterator[str]:
    for rooms in scene.accepted(ask).values():
        gang = gang_of(ask, rooms)
        if gang is not None:
            yield from _released(ask, scene, gang=gang, rooms=rooms)
    for model, rooms in scene.accepted(ask).items():
        most = _most_now(ask, rooms)
        if 0 < most < (ask.gpu_count or 0):
            yield f"with {counted(most)}{of_model(model)} it would fit on one node now"
    yield from _other_models(ask, scene)


def _released(ask: Ask, scene: Scene, *, gang: Gang, rooms: list[Room]) -> Iterator[str]:
    """Tell of one workload at rest whose GPUs would be enough."""
    by_node = {room.node: room for room in rooms}
    for name, holds in _by_workload(scene, ask.cluster):
        given = {each.node: each.gpu_count for each in holds if each.node in by_node}
        if not given:
            continue
        after = [
            replace(room, free_count=room.free_count + given.get(room.node, 0)) for room in rooms
        ]
        if gang.slots(after) >= gang.workers:
            rest_s = min(each.rest_s for each in holds if each.node in given)
            yield (
                f"releasing {name}, at rest for {_hours(rest_s)}, frees "
                f"{counted(sum(given.values()))} on {', '.join(sorted(given))}: it would fit"
            )


def _by_workload(scene: Scene, cluster: str) -> list[tuple[str, list[Resting]]]:
    """Return the workloads at rest, those with the fewest GPUs first, then the longest at rest."""
    holds: dict[str, list[Resting]] = {}
    for each in scene.resting:
        if each.cluster == cluster:
            holds.setdefault(each.workload_uid, []).append(each)
    order = sorted(
        holds.values(),
        key=lambda parts: (
            sum(part.gpu_count for part in parts),
            -min(part.rest_s for part in parts),
            parts[0].name,
        ),
    )
    return [(parts[0].name, parts) for parts in order]


def _hours(seconds: float) -> str:
    return f"{seconds / SECONDS_PER_HOUR:.1f} h"


def _most_now(ask: Ask, rooms: list[Room]) -> int:
    """Return the most GPUs that one worker finds now, with its CPU and memory for each of them."""
    count = ask.gpu_count or 1
    cpu, memory = (ask.cpu_milli or 0) / count, (ask.memory_bytes or 0) / count
    return max((room.slots(1, cpu_milli=cpu, memory_bytes=memory) for room in rooms), default=0)


def _other_models(ask: Ask, scene: Scene) -> Iterator[str]:
    by_model: dict[str, list[Room]] = {}
    for room in scene.of(ask.cluster):
        if room.model is not None and not ask.accepts(room.model):
            by_model.setdefault(room.model, []).append(room)
    for model, rooms in sorted(by_model.items()):
        gang = gang_of(ask, rooms)
        has_room = gang is not None and gang.slots(rooms) >= gang.workers
        if has_room and _has_quota(ask, scene, model):
            yield f"on {model}, which it does not accept, it would fit now"


def _has_quota(ask: Ask, scene: Scene, model: str) -> bool:
    """Return whether its queue could take it on this model; without quotas nothing hinders."""
    own = scene.quotas.of(ask.cluster, ask.queue)
    if not own:
        return True
    fitting = [each for each in own if each.gpu_model in {model, None}]
    return any(_is_open(each, ask.gpus, scene) for each in fitting)


def _is_open(quota: Quota, gpus: float, scene: Scene) -> bool:
    cohort = scene.quotas.cohort_unused(quota)
    limits = [each for each in (quota.unused, cohort) if each is not None]
    return all(gpus <= each + _NEARLY for each in limits)


def _quota_fixes(ask: Ask, scene: Scene) -> Iterator[str]:
    quota = nearest_quota(ask, scene)
    if quota is not None:
        yield from _given_back(ask, scene, quota=quota)
        yield from _lent(ask, scene, quota=quota)
        yield from _smaller(ask, scene, quota=quota)
    yield from _other_models(ask, scene)


def _given_back(ask: Ask, scene: Scene, *, quota: Quota) -> Iterator[str]:
    """Tell of a workload at rest in the same queue that holds as much as is missing."""
    missing = shortage(quota, ask) or 0.0
    is_possible = quota.limit_gpu_count is not None and ask.gpus <= quota.limit_gpu_count + _NEARLY
    if missing <= 0 or not is_possible:
        return
    for name, holds in _by_workload(scene, ask.cluster):
        count = sum(
            each.gpu_count
            for each in holds
            if each.queue == ask.queue and quota.gpu_model in {each.model, None}
        )
        if count + _NEARLY >= missing:
            rest_s = min(each.rest_s for each in holds)
            yield (
                f"releasing {name}, at rest for {_hours(rest_s)}, gives back {counted(count)} "
                f"of the queue's quota: enough"
            )


def _lent(ask: Ask, scene: Scene, *, quota: Quota) -> Iterator[str]:
    """Tell of another queue that leaves as much of its guarantee unused as is missing."""
    missing, unused = shortage(quota, ask) or 0.0, scene.quotas.cohort_unused(quota)
    if missing <= 0 or unused is None or unused + _NEARLY < ask.gpus:
        return
    others = [each for each in scene.quotas.cohort(quota) if each.queue != quota.queue]
    for each in sorted(others, key=lambda other: (-other.spare, other.queue)):
        if each.spare + _NEARLY >= missing:
            yield (
                f"queue {each.queue} leaves {amount(each.spare)} of its guaranteed "
                f"{amount(each.guaranteed_gpu_count or 0.0)}{of_model(quota.gpu_model)} unused: "
                f"a limit raised by {amount(missing)} would let it in"
            )


def _smaller(ask: Ask, scene: Scene, *, quota: Quota) -> Iterator[str]:
    """Tell the most GPUs for which there are quota and room."""
    cohort = scene.quotas.cohort_unused(quota)
    unused = min(each for each in (quota.unused, cohort, ask.gpus) if each is not None)
    rooms = [
        room
        for room in scene.of(ask.cluster)
        if ask.accepts(room.model) and quota.gpu_model in {room.model, None}
    ]
    most = min(int(unused + _NEARLY), _most_now(ask, rooms))
    if ask.is_whole and 0 < most < ask.gpus:
        yield f"with {counted(most)}{of_model(quota.gpu_model)} it has quota and room on one node"
