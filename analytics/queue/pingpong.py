"""Work that loses its place again and again, and pairs that take it from each other."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import micros
from analytics.waits import ATTEMPT, WORKLOAD, asked_gpus
from steward.units import MICROS_PER_SECOND, SECONDS_PER_DAY, SECONDS_PER_HOUR

WINDOW_S: Final = SECONDS_PER_DAY
"""Losing its place this often within a day is a pattern, over a month it is bad luck."""
FEWEST_LOSSES: Final = 3
_BY_UID: Final = r"JobUID:\s*([^\s,)]+)"
_BY_NAME: Final = r"workload\s+([^\s/]+)/([^\s,(]+)"
_PER_HOUR: Final = MICROS_PER_SECOND * SECONDS_PER_HOUR


def ping_pong(
    interruptions: pl.DataFrame, attempts: pl.DataFrame, workloads: pl.DataFrame
) -> pl.DataFrame:
    """Return the workloads that were evicted or preempted too often, and those that take turns.

    Args:
        interruptions: rows of ``interruption_history``.
        attempts: rows of ``waits.attempts``.
        workloads: rows of ``workload_current``.

    Returns:
        one row per workload, most GPU-hours first (ties by workload)
            cluster, workload_uid, name, tenant_id str | null, loss_count i64 (in the period),
            most_in_window_count i64 (within ``WINDOW_S``), turn_with str | null (names of the
            workloads it preempted and was preempted by within ``WINDOW_S``), lost_gpu_hours f64 |
            null (held by the attempts that were cut off, at most this much work is lost),
            last_at
    """
    lost = _losses(interruptions, attempts)
    turns = _turns(interruptions, workloads)
    counted = lost.group_by(WORKLOAD).agg(
        loss_count=pl.len().cast(pl.Int64),
        most_in_window_count=pl.col("in_window_count").max(),
        lost_gpu_hours=pl.when(pl.col("lost_gpu_hours").is_not_null().any()).then(
            pl.col("lost_gpu_hours").sum()
        ),
        last_at=pl.col("occurred_at").max(),
    )
    return (
        counted.join(turns, on=WORKLOAD, how="left")
        .filter(
            (pl.col("most_in_window_count") >= FEWEST_LOSSES) | pl.col("turn_with").is_not_null()
        )
        .join(workloads.select(*WORKLOAD, "name", "tenant_id"), on=WORKLOAD, how="left")
        .sort("lost_gpu_hours", *WORKLOAD, descending=[True, False, False], nulls_last=True)
        .select(
            *WORKLOAD,
            "name",
            "tenant_id",
            "loss_count",
            "most_in_window_count",
            "turn_with",
            "lost_gpu_hours",
            "last_at",
        )
    )


def _losses(interruptions: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per attempt that lost its place, with those in the window that it ends."""
    once = interruptions.sort(*ATTEMPT, "occurred_at").unique(
        ATTEMPT, keep="first", maintain_order=True
    )
    held_us = micros(pl.col("occurred_at")) - micros(pl.col("scheduled_at"))
    hours = asked_gpus * (held_us / _PER_HOUR)
    in_window = (
        once.sort(*WORKLOAD, "occurred_at")
        .rolling("occurred_at", period=f"{WINDOW_S}s", closed="both", group_by=list(WORKLOAD))
        .agg(in_window_count=pl.len().cast(pl.Int64))
        .unique([*WORKLOAD, "occurred_at"])
    )
    return (
        once.join(
            attempts.select(*ATTEMPT, "scheduled_at", "gpu_count", "gpu_milli"),
            on=ATTEMPT,
            how="left",
        )
        .join(in_window, on=[*WORKLOAD, "occurred_at"], how="left")
        .with_columns(lost_gpu_hours=hours)
    )


def _turns(interruptions: pl.DataFrame, workloads: pl.DataFrame) -> pl.DataFrame:
    """Return the workloads that preempted each other, each with the names of the others.

    The message of a preemption names who it was for: by the uid of its job, or by name.
    """
    told = interruptions.filter(pl.col("transition") == "preempted").with_columns(
        taker_uid=pl.col("message").str.extract(_BY_UID),
        namespace=pl.col("message").str.extract(_BY_NAME, 1),
        taker_name=pl.col("message").str.extract(_BY_NAME, 2),
    )
    by_name = ["cluster", "namespace", "taker_name"]
    called = workloads.select("cluster", "namespace", taker_name="name", named_uid="workload_uid")
    names = called.join(told, on=by_name, how="semi").unique(by_name, keep="none")
    taken = told.join(names, on=by_name, how="left").select(
        "cluster",
        "workload_uid",
        "occurred_at",
        taker_uid=pl.coalesce("taker_uid", "named_uid"),
    )
    back = taken.select(
        "cluster", taker_uid="workload_uid", workload_uid="taker_uid", back_at="occurred_at"
    )
    apart = (pl.col("occurred_at") - pl.col("back_at")).abs()
    others = workloads.select("cluster", taker_uid="workload_uid", other="name")
    return (
        taken.join(back, on=["cluster", "taker_uid", "workload_uid"])
        .filter(apart <= pl.duration(seconds=WINDOW_S))
        .filter(pl.col("taker_uid") != pl.col("workload_uid"))
        .join(others, on=["cluster", "taker_uid"], how="left")
        .with_columns(other=pl.coalesce("other", "taker_uid"))
        .group_by(WORKLOAD)
        .agg(turn_with=pl.col("other").unique().sort().str.join(", "))
    )
