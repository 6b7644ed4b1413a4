"""Tables of the ledger that several reports show: leaves, GPU-hours and means by any grouping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics import utilization
from analytics.reports.grouping import Grouping
from analytics.reports.model import Column, Table
from analytics.reports.shape import column, table, total
from analytics.usage import TREE, share

ROWS: Final = "ledger"
LEAF_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "used": ("Used", "held, active, and working"),
    "allocated_idle": ("Allocated idle", "held, and at rest or active without working"),
    "unknown_use": ("Unknown use", "held, use not observed; or nothing tells of a holder"),
    "down": ("Down", "lost, or free on a cordoned node"),
    "stranded": ("Stranded", "free, but no MIG instance covers it or no expected work fits"),
    "reserved_unused": (
        "Reserved, unused",
        "free within a guarantee that its queue left unused and nobody borrowed",
    ),
    "free_idle": ("Free", "held by nobody, ready for work"),
}
"""Title and meaning of each leaf, by its name."""
_COLUMN_TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "used_measured": ("Used, measured", "effective utilisation x time, tier 1"),
    "used_estimated": ("Used, estimated", "the same by an upper bound or proxy, tiers 2 and 3"),
    "ineffective": ("Ineffective", "active: (1 - effective utilisation) x time"),
    "idle": ("Held idle", "at rest: SM (or graphics, or busy) and DRAM activity below 1 %"),
    "unknown": ("Unknown use", LEAF_TITLES["unknown_use"][1]),
    **{name: LEAF_TITLES[name] for name in ("down", "stranded", "reserved_unused", "free_idle")},
}
MEANS: Final = (
    column(
        "tier",
        "Tier",
        "count",
        "1 measured, 2 upper bound, 3 power proxy, 4 apparent only; empty: held by nobody",
    ),
    column("observed_gpu_hours", "Observed", "GPU-hours", "device-time known at this tier"),
    column("coverage_ratio", "Coverage", "ratio", "observed / wall clock of the group"),
    column("apparent_ratio", "Apparent", "ratio", "time mean of busy, else graphics activity"),
    column("apparent_source", "Apparent from", "text", "the two are not comparable"),
    column("effective_ratio", "Effective", "ratio", "time mean; null where only apparent is known"),
    column("gap_ratio", "Gap", "ratio", "time mean of apparent - effective"),
    column("sm_active_ratio", "SM active", "ratio", "time mean"),
    column("dram_active_ratio", "DRAM active", "ratio", "time mean"),
)
_FREE_LEAVES: Final = ("stranded", "free_idle")
"""Leaves that no holder has a part in."""
_OVER_HELD: Final = "Over held device-time; over all of it where no holder is recorded."
_ADDS_UP: Final = "Every tick of a device is in exactly one; they add up to wall clock x devices."


def leaves_table(rows: pl.DataFrame) -> Table:
    """Return GPU-hours by leaf; they add up to wall clock x devices."""
    return _split_table(
        "leaves", "Where the GPU-hours went", rows=rows, titles=LEAF_TITLES, first="Leaf"
    )


def columns_table(rows: pl.DataFrame) -> Table:
    """Return GPU-hours by column of the ledger, which tells apart how use is known."""
    return _split_table(
        "columns", "The same in full", rows=rows, titles=_COLUMN_TITLES, first="Column"
    )


def _split_table(
    key: str, title: str, *, rows: pl.DataFrame, titles: Mapping[str, tuple[str, str]], first: str
) -> Table:
    whole = utilization.leaves(rows)
    frame = pl.DataFrame(
        {
            "leaf": list(titles),
            "title": [name for name, _ in titles.values()],
            "gpu_hours": [total(whole, f"{name}_gpu_hours") for name in titles],
            "meaning": [meaning for _, meaning in titles.values()],
        }
    ).with_columns(share_ratio=share(pl.col("gpu_hours"), pl.col("gpu_hours").sum()))
    columns = (
        column("leaf", first, "text"),
        column("gpu_hours", "GPU-hours", "GPU-hours"),
        column("share_ratio", "Share", "ratio", "of wall clock x devices"),
        column("meaning", "Meaning", "text"),
    )
    return table(key, title, frame=frame, columns=columns, rows=ROWS, note=_ADDS_UP)


def tiers_table(rows: pl.DataFrame) -> Table:
    """Return means, one row per tier.

    Args:
        rows: rows of ``ledger`` over which means are taken.
    """
    return table(
        "by_tier",
        "Means by tier",
        frame=utilization.means(rows),
        columns=MEANS,
        rows=ROWS,
        note=_OVER_HELD,
    )


def means_table(rows: pl.DataFrame, grouping: Grouping, *, limit: int | None = None) -> Table:
    """Return means by group, one row per tier.

    Args:
        rows: rows of ``ledger`` over which means are taken, with the grouping's columns.
        grouping: what to divide by.
        limit: how many rows to show; None shows all.
    """
    frame = utilization.means(rows, *grouping.keys)
    return table(
        f"means_by_{grouping.table_key}",
        f"Means by {grouping.title}",
        frame=frame if limit is None else frame.head(limit),
        columns=(*grouping.columns(), *MEANS),
        rows=ROWS,
        note=_OVER_HELD,
    )


def hours_table(rows: pl.DataFrame, grouping: Grouping, *, limit: int | None = None) -> Table:
    """Return GPU-hours by group and leaf, most first (ties by name).

    Args:
        rows: rows of ``ledger``, with the grouping's columns.
        grouping: what to divide by.
        limit: how many groups to show; None shows all.
    """
    held = pl.col("wall_gpu_hours") - pl.col("reserved_unused_gpu_hours")
    size = "held_gpu_hours" if grouping.is_of_holder else "wall_gpu_hours"
    frame = (
        utilization.leaves(grouping.scope(rows), *grouping.keys)
        .with_columns(held_gpu_hours=held)
        .with_columns(share_ratio=share(pl.col(size), pl.col(size).sum()))
        .sort(
            size,
            *grouping.keys,
            descending=[True] + [False] * len(grouping.keys),
            nulls_last=True,
        )
    )
    shown = frame if limit is None else frame.head(limit)
    verb = " held" if grouping.is_of_holder else ""
    return table(
        f"by_{grouping.table_key}",
        f"GPU-hours{verb} by {grouping.title}",
        frame=shown,
        columns=(*grouping.columns(), *_hours_columns(grouping)),
        rows=ROWS,
        note="" if shown.height == frame.height else f"The {shown.height} with most GPU-hours.",
    )


def _hours_columns(grouping: Grouping) -> tuple[Column, ...]:
    leaves = [
        column(f"{name}_gpu_hours", *_titled(name))
        for name in TREE
        if not (grouping.is_of_holder and name in _FREE_LEAVES)
    ]
    occupancy = column("occupancy_ratio", "Occupancy", "ratio", "allocated / wall clock x devices")
    held = column("held_gpu_hours", "Held", "GPU-hours")
    wall = column("wall_gpu_hours", "Capacity", "GPU-hours", "wall clock x devices")
    return (
        held if grouping.is_of_holder else wall,
        column("share_ratio", "Share", "ratio", "of the sum over all rows"),
        *leaves,
        column("idle_gpu_hours", "Held idle", "GPU-hours", "of allocated idle: at rest"),
        *([] if grouping.is_of_holder else [occupancy]),
        column("utilization_ratio", "Utilisation", "ratio", "used / allocated time of known use"),
        column("estimated_of_used_ratio", "Estimated", "ratio", "used by tiers 2 and 3 / used"),
        column("coverage_ratio", "Coverage", "ratio", "allocated time of known use / allocated"),
        column("stuck_gpu_hours", "Looks stuck", "GPU-hours", "busy while nothing works"),
        column("idle_memory_bytes", "Memory while idle", "bytes", "mean of a whole GPU at rest"),
    )


def _titled(leaf: str) -> tuple[str, str, str]:
    title, meaning = LEAF_TITLES[leaf]
    return title, "GPU-hours", meaning
