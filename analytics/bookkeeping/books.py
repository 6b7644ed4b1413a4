"""The ledger of device-time: every tick of every device in exactly one leaf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from analytics.bookkeeping.caveats import caveats
from analytics.bookkeeping.free import free_rows, free_slices
from analytics.bookkeeping.guarantees import reserved_ticks
from analytics.bookkeeping.held import held_rows
from analytics.bookkeeping.material import material
from analytics.bookkeeping.pieces import PARTS, Pieces, pieces
from analytics.bookkeeping.power import power_floors
from analytics.bookkeeping.shapes_now import learnt_shapes, usable_spans
from analytics.bookkeeping.spans import span_frame
from analytics.bookkeeping.sums import Sums, sums
from analytics.schemas.columns import INSTANT, rows
from analytics.schemas.usage import KEYS, LEAVES, OVERLAYS, SCHEMAS
from steward.period import Period

DEVICE_KEYS: Final = ("device_uuid", "instance_id")
BOOK_ROWS: Final = rows(**dict(SCHEMAS["ledger"]), device_uuid=pl.String, instance_id=pl.Int64)
"""Columns of ``Books.rows``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What became of the device-time of a period.

    ``rows``: one row per span, device-slice and combination of ``KEYS``, ascending: the columns of
        ``ledger``, device_uuid, instance_id i64 | null. The nine leaves of every row add up to its
        wall_ticks, and all rows to the life of the devices in the period. A row of free time may
        carry overlays only, with no ticks.
    ``rest``: rows of ``rest``, cut where spans or holders change or memory in use grew, ascending.
    ``caveats``: rows of ``ledger_caveat``, one per span, ascending.
    """

    rows: pl.DataFrame
    rest: pl.DataFrame
    caveats: pl.DataFrame


def keep_books(
    frames: Mapping[str, pl.DataFrame],
    period: Period,
    *,
    borders: Sequence[datetime] = (),
    shapes: pl.DataFrame | None = None,
    floors: pl.DataFrame | None = None,
) -> Books:
    """Return the ledger of a period.

    Args:
        frames: rows of ``BOOK_INPUTS`` by name, any order; repeats count once, a frame that is
            missing has no rows.
        period: what is told of.
        borders: where it is cut into spans, any order. What is told of a span does not depend on
            the other spans: building both sides of a border apart gives the same rows, to the tick.
        shapes: rows of ``shapes.target_workload``, the reference for stranded time, with
            memory_bytes where known; None: learnt from the workloads given.
        floors: rows of ``power.power_floors``, for boards that tell power but no activity; None:
            learnt from the readings given. Give the same shapes and floors for every part of a
            longer time, else the parts are measured by different standards.

    Raises:
        InputError: a frame lacks a declared column.
    """
    stock = material(frames)
    spans = span_frame(period, borders)
    cut_up = pieces(stock, spans, period)
    at_rest = power_floors(stock) if floors is None else floors
    seen = sums(stock, cut_up, period, floors=at_rest)
    free = free_slices(cut_up)
    healthy = free.filter(pl.col("reason").is_null())
    wanted = learnt_shapes(stock.workloads) if shapes is None else shapes
    usable = usable_spans(healthy, cut_up, stock=stock, shapes=wanted)
    reserved = reserved_ticks(healthy, usable, quotas=stock.quotas, period=period)
    leaves = [held_rows(cut_up, seen), free_rows(free, usable=usable, reserved=reserved, seen=seen)]
    return Books(
        rows=_summed(pl.concat(leaves, how="diagonal"), spans),
        rest=_rest(seen, cut_up),
        caveats=caveats(stock, cut_up, spans),
    )


def _summed(leaves: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    missing = [name for name in BOOK_ROWS if name not in leaves.columns]
    whole = leaves.with_columns(
        pl.lit(None, dtype=BOOK_ROWS[name]).alias(name)
        for name in missing
        if name not in {"started_at", "ended_at"}
    )
    keys = [*KEYS, *DEVICE_KEYS]
    return (
        whole.group_by("span_id", *keys)
        .agg(
            pl.col("wall_ticks", *LEAVES).sum(),
            pl.col(*OVERLAYS).cast(pl.Float64).sum(),
            pl.col("memory_peak_bytes").max(),
        )
        .join(spans, on="span_id")
        .with_columns(started_at=_instant("start_us"), ended_at=_instant("end_us"))
        .sort("started_at", *DEVICE_KEYS, *KEYS, nulls_last=True)
        .select(pl.col(name).cast(kind) for name, kind in BOOK_ROWS.items())
    )


def _instant(name: str) -> pl.Expr:
    return pl.from_epoch(pl.col(name), time_unit="us").dt.replace_time_zone("UTC").cast(INSTANT)


def _rest(seen: Sums, cut_up: Pieces) -> pl.DataFrame:
    """Return rest with who held the device; a lost device does not rest."""
    slices = cut_up.slices.filter(~pl.col("is_lost")).select(
        "slice_id", "cluster", "node", "device_uuid", "instance_id"
    )
    holders = cut_up.holders.with_columns(gpu_share_ratio=pl.col("parts") / PARTS)
    schema = SCHEMAS["rest"]
    return (
        seen.resting.join(slices, on="slice_id")
        .join(holders, on="slice_id")
        .with_columns(started_at=_instant("start_us"), ended_at=_instant("end_us"))
        .select(pl.col(name).cast(kind) for name, kind in schema.items())
        .sort(
            "cluster", "device_uuid", "instance_id", "started_at", "workload_uid", "pod",
            "tenant_id", "gpu_share_ratio", nulls_last=True,
        )
    )  # fmt: skip
