"""Which cells tell of which hold: by time on devices with one holder, by process on shared ones."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.evidence.holds import DEVICE
from analytics.intervals import micros

_LIMITS: Final = (
    "hold",
    "work",
    "held_from_us",
    "held_until_us",
    "window_us",
    "below_ratio",
    "power_margin_ratio",
    "is_now",
)


def of_one_holder(cells: pl.DataFrame, series: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    """Return the cells of devices that the workload has, or had, to itself.

    Args:
        cells: rows of ``cells.observed``, ascending by series, then time.
        series: rows of ``cells.series_of``.
        holds: rows of ``all_holds``; shared ones are left out.

    Returns:
        the cells that lie wholly inside a hold, with ``_LIMITS`` and is_shared false. A cell that
        begins before the hold tells of the holder before it too, and of nobody for certain.
    """
    own = holds.filter(~pl.col("is_shared"), pl.col("device_key").is_not_null())
    by_series = (
        own.select(*DEVICE, *_LIMITS)
        .join(series.select("series", *DEVICE), on=DEVICE, nulls_equal=True)
        .rename({"series": "hold_series"})
    )
    if by_series.is_empty() or cells.is_empty():
        return _none(cells, by_series)
    base_us = int(cells["at_us"].min())  # type: ignore[arg-type] # a column of whole numbers, not empty
    width = 1 << (int(cells["at_us"].max()) - base_us + 1).bit_length()  # type: ignore[arg-type] # same
    start_us = pl.col("held_from_us").clip(lower_bound=base_us, upper_bound=base_us + width - 1)
    starts = by_series.with_columns(
        place=pl.col("hold_series") * width + (start_us - base_us)
    ).sort("place", "held_from_us")
    found = cells.with_columns(
        place=pl.col("series") * width + (pl.col("at_us") - base_us)
    ).join_asof(starts, on="place", strategy="backward", check_sortedness=False)
    is_inside = (
        (pl.col("hold_series") == pl.col("series"))
        & (pl.col("start_us") >= pl.col("held_from_us"))
        & (pl.col("at_us") <= pl.col("held_until_us"))
    )
    return (
        found.filter(is_inside)
        .drop("place", "hold_series")
        .with_columns(own_busy_ratio=pl.lit(None, dtype=pl.Float64), is_shared=pl.lit(value=False))
    )


def _none(cells: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    return (
        cells.clear()
        .join(holds.clear().select(*_LIMITS), how="cross")
        .with_columns(own_busy_ratio=pl.lit(None, dtype=pl.Float64), is_shared=pl.lit(value=False))
    )


def of_shared(
    cells: pl.DataFrame,
    holds: pl.DataFrame,
    *,
    processes: pl.DataFrame,
    allocations: pl.DataFrame,
    cell_us: int,
) -> pl.DataFrame:
    """Return the cells of shared devices, with what the workload's own processes did.

    Args:
        cells: rows of ``cells.observed``.
        holds: rows of ``all_holds``; only shared ones held now count.
        processes: rows of ``evidence_process``.
        allocations: rows of ``allocation_history``, which say whose pods are.
        cell_us: the length of a cell.

    Returns:
        as ``of_one_holder``, with is_shared true and own_busy_ratio f64 | null: null where the
        processes of the device were not told, were of no known pod, or did not tell activity; 0
        where they were told and none was the workload's
    """
    shared = holds.filter("is_shared", "is_now", pl.col("device_key").is_not_null())
    cell = pl.col("at_us") // cell_us
    rows = (
        cells.join(
            shared.select(*DEVICE, "cluster", "workload_uid", *_LIMITS),
            on=DEVICE,
            nulls_equal=True,
        )
        .filter(pl.col("start_us") >= pl.col("held_from_us"))
        .with_columns(cell=cell)
    )
    told, own = _told(processes, cell_us), _own(processes, allocations, cell_us)
    at = [*DEVICE, "cell"]
    joined = rows.join(told, on=at, how="left", nulls_equal=True).join(
        own, on=[*at, "cluster", "workload_uid"], how="left", nulls_equal=True
    )
    activity = (
        pl.when(pl.col("process_count") == 0)
        .then(0.0)
        .when(pl.col("is_attributed") & pl.col("own_count").is_null())
        .then(0.0)
        .when("is_attributed")
        .then("own_busy_ratio")
    )
    return joined.with_columns(own_busy_ratio=activity, is_shared=pl.lit(value=True)).drop(
        "cell", "cluster", "workload_uid", "is_attributed", "own_count"
    )


def _told(processes: pl.DataFrame, cell_us: int) -> pl.DataFrame:
    """Return where processes were told, and whether each was of a known pod."""
    cell = micros(pl.col("sampled_at")) // cell_us
    return processes.group_by(*DEVICE, cell=cell).agg(
        is_attributed=pl.col("pod").is_not_null().all()
    )


def _own(processes: pl.DataFrame, allocations: pl.DataFrame, cell_us: int) -> pl.DataFrame:
    """Return what the processes of each workload did: their sum, null where one did not tell."""
    pods = (
        allocations.select("cluster", "workload_uid", "namespace", "pod")
        .filter(pl.col("workload_uid").is_not_null(), pl.col("pod").is_not_null())
        .unique()
    )
    ratio = pl.col("own_busy_ratio")
    return (
        processes.join(pods, on=["namespace", "pod"])
        .with_columns(cell=micros(pl.col("sampled_at")) // cell_us)
        .group_by(*DEVICE, "cell", "cluster", "workload_uid")
        .agg(
            own_busy_ratio=pl.when(ratio.is_not_null().all()).then(ratio.sum()), own_count=pl.len()
        )
    )
