"""What the ledger could not place, span by span."""

from __future__ import annotations

import polars as pl

from analytics.bookkeeping.material import Material
from analytics.bookkeeping.pieces import Pieces
from analytics.intervals import micros
from analytics.schemas.usage import SCHEMAS
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR


def caveats(stock: Material, cut_up: Pieces, spans: pl.DataFrame) -> pl.DataFrame:
    """Return rows of ``ledger_caveat``, one per span, ascending.

    Stray devices send readings in the span but are not in the inventory; indistinct ones cannot be
    told from a device of another cluster by their readings; unplaced allocations are of a device
    or MIG instance that did not exist in the span. has_holders: from the span's end, somebody had
    been recorded as a holder.
    """
    indistinct = stock.devices.filter(pl.col("device_key").is_null())["device_uuid"].n_unique()
    hours = pl.col("length_us") * pl.col("gpu_share_ratio").fill_null(1.0)
    unplaced = cut_up.unplaced.group_by("span_id").agg(
        unplaced_allocation_count=pl.len().cast(pl.Int64),
        unplaced_gpu_hours=(hours.sum() / MICROS_PER_SECOND / SECONDS_PER_HOUR),
    )
    recorded = cut_up.slices.group_by("span_id").agg(has_holders=pl.col("is_recorded").any())
    counted = (
        spans.join(_strays(stock, spans), on="span_id", how="left")
        .join(unplaced, on="span_id", how="left")
        .join(recorded, on="span_id", how="left")
        .with_columns(
            starts_at=pl.from_epoch(pl.col("start_us"), time_unit="us").dt.replace_time_zone("UTC"),
            indistinct_device_count=pl.lit(indistinct),
        )
        .sort("span_id")
    )
    schema = SCHEMAS["ledger_caveat"]
    return counted.select(
        pl.col(name).cast(kind).fill_null(pl.lit(0).cast(kind)) if name != "starts_at"
        else pl.col(name).cast(kind)
        for name, kind in schema.items()
    )  # fmt: skip


def _strays(stock: Material, spans: pl.DataFrame) -> pl.DataFrame:
    """Return span_id and stray_device_count, for spans that have any."""
    unknown = stock.samples.select("device_key", "sampled_at").join(
        stock.known_keys, on="device_key", how="anti"
    )
    return (
        unknown.with_columns(at_us=micros(pl.col("sampled_at")))
        .sort("at_us")
        .join_asof(
            spans.sort("start_us"), left_on="at_us", right_on="start_us", strategy="backward"
        )
        .filter(pl.col("at_us") < pl.col("end_us"))
        .group_by("span_id")
        .agg(stray_device_count=pl.col("device_key").n_unique().cast(pl.Int64))
    )
