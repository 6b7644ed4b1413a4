"""What readings say of each slice: whole microseconds where it counts, integrals beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import polars as pl

from analytics.bookkeeping.material import Material
from analytics.bookkeeping.pieces import Pieces
from analytics.bookkeeping.power import floors_by_device
from analytics.bookkeeping.readings import (
    batches,
    observed,
    placed,
    series_of,
    slices_of_series,
)
from analytics.schemas.usage import MEANS
from analytics.spells import MEMORY_GROWTH_BYTES
from analytics.tiers import (
    INTEGER_PIPE,
    RATIOS,
    apparent,
    effective,
    is_idle,
    is_stuck,
    power_ratio,
    tier,
    with_integer_pipe,
)
from steward.period import Period
from steward.units import MICROS_PER_SECOND

EFFECTIVE_LEVELS: Final = 1_000_000
"""Effective utilisation is counted in millionths, so that its sums are exact in any order."""
TIMES: Final = ("observed_us", "active_us", "idle_us", "effective_us")
"""i64: seen; active and effective utilisation known; at rest; active x effective levels (i128 in
a long period)."""
_NARROW: Final = timedelta(days=90)
"""Longest period whose sums of microseconds x levels surely fit 64 bits."""
_INTEGRALS: Final = tuple(f"{mean}{end}" for mean in MEANS for end in ("_s", "_known_s"))
_TIER_SLOTS: Final = 8
"""More than there are tiers, 0 for none: slice and tier in one number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What telemetry saw.

    ``by_slice``: one row per slice and tier (null: the reading says nothing), ascending
        slice_id, tier i8 | null, ``TIMES`` i64, ``<mean>_s`` and ``<mean>_known_s`` for each mean,
        busy_source_s, graphics_source_s, stuck_s, idle_memory_byte_s f64 (of the slice as a whole),
        memory_peak_bytes i64 | null
    ``resting``: one row per held slice and unbroken rest (memory that grew ends it), ascending
        slice_id, is_idle bool | null, is_stuck bool | null, start_us, end_us,
        memory_first_bytes i64 | null, memory_last_bytes i64 | null
    """

    by_slice: pl.DataFrame
    resting: pl.DataFrame


def sums(stock: Material, cut_up: Pieces, period: Period, *, floors: pl.DataFrame) -> Sums:
    """Return what the readings say of each slice.

    Args:
        stock: the readings, any order (repeats count once), and whose they are.
        cut_up: the device-time they fall into.
        period: the span built.
        floors: rows of ``power.power_floors``; a model without one has no proxy from power.
    """
    series = series_of(stock.devices, floors_by_device(stock.devices, floors))
    slices = slices_of_series(cut_up, series, period)
    held = cut_up.holders.select("slice_id").unique()
    nothing = _nothing(stock.samples)
    kind = pl.Int64 if period.length <= _NARROW else pl.Int128
    totals, resting = [_summed(nothing, kind)], [_stretches(nothing)]
    for batch in batches(stock.samples):
        spans = observed(batch, series.drop("device_uuid", "slice_instance_id"), period)
        cut = placed(_read(spans), slices, period)
        totals.append(_summed(cut, kind))
        resting.append(_stretches(cut.join(held, on="slice_id", how="semi")))
    return Sums(
        by_slice=pl.concat(totals).sort("slice_id", "tier", nulls_last=True),
        resting=pl.concat(resting).sort("slice_id", "start_us"),
    )


def _nothing(samples: pl.DataFrame) -> pl.DataFrame:
    """Return no rows, with the columns that sums are made of."""
    return _read(
        samples.clear()
        .drop("device_key", "instance_id", "sampled_at")
        .with_columns(
            pl.lit(None, dtype=pl.Int64).alias(name)
            for name in ("series_id", "start_us", "end_us", "slice_id")
        )
        .with_columns(power_idle_w=pl.lit(None, dtype=pl.Float64))
    )


def _read(spans: pl.DataFrame) -> pl.DataFrame:
    """Replace ratios by what they say."""
    seen = (
        with_integer_pipe(spans)
        .with_columns(pl.col(*RATIOS, INTEGER_PIPE).clip(0, 1))
        .with_columns(power_ratio=power_ratio(), apparent_ratio=apparent)
        .with_columns(tier=tier(), is_idle=is_idle(), is_stuck=is_stuck())
        .with_columns(effective_ratio=effective())
    )
    gap = (pl.col("apparent_ratio") - pl.col("effective_ratio")).clip(lower_bound=0)
    return seen.with_columns(gap_ratio=gap, is_busy=pl.col("busy_ratio").is_not_null()).drop(
        "power_ratio",
        "power_w",
        "power_limit_w",
        "power_idle_w",
        INTEGER_PIPE,
        *[name for name in RATIOS if name not in {"sm_active_ratio", "dram_active_ratio"}],
    )


def _summed(cut: pl.DataFrame, kind: type[pl.DataType]) -> pl.DataFrame:
    slot = pl.col("slice_id") * _TIER_SLOTS + pl.col("tier").fill_null(0).cast(pl.Int64)
    told = cut.select(
        slot.alias("slot"),
        *_times(kind),
        *[column for name in MEANS for column in _integral(name)],
        *_beside(),
        pl.col("memory_used_bytes").alias("memory_peak_bytes"),
    )
    names = [*TIMES, *_INTEGRALS, *_SOURCES]
    tier_of = (pl.col("slot") % _TIER_SLOTS).cast(pl.Int8)
    return (
        told.group_by("slot")
        .agg(pl.col(*names).sum(), pl.col("memory_peak_bytes").max())
        .select(
            *names,
            "memory_peak_bytes",
            slice_id=pl.col("slot") // _TIER_SLOTS,
            tier=pl.when(tier_of > 0).then(tier_of),
        )
    )


_SOURCES: Final = ("busy_source_s", "graphics_source_s", "stuck_s", "idle_memory_byte_s")


def _length_us() -> pl.Expr:
    return pl.col("end_us") - pl.col("start_us")


def _seconds() -> pl.Expr:
    return _length_us().cast(pl.Float64) / MICROS_PER_SECOND


def _times(kind: type[pl.DataType]) -> list[pl.Expr]:
    length = _length_us()
    resting = pl.col("is_idle").fill_null(value=False)
    active = ~resting & pl.col("effective_ratio").is_not_null()
    level = (pl.col("effective_ratio") * EFFECTIVE_LEVELS).round().cast(pl.Int64)
    return [
        length.alias("observed_us"),
        (length * active).alias("active_us"),
        (length * resting).alias("idle_us"),
        pl.when(active).then(length * level).otherwise(0).cast(kind).alias("effective_us"),
    ]


def _integral(name: str) -> tuple[pl.Expr, pl.Expr]:
    ratio = pl.col(f"{name}_ratio")
    return (
        (ratio * _seconds()).alias(f"{name}_s"),
        (ratio.is_not_null() * _seconds()).alias(f"{name}_known_s"),
    )


def _beside() -> list[pl.Expr]:
    is_apparent = pl.col("apparent_ratio").is_not_null()
    by_graphics = is_apparent & ~pl.col("is_busy")
    resting = pl.col("is_idle").fill_null(value=False)
    return [
        (pl.col("is_busy") * _seconds()).alias("busy_source_s"),
        (by_graphics * _seconds()).alias("graphics_source_s"),
        (pl.col("is_stuck").fill_null(value=False) * _seconds()).alias("stuck_s"),
        (pl.col("memory_used_bytes").fill_null(0) * resting * _seconds()).alias(
            "idle_memory_byte_s"
        ),
    ]


def _stretches(cut: pl.DataFrame) -> pl.DataFrame:
    state = ("slice_id", "is_idle", "is_stuck")
    grown = pl.col("memory_used_bytes").diff().fill_null(0) >= MEMORY_GROWTH_BYTES
    is_new = (
        grown
        | (pl.col("start_us") > pl.col("end_us").shift(1))
        | pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in state)
    )
    return (
        cut.select(*state, "start_us", "end_us", "memory_used_bytes")
        .filter(pl.col("is_idle") | pl.col("is_stuck"))
        .sort("slice_id", "start_us")
        .with_columns(stretch_id=is_new.fill_null(value=True).cum_sum())
        .group_by("stretch_id")
        .agg(
            *[pl.col(name).first() for name in (*state, "start_us")],
            pl.col("end_us").last(),
            memory_first_bytes=pl.col("memory_used_bytes").first(),
            memory_last_bytes=pl.col("memory_used_bytes").last(),
        )
        .drop("stretch_id")
    )
