"""The target workload: which shapes of work to expect, learnt from what was asked for.

Its version is a hash of its content: two reports that show the same version speak of the same work.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final

import polars as pl

from steward.errors import InputError
from steward.period import Period
from steward.units import GPU_MILLI

POPULAR_SHARE_RATIO: Final = 0.95
"""Shapes are kept, most frequent first, until they make up this share of all requests."""
VERSION_LENGTH: Final = 12
"""Hexadecimal digits of the content's SHA-256 that name a version: enough to tell them apart."""
_SHAPE: Final = ("cpu_milli", "gpu_milli", "gpu_count", "gpu_models")
_TARGET: Final = pl.Schema(
    {
        "cpu_milli": pl.Int64,
        "gpu_milli": pl.Int64,
        "gpu_count": pl.Int64,
        "gpu_models": pl.String,
        "request_count": pl.Int64,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetWorkload:
    """Shapes with their shares, where they were learnt and under which version they are known."""

    shapes: pl.DataFrame
    """Rows of ``target_workload``."""
    version: str
    learnt_from_at: datetime
    learnt_until_at: datetime
    is_stored: bool
    """True: kept by a person, to compare over time; False: learnt from this period's requests."""


def target_workload(
    workloads: pl.DataFrame, *, popular_share_ratio: float = POPULAR_SHARE_RATIO
) -> pl.DataFrame:
    """Return the popular shapes with their shares.

    Args:
        workloads: rows of ``workload_current``; those with an unknown request are left out. Work
            without GPUs counts: idle GPUs are of no use to it.
        popular_share_ratio: see ``POPULAR_SHARE_RATIO``.

    Returns:
        one row per kept shape, most frequent first, ties by the shape itself descending
            cpu_milli, gpu_milli, gpu_count i64, gpu_models str ("" for any), request_count i64,
            share_ratio f64 (adds up to 1)
    """
    counted = request_shapes(workloads)
    before = pl.col("request_count").cum_sum() - pl.col("request_count")
    total = pl.col("request_count").sum()
    return _with_shares(counted.filter(before / total < popular_share_ratio))


def request_shapes(workloads: pl.DataFrame) -> pl.DataFrame:
    """Return every shape asked for, most frequent first, ties by the shape itself descending.

    Returns:
        one row per shape: cpu_milli, gpu_milli, gpu_count, gpu_models, request_count
    """
    whole = pl.when(pl.col("gpu_count") > 0).then(GPU_MILLI).otherwise(0)
    milli = (
        pl.when(pl.col("gpu_count") == 0).then(0).otherwise(pl.col("gpu_milli").fill_null(whole))
    )
    return (
        workloads.filter(pl.col("cpu_milli").is_not_null() & pl.col("gpu_count").is_not_null())
        .select(
            "cpu_milli",
            milli.cast(pl.Int64).alias("gpu_milli"),
            "gpu_count",
            pl.col("gpu_models").fill_null(""),
        )
        .group_by(_SHAPE)
        .agg(request_count=pl.len().cast(pl.Int64))
        .sort("request_count", *_SHAPE, descending=True)
    )


def expected_work(
    workloads: pl.DataFrame, period: Period, *, stored: pl.DataFrame | None = None
) -> TargetWorkload:
    """Return the target workload kept last, or where none is kept, the period's own.

    Args:
        workloads: rows of ``workload_current``.
        period: where shapes are learnt if none are kept.
        stored: rows of ``state.target_workload``, any order.

    Raises:
        InputError: the kept shapes are not what ``shapes_json`` writes.
    """
    if stored is not None and not stored.is_empty():
        newest = stored.sort("target_workload_id").row(-1, named=True)
        return TargetWorkload(
            shapes=shapes_from_json(newest["shapes_json"]),
            version=newest["version"],
            learnt_from_at=newest["learnt_from_at"],
            learnt_until_at=newest["learnt_until_at"],
            is_stored=True,
        )
    shapes = target_workload(workloads)
    return TargetWorkload(
        shapes=shapes,
        version=shapes_version(shapes),
        learnt_from_at=period.from_at,
        learnt_until_at=period.until_at,
        is_stored=False,
    )


def shapes_version(shapes: pl.DataFrame) -> str:
    """Return the name of a target workload: a hash of its shapes and counts, in any order."""
    return sha256(shapes_json(shapes).encode()).hexdigest()[:VERSION_LENGTH]


def shapes_json(shapes: pl.DataFrame) -> str:
    """Return a target workload as canonical JSON: sorted shapes, sorted keys, no spaces."""
    rows = shapes.select(*_TARGET).sort("request_count", *_SHAPE, descending=True).to_dicts()
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def shapes_from_json(text: str) -> pl.DataFrame:
    """Return the rows of ``target_workload`` that ``shapes_json`` wrote.

    Raises:
        InputError: it is not a list of shapes with whole numbers.
    """
    try:
        rows = json.loads(text)
        frame = pl.DataFrame(rows, schema=_TARGET, orient="row")
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        raise InputError(
            "a kept target workload is not a list of shapes",
            hint=f"write each shape with {', '.join(_TARGET)}",
        ) from error
    if frame.select(pl.any_horizontal(pl.all().is_null()).any()).item():
        raise InputError(
            "a kept target workload has a shape with an unknown part",
            hint=f"write each shape with {', '.join(_TARGET)}",
        )
    return _with_shares(frame)


def _with_shares(counted: pl.DataFrame) -> pl.DataFrame:
    total = pl.col("request_count").sum()
    return counted.with_columns(share_ratio=pl.col("request_count") / total)
