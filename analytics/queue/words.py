"""Why a job waits, in words that name the resource it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from analytics.queue.asks import Ask, Gang, Scene, gang_of
from analytics.queue.causes import ADMISSION, CAPACITY, OTHER, PLACEMENT, QUOTA, UNKNOWN
from analytics.queue.free import GPU_UNITS, MIG, SHARED, WHOLE, offers_for
from analytics.queue.quotas import Quota
from analytics.queue.rooms import Room
from steward.units import GPU_MILLI

_OTHER_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Suspended": "it is suspended",
        "Misconfigured": "its queue is misconfigured",
        "Inadmissible": "its queue cannot be used",
        "NoMatchingFlavor": "no flavor of its queue matches it",
        "PendingEvaluation": "its queue has not looked at it yet",
        "WaitingForPodsReady": "its queue waits until admitted pods are ready",
        "OnHold": "its queue is on hold",
        "SchedulingGated": "a scheduling gate holds its pods back",
        "FailedCreate": "its pods cannot be made",
        "FailedPrepareDynamicResources": "its claimed devices cannot be prepared",
    }
)
ON_ITS_WAY: Final = "on its way: nothing was refused yet"
_GIB: Final = 1_073_741_824
_NEARLY: Final = 1e-9


def blocking(ask: Ask, scene: Scene) -> str:
    """Return why the job waits now."""
    return _BY_CLASS[ask.wait_class](ask, scene)


def amount(gpus: float) -> str:
    """Return a number of GPUs with as many decimals as it has, three at most."""
    return f"{gpus:.3f}".rstrip("0").rstrip(".")


def counted(gpus: float) -> str:
    """Return a number of GPUs with the word."""
    return f"{amount(gpus)} GPU" if abs(gpus - 1) < _NEARLY else f"{amount(gpus)} GPUs"


def of_model(model: str | None) -> str:
    """Return the model as it follows a number of GPUs."""
    return "" if model is None else f" of {model}"


def for_model(model: str | None) -> str:
    """Return the model as it follows a quota."""
    return "" if model is None else f" for {model}"


def shortage(quota: Quota, ask: Ask) -> float | None:
    """Return how many GPUs of the queue's own limit are missing; None: no limit is known."""
    return None if quota.unused is None else max(0.0, ask.gpus - quota.unused)


def nearest_quota(ask: Ask, scene: Scene) -> Quota | None:
    """Return the quota of which least is missing, by its own limit and in its cohort."""

    def missing(quota: Quota) -> float:
        unused = scene.quotas.cohort_unused(quota)
        in_cohort = 0.0 if unused is None else ask.gpus - unused
        return max(shortage(quota, ask) or 0.0, in_cohort)

    known = [each for each in scene.quotas_of(ask) if shortage(each, ask) is not None]
    return min(known, key=missing, default=None)


def _quota(ask: Ask, scene: Scene) -> str:
    quota = nearest_quota(ask, scene)
    if quota is None or quota.limit_gpu_count is None or quota.used_gpu_count is None:
        return f"quota of {_queue(ask)}, whose size is not recorded{_said(ask)}"
    limit, model = quota.limit_gpu_count, for_model(quota.gpu_model)
    if ask.gpus > limit + _NEARLY:
        return (
            f"asks for {counted(ask.gpus)}{of_model(quota.gpu_model)}; {_queue(ask)} may never "
            f"hold more than {amount(limit)}"
        )
    missing = shortage(quota, ask) or 0.0
    if missing > _NEARLY:
        return (
            f"quota of {_queue(ask)}{model}: {amount(quota.used_gpu_count)} of {amount(limit)} "
            f"used, {amount(missing)} more needed"
        )
    unused = scene.quotas.cohort_unused(quota)
    if quota.cohort is not None and unused is not None and unused + _NEARLY < ask.gpus:
        return (
            f"quota of cohort {quota.cohort}{model}: {amount(unused)} unused, "
            f"{amount(ask.gpus - unused)} more needed ({_queue(ask)} itself would have room)"
        )
    return (
        f"quota of {_queue(ask)}{model}, though {amount(quota.used_gpu_count)} of "
        f"{amount(limit)} used were read last{_said(ask)}"
    )


def _queue(ask: Ask) -> str:
    return "its queue" if ask.queue is None else f"queue {ask.queue}"


def _said(ask: Ask) -> str:
    return "" if ask.said is None else f" ({ask.said.words()})"


def _admission(ask: Ask, _scene: Scene) -> str:
    return f"has quota; an admission check has not passed{_said(ask)}"


def _other(ask: Ask, _scene: Scene) -> str:
    if ask.gpu_count == 0:
        return f"asks for no GPU: CPU or memory{_said(ask)}"
    if ask.said is None:
        return ON_ITS_WAY
    known = _OTHER_WORDS.get(ask.said.reason)
    if known is None:
        return ask.said.words()
    return known if ask.said.message is None else f"{known}: {ask.said.message}"


def _unknown(ask: Ask, scene: Scene) -> str:
    if ask.gpu_count is None:
        return "unknown: what it asks for is not recorded"
    if ask.said is not None and not scene.has_holders:
        return f"unknown: who holds GPUs is not recorded{_said(ask)}"
    return "unknown: no condition or event says why"


def _capacity(ask: Ask, scene: Scene) -> str:
    by_model = scene.accepted(ask)
    if not ask.is_whole or not any(by_model.values()):
        free = max((_free(rooms, ask) for rooms in by_model.values()), default=0.0)
        kind = "" if ask.is_whole else " in parts"
        return (
            f"{counted(free)}{of_model(_names(ask))} free{kind}, "
            f"{amount(max(0.0, ask.gpus - free))} more needed"
        )
    model, rooms = max(by_model.items(), key=lambda pair: _free(pair[1], ask))
    total = max(sum(room.whole_count for room in each) for each in by_model.values())
    if ask.gpus > total:
        return f"asks for {counted(ask.gpus)}{of_model(_names(ask))}; there are only {total}"
    free = _free(rooms, ask)
    return f"{counted(free)}{of_model(model)} free, {amount(max(0.0, ask.gpus - free))} more needed"


def _names(ask: Ask) -> str | None:
    return " or ".join(ask.models) if ask.models else None


def _free(rooms: list[Room], ask: Ask) -> float:
    units = {
        WHOLE: sum(room.free_count for room in rooms) * GPU_UNITS,
        MIG: sum(room.mig_units for room in rooms),
        SHARED: sum(room.shared_units for room in rooms),
    }
    return sum(units[offer] for offer in offers_for(ask.gpu_milli)) / GPU_UNITS


def _placement(ask: Ask, scene: Scene) -> str:
    if ask.said is not None and ask.said.reason == "TopologyPlacementFailed":
        return f"topology: {ask.said.message or 'no place for all of its workers together'}"
    options = [
        (model, rooms, gang_of(ask, rooms)) for model, rooms in scene.accepted(ask).items() if rooms
    ]
    if not options:
        return f"no node has a model that it accepts{_said(ask)}"
    model, rooms, gang = max(options, key=lambda option: _free(option[1], ask))
    if gang is None:
        return _scattered(ask, rooms, model)
    return _no_room(gang, rooms, model) or f"room for it is free, but it is not placed{_said(ask)}"


def _scattered(ask: Ask, rooms: list[Room], model: str | None) -> str:
    if not ask.is_whole:
        size = amount((ask.gpu_milli or GPU_MILLI) / GPU_MILLI)
        return (
            f"{counted(_free(rooms, ask))}{of_model(model)} free in parts, but not {ask.gpu_count} "
            f"of {size} GPU each{_said(ask)}"
        )
    most = max(room.free_count for room in rooms)
    return f"{counted(_free(rooms, ask))}{of_model(model)} free, {most} at most on one node"


def _no_room(gang: Gang, rooms: list[Room], model: str | None) -> str | None:
    by_gpus = sum(room.free_count // gang.gpu_count for room in rooms)
    free, most = sum(r.free_count for r in rooms), max(room.free_count for room in rooms)
    told = f"{free} free in all, {most} at most on one node"
    if by_gpus < gang.workers and gang.workers == 1:
        return f"no node has {gang.gpu_count} free GPUs{of_model(model)}: {told}"
    if by_gpus < gang.workers:
        return (
            f"{by_gpus} of {gang.workers} workers of {counted(gang.gpu_count)}{of_model(model)} "
            f"have a place: {told}"
        )
    if gang.slots(rooms) >= gang.workers:
        return None
    return _starved_of(gang, rooms, model)


def _starved_of(gang: Gang, rooms: list[Room], model: str | None) -> str:
    """Name what is short on the nodes that have the GPUs."""
    ready = [room for room in rooms if room.free_count >= gang.gpu_count]
    cpus = [room.cpu_milli for room in ready if room.cpu_milli is not None]
    place = f"{len(ready)} node{'s' if len(ready) > 1 else ''}{of_model(model)}"
    have = "have" if len(ready) > 1 else "has"
    if any(cpu < gang.cpu_milli for cpu in cpus):
        what = f"{amount(gang.cpu_milli / GPU_MILLI)} CPUs"
        most = f"{amount(max(cpus) / GPU_MILLI)}"
    else:
        sizes = [room.memory_bytes for room in ready if room.memory_bytes is not None]
        what = f"{gang.memory_bytes / _GIB:.1f} GiB of memory"
        most = f"{max(sizes, default=0) / _GIB:.1f}"
    return f"{what} short: {place} {have} the GPUs, with {most} free beside them at most"


_BY_CLASS: Final[Mapping[str, Callable[[Ask, Scene], str]]] = MappingProxyType(
    {
        QUOTA: _quota,
        ADMISSION: _admission,
        PLACEMENT: _placement,
        CAPACITY: _capacity,
        OTHER: _other,
        UNKNOWN: _unknown,
    }
)
