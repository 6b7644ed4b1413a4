"""Taking only for somebody: which waiting workload a plan serves, and who makes room for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from enforcer.facts import NodeRoom, QuotaUse, Snapshot, Workload
from enforcer.planning.budget import Budget
from enforcer.planning.due import Due
from enforcer.planning.reasons import Reason
from enforcer.planning.room import Demand, Freed, demand_of, freed_by, with_freed, without_placed
from enforcer.planning.stakes import lost_gpu_hours
from enforcer.planning.victims import Choice, Quotas, by_queue, makes_room, victims
from enforcer.planning.waiting import Need, need_of, waiting

WAITING_MOST: Final = 200
"""Waiting workloads looked at in one cluster, in the order in which they are served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Who makes room for whom in one cluster."""

    taken: tuple[Due, ...]
    """Ascending by uid; empty: nobody is taken from."""
    waiting_uid: str | None
    reason: Reason
    """Why the others are not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One cluster as the choice finds it."""

    cluster: str
    rooms: Sequence[NodeRoom]
    """With what is on its way to be free."""
    quotas: Quotas
    candidates: Sequence[Due]
    """Taking steps that nothing else speaks against, ascending by uid."""
    freed: Mapping[str, Freed]
    """What nodes gain by each of them, by uid."""
    budget: Budget


def scene_of(
    cluster: str,
    snapshot: Snapshot,
    *,
    candidates: Sequence[Due],
    going: Sequence[Workload],
    budget: Budget,
) -> Scene:
    """Return a cluster in which ``going`` will let go in any case."""
    rooms = [room for room in snapshot.rooms if room.cluster == cluster]
    rooms.sort(key=lambda room: (room.node, room.mig_profile or ""))
    here = [one for one in candidates if one.workload.cluster == cluster]
    return Scene(
        cluster=cluster,
        rooms=with_freed(rooms, [one for one in going if one.cluster == cluster]),
        quotas=by_queue(snapshot.quotas),
        candidates=here,
        freed={one.uid: freed_by(one.workload) for one in here},
        budget=budget,
    )


def served(scene: Scene, snapshot: Snapshot, now: datetime) -> Served:
    """Return who makes room for the first waiting workload that can be helped.

    One a round: once it runs, the cluster is another. What fits into free room is left to the
    scheduler, and its room is not given to others.
    """
    blocked: Reason | None = None
    for demand in _unplaced(scene, snapshot):
        if isinstance(demand, Reason):
            blocked = blocked or demand
            continue
        taken = victims(
            Choice(
                demand=demand,
                candidates=scene.candidates,
                budget=scene.budget,
                quotas=scene.quotas,
                lost=lambda workload: lost_gpu_hours(workload, now),
            )
        )
        if taken is not None:
            uid = demand.need.workload.uid
            return Served(taken=taken, waiting_uid=uid, reason=Reason.NOT_NEEDED)
        blocked = blocked or diagnosis(demand, scene)
    return Served(taken=(), waiting_uid=None, reason=blocked or Reason.NO_PRESSURE)


def _unplaced(scene: Scene, snapshot: Snapshot) -> Iterator[Demand | Reason]:
    """Yield what waits and has no room, each shape once; a reason where its shape is not known."""
    rooms = list(scene.rooms)
    hopeless: set[tuple[object, ...]] = set()
    for workload in islice(waiting(snapshot, scene.cluster), WAITING_MOST):
        need = need_of(workload, rooms)
        if need is None:
            yield Reason.BLOCKED_BY_SHAPE
        elif need.shape not in hopeless:
            demand = demand_of(need, rooms, _quotas(scene, workload), freed=scene.freed)
            if demand.fits():
                rooms = without_placed(rooms, demand)
            else:
                hopeless.add(need.shape)
                yield demand


def diagnosis(demand: Demand, scene: Scene) -> Reason:
    """Return what keeps a waiting workload out even if every candidate were taken."""
    if makes_room(demand, scene.candidates):
        return Reason.CAPS_BELOW_NEED
    return next(
        (
            reason
            for reason, lifted in _lifted(demand, scene)
            if makes_room(lifted, scene.candidates)
        ),
        Reason.BLOCKED_BY_GPUS,
    )


def _lifted(demand: Demand, scene: Scene) -> Iterator[tuple[Reason, Demand]]:
    """Yield the demand with one thing that it asks for left out."""
    need = demand.need
    yield Reason.BLOCKED_BY_QUOTA, replace(demand, quotas=())
    for reason, lighter in (
        (Reason.BLOCKED_BY_CPU, replace(need, cpu_milli=None)),
        (Reason.BLOCKED_BY_MEMORY, replace(need, memory_bytes=None)),
        (Reason.BLOCKED_BY_TOPOLOGY, _relaxed(need, "stays_within")),
        (Reason.BLOCKED_BY_MODEL, _relaxed(need, "gpu_models")),
        (Reason.BLOCKED_BY_MODEL, _relaxed(need, "mig_profile")),
    ):
        yield reason, demand_of(lighter, scene.rooms, demand.quotas, freed=scene.freed)


def _quotas(scene: Scene, workload: Workload) -> Sequence[QuotaUse]:
    return scene.quotas.get((workload.cluster, workload.queue), ())


def _relaxed(need: Need, what: str) -> Need:
    workload = need.workload
    if what == "stays_within":
        return replace(need, workload=replace(workload, stays_within=None))
    if what == "gpu_models":
        return replace(need, workload=replace(workload, gpu_models=()))
    return replace(need, workload=replace(workload, mig_profile=None))
