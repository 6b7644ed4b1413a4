"""Waiting times with those still waiting counted in: the Kaplan-Meier estimator.

A job that was never scheduled waited *at least* as long as it was seen waiting; leaving it out
makes every quantile too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

_ROUNDING: Final = 1e-12
"""What repeated products of ratios may be off by."""


def survival(waits: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return the share still waiting after each time.

    Args:
        waits: one row per wait, any order
            wait_s f64 (null: left out), is_scheduled bool (false: censored at wait_s)
        keys: columns whose values have a curve each; none gives one curve.

    Returns:
        one row per combination of keys and distinct time at which a wait ended, ascending
            keys, wait_s f64, at_risk_count i64, ended_count i64, waiting_ratio f64
        A wait censored at a time still counts as at risk there.
    """
    at_time = (
        waits.select(*keys, "wait_s", "is_scheduled")
        .filter(pl.col("wait_s").is_not_null())
        .group_by(*keys, "wait_s")
        .agg(
            ended_count=pl.col("is_scheduled").sum().cast(pl.Int64),
            left_count=pl.len().cast(pl.Int64),
        )
        .sort(*keys, "wait_s", nulls_last=True)
    )
    gone_before = pl.col("left_count").cum_sum() - pl.col("left_count")
    at_risk = _each(pl.col("left_count").sum() - gone_before, keys)
    stays = 1 - pl.col("ended_count") / pl.col("at_risk_count")
    return (
        at_time.with_columns(at_risk_count=at_risk)
        .with_columns(waiting_ratio=_each(stays.cum_prod(), keys))
        .filter(pl.col("ended_count") > 0)
        .select(*keys, "wait_s", "at_risk_count", "ended_count", "waiting_ratio")
    )


def _each(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    return value.over(keys) if keys else value


def survival_quantile_s(curve: pl.DataFrame, quantile_ratio: float) -> float | None:
    """Return the first time by which this share had ended, or None if it never had.

    Args:
        curve: rows of ``survival`` of one curve.
        quantile_ratio: 0..1.
    """
    reached = curve.filter(_has_ended(quantile_ratio))
    return None if reached.is_empty() else float(reached["wait_s"][0])


def quantiles_s(curves: pl.DataFrame, ratios: Sequence[float], *keys: str) -> pl.DataFrame:
    """Return for each curve the first time by which each share had ended.

    Args:
        curves: rows of ``survival``.
        ratios: 0..1.
        keys: those of the curves; at least one.

    Returns:
        one row per curve on which a wait ended, ascending
            keys, p50_s … f64 | null, one for each ratio (null: never reached)
    """
    return (
        curves.group_by(keys)
        .agg(
            pl.col("wait_s").filter(_has_ended(ratio)).min().alias(f"p{round(ratio * 100)}_s")
            for ratio in ratios
        )
        .sort(keys, nulls_last=True)
    )


def _has_ended(ratio: float) -> pl.Expr:
    return pl.col("waiting_ratio") <= 1 - ratio + _ROUNDING
