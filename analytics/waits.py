"""How long workloads waited and what they then held, from their lifecycle transitions."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.survival import survival, survival_quantile_s
from steward.period import Period
from steward.units import GPU_MILLI, MICROS_PER_SECOND, SECONDS_PER_HOUR

QUANTILES: Final = (0.5, 0.75, 0.9, 0.95, 0.99)
_ENDS: Final = ("finished", "evicted", "preempted", "suspended")
_KEYS: Final = ("workload_uid", "attempt")
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
            workload_uid, attempt, created_at, scheduled_at | null, ended_at | null,
            is_in_period bool, is_scheduled bool, wait_s f64 | null (until scheduled, else until
            it gave up or the period ended), gpu_hours f64 | null (held inside the period),
            and the columns of ``workload_current``; size_class str
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
        .join(workloads, on="workload_uid", how="left", maintain_order="left")
        .with_columns(gpu_hours=_gpu_hours(period), size_class=_size_class())
        .sort(_KEYS)
    )


def _per_attempt(transitions: pl.DataFrame) -> pl.DataFrame:
    def when(*names: str) -> pl.Expr:
        return pl.col("occurred_at").filter(pl.col("transition").is_in(names))

    return transitions.group_by(_KEYS).agg(
        created_at=pl.coalesce(when("created").min(), when("requeued").min()),
        scheduled_at=pl.coalesce(when("scheduled").max(), when("started").min()),
        ended_at=when(*_ENDS).min(),
    )


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
    groups = rows.partition_by(key, as_dict=True, maintain_order=False)
    parts = [_summary_row(part).with_columns(part[key].head(1)) for part in groups.values()]
    if not parts:
        return _summary_row(rows).clear().with_columns(rows[key].head(0))
    frame = pl.concat(parts, how="vertical_relaxed").sort(key, nulls_last=True)
    return frame.select(key, pl.exclude(key))


def _summary_row(rows: pl.DataFrame) -> pl.DataFrame:
    served = rows.filter("is_scheduled")
    wait = pl.col("wait_s")
    naive = served.select(
        mean_wait_s=wait.mean(),
        **{f"{_name(q)}_wait_s": wait.quantile(q, interpolation="linear") for q in QUANTILES},
        max_wait_s=wait.max(),
        zero_wait_count=(wait == 0).sum().cast(pl.Int64),
        over_60_s_count=(wait > 60).sum().cast(pl.Int64),
        over_600_s_count=(wait > 600).sum().cast(pl.Int64),
    )
    curve = survival(rows)
    estimated = {f"km_{_name(q)}_wait_s": survival_quantile_s(curve, q) for q in QUANTILES}
    counts = {
        "attempt_count": rows.height,
        "never_scheduled_count": rows.height - served.height,
    }
    return naive.select(
        *[pl.lit(value, dtype=pl.Int64).alias(name) for name, value in counts.items()],
        pl.exclude("zero_wait_count", "over_60_s_count", "over_600_s_count"),
        *[pl.lit(value, dtype=pl.Float64).alias(name) for name, value in estimated.items()],
        *["zero_wait_count", "over_60_s_count", "over_600_s_count"],
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
