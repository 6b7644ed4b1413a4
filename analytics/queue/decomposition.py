"""Every second between an attempt's creation and its start, in exactly one class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.intervals import bounds
from analytics.queue.causes import CAPACITY, CAUSE, CLASSES, OTHER, PLACEMENT, SCHEDULING, UNKNOWN
from analytics.queue.free import Free
from analytics.queue.scarcity import placement_us
from analytics.queue.stages import ATTEMPT_ID, numbered, stages
from steward.period import Period

COLUMNS: Final = tuple(f"{name.replace('-', '_')}_us" for name in CLASSES)
"""Microseconds in each class, in the order of ``CLASSES``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """The waits of a period and what they were made of."""

    attempts: pl.DataFrame
    """Rows of ``stages.numbered``, with ``COLUMNS`` and wait_us i64, the time inside the period
    from creation to start, their exact sum."""
    spans: pl.DataFrame
    """One row per attempt and span of one cause, ascending: attempt_id u32, start_us, end_us i64,
    cause, wait_class enum; a span whose cause is ``scheduling`` is divided, placement before
    capacity, so its inner border is no instant at which anything happened."""


def decompose(
    attempts: pl.DataFrame, said: pl.DataFrame, *, free: Free, period: Period
) -> Decomposition:
    """Return what the waits were made of.

    Args:
        attempts: rows of ``waits.attempts``.
        said: rows of ``evidence``.
        free: of the period.
        period: only waiting inside it is divided; an attempt's time before it is not.
    """
    asked = numbered(attempts, period)
    spans = _divided(stages(asked, said, period), asked, free)
    length = pl.col("end_us") - pl.col("start_us")
    sums = spans.group_by(ATTEMPT_ID).agg(
        length.filter(pl.col("wait_class") == name).sum().alias(column)
        for name, column in zip(CLASSES, COLUMNS, strict=True)
    )
    wide = asked.join(sums, on=ATTEMPT_ID, how="left", maintain_order="left").with_columns(
        pl.col(COLUMNS).fill_null(0)
    )
    return Decomposition(
        attempts=wide.with_columns(wait_us=pl.sum_horizontal(COLUMNS)), spans=spans
    )


def _divided(spans: pl.DataFrame, asked: pl.DataFrame, free: Free) -> pl.DataFrame:
    waits = spans.filter(pl.col("cause") == SCHEDULING)
    rest = spans.filter(pl.col("cause") != SCHEDULING).with_columns(wait_class="cause")
    counts = asked.select(ATTEMPT_ID, "gpu_count")
    known = waits.with_columns(enough_us=placement_us(waits, asked, free)).join(
        counts, on=ATTEMPT_ID, maintain_order="left"
    )
    border = pl.col("start_us") + pl.col("enough_us")
    is_known = pl.col("enough_us").is_not_null()
    parts = [
        known.filter(is_known).select(
            ATTEMPT_ID,
            "cause",
            "start_us",
            end_us=border,
            wait_class=pl.lit(PLACEMENT, dtype=CAUSE),
        ),
        known.filter(is_known).select(
            ATTEMPT_ID, "cause", "end_us", start_us=border, wait_class=pl.lit(CAPACITY, dtype=CAUSE)
        ),
        known.filter(~is_known).select(
            ATTEMPT_ID,
            "cause",
            "start_us",
            "end_us",
            wait_class=pl.when(pl.col("gpu_count") == 0)
            .then(pl.lit(OTHER, dtype=CAUSE))
            .otherwise(pl.lit(UNKNOWN, dtype=CAUSE)),
        ),
    ]
    return (
        pl.concat([rest, *parts], how="diagonal")
        .filter(pl.col("start_us") < pl.col("end_us"))
        .sort(ATTEMPT_ID, "start_us")
    )


def waiting_at_end(found: Decomposition, period: Period) -> pl.DataFrame:
    """Return the attempts that still wait at the period's end, in order."""
    _, until_us = bounds(period)
    is_waiting = (
        ~pl.col("is_scheduled") & pl.col("ended_at").is_null() & (pl.col("created_us") < until_us)
    )
    return found.attempts.filter(is_waiting)
