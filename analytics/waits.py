"""How long workloads waited and what they then held, from their lifecycle transitions."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.survival import quantiles_s, survival
from steward.period import Period
from steward.units import GPU_MILLI, MICROS_PER_SECOND, SECONDS_PER_HOUR

QUANTILES: Final = (0.5, 0.75, 0.9, 0.95, 0.99)
_ENDS: Final = ("finished", "evicted", "preempted", "suspended")
WORKLOAD: Final = ("cluster", "workload_uid")
ATTEMPT: Final = (*WORKLOAD, "attempt")
SUMMARY: Final = (
    "attempt_count", "never_scheduled_count", "mean_wait_s",
    "p50_wait_s", "p75_wait_s", "p90_wait_s", "p95_wait_s", "p99_wait_s", "max_wait_s",
    "km_p50_wait_s", "km_p75_wait_s", "km_p90_wait_s", "km_p95_wait_s", "km_p99_wait_s",
    "zero_wait_count", "over_60_s_count", "over_600_s_count",
)  # fmt: skip
"""Columns of ``wait_summary`` after its key."""
asked_gpus: Final = pl.col("gpu_count") * pl.col("gpu_milli").fill_null(GPU_MILLI) / GPU_MILLI
"""GPUs asked for, f64, null where the count is unknown; without a share each is a whole GPU."""


def attempts(transitions: pl.DataFrame, workloads: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return each attempt with its wait and what it held in the period.

    Args:
        transitions: rows of ``transition_history``, any order.
        workloads: rows of ``workload_current``.
        period: an attempt belongs to the period in which it was created; waits are watched, and
            GPU-hours counted, up to the period's end.

    Returns:
        one row per workload and attempt, ascending
            cluster, workload_uid, attempt, created_at, quota_at | null, admitted_at | null,
            scheduled_at | null, started_at | null (of its last pod), ended_at | null,
            is_in_period bool, is_scheduled bool, wait_s f64 | null (until scheduled, else until
            it gave up or the period ended), gpu_hours f64 | null (held inside the period),
            the columns of ``workload_current``; size_class, gang_size str | null
    """
    until = pl.lit(period.until_at)
    rows = _per_attempt(transitions.filter(pl.col("occurred_at") < period.until_at))
    waited_until = pl.coalesce("scheduled_at", pl.min_horizontal("ended_at", until))
    wait = (waited_until - pl.col("created_at")).dt.total_microseconds() / MICROS_PER_SECOND
    return (
        rows.with_columns(
            is_scheduled=pl.col("scheduled_at").is_not_null(),
            is_in_period=pl.col("created_at")
            .is_between(period.from_at, period.until_at, closed="left")
            .fill_null(value=False),
            wait_s=wait.clip(lower_bound=0),
        )
        .join(workloads, on=WORKLOAD, how="left", maintain_order="left")
        .with_columns(pl.col("gpu_models").replace("", None))
        .with_columns(gpu_hours=_gpu_hours(period), size_class=_size_class(), gang_size=gang_size())
    )


def _per_attempt(transitions: pl.DataFrame) -> pl.DataFrame:
    def when(*names: str) -> pl.Expr:
        return pl.when(pl.col("transition").is_in(names)).then("occurred_at")

    # Columns of their own, since sums over groups are many times faster without a filter in each.
    # 64 bits tell attempts apart: steps are many, and their names are long.
    steps = transitions.select(
        *ATTEMPT,
        attempt_key=pl.struct(ATTEMPT).hash(),
        created_at=when("created"),
        requeued_at=when("requeued"),
        quota_at=when("quota_reserved"),
        admitted_at=when("admitted"),
        scheduled_at=when("scheduled"),
        started_at=when("started"),
        ready_at=when("ready"),
        ended_at=when(*_ENDS),
    )
    first, last = pl.col("started_at").min(), pl.col("started_at").max()
    summed = steps.group_by("attempt_key").agg(
        pl.col(ATTEMPT).first(),
        created_at=pl.coalesce(pl.col("created_at").min(), pl.col("requeued_at").min()),
        quota_at=pl.col("quota_at").min(),
        admitted_at=pl.col("admitted_at").min(),
        scheduled_at=pl.coalesce(pl.col("scheduled_at").max(), first),
        started_at=pl.coalesce(last, pl.col("ready_at").max()),
        ended_at=pl.col("ended_at").min(),
    )
    # One stable sort after the other: names of several columns at once take twice as long to sort.
    ordered = summed.drop("attempt_key").sort("attempt")
    for name in reversed(WORKLOAD):
        ordered = ordered.sort(name, maintain_order=True)
    return ordered


def _gpu_hours(period: Period) -> pl.Expr:
    start = pl.col("scheduled_at").clip(lower_bound=pl.lit(period.from_at))
    end = pl.col("ended_at").fill_null(period.until_at).clip(upper_bound=pl.lit(period.until_at))
    hours = (end - start).dt.total_microseconds() / MICROS_PER_SECOND / SECONDS_PER_HOUR
    return (
        pl.when(pl.col("gpu_count") == 0)
        .then(0.0)
        .otherwise(asked_gpus * hours.clip(lower_bound=0).fill_null(0.0))
    )


def _size_class() -> pl.Expr:
    count, milli = pl.col("gpu_count"), pl.col("gpu_milli").fill_null(GPU_MILLI)
    return (
        pl.when(count == 0)
        .then(pl.lit("no GPU"))
        .when((count == 1) & (milli < GPU_MILLI))
        .then(pl.lit("part of a GPU"))
        .when(count == 1)
        .then(pl.lit("1 GPU"))
        .when(count > 1)
        .then(pl.lit("2 or more GPUs"))
    )


def gang_size() -> pl.Expr:
    """Return the bucket of the GPUs asked for: those of the Philly study; null: unknown."""
    count = pl.col("gpu_count")
    return (
        pl.when(count == 0)
        .then(pl.lit("no GPU"))
        .when(count == 1)
        .then(pl.lit("1 GPU"))
        .when(count <= 4)
        .then(pl.lit("2-4 GPUs"))
        .when(count <= 8)
        .then(pl.lit("5-8 GPUs"))
        .when(count > 8)
        .then(pl.lit("more than 8 GPUs"))
    )


def wait_summary(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return waiting times by one column of the attempts.

    Args:
        rows: rows of ``attempts`` that belong to the period.
        key: column to group by.

    Returns:
        one row per value, ascending (null last)
            key, attempt_count, never_scheduled_count i64, mean_wait_s, p50_wait_s … p99_wait_s,
            max_wait_s f64 | null (of scheduled attempts, linearly interpolated),
            km_p50_wait_s … km_p99_wait_s f64 | null (never scheduled ones counted as still
            waiting; null: that share was not reached), zero_wait_count, over_60_s_count,
            over_600_s_count i64 (of scheduled attempts)
    """
    estimated = quantiles_s(survival(rows, key), QUANTILES, key)
    named = estimated.rename({f"{_name(q)}_s": f"km_{_name(q)}_wait_s" for q in QUANTILES})
    return (
        rows.group_by(key)
        .agg(*_plain())
        .join(named, on=key, how="left", nulls_equal=True)
        .sort(key, nulls_last=True)
        .select(key, *SUMMARY)
    )


def _plain() -> tuple[pl.Expr, ...]:
    wait = pl.col("wait_s").filter("is_scheduled")
    return (
        pl.len().cast(pl.Int64).alias("attempt_count"),
        (~pl.col("is_scheduled")).sum().cast(pl.Int64).alias("never_scheduled_count"),
        wait.mean().alias("mean_wait_s"),
        *[wait.quantile(q, interpolation="linear").alias(f"{_name(q)}_wait_s") for q in QUANTILES],
        wait.max().alias("max_wait_s"),
        (wait == 0).sum().cast(pl.Int64).alias("zero_wait_count"),
        (wait > 60).sum().cast(pl.Int64).alias("over_60_s_count"),
        (wait > 600).sum().cast(pl.Int64).alias("over_600_s_count"),
    )


def _name(quantile_ratio: float) -> str:
    return f"p{round(quantile_ratio * 100)}"


def gpu_hours_by(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return GPU-hours held in the period by one column of the attempts.

    Returns:
        one row per value, most first
            key, attempt_count i64, gpu_hours f64, share_ratio f64 | null, unknown_count i64
            (scheduled attempts whose GPUs are unknown: not in gpu_hours)
    """
    unknown = pl.col("is_scheduled") & pl.col("gpu_hours").is_null()
    total = pl.col("gpu_hours").sum()
    return (
        rows.group_by(key)
        .agg(
            attempt_count=pl.len().cast(pl.Int64),
            gpu_hours=pl.col("gpu_hours").sum(),
            unknown_count=unknown.sum().cast(pl.Int64),
        )
        .with_columns(share_ratio=pl.when(total > 0).then(pl.col("gpu_hours") / total))
        .sort("gpu_hours", key, descending=[True, False], nulls_last=True)
        .select(key, "attempt_count", "gpu_hours", "share_ratio", "unknown_count")
    )
