"""The smallest set of workloads whose GPUs let one waiting workload start.

Of all sets that make room within caps and disruption budgets, the one that is first by: the highest
priority among them (low before high), their number, their GPUs, the shortest idle time among them
in whole hours (long before short), GPUs beyond their team's guarantee (many before few), work lost,
nodes emptied (many before few), uids. What a guarantee says thus never changes how many are taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, inf
from typing import Final

from enforcer.facts import QuotaUse, Workload
from enforcer.planning.budget import Budget
from enforcer.planning.due import Due
from enforcer.planning.room import Demand, is_counted, together
from enforcer.planning.waiting import priority_of
from steward.units import SECONDS_PER_HOUR

EXACT_MOST: Final = 14
"""Candidates among which every set is looked at; of more, those on the best nodes are."""

Cost = tuple[int, int, float, int, float, float, int, tuple[str, ...]]
"""Less is better; see the module's docstring for its parts."""


Quotas = Mapping[tuple[str, str | None], Sequence[QuotaUse]]
"""By cluster and queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a choice of victims is made from."""

    demand: Demand
    candidates: Sequence[Due]
    """Taking steps that nothing speaks against, ascending by uid."""
    budget: Budget
    quotas: Quotas
    lost: Callable[[Workload], float | None]
    """GPU-hours of work that a victim loses."""


def victims(choice: Choice) -> tuple[Due, ...] | None:
    """Return the best set, ascending by uid.

    None: not even all of the candidates make room, or caps and budgets let no such set go. It is
    the best of all sets where there are no more than ``EXACT_MOST`` candidates, or few that touch
    the nodes in question.
    """
    most = min(len(choice.candidates), _most(choice))
    for priority in sorted({priority_of(one.workload) for one in choice.candidates}):
        among = [one for one in choice.candidates if priority_of(one.workload) <= priority]
        if not makes_room(choice.demand, among):
            continue
        found = _smallest(choice, _shortlist(choice, among), most)
        if found is not None:
            return found
    return None


def makes_room(demand: Demand, taken: Sequence[Due]) -> bool:
    """Tell whether the waiting workload fits once all of these are gone."""
    return demand.fits([one.workload for one in taken])


def _most(choice: Choice) -> int:
    caps = [one.policy.caps.workloads_per_round for one in choice.candidates]
    return max(caps, default=0)


def _smallest(choice: Choice, among: Sequence[Due], most: int) -> tuple[Due, ...] | None:
    for size in range(1, most + 1):
        sets = (
            one
            for one in combinations(among, size)
            if makes_room(choice.demand, one) and choice.budget.lets_go(one)
        )
        best = min(sets, key=lambda one: cost(choice, one), default=None)
        if best is not None:
            return best
    return None


def cost(choice: Choice, taken: Sequence[Due]) -> Cost:
    """Return what a set costs; of two sets the one that costs less is taken."""
    workloads = [one.workload for one in taken]
    idle_s = min(one.decision.judgement.observed_idle_s for one in taken)
    lost = [choice.lost(one) for one in workloads]
    return (
        max(priority_of(one) for one in workloads),
        len(workloads),
        fsum(one.gpu_count for one in workloads),
        -int(idle_s // SECONDS_PER_HOUR),
        -over_quota_gpus(workloads, choice.quotas),
        fsum(inf if one is None else one for one in lost),
        -_emptied(choice.demand, workloads),
        tuple(one.uid for one in workloads),
    )


def by_queue(quotas: Sequence[QuotaUse]) -> Quotas:
    """Return quotas by cluster and queue."""
    found: defaultdict[tuple[str, str | None], list[QuotaUse]] = defaultdict(list)
    for quota in quotas:
        found[quota.cluster, quota.queue].append(quota)
    return dict(found)


def over_quota_gpus(workloads: Sequence[Workload], quotas: Quotas) -> float:
    """Return how many of these workloads' GPUs lie beyond the guarantees of their queues.

    A queue whose guarantee or use is not known has none beyond it.
    """
    beyond = 0.0
    touched = sorted({(one.cluster, one.queue or "") for one in workloads})
    for quota in (quota for queue in touched for quota in quotas.get(queue, ())):
        guaranteed, used = quota.guaranteed_gpu_count, quota.used_gpu_count
        if guaranteed is not None and used is not None:
            taken = fsum(one.gpu_count for one in workloads if is_counted(quota, one))
            beyond += min(taken, max(0.0, used - guaranteed))
    return beyond


def _emptied(demand: Demand, workloads: Sequence[Workload]) -> int:
    gained = together(demand.freed_by(one) for one in workloads)
    nodes = ((demand.nodes[name], space) for name, space in gained.items() if name in demand.nodes)
    return sum(
        node.space.gpu_count < node.total_count <= node.space.gpu_count + space.gpu_count
        for node, space in nodes
    )


def _shortlist(choice: Choice, among: Sequence[Due]) -> Sequence[Due]:
    """Return the candidates of the cheapest nodes, place by place, best places first."""
    if len(among) <= EXACT_MOST:
        return among
    chosen: dict[str, Due] = {}
    for bundle in _bundles(choice, among):
        for one in bundle:
            if len(chosen) < EXACT_MOST:
                chosen[one.uid] = one
    return sorted(chosen.values(), key=lambda one: one.uid)


def _bundles(choice: Choice, among: Sequence[Due]) -> Iterator[Sequence[Due]]:
    """Yield sets that free at least one pod's room on one node, the cheapest places first."""
    by_place: defaultdict[str, list[tuple[Cost, Sequence[Due]]]] = defaultdict(list)
    for name, there in _by_node(choice.demand, among).items():
        bundle = _to_free_one(choice, name, there)
        if bundle:
            place = choice.demand.nodes[name].place
            by_place[place].append((cost(choice, bundle), bundle))
    ranked = [sorted(bundles, key=lambda one: one[0]) for bundles in by_place.values()]
    needed = choice.demand.need.pod_count
    ranked.sort(key=lambda bundles: (len(bundles) < needed, [one for one, _ in bundles[:needed]]))
    for bundles in ranked:
        yield from (bundle for _, bundle in bundles)


def _by_node(demand: Demand, among: Sequence[Due]) -> Mapping[str, list[Due]]:
    found: defaultdict[str, list[Due]] = defaultdict(list)
    for one in among:
        for name in demand.freed_by(one.workload):
            if name in demand.nodes:
                found[name].append(one)
    return found


def _to_free_one(choice: Choice, name: str, there: Sequence[Due]) -> Sequence[Due]:
    """Return few candidates that together free room for one more pod on a node; empty: none do.

    The largest first, which needs the fewest; then each that turns out not to be needed goes.
    """
    need, space = choice.demand.need, choice.demand.nodes[name].space
    enough = space.pods(need) + 1

    def frees(taken: Sequence[Due]) -> bool:
        gained = together(choice.demand.freed_by(one.workload) for one in taken)
        return (space + gained[name]).pods(need) >= enough if taken else False

    def rank(one: Due) -> tuple[int, float, str]:
        gpus = choice.demand.freed_by(one.workload)[name].gpu_count
        return (-min(gpus, need.gpu_count), one.workload.gpu_count, one.uid)

    taken: list[Due] = []
    for one in sorted(there, key=rank):
        taken.append(one)
        if frees(taken):
            break
    if not frees(taken):
        return ()
    for one in reversed(taken[:-1]):
        fewer = [other for other in taken if other is not one]
        taken = fewer if frees(fewer) else taken
    return sorted(taken, key=lambda one: one.uid)
