"""GPUs waited for beside free GPUs that the waiting work accepts, at regular instants."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import micros
from analytics.queue.free import GPU_UNITS, Free, free_levels, offers_for
from analytics.waits import asked_gpus
from steward.units import MICROS_PER_SECOND

_ASK: Final = ("cluster", "gpu_models", "gpu_milli")
_BOARD: Final = ("cluster", "model", "offer")


def placeable(instants: pl.Series, attempts: pl.DataFrame, free: Free) -> pl.DataFrame:
    """Return how many of the GPUs waited for were free, of a model and kind that serves.

    Args:
        instants: ascending, inside the period.
        attempts: rows of ``waits.attempts``.
        free: of the period.

    Returns:
        one row per instant, in order: at, placeable_gpu_count f64 | null (null where no holder is
        recorded: then nothing can be called free)
        Of work with one request (cluster, models, part of a GPU) the smaller of what it waits for
        and what would serve it; all requests of a cluster together never more than is free there.
        It is an upper bound: CPU, memory, quota and whether a gang fits on one node are not asked.
    """
    grid = pl.DataFrame({"at": instants, "at_us": instants.dt.epoch("us")})
    if not free.has_holders:
        return grid.select("at", placeable_gpu_count=pl.lit(None, dtype=pl.Float64))
    waiting, levels = _waiting(attempts, grid), _levels(free, grid)
    serving = (
        waiting.join(_serving(waiting, levels), on=_ASK)
        .join(levels, on=[*_BOARD, "at_us"])
        .group_by(*_ASK, "at_us")
        .agg(pl.col("waiting").first(), pl.col("free").sum())
    )
    asked = serving.group_by("cluster", "at_us").agg(
        asked=pl.min_horizontal("waiting", "free").sum()
    )
    whole = levels.group_by("cluster", "at_us").agg(pl.col("free").sum())
    found = (
        asked.join(whole, on=["cluster", "at_us"])
        .group_by("at_us")
        .agg(placeable_gpu_count=pl.min_horizontal("asked", "free").sum())
    )
    return grid.join(found, on="at_us", how="left", maintain_order="left").select(
        "at", pl.col("placeable_gpu_count").fill_null(0.0)
    )


def _waiting(attempts: pl.DataFrame, grid: pl.DataFrame) -> pl.DataFrame:
    """Return the GPUs that work of each request waits for at each instant, where it waits."""
    start_us = micros(pl.col("created_at"))
    spans = attempts.select(
        "cluster",
        pl.col("gpu_models").fill_null(""),
        "gpu_milli",
        start_us=start_us,
        end_us=start_us + (pl.col("wait_s") * MICROS_PER_SECOND).round().cast(pl.Int64),
        waiting=asked_gpus,
    ).filter(pl.col("waiting") > 0)
    changes = pl.concat(
        [
            spans.select(*_ASK, "waiting", at_us="start_us"),
            spans.select(*_ASK, -pl.col("waiting"), at_us="end_us"),
        ]
    )
    return _at(changes, grid, keys=_ASK, change="waiting")


def _levels(free: Free, grid: pl.DataFrame) -> pl.DataFrame:
    """Return the free GPUs of each cluster, model and offer at each instant, where there are."""
    units = pl.col("free_units")
    levels = free_levels(free, *_BOARD[1:])
    changes = levels.select(
        *_BOARD, "at_us", free=(units - units.shift(1, fill_value=0).over(_BOARD)) / GPU_UNITS
    )
    return _at(changes, grid, keys=_BOARD, change="free")


_FINEST_DECIMALS: Final = 6
"""Parts of GPUs that come and go add up to 0 only after rounding to these decimals."""


def _at(
    changes: pl.DataFrame, grid: pl.DataFrame, *, keys: tuple[str, ...], change: str
) -> pl.DataFrame:
    """Return the level that changes add up to at each instant: keys, at_us, change, above 0."""
    levels = (
        changes.filter(pl.col("at_us").is_not_null())
        .group_by(*keys, "at_us")
        .agg(pl.col(change).sum())
        .sort("at_us")
        .with_columns(pl.col(change).cum_sum().over(keys).round(_FINEST_DECIMALS))
        .with_columns(key=pl.struct(keys).rank("dense"))
    )
    named = levels.select("key", *keys).unique("key")
    places = grid.select("at_us").join(named, how="cross").sort("at_us")
    return (
        places.join_asof(
            levels.select("key", "at_us", change), on="at_us", by="key", check_sortedness=False
        )
        .filter(pl.col(change) > 0)
        .select(*keys, "at_us", change)
    )


def _serving(waiting: pl.DataFrame, levels: pl.DataFrame) -> pl.DataFrame:
    """Return which boards serve which request: ``_ASK`` beside ``_BOARD``."""
    boards = levels.select(_BOARD).unique().rows(named=True)
    pairs = [
        {**ask, "model": board["model"], "offer": board["offer"]}
        for ask in waiting.select(_ASK).unique().rows(named=True)
        for board in boards
        if board["cluster"] == ask["cluster"]
        and board["offer"] in offers_for(ask["gpu_milli"])
        and _accepts(ask["gpu_models"], board["model"])
    ]
    return pl.DataFrame(
        pairs, schema={name: waiting.schema[name] for name in _ASK}
        | {name: levels.schema[name] for name in _BOARD[1:]},
    )  # fmt: skip


def _accepts(models: str, model: str | None) -> bool:
    """Tell whether a request may use a model; labels write its name without spaces."""
    named = models.replace(" ", "-").split("|")
    return not models or (model is not None and model.replace(" ", "-") in named)
