"""What waits are made of: occurrences, time and percentiles of each class.

As in the Philly study (Jeon et al., ATC'19, table 2) each class has a share of the occurrences and
one of the waiting time; an attempt that passes through two classes occurs in both.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.queue.causes import CLASSES, START_UP
from analytics.queue.decomposition import COLUMNS, Decomposition
from analytics.queue.stages import ATTEMPT_ID
from analytics.usage import share
from analytics.waits import SUMMARY, asked_gpus, wait_summary
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

_CLASS: Final = pl.Enum(CLASSES)
_PER_HOUR: Final = MICROS_PER_SECOND * SECONDS_PER_HOUR
OCCURS_S: Final = 10
"""Shorter stays in a class are the time that controllers take to act: no occurrence of waiting."""
SHARES: Final = tuple(f"{name.removesuffix('_us')}_ratio" for name in COLUMNS)


def class_times(found: Decomposition) -> pl.DataFrame:
    """Return how long each attempt was in each class that it was in.

    Returns:
        one row per attempt and class, ascending
            attempt_id, wait_class enum, wait_us i64, wait_s f64, is_scheduled bool (whether it
            left the class; false: it gave up there, or is there at the period's end)
    """
    length = pl.col("end_us") - pl.col("start_us")
    has_started = pl.col("started_at").is_not_null()
    last = pl.col("wait_class").last()
    per_class = found.spans.group_by(ATTEMPT_ID, "wait_class").agg(wait_us=length.sum())
    final = found.spans.group_by(ATTEMPT_ID).agg(last_cause=pl.col("cause").last(), last=last)
    state = found.attempts.select(ATTEMPT_ID, "is_scheduled", has_started=has_started)
    is_last = pl.col("last") == pl.col("wait_class")
    is_through = (
        pl.when(pl.col("wait_class") == START_UP).then("has_started").otherwise("is_scheduled")
    )
    return (
        per_class.join(final, on=ATTEMPT_ID)
        .join(state, on=ATTEMPT_ID)
        .select(
            ATTEMPT_ID,
            pl.col("wait_class").cast(_CLASS),
            "wait_us",
            wait_s=pl.col("wait_us") / MICROS_PER_SECOND,
            is_scheduled=~is_last | is_through,
        )
        .sort(ATTEMPT_ID, "wait_class")
    )


def class_summary(found: Decomposition) -> pl.DataFrame:
    """Return each class of waiting in the period.

    Returns:
        one row per class that occurs, in the order of ``CLASSES``
            wait_class str, occurrence_count i64 (attempts in it for ``OCCURS_S`` or longer),
            occurrence_ratio f64 | null (of all occurrences), waited_s f64, time_ratio f64 |
            null (of all waiting), waited_gpu_hours f64 (GPUs asked for x time, where known), and
            the columns of ``waits.wait_summary`` (of attempts created in the period, whose stay is
            known from its beginning)
    """
    times = class_times(found).join(
        found.attempts.select(ATTEMPT_ID, "is_in_period", gpus=asked_gpus), on=ATTEMPT_ID
    )
    hours = pl.col("wait_us") / _PER_HOUR
    sums = times.group_by("wait_class").agg(
        waited_us=pl.col("wait_us").sum(),
        occurrence_count=(pl.col("wait_s") >= OCCURS_S).sum().cast(pl.Int64),
        waited_gpu_hours=(hours * pl.col("gpus")).sum(),
    )
    count = pl.col("occurrence_count")
    return (
        sums.join(
            wait_summary(times.filter("is_in_period"), "wait_class"), on="wait_class", how="left"
        )
        .with_columns(pl.col("^.*_count$").fill_null(0))
        .sort("wait_class")
        .select(
            pl.col("wait_class").cast(pl.String),
            "waited_gpu_hours",
            "occurrence_count",
            *SUMMARY,
            occurrence_ratio=share(count, count.sum()),
            waited_s=pl.col("waited_us") / MICROS_PER_SECOND,
            time_ratio=share(pl.col("waited_us"), pl.col("waited_us").sum()),
        )
    )


def class_shares_by(found: Decomposition, key: str) -> pl.DataFrame:
    """Return what the waiting of each group was made of.

    Args:
        found: of the period.
        key: a column of the attempts.

    Returns:
        one row per value, most waiting first (ties by value, null last)
            key, attempt_count i64 (that waited in the period), waited_s,
            waited_gpu_hours f64 (where known), quota_ratio … unknown_ratio f64 | null (of its
            waiting time; they sum to 1)
    """
    waited = found.attempts.filter(pl.col("wait_us") > 0)
    hours = pl.col("wait_us") / _PER_HOUR
    return (
        waited.group_by(key)
        .agg(
            attempt_count=pl.len().cast(pl.Int64),
            waited_s=pl.col("wait_us").sum() / MICROS_PER_SECOND,
            waited_gpu_hours=(hours * asked_gpus).sum(),
            all_us=pl.col("wait_us").sum(),
            **{name: pl.col(name).sum() for name in COLUMNS},
        )
        .with_columns(
            share(pl.col(column), pl.col("all_us")).alias(name)
            for column, name in zip(COLUMNS, SHARES, strict=True)
        )
        .sort("waited_s", key, descending=[True, False], nulls_last=True)
        .select(key, "attempt_count", "waited_s", "waited_gpu_hours", *SHARES)
    )
