"""Device-time of idle cases as rows of the ledger, so that prices apply to it as to all else.

Two stretches of each case: while it was judged idle, and what others held of its GPUs since.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl

from analytics.inputs import SCHEMAS
from analytics.intervals import bounds, micros
from analytics.schemas.columns import INSTANT
from steward.period import Period
from steward.units import TICKS_PER_MICROSECOND

STRETCHES: Final = ("judged_idle", "reused")
_CASE: Final = ("cluster", "workload_uid", "case_number")
_WORKLOAD: Final = ("cluster", "workload_uid")
_SLOT: Final = ("cluster", "device_uuid", "instance_id")


def idle_spans(rows: pl.DataFrame, holds: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return what each case held while it was judged idle, inside the period.

    Args:
        rows: rows of ``reclaim.with_outcomes``.
        holds: rows of ``reclaim.holds_of``.
        period: what lies outside it is cut off.

    Returns:
        one row per case and share of a device held when it was detected, ascending: cluster,
        workload_uid, case_number, device_uuid, instance_id, gpu_share_ratio, start_us, end_us
    """
    from_us, until_us = bounds(period)
    over_us = pl.min_horizontal("reclaimed_us", "busy_us", "let_go_us", pl.lit(until_us))
    known = rows.select(
        *_CASE,
        "detected_us",
        case_start_us=pl.col("detected_us").clip(lower_bound=from_us),
        case_end_us=over_us,
    )
    return (
        _held_when_detected(known, holds)
        .with_columns(start_us="case_start_us", end_us="case_end_us")
        .filter(pl.col("start_us") < pl.col("end_us"))
        .select(*_CASE, *_SLOT[1:], "gpu_share_ratio", "start_us", "end_us")
        .sort(*_CASE, *_SLOT[1:], "start_us")
    )


def reused_spans(rows: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    """Return what other workloads held of each reclaimed case's GPUs since they were reclaimed.

    Returns:
        the columns of ``idle_spans``, of the reclaimed case; the share is that of the other holder
    """
    freed = rows.filter(pl.col("reclaimed_us").is_not_null()).select(
        *_CASE, "detected_us", "reclaimed_us"
    )
    own = _held_when_detected(freed, holds).select(*_CASE, *_SLOT[1:], "reclaimed_us").unique()
    others = own.join(holds, on=_SLOT, nulls_equal=True, suffix="_other").filter(
        (pl.col("workload_uid_other") != pl.col("workload_uid"))
        & (pl.col("start_us") >= pl.col("reclaimed_us"))
        & (pl.col("start_us") < pl.col("end_us"))
    )
    columns = (*_CASE, *_SLOT[1:], "gpu_share_ratio", "start_us", "end_us")
    return others.select(columns).sort(*_CASE, *_SLOT[1:], "start_us")


def _held_when_detected(found: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    at = pl.col("detected_us")
    return found.join(holds, on=_WORKLOAD).filter(
        (pl.col("start_us") <= at) & (pl.col("end_us") > at)
    )


def as_ledger(
    spans: pl.DataFrame,
    *,
    models: pl.DataFrame,
    owners: pl.DataFrame,
    cuts: Sequence[datetime],
) -> pl.DataFrame:
    """Return stretches as rows of the ledger that are idle from end to end.

    Args:
        spans: rows of ``idle_spans`` or ``reused_spans``.
        models: cluster, device_uuid, model of each device.
        owners: cluster, workload_uid, tenant_id of each workload.
        cuts: instants at which rows are divided, for prices that change.

    Returns:
        one row per stretch and part between cuts: the columns of ``ledger``, all time in
        ``idle_ticks``; other leaves and overlays 0, what is not known of the holder null
    """
    edges = pl.DataFrame({"at": sorted(set(cuts))}, schema={"at": INSTANT}).select(
        from_us=micros(pl.col("at"))
    )
    starts = pl.concat([pl.DataFrame({"from_us": [None]}, schema=edges.schema), edges])
    parts = starts.with_columns(
        until_us=pl.col("from_us").shift(-1).fill_null(_LATEST_US),
        from_us=pl.col("from_us").fill_null(-_LATEST_US),
    )
    cut = spans.join_where(
        parts, pl.col("start_us") < pl.col("until_us"), pl.col("end_us") > pl.col("from_us")
    ).with_columns(
        start_us=pl.max_horizontal("start_us", "from_us"),
        end_us=pl.min_horizontal("end_us", "until_us"),
    )
    share = pl.col("gpu_share_ratio")
    ticks = (
        ((pl.col("end_us") - pl.col("start_us")) * TICKS_PER_MICROSECOND * share)
        .round()
        .cast(pl.Int64)
    )
    told = (
        cut.join(models, on=["cluster", "device_uuid"], how="left")
        .join(owners, on=_WORKLOAD, how="left")
        .with_columns(
            started_at=pl.col("start_us").cast(INSTANT),
            ended_at=pl.col("end_us").cast(INSTANT),
            is_held=pl.lit(value=True),
            wall_ticks=ticks,
            idle_ticks=ticks,
        )
    )
    return _filled(told)


_LATEST_US: Final = 2**62
"""Later than any stored instant, in microseconds."""


def _filled(told: pl.DataFrame) -> pl.DataFrame:
    """Give every column of the ledger: numbers 0, names null where they are not told."""
    schema = SCHEMAS["ledger"]
    missing = {
        name: pl.lit(0 if dtype.is_numeric() else None, dtype=dtype)
        for name, dtype in schema.items()
        if name not in told.columns
    }
    return told.with_columns(**missing).select(
        pl.col(name).cast(dtype) for name, dtype in schema.items()
    )
