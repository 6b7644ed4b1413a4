"""Device-time cut into segments in which nothing changes: geometry, holders, loss, cordon.

Segments of one device never overlap and cover its life, so whatever is summed over them adds up to
wall clock x devices.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from analytics import lifetimes
from analytics.lifetimes import DEVICE
from steward.period import Period

_HOLDER_COLUMNS = ("tenant_id", "workload_class", "workload_uid", "namespace", "pod")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Device-time in pieces.

    ``slices``: one row per segment and device-slice (board, or MIG instance), ascending
        segment_id i64, slice_id i64, series_id i32, device_uuid, instance_id i64 | null,
        start_us, end_us,
        weight_ratio f64 (share of the board), memory_weight_ratio f64,
        is_remainder bool (board share that no instance covers), is_lost, is_cordoned,
        is_share_known bool
    ``series``: one row per device-slice, ascending
        series_id i32, device_uuid, instance_id i64 | null, device_key u64
    ``holders``: one row per slice and holder, ascending
        slice_id, held_ratio f64 (share of the slice), tenant_id, workload_class, workload_uid,
        namespace, pod
    ``unheld``: one row per slice that nobody holds and of which something is told, ascending
        slice_id, unheld_reason (``busy_without_holder`` or ``unobserved``)
    ``unplaced``: rows of ``lifetimes.allocation_spans`` on a device or instance that did not exist
        while they lasted; they hold nothing
    """

    slices: pl.DataFrame
    series: pl.DataFrame
    holders: pl.DataFrame
    unheld: pl.DataFrame
    unplaced: pl.DataFrame


def segments(inputs: Inputs, period: Period) -> Segments:
    """Return the period's device-time in segments."""
    boards = lifetimes.board_spans(inputs.devices, period)
    instances = lifetimes.instance_spans(inputs.devices, period)
    lost = lifetimes.lost_spans(inputs.devices, inputs.events, period)
    cordoned = lifetimes.cordoned_spans(inputs.nodes, inputs.devices, period)
    held = lifetimes.allocation_spans(inputs.allocations, period).with_row_index("allocation_id")
    cuts = _cuts(boards, [instances, lost, cordoned, held])
    base = _segments_of(cuts).with_columns(
        is_lost=pl.col("segment_id").is_in(_covered(lost, cuts)["segment_id"].implode()),
        is_cordoned=pl.col("segment_id").is_in(_covered(cordoned, cuts)["segment_id"].implode()),
    )
    slices = _slices(base, _covered(instances, cuts))
    series = _series(slices, inputs.devices)
    numbered = slices.join(
        series.drop("device_key"),
        on=[DEVICE, "instance_id"],
        nulls_equal=True,
        maintain_order="left",
    )
    placed = _placed(slices, _covered(held, cuts))
    is_held = pl.col("unheld_reason").is_null()
    holders = _holders(placed.filter(is_held))
    return Segments(
        slices=numbered,
        series=series,
        holders=holders,
        unheld=_unheld(placed.filter(~is_held), holders),
        unplaced=held.filter(is_held)
        .join(placed, on="allocation_id", how="anti")
        .drop("allocation_id"),
    )


def _series(slices: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    keys = devices.select(DEVICE, "device_key").unique(DEVICE)
    pairs = slices.select(DEVICE, "instance_id").unique().sort(DEVICE, "instance_id")
    numbered = pairs.with_columns(series_id=pl.int_range(pl.len(), dtype=pl.Int32))
    return numbered.join(keys, on=DEVICE, maintain_order="left")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The stored rows that decide who had which device when (declared in ``analytics.inputs``)."""

    nodes: pl.DataFrame
    devices: pl.DataFrame
    events: pl.DataFrame
    allocations: pl.DataFrame


def _cuts(boards: pl.DataFrame, spans: list[pl.DataFrame]) -> pl.DataFrame:
    """Return every instant at which something changes on a device, numbered in order."""
    ends = [
        frame.select(DEVICE, at_us=column)
        for frame in [boards, *spans]
        for column in ("start_us", "end_us")
    ]
    return (
        pl.concat(ends)
        .join(boards.rename({"start_us": "born_us", "end_us": "gone_us"}), on=DEVICE)
        .with_columns(pl.col("at_us").clip("born_us", "gone_us"))
        .select(DEVICE, "at_us", "born_us")
        .unique([DEVICE, "at_us"])
        .sort(DEVICE, "at_us")
        .with_columns(segment_id=pl.int_range(pl.len(), dtype=pl.Int64))
    )


def _segments_of(cuts: pl.DataFrame) -> pl.DataFrame:
    return (
        cuts.with_columns(end_us=pl.col("at_us").shift(-1).over(DEVICE))
        .filter(pl.col("end_us").is_not_null())
        .select("segment_id", DEVICE, "end_us", start_us="at_us")
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
    shares = instances.sort("segment_id", "instance_id").unique(
        ["segment_id", "instance_id"], keep="last", maintain_order=True
    )
    taken = shares.group_by("segment_id").agg(
        sm_taken=pl.col("sm_share_ratio").sum(),
        memory_taken=pl.col("memory_share_ratio").sum(),
        shares_known=pl.col("sm_share_ratio").is_not_null().all(),
    )
    framed = base.join(taken, on="segment_id", how="left")
    over = pl.max_horizontal(pl.lit(1.0), "sm_taken")
    memory_over = pl.max_horizontal(pl.lit(1.0), "memory_taken")
    inside = framed.join(shares.drop(DEVICE), on="segment_id").with_columns(
        weight_ratio=pl.col("sm_share_ratio") / over,
        memory_weight_ratio=pl.col("memory_share_ratio") / memory_over,
        is_remainder=pl.lit(value=False),
    )
    boards = framed.with_columns(
        instance_id=pl.lit(None, dtype=pl.Int64),
        weight_ratio=(1 - pl.col("sm_taken").fill_null(0.0)).clip(lower_bound=0),
        memory_weight_ratio=(1 - pl.col("memory_taken").fill_null(0.0)).clip(lower_bound=0),
        is_remainder=pl.col("sm_taken").is_not_null(),
    )
    return _numbered(pl.concat([boards, inside], how="diagonal"))


def _numbered(slices: pl.DataFrame) -> pl.DataFrame:
    return (
        slices.filter(pl.col("weight_ratio").fill_null(0.0) > 0)
        .sort("segment_id", "instance_id", nulls_last=False)
        .with_columns(
            slice_id=pl.int_range(pl.len(), dtype=pl.Int64),
            is_share_known=pl.col("shares_known").fill_null(value=True),
        )
        .select(
            "segment_id",
            "slice_id",
            DEVICE,
            "instance_id",
            "start_us",
            "end_us",
            "weight_ratio",
            "memory_weight_ratio",
            "is_remainder",
            "is_lost",
            "is_cordoned",
            "is_share_known",
        )
    )


def _placed(slices: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return one row per allocation and slice it lies in, with weight_ratio."""
    where = slices.select("segment_id", "instance_id", "slice_id", "weight_ratio")
    return held.join(where, on=["segment_id", "instance_id"], nulls_equal=True)


def _unheld(placed: pl.DataFrame, holders: pl.DataFrame) -> pl.DataFrame:
    """Return why slices without a holder are told; being at work comes before being unseen."""
    return (
        placed.join(holders, on="slice_id", how="anti")
        .group_by("slice_id")
        .agg(pl.col("unheld_reason").min())
        .sort("slice_id")
    )


def _holders(placed: pl.DataFrame) -> pl.DataFrame:
    share = (pl.col("gpu_share_ratio") / pl.col("weight_ratio")).clip(0, 1)
    total = pl.col("held_ratio").sum().over("slice_id")
    return (
        placed.with_columns(held_ratio=share)
        .with_columns(held_ratio=pl.col("held_ratio") / pl.max_horizontal(pl.lit(1.0), total))
        .select("slice_id", "held_ratio", *_HOLDER_COLUMNS)
        .sort("slice_id", "tenant_id", "workload_uid", "pod", nulls_last=True)
    )
