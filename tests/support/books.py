"""Reading ledgers that are built from small histories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import polars as pl

from analytics.bookkeeping import Books, keep_books
from analytics.schemas.usage import LEAVES
from analytics.usage import gpu_hours, totals
from steward.period import Period
from tests.support.analytics_frames import ONE_HOUR, Row, frames, rows

ANY_GPU: Row = {
    "cpu_milli": 8_000,
    "gpu_milli": 1_000,
    "gpu_count": 1,
    "gpu_models": "",
    "memory_bytes": None,
    "request_count": 1,
    "share_ratio": 1.0,
}
"""A request for one GPU of any model."""
SHAPE = pl.Schema(
    {
        "cpu_milli": pl.Int64,
        "gpu_milli": pl.Int64,
        "gpu_count": pl.Int64,
        "gpu_models": pl.String,
        "memory_bytes": pl.Int64,
        "request_count": pl.Int64,
        "share_ratio": pl.Float64,
    }
)


def shapes(*wanted: Row) -> pl.DataFrame:
    """Return a target workload of these shapes; what a shape does not say is as in ``ANY_GPU``."""
    return pl.DataFrame([{**ANY_GPU, **one} for one in wanted], schema=SHAPE, orient="row")


def books(
    period: Period = ONE_HOUR,
    *,
    wanted: pl.DataFrame | None = None,
    floors: pl.DataFrame | None = None,
    borders: Sequence[datetime] = (),
    **given: pl.DataFrame,
) -> Books:
    """Return the books of frames given by name; one node and one GPU unless said otherwise.

    Without shapes wanted, no free device is stranded for want of one.
    """
    given.setdefault("node_history", rows("node_history", {}))
    given.setdefault("device_history", rows("device_history", {}))
    reference = shapes() if wanted is None else wanted
    return keep_books(frames(**given), period, borders=borders, shapes=reference, floors=floors)


def hours(found: Books, *keys: str) -> dict[object, dict[str, float]]:
    """Return the leaves that are not zero in GPU-hours, by the values of the keys."""
    summed = totals(found.rows, *keys).with_columns(gpu_hours(pl.col(*LEAVES)))
    told: dict[object, dict[str, float]] = {}
    for row in summed.iter_rows(named=True):
        leaves = _leaves(row)
        if leaves:
            key = tuple(row[name] for name in keys)
            told[key[0] if len(key) == 1 else key] = leaves
    return told


def leaves(found: Books) -> dict[str, float]:
    """Return the leaves that are not zero in GPU-hours."""
    return hours(found).get((), {})


def reasons(found: Books) -> dict[object, float]:
    """Return GPU-hours by the reason told."""
    return {key: sum(told.values()) for key, told in hours(found, "reason").items()}


def _leaves(row: Mapping[str, float]) -> dict[str, float]:
    return {name.removesuffix("_ticks"): row[name] for name in LEAVES if row[name] != 0}
