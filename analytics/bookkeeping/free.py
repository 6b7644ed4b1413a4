"""Ledger rows of time that nobody held: down, unknown, stranded, reserved or free."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.bookkeeping.held import (
    BUSY_WITHOUT_HOLDER,
    LOST,
    PLACE,
    SHARE_UNKNOWN,
    weighted,
)
from analytics.bookkeeping.pieces import PARTS, Pieces
from analytics.bookkeeping.sums import Sums
from steward.units import MICROS_PER_SECOND

CORDONED: Final = "cordoned"
UNOBSERVED: Final = "unobserved"
MIG_GEOMETRY: Final = "mig_geometry"
NO_HOLDER_RECORDED: Final = "no_holder_recorded"
NO_SHAPE_FITS: Final = "no_shape_fits"
_LEAF: Final = {
    LOST: "down_ticks",
    CORDONED: "down_ticks",
    MIG_GEOMETRY: "stranded_ticks",
}
_UNKNOWN: Final = (SHARE_UNKNOWN, UNOBSERVED, NO_HOLDER_RECORDED)
"""Somebody may have held it: what was read of it may be use, and is told tier by tier."""
_SEEN: Final = (
    "apparent_s",
    "apparent_known_s",
    "sm_active_s",
    "sm_active_known_s",
    "dram_active_s",
    "dram_active_known_s",
    "busy_source_s",
    "graphics_source_s",
    "stuck_s",
)
"""Of free time only what does not depend on the tier: effective use of nobody is not use."""


def free_slices(cut_up: Pieces) -> pl.DataFrame:
    """Return what nobody held, with the reason why it cannot be given out.

    Returns:
        one row per slice with free parts, ascending: the columns of ``Pieces.slices`` and
            reason str | null (null: healthy and free)
        A loss comes first, then a cordon, then what is not known, then the geometry; work without
        a known holder is not free, except where the device is lost.
    """
    at_work = pl.col("unheld_reason").eq_missing(BUSY_WITHOUT_HOLDER)
    reason = (
        pl.when("is_lost")
        .then(pl.lit(LOST))
        .when("is_cordoned")
        .then(pl.lit(CORDONED))
        .when(~pl.col("is_share_known"))
        .then(pl.lit(SHARE_UNKNOWN))
        .when(pl.col("unheld_reason") == UNOBSERVED)
        .then(pl.lit(UNOBSERVED))
        .when("is_remainder")
        .then(pl.lit(MIG_GEOMETRY))
        .when(~pl.col("is_recorded"))
        .then(pl.lit(NO_HOLDER_RECORDED))
    )
    return cut_up.slices.filter((pl.col("free_parts") > 0) & ~at_work).with_columns(reason=reason)


def free_rows(
    free: pl.DataFrame, *, usable: pl.DataFrame, reserved: pl.DataFrame, seen: Sums
) -> pl.DataFrame:
    """Return unallocated time as leaves.

    Args:
        free: rows of ``free_slices``.
        usable: rows of ``shapes_now.usable_spans``.
        reserved: rows of ``guarantees.reserved_ticks``.
        seen: what readings say of it.

    Returns:
        rows to be summed, any order: as ``held.held_rows``, is_held false
    """
    wall = (pl.col("end_us") - pl.col("start_us")) * pl.col("free_parts")
    counted = free.with_columns(wall_ticks=wall)
    blocked = [
        _rows(counted.filter(reason=reason), leaf, ticks=pl.col("wall_ticks"), reason=reason)
        for reason, leaf in _LEAF.items()
    ]
    open_ = _open(counted.filter(pl.col("reason").is_null()), usable, reserved)
    stranded = pl.col("wall_ticks") - pl.col("usable_ticks")
    idle = pl.col("usable_ticks") - pl.col("reserved_ticks")
    return pl.concat(
        [
            *blocked,
            _unknown(counted, seen),
            _rows(open_, "stranded_ticks", ticks=stranded, reason=NO_SHAPE_FITS),
            _rows(open_, "free_idle_ticks", ticks=idle, reason=None),
            _reserved_rows(open_, reserved),
            _overlays(counted, seen),
        ],
        how="diagonal",
    )


def _open(free: pl.DataFrame, usable: pl.DataFrame, reserved: pl.DataFrame) -> pl.DataFrame:
    span_us = pl.col("usable_end_us") - pl.col("usable_start_us")
    fit = usable.group_by("slice_id").agg(usable_us=span_us.sum())
    taken = reserved.group_by("slice_id").agg(pl.col("reserved_ticks").sum())
    return (
        free.join(fit, on="slice_id", how="left")
        .join(taken, on="slice_id", how="left")
        .with_columns(
            usable_ticks=pl.col("usable_us").fill_null(0) * pl.col("free_parts"),
            reserved_ticks=pl.col("reserved_ticks").fill_null(0),
        )
    )


def _rows(slices: pl.DataFrame, leaf: str, *, ticks: pl.Expr, reason: str | None) -> pl.DataFrame:
    return (
        slices.select(
            *PLACE,
            is_held=pl.lit(value=False),
            reason=pl.lit(reason, dtype=pl.String),
            wall_ticks=ticks,
        )
        .filter(pl.col("wall_ticks") > 0)
        .with_columns(pl.col("wall_ticks").alias(leaf))
    )


def _reserved_rows(open_: pl.DataFrame, reserved: pl.DataFrame) -> pl.DataFrame:
    of_queue = reserved.filter(pl.col("reserved_ticks") > 0)
    return (
        open_.drop("reserved_ticks")
        .join(of_queue, on="slice_id")
        .select(
            *PLACE,
            "tenant_id",
            "queue",
            is_held=pl.lit(value=False),
            wall_ticks=pl.col("reserved_ticks"),
            reserved_unused_ticks=pl.col("reserved_ticks"),
        )
    )


def _unknown(free: pl.DataFrame, seen: Sums) -> pl.DataFrame:
    slices = free.filter(pl.col("reason").is_in(_UNKNOWN))
    parts = pl.col("free_parts")
    read = slices.join(seen.by_slice, on="slice_id").with_columns(
        wall_ticks=pl.col("observed_us") * parts
    )
    seen_ticks = read.group_by("slice_id").agg(seen_ticks=pl.col("wall_ticks").sum())
    unseen = slices.join(seen_ticks, on="slice_id", how="left").with_columns(
        wall_ticks=pl.col("wall_ticks") - pl.col("seen_ticks").fill_null(0)
    )
    told = pl.concat([unseen, read], how="diagonal_relaxed").filter(pl.col("wall_ticks") > 0)
    return told.select(
        *PLACE,
        "reason",
        "tier",
        "wall_ticks",
        "memory_peak_bytes",
        is_held=pl.lit(value=False),
        unknown_ticks=pl.col("wall_ticks"),
        **weighted(parts, pl.col("parts")),
    )


def _overlays(free: pl.DataFrame, seen: Sums) -> pl.DataFrame:
    """Return what was seen of free slices, on the rows of their main leaf, without any time."""
    of_board = pl.col("free_parts") / PARTS
    is_unknown = pl.col("reason").is_in(_UNKNOWN).fill_null(value=False)
    return (
        free.filter(~pl.col("is_lost") & ~is_unknown)
        .join(seen.by_slice, on="slice_id")
        .select(
            *PLACE,
            is_held=pl.lit(value=False),
            reason=pl.col("reason"),
            wall_ticks=pl.lit(0, dtype=pl.Int64),
            observed_s=pl.col("observed_us") * of_board / MICROS_PER_SECOND,
            memory_peak_bytes=pl.col("memory_peak_bytes"),
            **{name: pl.col(name) * of_board for name in _SEEN},
        )
    )
