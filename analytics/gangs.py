"""Where work that needs whole GPUs together could go: gang slots and external fragmentation."""

from __future__ import annotations

from typing import Final

import polars as pl

from steward.units import GPU_MILLI

GANG_SIZES: Final = (1, 2, 4, 8)
"""GPUs of one worker on one node."""


def gang_slots(free: pl.DataFrame, *, sizes: tuple[int, ...] = GANG_SIZES) -> pl.DataFrame:
    """Return room for workers of each size.

    Args:
        free: rows of ``capacity.free_capacity``.
        sizes: whole GPUs per worker.

    Returns:
        one row per size, in the order given
            gang_size i64, slot_count i64 (sum over nodes of whole idle GPUs // size),
            largest_gang_gpu_count i64 (slots x size), stranded_gpu_count i64 (whole idle GPUs
            left over), external_fragmentation_ratio f64 | null (1 - placeable / idle whole GPUs:
            0 compact, 1 nothing placeable; null: no idle GPU)
    """
    idle = free["whole_idle_count"]
    total = int(idle.sum())
    rows = []
    for size in sizes:
        slots = int((idle // size).sum())
        rows.append(
            {
                "gang_size": size,
                "slot_count": slots,
                "largest_gang_gpu_count": slots * size,
                "stranded_gpu_count": int((idle % size).sum()),
                "external_fragmentation_ratio": 1 - size * slots / total if total else None,
            }
        )
    return pl.DataFrame(rows, schema=_SCHEMA)


_SCHEMA: Final = pl.Schema(
    {
        "gang_size": pl.Int64,
        "slot_count": pl.Int64,
        "largest_gang_gpu_count": pl.Int64,
        "stranded_gpu_count": pl.Int64,
        "external_fragmentation_ratio": pl.Float64,
    }
)


def largest_node_gang(free: pl.DataFrame) -> int:
    """Return the most whole idle GPUs on one node."""
    return 0 if free.is_empty() else int(free["whole_idle_count"].max())  # type: ignore[arg-type]  # an i64 column


def partial_leftover_milli(free: pl.DataFrame) -> float:
    """Return the milli-GPU idle on devices that are partly held."""
    devices = free["gpu_free_milli"].explode(empty_as_null=False)
    return float(devices.filter((devices > 0) & (devices < GPU_MILLI)).sum())
