"""What if quotas were others: the recorded queue played again under each file. Pure.

Jobs come when they came and hold as long as they held; each starts once its team's limit and the
free GPUs of one of its models allow it, by priority, then by age, later ones past earlier ones that
do not fit. Nothing is preempted and every free GPU fits: so both files are played, and compared
with each other; what was really waited stands beside, to show how far the play is from it.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import mean, median
from typing import Final

from enforcer.quota.model import QuotaFile, Share

_MILLI: Final = 1_000
"""GPUs are counted in thousandths, so that shares add up exactly."""
LOWEST: Final = -1
_End = tuple[datetime, str, "Job", str]
"""When a job ends, its uid (so that no two ends are equal), the job, the model it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One recorded job."""

    uid: str
    tenant_id: str | None
    priority_class: str | None
    gpu_count: float
    gpu_models: tuple[str, ...]
    created_at: datetime
    held: timedelta
    waited: timedelta | None
    """As recorded; None: it never got GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamWaits:
    """How one team waited."""

    tenant_id: str
    job_count: int
    started_count: int
    mean_s: float | None
    """Of those that started; None: none did."""
    median_s: float | None
    gpu_hours_waited: float
    """GPUs asked for times waiting, of all, up to the end."""


@dataclass(slots=True)
class _Play:
    """The state of one play."""

    file: QuotaFile
    free: Counter[str]
    used: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def model_for(self, job: Job) -> str | None:
        """Return the model on which the job may start now; None: on none."""
        need = _milli(job)
        for model in self._models(job):
            if self.free[model] - self._kept_for_others(model, job.tenant_id) < need:
                continue
            limit = self._limit(job.tenant_id, model)
            if limit is None or self.used[job.tenant_id or ""][model] + need <= limit:
                return model
        return None

    def take(self, job: Job, model: str, *, sign: int = 1) -> None:
        """Give the job its GPUs, or take them back (``sign=-1``)."""
        self.free[model] -= sign * _milli(job)
        self.used[job.tenant_id or ""][model] += sign * _milli(job)

    def _models(self, job: Job) -> Sequence[str]:
        return job.gpu_models or [one.gpu_model for one in self.file.models]

    def _limit(self, tenant_id: str | None, model: str) -> int | None:
        """Return the most a team may hold; a team that the file does not name is not limited."""
        team = next((one for one in self.file.teams if one.tenant_id == tenant_id), None)
        if team is None:
            return None
        share = _share(team.shares, model)
        if share is None:
            return 0
        return None if share.limit_gpu_count is None else share.limit_gpu_count * _MILLI

    def _kept_for_others(self, model: str, tenant_id: str | None) -> int:
        """Return what others leave unused of guarantees that they do not lend."""
        kept = 0
        for team in self.file.teams:
            share = _share(team.shares, model)
            if team.tenant_id == tenant_id or share is None or share.lend_gpu_count is None:
                continue
            own = (share.guaranteed_gpu_count - share.lend_gpu_count) * _MILLI
            kept += max(0, own - self.used[team.tenant_id][model])
        return kept


def play(
    jobs: Iterable[Job], file: QuotaFile, *, capacity: Mapping[str, int], until_at: datetime
) -> dict[str, timedelta | None]:
    """Return how long each job waits under a quota file; None: it had not started at the end.

    Args:
        jobs: recorded jobs.
        file: limits, priorities.
        capacity: GPUs by model.
        until_at: the end of the play.
    """
    rank = {name: number for number, name in enumerate(file.priorities)}
    state = _Play(file=file, free=Counter({m: n * _MILLI for m, n in capacity.items()}))
    coming = sorted(jobs, key=lambda one: (one.created_at, one.uid), reverse=True)
    waits: dict[str, timedelta | None] = {one.uid: None for one in coming}
    waiting: list[Job] = []
    ends: list[_End] = []
    while coming or ends:
        arrivals = [coming[-1].created_at] if coming else []
        now = min([*arrivals, *[at for at, *_ in ends[:1]]])
        if now >= until_at:
            break
        while ends and ends[0][0] <= now:
            _at, _uid, job, model = heapq.heappop(ends)
            state.take(job, model, sign=-1)
        while coming and coming[-1].created_at <= now:
            waiting.append(coming.pop())
        waiting.sort(key=lambda one: _turn(one, rank))
        waiting = _started(waiting, state, now=now, ends=ends, waits=waits)
    return waits


def _turn(job: Job, rank: Mapping[str, int]) -> tuple[int, datetime, str]:
    """Return whose turn it is: higher priority, then longer waiting; no known class is last."""
    return -rank.get(job.priority_class or "", LOWEST), job.created_at, job.uid


def _started(
    waiting: Sequence[Job],
    state: _Play,
    *,
    now: datetime,
    ends: list[_End],
    waits: dict[str, timedelta | None],
) -> list[Job]:
    """Start what may start now; return what still waits."""
    left = []
    for job in waiting:
        model = state.model_for(job)
        if model is None:
            left.append(job)
            continue
        state.take(job, model)
        waits[job.uid] = now - job.created_at
        heapq.heappush(ends, (now + max(job.held, timedelta(microseconds=1)), job.uid, job, model))
    return left


def by_team(
    jobs: Sequence[Job], waits: Mapping[str, timedelta | None], *, until_at: datetime
) -> tuple[TeamWaits, ...]:
    """Return how each team waited, ascending; jobs of no team are left out."""
    teams: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.tenant_id is not None:
            teams[job.tenant_id].append(job)
    return tuple(_waits(name, teams[name], waits, until_at=until_at) for name in sorted(teams))


def _waits(
    name: str, jobs: Sequence[Job], waits: Mapping[str, timedelta | None], *, until_at: datetime
) -> TeamWaits:
    done_s = [found.total_seconds() for job in jobs if (found := waits[job.uid]) is not None]
    hours = sum(
        job.gpu_count * _waited(job, waits[job.uid], until_at) / timedelta(hours=1) for job in jobs
    )
    return TeamWaits(
        tenant_id=name,
        job_count=len(jobs),
        started_count=len(done_s),
        mean_s=mean(done_s) if done_s else None,
        median_s=median(done_s) if done_s else None,
        gpu_hours_waited=hours,
    )


def _waited(job: Job, wait: timedelta | None, until_at: datetime) -> timedelta:
    """Return how long a job waits up to the end, also one that never starts."""
    return max(timedelta(), until_at - job.created_at) if wait is None else wait


def _share(shares: Iterable[Share], model: str) -> Share | None:
    return next((one for one in shares if one.gpu_model == model), None)


def _milli(job: Job) -> int:
    return round(job.gpu_count * _MILLI)
