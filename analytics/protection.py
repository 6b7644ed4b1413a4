"""Whether critical work is protected: did it start in time, and was it interrupted."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import bounds, micros
from analytics.value import LEVELS
from steward.period import Period
from steward.units import MICROS_PER_SECOND, SECONDS_PER_MINUTE

START_OBJECTIVE_S: Final = 10 * SECONDS_PER_MINUTE
"""How soon critical work should start where no objective is declared: about as long as a person
waits before asking, and longer than pulling a large image takes."""
INTERRUPTIONS: Final = ("evicted", "preempted")
_WORKLOAD: Final = ("cluster", "workload_uid")


def starts(transitions: pl.DataFrame, levelled: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return how each workload created in the period came to its first start.

    Args:
        transitions: rows of ``transition_history``, any order.
        levelled: rows of ``workload_standing`` after ``value.with_level``.
        period: work belongs to the period in which it was created; starts are watched to its end.

    Returns:
        one row per workload with a known creation, ascending by cluster, workload_uid
            cluster, workload_uid, value_level, is_declared, queue, tenant_id, gpu_models,
            created_us, started_us i64 | null, gave_up_us i64 | null (over before it started),
            objective_s i64 (declared, else ``START_OBJECTIVE_S``), is_met bool | null (null: still
            inside its objective when the period ended or it was withdrawn)
        Started: first told started, else scheduled.
    """
    from_us, until_us = bounds(period)
    told = transitions.filter(micros(pl.col("occurred_at")) < until_us)
    rows = (
        told.group_by(_WORKLOAD)
        .agg(
            created_us=_first("created"),
            started_us=pl.coalesce(_first("started"), _first("scheduled")),
            over_us=_first("finished"),
        )
        .filter(pl.col("created_us").is_between(from_us, until_us, closed="left"))
        .join(levelled, on=_WORKLOAD)
    )
    objective_us = pl.col("objective_s") * MICROS_PER_SECOND
    last_us = pl.coalesce("started_us", "gave_up_us", pl.lit(until_us))
    waited_us = last_us - pl.col("created_us")
    is_met = (
        pl.when(pl.col("started_us").is_not_null())
        .then(waited_us <= objective_us)
        .when(waited_us > objective_us)
        .then(pl.lit(value=False))
    )
    return (
        rows.with_columns(
            gave_up_us=pl.when(pl.col("started_us").is_null()).then("over_us"),
            objective_s=pl.col("start_objective_s").fill_null(START_OBJECTIVE_S),
        )
        .with_columns(is_met=is_met)
        .select(
            *_WORKLOAD, "value_level", "is_declared", "queue", "tenant_id", "gpu_models",
            "created_us", "started_us", "gave_up_us", "objective_s", "is_met",
        )
        .sort(_WORKLOAD)
    )  # fmt: skip


def _first(name: str) -> pl.Expr:
    return micros(pl.col("occurred_at").filter(pl.col("transition") == name).min())


def interruptions(
    transitions: pl.DataFrame, levelled: pl.DataFrame, period: Period
) -> pl.DataFrame:
    """Return evictions and preemptions suffered in the period, by value and reason.

    Returns:
        one row per level, transition and reason, in the order of ``LEVELS``
            value_level, transition, reason str | null, interruption_count i64, workload_count i64
    """
    from_us, until_us = bounds(period)
    inside = micros(pl.col("occurred_at")).is_between(from_us, until_us, closed="left")
    hit = transitions.filter(inside & pl.col("transition").is_in(INTERRUPTIONS))
    return (
        hit.join(levelled.select(*_WORKLOAD, "value_level"), on=_WORKLOAD)
        .group_by("value_level", "transition", "reason")
        .agg(
            interruption_count=pl.len().cast(pl.Int64),
            workload_count=pl.struct(_WORKLOAD).n_unique().cast(pl.Int64),
        )
        .sort(_order(), "transition", "reason", nulls_last=True)
    )


def _order() -> pl.Expr:
    return pl.col("value_level").replace_strict(LEVELS, range(len(LEVELS)), return_dtype=pl.Int64)


def protection(started: pl.DataFrame, interrupted: pl.DataFrame) -> pl.DataFrame:
    """Return by value how much work started in time and how often it was interrupted.

    Args:
        started: rows of ``starts``.
        interrupted: rows of ``interruptions``.

    Returns:
        one row per level of ``LEVELS``, in that order
            value_level, workload_count, decided_count, met_count i64, met_ratio f64 | null (of the
            decided; null: none decided), declared_count i64, evicted_count, preempted_count i64
    """
    base = pl.DataFrame({"value_level": LEVELS})
    known = started.group_by("value_level").agg(
        workload_count=pl.len().cast(pl.Int64),
        decided_count=pl.col("is_met").is_not_null().sum().cast(pl.Int64),
        met_count=pl.col("is_met").sum().cast(pl.Int64),
        declared_count=pl.col("is_declared").sum().cast(pl.Int64),
    )
    counts = interrupted.group_by("value_level").agg(
        pl.col("interruption_count")
        .filter(pl.col("transition") == name)
        .sum()
        .alias(f"{name}_count")
        for name in INTERRUPTIONS
    )
    joined = base.join(known, on="value_level", how="left", maintain_order="left").join(
        counts, on="value_level", how="left", maintain_order="left"
    )
    decided = pl.col("decided_count")
    return joined.with_columns(pl.exclude("value_level").fill_null(0)).with_columns(
        met_ratio=pl.when(decided > 0).then(pl.col("met_count") / decided)
    )


def critical_waits(started: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the stretches in which critical work waited for its first start.

    Args:
        started: rows of ``starts``.
        period: waits that are not over last to its end.

    Returns:
        one row per wait, ascending: cluster, gpu_models str, start_us, end_us i64
    """
    _, until_us = bounds(period)
    return (
        started.filter(pl.col("value_level") == LEVELS[0])
        .select(
            "cluster",
            pl.col("gpu_models").fill_null(""),
            start_us="created_us",
            end_us=pl.coalesce("started_us", "gave_up_us", pl.lit(until_us)),
        )
        .filter(pl.col("start_us") < pl.col("end_us"))
        .sort("cluster", "start_us", "end_us", "gpu_models")
    )
