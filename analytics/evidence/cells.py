"""Readings in short stretches, put in order: what each observes, and whether it is to be believed.

A cell is one row of ``evidence_sample``. It observes the time since the cell before it of the same
series (device or instance, and source), but no more than its readings stand for by the usual
interval of the series: so a missed reading, or every second one, is time that nobody saw.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.evidence import limits
from analytics.evidence.rest_power import rest_power
from analytics.intervals import micros
from steward.units import MICROS_PER_SECOND

_BOARD: Final = 2_147_483_647
"""Stands for the whole board: the largest number of an instance, as nulls come last."""
_NUMBERED: Final = ("device_key", "place", "source_number")
USUAL_QUANTILE: Final = 0.1
"""The usual interval is nearly the shortest: telemetry that thins out must not look usual."""
_SHOWN: Final = (
    "power_low_w",
    "power_w",
    "temperature_celsius",
    "memory_used_bytes",
    "profiling_ratio",
    "busy_ratio",
    "traffic_bytes_per_s",
)
"""What does not stay the same, all together, on a board that is really read."""


def ordered(samples: pl.DataFrame) -> pl.DataFrame:
    """Return cells in order, with what they add to the cell before them.

    Args:
        samples: rows of ``evidence_sample``, any order.

    Returns:
        one row per cell, ascending by series, then time; the columns of the samples, without
        source, and
            source_number i32 (ascending as sources are named), series i64, at_us i64 (last
            reading), span_us i64 (since the cell before it, or its own length where there is
            none), memory_moved_bytes i64 | null, is_frozen bool
    """
    cells = _sorted(samples).with_columns(
        at_us=micros(pl.col("sampled_at")),
        is_first=~_same_series(),
    )
    moved = cells.with_columns(
        series=pl.col("is_first").cast(pl.Int64).cum_sum() - 1,
        span_us=_since_before(pl.col("at_us"), micros(pl.col("first_at"))),
        memory_moved_bytes=_memory_moved(),
    )
    return _marked_frozen(moved).drop("sampled_at", "first_at", "is_first", "temperature_celsius")


def _sorted(samples: pl.DataFrame) -> pl.DataFrame:
    """Return rows by series and time; a warehouse mostly tells them so already."""
    numbered = samples.with_columns(
        source_number=pl.col("source").rank("dense").cast(pl.Int32),
        place=pl.col("instance_id").fill_null(_BOARD),
    )
    backwards = pl.lit(value=False)
    is_same = pl.lit(value=True)
    for name in (*_NUMBERED, "sampled_at"):
        before = pl.col(name).shift(1)
        backwards = backwards | (is_same & (pl.col(name) < before))
        is_same = is_same & (pl.col(name) == before)
    if numbered.select(backwards.any()).item():
        numbered = numbered.sort(*_NUMBERED, "sampled_at")
    return numbered.drop("source")


def _same_series() -> pl.Expr:
    same = [pl.col(name) == pl.col(name).shift(1) for name in _NUMBERED]
    return pl.all_horizontal(*same).fill_null(value=False)


def _since_before(at_us: pl.Expr, first_us: pl.Expr) -> pl.Expr:
    return pl.when("is_first").then(at_us - first_us).otherwise(at_us - at_us.shift(1))


def _memory_moved() -> pl.Expr:
    low, high = pl.col("memory_low_bytes"), pl.col("memory_used_bytes")
    before_low = pl.when(~pl.col("is_first")).then(low.shift(1))
    before_high = pl.when(~pl.col("is_first")).then(high.shift(1))
    return pl.max_horizontal(high, before_high) - pl.min_horizontal(low, before_low)


def _marked_frozen(cells: pl.DataFrame) -> pl.DataFrame:
    """Mark cells whose board shows an old reading again; instances are as their board."""
    told = cells.with_columns(is_frozen=_energy_stands() | _all_stands(cells))
    boards = told.filter("is_frozen", pl.col("instance_id").is_null())
    if boards.is_empty() or told["instance_id"].null_count() == told.height:
        return told
    frozen = boards.select("device_key", "source_number", "at_us", of_board=pl.lit(value=True))
    return (
        told.join(
            frozen, on=["device_key", "source_number", "at_us"], how="left", maintain_order="left"
        )
        .with_columns(pl.col("is_frozen") | pl.col("of_board").fill_null(value=False))
        .drop("of_board")
    )


def _energy_stands() -> pl.Expr:
    """Tell whether a counter of energy stands still although power is drawn."""
    is_same = pl.col("energy_j") == pl.col("energy_j").shift(1)
    return (is_same & ~pl.col("is_first") & (pl.col("power_w") > 0)).fill_null(value=False)


def _all_stands(cells: pl.DataFrame) -> pl.Series:
    """Tell whether nothing at all has moved for long, where no energy is counted."""
    is_same = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in _SHOWN)
    is_told = pl.all_horizontal(
        pl.col(name).is_not_null() for name in ("power_w", "temperature_celsius")
    )
    is_steady = pl.col("power_low_w") == pl.col("power_w")
    stands = (
        is_same & is_told & is_steady & ~pl.col("is_first") & pl.col("energy_j").is_null()
    ).fill_null(value=False)
    runs = cells.select("span_us", stands=stands)
    if not runs["stands"].any():
        return runs["stands"]
    length_us = pl.when("stands").then("span_us").otherwise(0).cum_sum()
    begun_us = pl.when(~pl.col("stands")).then(length_us).forward_fill()
    stood_us = length_us - begun_us
    return runs.select(
        pl.col("stands") & (stood_us >= limits.FROZEN_AFTER_S * MICROS_PER_SECOND)
    ).to_series()


def series_of(cells: pl.DataFrame) -> pl.DataFrame:
    """Return what each series is usually like.

    Args:
        cells: rows of ``ordered``, those known at the time.

    Returns:
        one row per series, ascending
            series, device_key, instance_id, source_number, usual_us f64 | null (usual interval
            between readings; null: fewer than two), tells_profiling, tells_busy bool
    """
    gap_us = pl.col("span_us") / pl.col("reading_count")
    return (
        cells.group_by("series", maintain_order=True)
        .agg(
            pl.col("device_key", "instance_id", "source_number").first(),
            usual_us=gap_us.filter(pl.col("span_us") > 0).quantile(USUAL_QUANTILE, "lower"),
            tells_profiling=(pl.col("profiling_count") > 0).any(),
            tells_busy=(pl.col("busy_count") > 0).any(),
        )
        .sort("series")
    )


def observed(cells: pl.DataFrame, series: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Return cells with the time they observe and the power their board would draw at rest.

    Args:
        cells: rows of ``ordered``, those known at the time.
        series: rows of ``series_of`` of the same cells.
        devices: rows of ``device_history``, for the model of each board.

    Returns:
        the cells in the same order with start_us i64 (from then to at_us is observed), told_ratio
            f64 (share of its readings that tell every signal of activity that the series tells at
            all; 0: frozen), power_idle_w f64 | null
    """
    count = pl.col("reading_count")
    told = pl.min_horizontal(
        pl.when("tells_profiling").then(pl.col("profiling_count") / count).otherwise(1.0),
        pl.when("tells_busy").then(pl.col("busy_count") / count).otherwise(1.0),
    )
    tells = pl.col("tells_profiling") | pl.col("tells_busy")
    stood_us = (pl.col("usual_us") * count).fill_null(0)
    is_unbroken = pl.col("span_us") <= limits.READING_STANDS_FOR * stood_us
    seen_us = pl.when(is_unbroken).then("span_us").otherwise(stood_us.round().cast(pl.Int64))
    timed = cells.join(
        series.select("series", "usual_us", "tells_profiling", "tells_busy"),
        on="series",
        how="left",
        maintain_order="left",
    ).with_columns(
        start_us=pl.col("at_us") - pl.min_horizontal("span_us", seen_us),
        told_ratio=pl.when(pl.col("is_frozen") | ~tells).then(0.0).otherwise(told),
    )
    return rest_power(timed, devices)
