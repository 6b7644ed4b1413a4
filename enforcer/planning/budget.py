"""What a plan may still do: caps on workloads and GPUs, and disruption budgets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import fsum
from typing import Final

from enforcer.decisions import TAKING_STEPS
from enforcer.facts import Disruption, NodeRoom, PastAction, Snapshot
from enforcer.planning.due import Due, is_changing, is_taking, present_pods
from enforcer.planning.reasons import Reason

CAP_SPAN: Final = timedelta(hours=1)
"""The hour of the caps reaches back from now."""
MIG_SLICES: Final = 7
"""Of a whole GPU; kinds with fewer count as smaller than they are, which lets less be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What was done within the last hour, by whichever policy, and is planned so far."""

    acted: Mapping[str, str | None]
    """Workloads changed, with their teams."""
    taken_gpus: Mapping[str, float]
    """GPUs taken, by workload."""
    round_count: int
    gpu_totals: Mapping[str, float]
    """GPUs of each cluster."""
    disruptions: Mapping[str, Sequence[Disruption]]
    """By namespace."""
    disrupted: Mapping[tuple[str, str], int]
    """Pods let go in this plan, by namespace and name of a disruption budget."""

    def refusal(self, due: Due) -> Reason | None:
        """Return why the step does not fit any more; None: it does."""
        caps, tenant = due.policy.caps, due.workload.tenant_id
        acted = {uid: team for uid, team in self.acted.items() if uid != due.uid}
        of_tenant = sum(team == tenant for team in acted.values())
        limits = (
            (self.round_count >= caps.workloads_per_round, Reason.CAP_PER_ROUND),
            (len(acted) >= caps.workloads_per_hour, Reason.CAP_PER_HOUR),
            (of_tenant >= caps.workloads_per_tenant_per_hour, Reason.CAP_TENANT),
        )
        reached = next((reason for is_reached, reason in limits if is_reached), None)
        if reached is not None or due.step not in TAKING_STEPS:
            return reached
        return self._taking_refusal(due)

    def _taking_refusal(self, due: Due) -> Reason | None:
        others = (gpus for uid, gpus in self.taken_gpus.items() if uid != due.uid)
        most = due.policy.caps.gpu_ratio_per_hour * self.gpu_totals.get(due.workload.cluster, 0.0)
        if fsum((*others, due.workload.gpu_count)) > most:
            return Reason.CAP_GPU_RATIO
        kept = any(
            self.disrupted.get(key, 0) + count > allowed
            for key, count, allowed in self._touched(due)
        )
        return Reason.DISRUPTION_BUDGET if kept else None

    def spent(self, due: Due) -> Budget:
        """Return what is left once the step is planned."""
        acted = {**self.acted, due.uid: due.workload.tenant_id}
        if due.step not in TAKING_STEPS:
            return replace(self, acted=acted, round_count=self.round_count + 1)
        disrupted = dict(self.disrupted)
        for key, count, _ in self._touched(due):
            disrupted[key] = disrupted.get(key, 0) + count
        return replace(
            self,
            acted=acted,
            taken_gpus={**self.taken_gpus, due.uid: due.workload.gpu_count},
            round_count=self.round_count + 1,
            disrupted=disrupted,
        )

    def lets_go(self, together: Iterable[Due]) -> bool:
        """Tell whether all of these steps fit together."""
        left = self
        for due in together:
            if left.refusal(due) is not None:
                return False
            left = left.spent(due)
        return True

    def _touched(self, due: Due) -> Iterator[tuple[tuple[str, str], int, int]]:
        """Yield each disruption budget over the workload's pods, their number and what it allows.

        Neither scaling nor suspending asks the API server for leave, so it is asked for here.
        """
        for each in self.disruptions.get(due.workload.namespace, ()):
            wanted = each.match_labels.items()
            count = sum(wanted <= pod.labels.items() for pod in present_pods(due.workload))
            if count:
                yield (each.namespace, each.name), count, each.allowed_disruption_count


def budget_at(snapshot: Snapshot, now: datetime) -> Budget:
    """Return what the past hour leaves; acts that failed count, they may have had an effect."""
    past = [one for one in snapshot.past_actions if one.begun_at > now - CAP_SPAN]
    disruptions: defaultdict[str, list[Disruption]] = defaultdict(list)
    for each in snapshot.disruptions:
        disruptions[each.namespace].append(each)
    return Budget(
        acted={one.workload_uid: one.tenant_id for one in past if is_changing(one)},
        taken_gpus=_taken(past),
        round_count=0,
        gpu_totals=_totals(snapshot.rooms),
        disruptions=dict(disruptions),
        disrupted={},
    )


def _taken(past: Sequence[PastAction]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in past:
        if is_taking(one):
            found[one.workload_uid] = max(one.gpu_count, found.get(one.workload_uid, 0.0))
    return found


def _totals(rooms: Sequence[NodeRoom]) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for room in sorted(rooms, key=lambda one: (one.cluster, one.node, one.mig_profile or "")):
        found[room.cluster] += room.total_count * _share(room.mig_profile)
    return dict(found)


def _share(mig_profile: str | None) -> float:
    """Return the part of a GPU that an instance is, as in ``3g.40gb``; 0 where it cannot be told.

    Too small a cluster lets less be taken.
    """
    if mig_profile is None:
        return 1.0
    slices, _, rest = mig_profile.partition("g")
    return int(slices) / MIG_SLICES if rest and slices.isdecimal() else 0.0
