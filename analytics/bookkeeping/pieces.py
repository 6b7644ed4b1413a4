"""Device-time cut into slices in which nothing changes: geometry, holders, loss, cordon, span.

Slices of one device never overlap and cover its life, which is broken off while its node is no part
of the cluster. A slice has a whole number of parts of its
board (``PARTS``), so that length x parts is a whole number of ticks and every sum is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics import lifetimes
from analytics.bookkeeping.lives import (
    cordoned_spans,
    gone_spans,
    home_spans,
    recorded_spans,
)
from analytics.bookkeeping.material import Material
from analytics.lifetimes import DEVICE
from steward.period import Period
from steward.units import TICKS_PER_MICROSECOND

PARTS: Final = TICKS_PER_MICROSECOND
"""Parts of a board: one part for one microsecond is one tick. Shares are rounded to them."""
HOLDER: Final = (
    "tenant_id",
    "workload_class",
    "workload_uid",
    "queue",
    "priority_class",
    "owner",
)
_UNIT: Final = (*HOLDER, "namespace", "pod", "container", "replica", "allocation_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Device-time in pieces.

    ``slices``: one row per span, segment and device-slice (board, or MIG instance), ascending
        slice_id i64 (its row number), span_id, segment_id, cluster, node, model, device_uuid,
        instance_id i64 | null, start_us, end_us, parts i64 (of ``PARTS``), is_remainder (board
        share that no instance covers), is_share_known, is_lost, is_cordoned, is_recorded (somebody
        would be known if they held it), free_parts i64 (nobody's), unheld_reason str | null
    ``holders``: one row per slice and holder, ascending
        slice_id, parts i64 (of the board), is_share_told, ``HOLDER``, namespace, pod
    ``unplaced``: one row per span and allocation that held nothing there: its device or instance
        did not exist. span_id, allocation_id, length_us, gpu_share_ratio
    """

    slices: pl.DataFrame
    holders: pl.DataFrame
    unplaced: pl.DataFrame


def pieces(stock: Material, spans: pl.DataFrame, period: Period) -> Pieces:
    """Return the period's device-time in pieces, cut at the borders of spans too."""
    homes = home_spans(stock, period)
    boards = lifetimes.board_spans(stock.devices, period)
    instances = lifetimes.instance_spans(stock.devices, period)
    held = lifetimes.allocation_spans(_numbered_allocations(stock), period)
    told = {
        "is_lost": lifetimes.lost_spans(stock.devices, stock.events, period),
        "is_cordoned": cordoned_spans(stock, homes, period),
        "is_recorded": recorded_spans(stock, homes, period),
        "is_gone": gone_spans(stock, homes, period),
    }
    on_boards = boards.select(DEVICE).join(
        spans.select("start_us", "end_us", "span_id"), how="cross"
    )
    cuts = _cuts(boards, [instances, held, homes, on_boards, *told.values()])
    base = _segments(cuts, homes, on_boards).with_columns(
        pl.col("segment_id").is_in(_covered(rows, cuts)["segment_id"].implode()).alias(name)
        for name, rows in told.items()
    )
    there = base.filter(~pl.col("is_gone")).drop("is_gone")
    slices = _slices(there, _covered(instances, cuts))
    placed = _covered(held, cuts).join(
        slices.select("segment_id", "instance_id", "slice_id", "span_id", slice_parts="parts"),
        on=["segment_id", "instance_id"],
        nulls_equal=True,
    )
    is_held = pl.col("unheld_reason").is_null()
    holders = _holders(placed.filter(is_held))
    return Pieces(
        slices=_with_rest(slices, holders, placed.filter(~is_held)),
        holders=holders,
        unplaced=_unplaced(held.filter(is_held), placed, spans),
    )


def _numbered_allocations(stock: Material) -> pl.DataFrame:
    ordered = stock.allocations.sort(pl.all(), nulls_last=True)
    return ordered.with_row_index("allocation_id").drop("cluster", "node", "sharing_mode")


def _cuts(boards: pl.DataFrame, spans: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return every instant at which something changes on a device, numbered in order."""
    ends = [
        frame.select(DEVICE, at_us=column)
        for frame in [boards, *spans]
        for column in ("start_us", "end_us")
    ]
    lives = boards.rename({"start_us": "born_us", "end_us": "gone_us"})
    return (
        pl.concat(ends)
        .unique()
        .join(lives, on=DEVICE)
        .with_columns(pl.col("at_us").clip(pl.col("born_us"), pl.col("gone_us")))
        .select(DEVICE, "at_us", "born_us")
        .unique([DEVICE, "at_us"])
        .sort(DEVICE, "at_us")
        .with_columns(segment_id=pl.int_range(pl.len(), dtype=pl.Int64))
    )


def _segments(cuts: pl.DataFrame, homes: pl.DataFrame, on_boards: pl.DataFrame) -> pl.DataFrame:
    following = pl.col("at_us").shift(-1).over(DEVICE)
    base = (
        cuts.with_columns(end_us=following)
        .filter(pl.col("end_us").is_not_null())
        .select("segment_id", DEVICE, "end_us", start_us="at_us")
    )
    where = _covered(homes, cuts).drop(DEVICE)
    when = _covered(on_boards, cuts).drop(DEVICE)
    return base.join(where, on="segment_id", maintain_order="left").join(
        when, on="segment_id", maintain_order="left"
    )


def _covered(spans: pl.DataFrame, cuts: pl.DataFrame) -> pl.DataFrame:
    """Return one row per span and segment that it covers, with segment_id."""
    born = cuts.group_by(DEVICE).agg(born_us=pl.col("born_us").first())
    numbered = cuts.select(DEVICE, "at_us", "segment_id")
    first = numbered.rename({"at_us": "start_us", "segment_id": "first_id"})
    last = numbered.rename({"at_us": "end_us", "segment_id": "last_id"})
    return (
        spans.join(born, on=DEVICE)
        .with_columns(pl.max_horizontal("start_us", "born_us").alias("start_us"))
        .filter(pl.col("start_us") < pl.col("end_us"))
        .join(first, on=[DEVICE, "start_us"])
        .join(last, on=[DEVICE, "end_us"])
        .with_columns(segment_id=pl.int_ranges("first_id", "last_id", dtype=pl.Int64))
        .explode("segment_id")
        .drop("born_us", "first_id", "last_id", "start_us", "end_us")
    )


def _slices(base: pl.DataFrame, instances: pl.DataFrame) -> pl.DataFrame:
    shares = (
        instances.sort("segment_id", "instance_id", "sm_share_ratio", nulls_last=True)
        .unique(["segment_id", "instance_id"], keep="first", maintain_order=True)
        .with_columns(asked=_parts_of(pl.col("sm_share_ratio").fill_null(0.0)))
    )
    split = shares.with_columns(
        parts=_fitted(pl.col("asked"), pl.lit(PARTS), over="segment_id")
    ).drop(DEVICE)
    taken = split.group_by("segment_id").agg(
        taken=pl.col("parts").sum(), is_share_known=pl.col("sm_share_ratio").is_not_null().all()
    )
    framed = base.join(taken, on="segment_id", how="left", maintain_order="left").with_columns(
        pl.col("is_share_known").fill_null(value=True)
    )
    inside = framed.join(
        split.select("segment_id", "instance_id", "parts"), on="segment_id"
    ).with_columns(is_remainder=pl.lit(value=False))
    boards = framed.with_columns(
        instance_id=pl.lit(None, dtype=pl.Int64),
        parts=PARTS - pl.col("taken").fill_null(0),
        is_remainder=pl.col("taken").is_not_null(),
    )
    return (
        pl.concat([boards, inside], how="diagonal")
        .filter(pl.col("parts") > 0)
        .drop("taken")
        .sort("segment_id", "instance_id", nulls_last=False)
        .with_columns(slice_id=pl.int_range(pl.len(), dtype=pl.Int64))
    )


def _parts_of(ratio: pl.Expr) -> pl.Expr:
    return (ratio.clip(0, 1) * PARTS).round().cast(pl.Int64)


def _fitted(asked: pl.Expr, room: pl.Expr, *, over: str) -> pl.Expr:
    """Scale parts that ask for more than the room down to it, in whole parts that add up.

    Shares like 1/11 are rounded to parts; what is left of the room by rounding alone is theirs.
    """
    total = asked.sum().over(over)
    by_rounding = (pl.len().over(over) + 1) // 2
    most = pl.when(total + by_rounding >= room).then(room).otherwise(total)
    until = asked.cum_sum().over(over)
    scale = pl.max_horizontal(total, pl.lit(1))
    return until * most // scale - (until - asked) * most // scale


def _holders(placed: pl.DataFrame) -> pl.DataFrame:
    told = pl.col("gpu_share_ratio").is_not_null()
    room = pl.col("slice_parts")
    asked = pl.when(told).then(_parts_of(pl.col("gpu_share_ratio"))).otherwise(room)
    return (
        placed.sort("slice_id", *_UNIT, nulls_last=True)
        .with_columns(asked=pl.min_horizontal(asked, room), is_share_told=told)
        .with_columns(parts=_fitted(pl.col("asked"), room, over="slice_id"))
        .filter(pl.col("parts") > 0)
        .select("slice_id", "parts", "is_share_told", *HOLDER, "namespace", "pod")
    )


def _with_rest(slices: pl.DataFrame, holders: pl.DataFrame, unheld: pl.DataFrame) -> pl.DataFrame:
    """Add what is nobody's; being at work without a holder comes before being unseen."""
    held = holders.group_by("slice_id").agg(held_parts=pl.col("parts").sum())
    reasons = (
        unheld.join(holders, on="slice_id", how="anti")
        .group_by("slice_id")
        .agg(pl.col("unheld_reason").min())
    )
    return (
        slices.join(held, on="slice_id", how="left", maintain_order="left")
        .join(reasons, on="slice_id", how="left", maintain_order="left")
        .with_columns(free_parts=pl.col("parts") - pl.col("held_parts").fill_null(0))
        .drop("held_parts")
    )


def _unplaced(held: pl.DataFrame, placed: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    starts = spans["start_us"]
    first = starts.search_sorted(held["start_us"], side="right").cast(pl.Int64) - 1
    after = starts.search_sorted(held["end_us"], side="left").cast(pl.Int64)
    length = pl.min_horizontal("end_us", "until_us") - pl.max_horizontal("start_us", "from_us")
    return (
        held.with_columns(span_id=pl.int_ranges(first, after, dtype=pl.Int64))
        .explode("span_id")
        .join(placed, on=["allocation_id", "span_id"], how="anti")
        .join(spans.select("span_id", from_us="start_us", until_us="end_us"), on="span_id")
        .select("span_id", "allocation_id", "gpu_share_ratio", length_us=length)
        .sort("span_id", "allocation_id")
    )
