"""What each board draws while known to be without work, learnt from its own past.

A board with an open context rests at a higher level than an empty one, so there are two levels. A
board whose counters broke while it worked would teach a level far too high: its own level counts
only near that of other boards of its model, and never above a share of its power limit.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.evidence import limits

_STATE: Final = ("device_key", "is_loaded")
MIN_CELLS: Final = 3
"""Fewer stretches of rest teach nothing."""


def rest_power(cells: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Return cells with ``power_idle_w``; null where it has not been learnt.

    Args:
        cells: with told_ratio and the columns of ``cells.ordered``; an instance has no power.
        devices: rows of ``device_history``, for the model of each board.
    """
    stated = cells.with_columns(is_loaded=_is_loaded())
    own = (
        stated.filter(_is_at_rest())
        .group_by(_STATE)
        .agg(
            own_w=pl.col("power_w").cast(pl.Float64).median(),
            most_w=limits.REST_OF_LIMIT_RATIO * pl.col("power_limit_w").cast(pl.Float64).max(),
            cell_count=pl.len(),
        )
        .filter(pl.col("cell_count") >= MIN_CELLS)
    )
    levels = _levels(own, _models(devices), stated.select("device_key").unique())
    return stated.join(levels, on=_STATE, how="left", maintain_order="left").drop("is_loaded")


def _is_loaded() -> pl.Expr:
    return (pl.col("memory_used_bytes") >= limits.MEMORY_LOADED_BYTES).fill_null(value=False)


def _is_at_rest() -> pl.Expr:
    activity = pl.max_horizontal("profiling_ratio", "busy_ratio")
    return (
        pl.col("instance_id").is_null()
        & (pl.col("told_ratio") == 1)
        & (activity < limits.REST_BELOW_RATIO)
        & (pl.col("power_low_w") > 0)
        & (pl.col("memory_moved_bytes").fill_null(0) < limits.MEMORY_CHANGE_BYTES)
        & (pl.col("traffic_bytes_per_s").fill_null(0) < limits.TRAFFIC_ACTIVE_BYTES_PER_S)
    ).fill_null(value=False)


def _models(devices: pl.DataFrame) -> pl.DataFrame:
    return (
        devices.filter(pl.col("model").is_not_null(), pl.col("device_key").is_not_null())
        .sort("observed_at", "model")
        .group_by("device_key")
        .agg(pl.col("model").last())
    )


def _levels(own: pl.DataFrame, models: pl.DataFrame, boards: pl.DataFrame) -> pl.DataFrame:
    """Return device_key, is_loaded and power_idle_w of every board and state that is known."""
    told = own.join(models, on="device_key", how="left")
    of_model = (
        told.filter(pl.col("model").is_not_null())
        .group_by("model", "is_loaded")
        .agg(model_w=pl.col("own_w").quantile(0.25, "lower"), board_count=pl.len())
        .filter(pl.col("board_count") > 1)
        .drop("board_count")
    )
    states = pl.DataFrame({"is_loaded": [False, True]})
    every = (
        boards.join(models, on="device_key", how="left")
        .join(states, how="cross")
        .join(own.select(*_STATE, "own_w", "most_w"), on=_STATE, how="left")
        .join(of_model, on=["model", "is_loaded"], how="left")
    )
    level = pl.min_horizontal("own_w", limits.REST_OVER_MODEL_RATIO * pl.col("model_w"))
    known = pl.when(pl.col("own_w").is_not_null()).then(level).otherwise(pl.col("model_w"))
    found = every.with_columns(level_w=known)
    empty = found.filter(~pl.col("is_loaded")).select("device_key", empty_w="level_w")
    # where rest with a context was never seen, the lower level of an empty board is safe
    filled = pl.coalesce("level_w", "empty_w")
    is_credible = (filled <= pl.col("most_w")).fill_null(value=True)
    return found.join(empty, on="device_key", how="left").select(
        *_STATE, power_idle_w=pl.when(is_credible).then(filled)
    )
