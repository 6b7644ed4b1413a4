"""Each job that waits at the period's end: why, since when, what said so, and the nearest fix."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.inputs import conform
from analytics.intervals import bounds
from analytics.queue.asks import Ask, Resting, Said, Scene
from analytics.queue.causes import ADMISSION, CAPACITY, OTHER, PLACEMENT, QUOTA, SCHEDULING, UNKNOWN
from analytics.queue.decomposition import Decomposition, waiting_at_end
from analytics.queue.fixes import nearest_fix
from analytics.queue.free import WHOLE, Free, free_at_end
from analytics.queue.quotas import Quotas
from analytics.queue.rooms import open_holds, rooms
from analytics.queue.scarcity import placement_us
from analytics.queue.stages import ATTEMPT_ID, said_of
from analytics.queue.words import blocking
from analytics.schemas.columns import INSTANT
from analytics.schemas.columns import rows as columns_of
from analytics.waits import WORKLOAD
from steward.period import Period
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

REST_TOLD_S: Final = SECONDS_PER_HOUR
"""GPUs that did nothing for this long until the period's end are worth naming as a way out."""
_REST_SLACK_S: Final = 600
"""The last reading may be this much older than the period's end."""
_SAYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        QUOTA: (QUOTA,),
        ADMISSION: (ADMISSION,),
        PLACEMENT: (PLACEMENT, SCHEDULING),
        CAPACITY: (SCHEDULING,),
        OTHER: (OTHER, SCHEDULING),
        UNKNOWN: (QUOTA, PLACEMENT, OTHER, SCHEDULING),
    }
)
"""Causes of what is said that speak of each class."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SCHEMA: Final = columns_of(
    attempt_id=pl.UInt32,
    wait_class=pl.String,
    blocking=pl.String,
    fix=pl.String,
    evidence=pl.String,
    said_at=INSTANT,
)


def why_pending(
    found: Decomposition, said: pl.DataFrame, *, scene: Scene, free: Free, period: Period
) -> pl.DataFrame:
    """Return why each job waits that waits at the period's end.

    Args:
        found: the waits of the period, with worker_gpu_count i64 | null among the attempts.
        said: rows of ``evidence``.
        scene: room and quota at the period's end.
        free: of the period.
        period: its end is the instant.

    Returns:
        one row per waiting attempt, longest wait first (ties by workload)
            the columns of the attempts, and wait_class, blocking, fix, evidence str | null (what
            was said last), said_at | null
    """
    waiting = waiting_at_end(found, period)
    classes = _classes_now(found, waiting, free=free, period=period)
    last = _last_said(said_of(waiting, said), classes)
    told = []
    for row in waiting.iter_rows(named=True):
        attempt_id = row[ATTEMPT_ID]
        words = _said(last.get(attempt_id))
        ask = _ask(row, classes.get(attempt_id, UNKNOWN), words)
        told.append(
            {
                "attempt_id": attempt_id,
                "wait_class": ask.wait_class,
                "blocking": blocking(ask, scene),
                "fix": nearest_fix(ask, scene),
                "evidence": None if words is None else f"{words.source}: {words.words()}",
                "said_at": None if words is None else words.at,
            }
        )
    return waiting.join(pl.DataFrame(told, schema=_SCHEMA), on=ATTEMPT_ID).sort(
        "created_us", *WORKLOAD
    )


def scene_at_end(
    frames: Mapping[str, pl.DataFrame], *, free: Free, workloads: pl.DataFrame, period: Period
) -> Scene:
    """Return room, quota and rest at the period's end."""
    return Scene(
        rooms=rooms(frames, free=free, workloads=workloads, period=period),
        quotas=Quotas.from_rows(conform("quota_use", frames["quota_use"])),
        resting=_resting(frames, free=free, workloads=workloads, period=period),
        has_holders=free.has_holders,
    )


def _classes_now(
    found: Decomposition, waiting: pl.DataFrame, *, free: Free, period: Period
) -> dict[int, str]:
    """Return the class each waiting attempt is in: of GPUs, by what is free at the very end."""
    _, until_us = bounds(period)
    last = (
        found.spans.join(waiting.select(ATTEMPT_ID), on=ATTEMPT_ID, how="semi")
        .group_by(ATTEMPT_ID, maintain_order=True)
        .agg(pl.col("cause", "wait_class").last())
        .with_columns(start_us=pl.lit(until_us - 1), end_us=pl.lit(until_us))
    )
    enough = placement_us(last, waiting, free_at_end(free))
    now = (
        pl.when((pl.col("cause") == SCHEDULING) & (pl.col("enough_us") > 0))
        .then(pl.lit(PLACEMENT))
        .when((pl.col("cause") == SCHEDULING) & (pl.col("enough_us") == 0))
        .then(pl.lit(CAPACITY))
        .otherwise(pl.col("wait_class").cast(pl.String))
    )
    named = last.with_columns(enough_us=enough).select(ATTEMPT_ID, now=now)
    return dict(named.iter_rows())


def _last_said(mine: pl.DataFrame, classes: Mapping[int, str]) -> dict[int, Mapping[str, object]]:
    """Return the last that was said of what each attempt waits for."""
    found: dict[int, Mapping[str, object]] = {}
    for row in mine.iter_rows(named=True):
        wait_class = classes.get(row[ATTEMPT_ID], UNKNOWN)
        if row["cause"] in _SAYS[wait_class]:
            found[row[ATTEMPT_ID]] = row
    return found


def _said(row: Mapping[str, object] | None) -> Said | None:
    if row is None:
        return None
    message = row["message"]
    return Said(
        source=str(row["source"]),
        at=_EPOCH + timedelta(microseconds=int(str(row["at_us"]))),
        reason=str(row["reason"]),
        message=None if message is None else str(message),
    )


def _ask(row: Mapping[str, object], wait_class: str, said: Said | None) -> Ask:
    def number(name: str) -> int | None:
        value = row[name]
        return None if value is None else int(str(value))

    models, queue = row["gpu_models"], row["queue"]
    return Ask(
        attempt_id=int(str(row[ATTEMPT_ID])),
        cluster=str(row["cluster"]),
        workload_uid=str(row["workload_uid"]),
        queue=None if queue is None else str(queue),
        models=tuple(str(models).split("|")) if models else (),
        gpu_count=number("gpu_count"),
        gpu_milli=number("gpu_milli"),
        cpu_milli=number("cpu_milli"),
        memory_bytes=number("memory_bytes"),
        worker_gpu_count=number("worker_gpu_count"),
        wait_class=wait_class,
        said=said,
    )


def _resting(
    frames: Mapping[str, pl.DataFrame], *, free: Free, workloads: pl.DataFrame, period: Period
) -> tuple[Resting, ...]:
    """Return who holds whole boards that have done nothing for a while, up to the end."""
    rest = conform("rest", frames["rest"]).filter("is_idle")
    device = ["cluster", "device_uuid", "workload_uid"]
    gap = pl.col("started_at") > pl.col("ended_at").shift(1)
    runs = (
        rest.sort(*device, "started_at")
        .with_columns(run=gap.fill_null(value=True).cum_sum().over(device))
        .group_by(*device, "run")
        .agg(started_at=pl.col("started_at").min(), ended_at=pl.col("ended_at").max())
    )
    slack = pl.duration(seconds=_REST_SLACK_S)
    rest_s = (pl.lit(period.until_at) - pl.col("started_at")).dt.total_microseconds()
    still = runs.filter(pl.col("ended_at") >= pl.lit(period.until_at) - slack).with_columns(
        rest_s=rest_s / MICROS_PER_SECOND
    )
    held = open_holds(conform("allocation_history", frames["allocation_history"]), period)
    whole = free.boards.filter(pl.col("offer") == WHOLE).select(
        "cluster", "device_uuid", "node", "model"
    )
    named = workloads.select(*WORKLOAD, "queue", name=pl.coalesce("name", "workload_uid"))
    found = (
        still.filter(pl.col("rest_s") >= REST_TOLD_S)
        .join(held.select(device).unique(), on=device, how="semi")
        .join(whole, on=["cluster", "device_uuid"])
        .join(named, on=WORKLOAD)
        .group_by(*WORKLOAD, "name", "queue", "node", "model")
        .agg(gpu_count=pl.len().cast(pl.Int64), rest_s=pl.col("rest_s").min())
        .sort(*WORKLOAD, "node")
    )
    return tuple(Resting(**row) for row in found.iter_rows(named=True))
