"""Sums over the ledger of device-time: exact in ticks, GPU-hours for people.

Ticks of one row fit 64 bits; sums of a year of thousands of GPUs do not, so every sum is 128 bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.usage import LEAVES, OVERLAYS, PEAK
from steward.units import TICKS_PER_GPU_HOUR

TREE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "used": ("used_measured_ticks", "used_estimated_ticks"),
        "allocated_idle": ("ineffective_ticks", "idle_ticks"),
        "unknown_use": ("unknown_ticks",),
        "down": ("down_ticks",),
        "stranded": ("stranded_ticks",),
        "reserved_unused": ("reserved_unused_ticks",),
        "free_idle": ("free_idle_ticks",),
    }
)
"""The seven leaves that people read, each with the columns of the ledger it is made of. The first
three are allocated, the others unallocated."""
ALLOCATED: Final = ("used", "allocated_idle", "unknown_use")


def totals(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return the ledger summed over any of its columns.

    Args:
        rows: rows of ``ledger``, or any with its sums; overlays may be left out.
        keys: what to group by; none gives the whole.

    Returns:
        one row per combination of keys, ascending (nulls last): keys, ``wall_ticks`` and the
        ``LEAVES`` i128, those of the ``OVERLAYS`` f64 and memory_peak_bytes i64 | null that the
        rows have
    """
    sums = [
        *[pl.col(name).cast(pl.Int128).sum() for name in ("wall_ticks", *LEAVES)],
        *[pl.col(name).sum() for name in OVERLAYS if name in rows.columns],
        *[pl.col(name).max() for name in (PEAK,) if name in rows.columns],
    ]
    if not keys:
        return rows.select(sums)
    return rows.group_by(keys).agg(sums).sort(keys, nulls_last=True)


def leaf(name: str) -> pl.Expr:
    """Return the ticks of one leaf of ``TREE``, i128."""
    return pl.sum_horizontal(pl.col(column).cast(pl.Int128) for column in TREE[name])


def allocated() -> pl.Expr:
    """Return the ticks of all allocated leaves, i128."""
    return pl.sum_horizontal(leaf(name) for name in ALLOCATED)


def gpu_hours(ticks: pl.Expr) -> pl.Expr:
    """Return ticks as GPU-hours, f64: for people, not for money."""
    return ticks.cast(pl.Float64) / TICKS_PER_GPU_HOUR


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Return part / whole as f64, null where there is no whole."""
    known = whole.cast(pl.Float64)
    return pl.when(known > 0).then(part.cast(pl.Float64) / known)
