"""``steward quota what-if``: the recorded queue under one quota file, and under another."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from analytics.evidence.stored import frame_of, of_cluster
from enforcer.assembly import open_store
from enforcer.policies.durations import duration_from, duration_text
from enforcer.policies.listing import table
from enforcer.quota.model import QuotaFile
from enforcer.quota.reading import file_at
from enforcer.quota.whatif import Job, TeamWaits, by_team, play
from steward.command import Context
from steward.errors import InputError, UsageError
from steward.period import Period
from steward.ports import Reader

if TYPE_CHECKING:
    import polars as pl

COLUMNS: Final = ("team", "jobs", "waits", "started", "mean", "median", "gpu_hours_waited")
RECORDED: Final = "recorded"
QUERIES: Final = ("workload_current", "transition_history", "allocation_history", "device_history")


def run_what_if(args: argparse.Namespace, context: Context) -> int:
    """Print how each team waited, and would have waited."""
    files = {str(path): file_at(path) for path in (args.against, args.file) if path is not None}
    _refuse_other_cluster(files, context.settings.cluster)
    length = duration_from(args.last)
    if not length:
        raise UsageError(f"--last {args.last!r} is no length of time", hint="write it as 14d")
    with open_store(context.settings) as store:
        period = _period(store, length)
        frames = _frames(store, period, context.settings.cluster)
    jobs = jobs_of(frames, period)
    if not jobs:
        raise InputError(
            f"no job of cluster {context.settings.cluster!r} is recorded in the last {args.last}",
            hint="take a longer --last, or look with: steward report queue",
        )
    found = {RECORDED: {one.uid: one.waited for one in jobs}}
    capacity = capacity_of(frames)
    for name, file in files.items():
        found[name] = play(jobs, file, capacity=capacity, until_at=period.until_at)
    rows = [
        _row(one, name)
        for name, waits in found.items()
        for one in by_team(jobs, waits, until_at=period.until_at)
    ]
    rows.sort(key=lambda row: str(row["team"]))
    sys.stdout.write(_text(rows, period) if args.format == "table" else json.dumps(rows) + "\n")
    return 0


def jobs_of(frames: Mapping[str, pl.DataFrame], period: Period) -> list[Job]:
    """Return the recorded jobs of a period, ascending by uid."""
    from analytics.recorded_jobs import recorded_jobs  # noqa: PLC0415 - heavy, and only here

    return [
        Job(
            uid=row["workload_uid"],
            tenant_id=row["tenant_id"],
            priority_class=row["priority_class"],
            gpu_count=row["gpu_count"],
            gpu_models=tuple(row["gpu_models"]),
            created_at=row["created_at"],
            held=timedelta(seconds=row["held_s"]) if row["held_at"] else _median_held(frames),
            waited=_waited(row["created_at"], row["held_at"]),
        )
        for row in recorded_jobs(frames, period).iter_rows(named=True)
    ]


def _waited(created_at: datetime, held_at: datetime | None) -> timedelta | None:
    """Return the recorded wait; a job that was told of later than it held waited for nothing."""
    return None if held_at is None else max(timedelta(), held_at - created_at)


def capacity_of(frames: Mapping[str, pl.DataFrame]) -> dict[str, int]:
    """Return the GPUs of each model, as last told."""
    devices = frames["device_history"].sort("observed_at")
    newest = devices.unique(["cluster", "device_uuid"], keep="last")
    models = newest.filter(newest["is_present"])["model"].drop_nulls().to_list()
    return dict(sorted(Counter(models).items()))


def _median_held(frames: Mapping[str, pl.DataFrame]) -> timedelta:
    """Return how long a hold lasts as a rule: for jobs that never got any."""
    ended = frames["allocation_history"].drop_nulls("ended_at")
    found = (ended["ended_at"] - ended["started_at"]).median()
    return found if isinstance(found, timedelta) else timedelta(hours=1)


def _frames(reader: Reader, period: Period, cluster: str) -> dict[str, pl.DataFrame]:
    ends = {"from_at": period.from_at, "until_at": period.until_at}
    frames = {name: frame_of(name, reader.query(name, ends)) for name in QUERIES}
    return of_cluster(frames, cluster)


def _period(reader: Reader, length: timedelta) -> Period:
    """Return so much time up to the newest stored row."""
    from polars import DataFrame

    row = DataFrame(reader.query("data_extent", {})).row(0, named=True)
    newest = row["last_at"]
    if not isinstance(newest, datetime):
        raise InputError("the warehouse holds no rows yet", hint="collect or import some first")
    until_at = newest.astimezone(UTC)
    return Period(until_at - length, until_at)


def _refuse_other_cluster(files: Mapping[str, QuotaFile], cluster: str) -> None:
    for name, file in files.items():
        if file.cluster != cluster:
            raise UsageError(
                f"{name} is of cluster {file.cluster!r}, the settings of {cluster!r}",
                hint="set cluster, or name the file of this cluster",
            )


def _row(one: TeamWaits, name: str) -> dict[str, object]:
    return {
        "team": one.tenant_id,
        "jobs": one.job_count,
        "waits": name,
        "started": one.started_count,
        "mean_s": one.mean_s,
        "median_s": one.median_s,
        "gpu_hours_waited": one.gpu_hours_waited,
    }


def _text(rows: Sequence[Mapping[str, object]], period: Period) -> str:
    shown = [
        {
            **row,
            "mean": _length(row["mean_s"]),
            "median": _length(row["median_s"]),
            "gpu_hours_waited": f"{row['gpu_hours_waited']:.1f}",
        }
        for row in rows
    ]
    return (
        f"jobs of {period}, played under each file; recorded: what was really waited\n"
        f"{table(shown, COLUMNS)}"
    )


def _length(seconds: object) -> str | None:
    if not isinstance(seconds, int | float):
        return None
    return duration_text(timedelta(seconds=round(seconds)))
