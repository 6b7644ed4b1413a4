"""Ledger rows of held time: by readings, tick by tick; a lost device is down whoever holds it."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.bookkeeping.pieces import HOLDER, PARTS, Pieces
from analytics.bookkeeping.sums import EFFECTIVE_LEVELS, TIMES, Sums
from analytics.schemas.usage import OVERLAYS
from analytics.tiers import TIER_PIPES
from steward.units import MICROS_PER_SECOND

BUSY_WITHOUT_HOLDER: Final = "busy_without_holder"
LOST: Final = "lost"
SHARE_UNKNOWN: Final = "share_unknown"
PLACE: Final = ("span_id", "cluster", "node", "model", "device_uuid", "instance_id")
BYTES: Final = "idle_memory_byte_s"


def held_rows(cut_up: Pieces, seen: Sums) -> pl.DataFrame:
    """Return held time as leaves.

    Returns:
        rows to be summed, any order: ``PLACE``, is_held (true), ``HOLDER``, reason, tier,
            wall_ticks and the leaves that apply i64, the overlays f64, memory_peak_bytes
    """
    shares = _shares(cut_up)
    lost = shares.filter("is_lost")
    unsaid = shares.filter(~pl.col("is_lost") & ~pl.col("is_share_told"))
    told = shares.filter(~pl.col("is_lost") & pl.col("is_share_told"))
    told_times = told.join(seen.by_slice, on="slice_id")
    seen_us = seen.by_slice.group_by("slice_id").agg(seen_us=pl.col("observed_us").sum())
    unseen_us = pl.col("length_us") - pl.col("seen_us").fill_null(0)
    unseen = told.join(seen_us, on="slice_id", how="left").with_columns(length_us=unseen_us)
    return pl.concat(
        [
            _whole(lost, leaf="down_ticks", reason=pl.lit(LOST)),
            _whole(unsaid, leaf="unknown_ticks", reason=pl.lit(SHARE_UNKNOWN)),
            _whole(unseen, leaf="unknown_ticks", reason=pl.col("reason")),
            _by_reading(told_times),
        ],
        how="diagonal",
    )


def _shares(cut_up: Pieces) -> pl.DataFrame:
    """Return who held which parts of which slice; work without a known holder holds the slice."""
    slices = cut_up.slices.select(
        "slice_id",
        *PLACE,
        "is_lost",
        length_us=pl.col("end_us") - pl.col("start_us"),
        slice_parts="parts",
    )
    at_work = cut_up.slices.filter(pl.col("unheld_reason") == BUSY_WITHOUT_HOLDER).select(
        "slice_id",
        "parts",
        is_share_told=pl.lit(value=True),
        reason=pl.lit(BUSY_WITHOUT_HOLDER),
    )
    named = cut_up.holders.drop("namespace", "pod")
    return pl.concat([named, at_work], how="diagonal").join(slices, on="slice_id")


def _whole(shares: pl.DataFrame, *, leaf: str, reason: pl.Expr) -> pl.DataFrame:
    ticks = pl.col("length_us") * pl.col("parts")
    return shares.filter(pl.col("length_us") > 0).select(
        *PLACE,
        *HOLDER,
        is_held=pl.lit(value=True),
        reason=reason.cast(pl.String),
        wall_ticks=ticks,
        **{leaf: ticks},
    )


def _by_reading(shares: pl.DataFrame) -> pl.DataFrame:
    parts = pl.col("parts")
    wide = pl.col("effective_us").cast(pl.Int128) * parts // EFFECTIVE_LEVELS
    ticks = {name.removesuffix("_us"): pl.col(name) * parts for name in TIMES[:3]}
    counted = shares.with_columns(
        used=wide.cast(pl.Int64), **{f"{name}_ticks": value for name, value in ticks.items()}
    )
    used, is_measured = pl.col("used"), pl.col("tier").eq_missing(TIER_PIPES)
    return counted.select(
        *PLACE,
        *HOLDER,
        "reason",
        "tier",
        "idle_ticks",
        "memory_peak_bytes",
        is_held=pl.lit(value=True),
        wall_ticks=pl.col("observed_ticks"),
        used_measured_ticks=pl.when(is_measured).then(used).otherwise(0),
        used_estimated_ticks=pl.when(is_measured).then(0).otherwise(used),
        ineffective_ticks=pl.col("active_ticks") - used,
        unknown_ticks=pl.col("observed_ticks") - pl.col("active_ticks") - pl.col("idle_ticks"),
        **weighted(parts, pl.col("slice_parts")),
    )


def weighted(parts: pl.Expr, slice_parts: pl.Expr) -> dict[str, pl.Expr]:
    """Return the overlays of a share of a slice; bytes are not a share of a board."""
    of_board = parts / PARTS
    others = [name for name in OVERLAYS if name not in {"observed_s", BYTES}]
    return {
        "observed_s": pl.col("observed_us") * of_board / MICROS_PER_SECOND,
        **{name: pl.col(name) * of_board for name in others},
        BYTES: pl.col(BYTES) * parts / slice_parts,
    }
