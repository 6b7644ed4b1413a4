"""From lines to jobs: array tasks one by one, components together, each requeue an attempt.

Steps (``123.batch``, ``123.0``) are left out: what they use is part of what their job holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Final

from collector.backfill.sacct.lines import Line, SacctText
from collector.backfill.sacct.nodes import node_names
from collector.backfill.sacct.values import (
    Resources,
    instant,
    is_nothing,
    job_id,
    resources,
    state,
    whole_number,
)

_WAITING: Final = frozenset({"PENDING", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_GOING_ON: Final = frozenset(
    {"RUNNING", "SUSPENDED", "RESIZING", "STOPPED", "SIGNALING", "STAGE_OUT"}
)
_UNKNOWN: Final = Resources(gpu_count=None, gpu_models=None, cpu_milli=None, memory_bytes=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One component's place: a plain job has one."""

    nodes: tuple[str, ...]
    gpu_count: int | None
    """Of all nodes together, as allocated; None where sacct does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt of a job, as one line (or one line of each component) tells it."""

    submitted_at: datetime
    eligible_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    state: str
    by: str | None
    restarts: int | None
    asked: Resources
    parts: tuple[Part, ...]

    @property
    def is_over(self) -> bool:
        """Tell whether it ended."""
        return self.ended_at is not None


@dataclass(slots=True, kw_only=True)
class Job:
    """One job or one task of an array, with its attempts."""

    uid: str
    name: str
    user: str | None
    account: str | None
    partition: str | None
    qos: str | None
    priority: int | None
    runs: list[Run] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Jobs:
    """What a text tells, and what was left out of it."""

    jobs: dict[str, Job] = field(default_factory=dict)
    step_count: int = 0
    cut_array_count: int = 0
    """Waiting arrays whose list of tasks sacct cut short."""
    clusters: Counter[str] = field(default_factory=Counter)


def jobs_of(text: SacctText, *, zone: tzinfo) -> Jobs:
    """Return all jobs of a text; every line is checked before anything is returned.

    Raises:
        InputError: a line or a field is not what it should be.
    """
    found = Jobs()
    components: dict[tuple[str, datetime, datetime | None], dict[str, Run]] = {}
    for line in text.lines():
        identity = job_id(line)
        if identity.is_step:
            found.step_count += 1
            continue
        if not is_nothing(line.text("Cluster")):
            found.clusters[line.text("Cluster")] += 1
        run = _run(line, zone)
        for task in identity.tasks or (None,):
            uid = identity.job if task is None else f"{identity.job}_{task}"
            found.cut_array_count += "..." in uid
            found.jobs.setdefault(uid, _job(uid, line))
            key = (uid, run.submitted_at, run.started_at)
            of_run = components.setdefault(key, {})
            known = of_run.get(identity.component or "0")
            if known is None or not known.is_over:
                of_run[identity.component or "0"] = run
    for (uid, _, _), runs in components.items():
        found.jobs[uid].runs.append(_together(list(runs.values())))
    for job in found.jobs.values():
        job.runs = _attempts(job.runs)
    return found


def _job(uid: str, line: Line) -> Job:
    return Job(
        uid=uid,
        name=line.text("JobName") or uid,
        user=_known(line, "User"),
        account=_known(line, "Account"),
        partition=_known(line, "Partition"),
        qos=_known(line, "QOS"),
        priority=whole_number(line, "Priority"),
    )


def _known(line: Line, column: str) -> str | None:
    text = line.text(column)
    return None if is_nothing(text) else text


def _run(line: Line, zone: tzinfo) -> Run:
    word, by = state(line)
    submitted_at = instant(line, "Submit", zone)
    if submitted_at is None:
        raise line.fault("Submit", "is blank: a job is known from its submission on")
    nodes = node_names(line)
    started_at, ended_at = instant(line, "Start", zone), instant(line, "End", zone)
    if _never_started(line, word, nodes):
        started_at = None
    if word in _WAITING or word in _GOING_ON:
        ended_at = None
    if started_at is not None and ended_at is not None and ended_at < started_at:
        raise line.fault("End", "is before Start")
    given = resources(line, "AllocTRES")
    asked = given if given and given.gpu_count else resources(line, "ReqTRES") or given
    return Run(
        submitted_at=submitted_at if started_at is None else min(submitted_at, started_at),
        eligible_at=instant(line, "Eligible", zone),
        started_at=started_at,
        ended_at=ended_at,
        state=word,
        by=by,
        restarts=whole_number(line, "Restarts"),
        asked=asked or _UNKNOWN,
        parts=(Part(nodes=nodes, gpu_count=None if given is None else given.gpu_count),),
    )


def _never_started(line: Line, word: str, nodes: tuple[str, ...]) -> bool:
    """Tell whether a start that is printed is only what the scheduler expected, or the end."""
    if word in _WAITING:
        return True
    return "nodelist" in line.fields and not nodes and word not in _GOING_ON


def _together(runs: list[Run]) -> Run:
    """Return the components of one heterogeneous job as one: they start together."""
    first = runs[0]
    if len(runs) == 1:
        return first
    ends = [run.ended_at for run in runs]
    known = [at for at in ends if at is not None]
    return replace(
        first,
        ended_at=max(known) if len(known) == len(ends) else None,
        asked=_sum([run.asked for run in runs]),
        parts=tuple(part for run in runs for part in run.parts),
    )


def _sum(asked: Iterable[Resources]) -> Resources:
    """Return several components' resources together; unknown where one of them is."""
    each = list(asked)

    def total(amounts: list[int | None]) -> int | None:
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if len(known) == len(amounts) else None

    models = {name for one in each for name in (one.gpu_models or "").split("|") if name}
    return Resources(
        gpu_count=total([one.gpu_count for one in each]),
        gpu_models="|".join(sorted(models)) or None,
        cpu_milli=total([one.cpu_milli for one in each]),
        memory_bytes=total([one.memory_bytes for one in each]),
    )


def _attempts(runs: list[Run]) -> list[Run]:
    """Return the runs in order, the numbers of restarts made to rise; each counts from here on.

    Without ``--duplicates`` sacct shows the last attempt only; ``Restarts`` then tells which it is.
    """
    numbered: list[Run] = []
    for run in sorted(runs, key=lambda run: (run.submitted_at, run.started_at or run.submitted_at)):
        least = numbered[-1].restarts + 1 if numbered and numbered[-1].restarts is not None else 0
        numbered.append(replace(run, restarts=max(run.restarts or 0, least)))
    return numbered
