"""Waiting times with those still waiting counted in: the Kaplan-Meier estimator.

A job that was never scheduled waited *at least* as long as it was seen waiting; leaving it out
makes every quantile too small.
"""

from __future__ import annotations

import polars as pl


def survival(waits: pl.DataFrame) -> pl.DataFrame:
    """Return the share still waiting after each time.

    Args:
        waits: one row per wait, any order
            wait_s f64 (null: left out), is_scheduled bool (false: censored at wait_s)

    Returns:
        one row per distinct time at which a wait ended, ascending
            wait_s f64, at_risk_count i64, ended_count i64, waiting_ratio f64
        A wait censored at a time still counts as at risk there.
    """
    at_time = (
        waits.filter(pl.col("wait_s").is_not_null())
        .group_by("wait_s")
        .agg(
            ended_count=pl.col("is_scheduled").sum().cast(pl.Int64),
            left_count=pl.len().cast(pl.Int64),
        )
        .sort("wait_s")
    )
    gone_before = pl.col("left_count").cum_sum() - pl.col("left_count")
    stays = 1 - pl.col("ended_count") / pl.col("at_risk_count")
    return (
        at_time.with_columns(at_risk_count=pl.col("left_count").sum() - gone_before)
        .with_columns(waiting_ratio=stays.cum_prod())
        .filter(pl.col("ended_count") > 0)
        .select("wait_s", "at_risk_count", "ended_count", "waiting_ratio")
    )


def survival_quantile_s(curve: pl.DataFrame, quantile_ratio: float) -> float | None:
    """Return the first time by which this share had ended, or None if it never had.

    Args:
        curve: rows of ``survival``.
        quantile_ratio: 0..1.
    """
    rounding = 1e-12
    reached = curve.filter(pl.col("waiting_ratio") <= 1 - quantile_ratio + rounding)
    return None if reached.is_empty() else float(reached["wait_s"][0])
