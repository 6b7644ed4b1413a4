"""The stages that an attempt passes from its creation to its start, cut where the reason changes.

Times are i64 microseconds, spans half-open and clipped to the period, so that sums are exact.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import bounds, micros
from analytics.queue.causes import ADMISSION, CAUSE, QUOTA, SCHEDULING, START_UP, UNKNOWN
from analytics.queue.evidence import POD, QUEUE
from analytics.waits import WORKLOAD
from steward.period import Period

ATTEMPT_ID: Final = "attempt_id"
"""Row number of the attempt in ``numbered``."""


def numbered(attempts: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the attempts that are known to have begun, with the ends of their waits.

    Args:
        attempts: rows of ``waits.attempts``.
        period: an attempt is watched until the period's end.

    Returns:
        the attempts in their order, with attempt_id u32, created_us, waited_us (until scheduled,
        else given up or the period's end), ready_us (until started; waited_us where that is not
        told) i64, is_start_told bool (its cluster tells of starts)
    """
    _, until_us = bounds(period)
    ended = micros(pl.col("ended_at")).fill_null(until_us).clip(upper_bound=until_us)
    waited = pl.coalesce(micros(pl.col("scheduled_at")), ended)
    tells = pl.col("started_at").is_not_null().any().over("cluster")
    started = pl.min_horizontal(micros(pl.col("started_at")), ended)
    return (
        attempts.filter(pl.col("created_at").is_not_null())
        .with_columns(created_us=micros(pl.col("created_at")), is_start_told=tells)
        .with_columns(waited_us=pl.max_horizontal(waited, "created_us"))
        .with_columns(
            ready_us=pl.when("is_start_told", "is_scheduled")
            .then(pl.max_horizontal(started.fill_null(ended), "waited_us"))
            .otherwise("waited_us")
        )
        .with_row_index(ATTEMPT_ID)
    )


def stages(asked: pl.DataFrame, said: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return each attempt's time from creation to start, by what it waited for.

    Args:
        asked: rows of ``numbered``.
        said: rows of ``evidence``.
        period: spans are clipped to it.

    Returns:
        one row per attempt and span of one cause, ascending
            attempt_id u32, start_us, end_us i64, cause enum (quota, admission, scheduling,
            placement, start-up, other, unknown)
    """
    from_us, until_us = bounds(period)
    mine = said_of(asked, said)
    marks = pl.concat(
        [_first_marks(asked, mine), _step_marks(asked, mine), _said_marks(mine)],
        how="diagonal",
    ).sort(ATTEMPT_ID, "at_us", "order")
    filled = marks.with_columns(pl.col("stage", QUEUE, POD).forward_fill())
    is_same = pl.col(ATTEMPT_ID) == pl.col(ATTEMPT_ID).shift(-1)
    following = pl.when(is_same).then(pl.col("at_us").shift(-1))
    return (
        filled.with_columns(end_us=following)
        .join(asked.select(ATTEMPT_ID, "ready_us"), on=ATTEMPT_ID, maintain_order="left")
        .select(
            ATTEMPT_ID,
            start_us=pl.col("at_us").clip(lower_bound=from_us),
            end_us=pl.coalesce("end_us", "ready_us").clip(upper_bound=until_us),
            cause=_cause(),
        )
        .filter(pl.col("start_us") < pl.col("end_us"))
    )


def said_of(asked: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Return what was said while an attempt waited, with its attempt_id."""
    return (
        said.join_asof(
            asked.select(*WORKLOAD, ATTEMPT_ID, "created_us", "waited_us").sort("created_us"),
            left_on="at_us",
            right_on="created_us",
            by=WORKLOAD,
            check_sortedness=False,
        )
        .filter(pl.col(ATTEMPT_ID).is_not_null() & (pl.col("at_us") <= pl.col("waited_us")))
        .drop("created_us", "waited_us")
        .sort(ATTEMPT_ID, "at_us", "stage", "source", "reason", "message")
    )


def _cause() -> pl.Expr:
    stage = pl.col("stage")
    return pl.when(stage == QUOTA).then(QUEUE).when(stage == SCHEDULING).then(POD).otherwise(stage)


def _first_marks(asked: pl.DataFrame, mine: pl.DataFrame) -> pl.DataFrame:
    """Begin each attempt in the stage that its steps and words show.

    Without a word of quota or pods, work of a queue is in a stage that is not known.
    """
    spoken = mine.group_by(ATTEMPT_ID).agg(
        has_queue=(pl.col("stage") == QUEUE).any(), has_pod=(pl.col("stage") == POD).any()
    )
    has_steps = pl.any_horizontal(pl.col("quota_at", "admitted_at").is_not_null())
    is_queued = pl.any_horizontal(has_steps, pl.col("has_queue"))
    has_pods = pl.any_horizontal(pl.col("has_pod"), pl.col("queue").is_null())
    return (
        asked.join(spoken, on=ATTEMPT_ID, how="left", maintain_order="left")
        .with_columns(pl.col("has_queue", "has_pod").fill_null(value=False))
        .select(
            ATTEMPT_ID,
            at_us="created_us",
            order=pl.lit(0),
            stage=pl.when(is_queued)
            .then(pl.lit(QUOTA, dtype=CAUSE))
            .when(has_pods)
            .then(pl.lit(SCHEDULING, dtype=CAUSE))
            .otherwise(pl.lit(UNKNOWN, dtype=CAUSE)),
            queue=pl.lit(QUOTA, dtype=CAUSE),
            pod=pl.lit(SCHEDULING, dtype=CAUSE),
        )
    )


def _step_marks(asked: pl.DataFrame, mine: pl.DataFrame) -> pl.DataFrame:
    """Go on where quota, admission, place were given; a step that was missed shows in the next.

    Where a cluster tells no admission, quota lets work in; where it does, work with quota waits
    for its admission checks.
    """
    quota, admitted = micros(pl.col("quota_at")), micros(pl.col("admitted_at"))
    is_told = pl.col("admitted_at").is_not_null().any().over("cluster")
    refused = mine.group_by(ATTEMPT_ID).agg(
        pod_us=pl.col("at_us").filter(pl.col("cause") == SCHEDULING).min(),
        has_queue=(pl.col("stage") == QUEUE).any(),
    )
    has_queue = pl.any_horizontal(pl.col("has_queue").fill_null(value=False), quota.is_not_null())
    steps = asked.join(refused, on=ATTEMPT_ID, how="left", maintain_order="left").with_columns(
        quota_us=pl.when(is_told).then(pl.min_horizontal(quota, admitted)),
        let_in_us=pl.coalesce(
            admitted, pl.when(~is_told).then(quota), pl.when(has_queue).then("pod_us")
        ),
        placed_us=pl.when("is_scheduled").then("waited_us"),
    )
    parts = (("quota_us", ADMISSION, 1), ("let_in_us", SCHEDULING, 2), ("placed_us", START_UP, 4))
    return pl.concat(
        [
            steps.filter(pl.col(column).is_not_null()).select(
                ATTEMPT_ID,
                at_us=pl.col(column).clip(pl.col("created_us"), pl.col("waited_us")),
                order=pl.lit(order),
                stage=pl.lit(stage, dtype=CAUSE),
            )
            for column, stage, order in parts
        ]
    )


def _said_marks(mine: pl.DataFrame) -> pl.DataFrame:
    return mine.select(
        ATTEMPT_ID,
        "at_us",
        order=pl.lit(3),
        queue=pl.when(pl.col("stage") == QUEUE).then(pl.col("cause").cast(CAUSE)),
        pod=pl.when(pl.col("stage") == POD).then(pl.col("cause").cast(CAUSE)),
    )
