"""From jobs to rows of ``workload``, ``workload_transition`` and ``allocation``.

What sacct does not tell is not made up: which of a node's GPUs a job held is unknown, so an
allocation names the node and a numbered place that belongs to no device.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

from collector.backfill.sacct.jobs import Job, Part, Run
from steward.units import GPU_MILLI

Row: TypeAlias = dict[str, Any]
"""Columns of one table, as ``collector.tables`` declares them."""
SOURCE: Final = "sacct"
KIND: Final = "SlurmJob"
UNEVEN: Final = "gpus_per_node_unknown"
"""``allocation.conflict`` where a job's GPUs cannot be shared out evenly among its nodes."""
_ENDED_FOR_ANOTHER: Final = {"PREEMPTED": "preempted"}
_REQUEUED: Final = "REQUEUED"


def transition_rows(job: Job, *, cluster: str) -> Iterator[Row]:
    """Yield what happened to a job, attempt by attempt."""
    for place, run in enumerate(job.runs):
        is_last = place + 1 == len(job.runs)
        for at, transition, reason, message in _steps(run, is_last=is_last):
            yield {
                "occurred_at": at,
                "observed_at": at,
                "cluster": cluster,
                "workload_uid": workload_uid(job),
                "attempt": (run.restarts or 0) + 1,
                "transition": transition,
                "reason": reason,
                "message": message,
                "source": SOURCE,
            }


def workload_uid(job: Job) -> str:
    """Return the workload's id: unique in its cluster for as long as Slurm numbers no job anew."""
    return f"slurm/{job.uid}"


def _steps(run: Run, *, is_last: bool) -> Iterator[tuple[datetime, str, str | None, str | None]]:
    """Yield instant, transition, reason and message of an attempt, in order."""
    yield run.submitted_at, "created" if not run.restarts else "requeued", None, None
    latest = run.submitted_at
    eligible_at = run.eligible_at
    if eligible_at is not None and latest < eligible_at <= (run.started_at or eligible_at):
        yield eligible_at, "admitted", "eligible", None
    if run.started_at is not None:
        yield run.started_at, "scheduled", None, None
        yield run.started_at, "started", None, None
        latest = run.started_at
    if run.ended_at is not None:
        yield max(run.ended_at, latest), _ending(run, is_last=is_last), run.state, run.by


def _ending(run: Run, *, is_last: bool) -> str:
    if is_last and run.state != _REQUEUED:
        return "finished"
    return _ENDED_FOR_ANOTHER.get(run.state, "evicted")


def workload_rows(job: Job, *, cluster: str) -> Iterator[Row]:
    """Yield what the job asked for last; its time is that of the latest news of it."""
    last = job.runs[-1]
    asked = last.asked
    yield {
        "observed_at": last.started_at or last.submitted_at,
        "cluster": cluster,
        "workload_uid": workload_uid(job),
        "kind": KIND,
        "namespace": None,
        "name": job.name,
        "tenant_id": job.account,
        "owner": job.user,
        "queue": job.partition,
        "priority_class": job.qos,
        "priority": job.priority if job.priority is not None and job.priority < 2**31 else None,
        "cpu_milli": asked.cpu_milli,
        "memory_bytes": asked.memory_bytes,
        "gpu_count": asked.gpu_count,
        "gpu_milli": GPU_MILLI if asked.gpu_count else None,
        "gpu_models": asked.gpu_models,
        "source": SOURCE,
    }


def allocation_rows(job: Job, *, cluster: str) -> Iterator[Row]:
    """Yield a row for each GPU that each of the job's runs held."""
    for run in job.runs:
        yield from _held(job, run, cluster=cluster)


def _held(job: Job, run: Run, *, cluster: str) -> Iterator[Row]:
    if run.started_at is None:
        return
    for number, (node, conflict) in enumerate(_places(run.parts)):
        yield {
            "observed_at": run.ended_at or run.started_at,
            "cluster": cluster,
            "node": node,
            "device_uuid": f"{node}/slurm-{job.uid}-{number}",
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "gpu_share_ratio": 1.0,
            "sharing_mode": "exclusive",
            "workload_uid": workload_uid(job),
            "tenant_id": job.account,
            "attribution_source": SOURCE,
            "queue": job.partition,
            "priority_class": job.qos,
            "ownership_level": "workload" if job.account else "unattributed",
            "conflict": conflict,
        }


def _places(parts: tuple[Part, ...]) -> Iterator[tuple[str, str | None]]:
    """Yield a node for each GPU: evenly, the first nodes one more where it does not divide."""
    for part in parts:
        if not part.gpu_count or not part.nodes:
            continue
        each, more = divmod(part.gpu_count, len(part.nodes))
        for place, node in enumerate(part.nodes):
            for _ in range(each + (place < more)):
                yield node, UNEVEN if more else None
