"""Where work that needs whole GPUs together could go: gang slots and external fragmentation.

A slot is room for one worker on one node; a gang is several workers, best kept inside one rack or
NVLink domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from steward.units import GPU_MILLI

GANG_SIZES: Final = (1, 2, 4, 8)
"""GPUs of one worker on one node."""
PLACES: Final = ("node", "rack", "nvlink_domain", "cluster")
"""Within what a gang may have to stay, smallest first."""
GANG_TOTALS: Final = (16, 32, 64, 128, 256)
"""GPUs of one gang that the topology gap is asked for: from two nodes to a large training run."""
SLOT_CPU_MILLI: Final = 12_000
"""Processors that one GPU of a gang is counted with, as in the trace behind the measure."""


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


def largest_gangs(
    placed: pl.DataFrame, *, sizes: Sequence[int] = GANG_SIZES, places: Sequence[str] = PLACES
) -> pl.DataFrame:
    """Return the largest gang of each worker size that stays within one node, rack or domain.

    Args:
        placed: rows of ``capacity.free_capacity`` with rack and nvlink_domain str | null.
        sizes: whole GPUs per worker.
        places: columns of ``PLACES``.

    Returns:
        one row per place and size, in the order given
            place str, gang_size i64, place_count i64 (with a known name), largest_gang_gpu_count
            i64 | null (null: no node tells its place), largest_place str | null (its name; ties by
            name), unknown_node_count i64 (nodes that do not tell: in no gang of this kind)
    """
    rows = [row for place in places for row in _largest(placed, place, sizes)]
    return pl.DataFrame(rows, schema=_LARGEST)


_LARGEST: Final = pl.Schema(
    {
        "place": pl.String,
        "gang_size": pl.Int64,
        "place_count": pl.Int64,
        "largest_gang_gpu_count": pl.Int64,
        "largest_place": pl.String,
        "unknown_node_count": pl.Int64,
    }
)


def _largest(
    placed: pl.DataFrame, place: str, sizes: Sequence[int]
) -> Iterator[dict[str, int | str | None]]:
    known = placed.filter(pl.col(place).is_not_null())
    idle = pl.col("whole_idle_count")
    sums = (
        known.group_by("cluster", name=pl.col(place))
        .agg(((idle // size).sum() * size).alias(f"gpus_{size}") for size in sizes)
        .sort("cluster", "name")
    )
    for size in sizes:
        gpus = sums[f"gpus_{size}"]
        best = gpus.arg_max()
        yield {
            "place": place,
            "gang_size": size,
            "place_count": sums.height,
            "largest_gang_gpu_count": None if best is None else int(gpus[best]),
            "largest_place": str(sums["name"][best]) if best is not None and gpus[best] else None,
            "unknown_node_count": placed.height - known.height,
        }


def topology_gap(
    placed: pl.DataFrame, *, place: str, totals: Sequence[int] = GANG_TOTALS
) -> pl.DataFrame:
    """Return gangs that fit across a cluster beside those that fit within one place of it.

    The difference is room that exists but lies in too many places (Alibaba's 2026 GPU trace).

    Args:
        placed: as in ``largest_gangs``; a node counts min(whole idle GPUs, free processors /
            ``SLOT_CPU_MILLI``) GPUs; nodes of unknown processors or place are left out.
        place: ``rack`` or ``nvlink_domain``.
        totals: GPUs of one gang.

    Returns:
        one row per total, in the order given
            place str, gang_gpu_count i64, across_count, within_count, gap_count i64 | null (null:
            no node tells its place)
    """
    by_cpu = (pl.col("cpu_free_milli") // SLOT_CPU_MILLI).cast(pl.Int64)
    known = placed.filter(
        pl.col(place).is_not_null() & pl.col("cpu_free_milli").is_not_null()
    ).with_columns(slots=pl.min_horizontal("whole_idle_count", by_cpu))
    rows = []
    for total in totals:
        across, within = _gangs(known, total), _gangs(known, total, place)
        is_known = not known.is_empty()
        rows.append(
            {
                "place": place,
                "gang_gpu_count": total,
                "across_count": across if is_known else None,
                "within_count": within if is_known else None,
                "gap_count": across - within if is_known else None,
            }
        )
    return pl.DataFrame(rows, schema=_GAP)


_GAP: Final = pl.Schema(
    {
        "place": pl.String,
        "gang_gpu_count": pl.Int64,
        "across_count": pl.Int64,
        "within_count": pl.Int64,
        "gap_count": pl.Int64,
    }
)


def _gangs(known: pl.DataFrame, total: int, *places: str) -> int:
    sums = known.group_by("cluster", *places).agg(pl.col("slots").sum())
    return int((sums["slots"] // total).sum())


def cells_behind_quota(free: pl.DataFrame, quota: pl.DataFrame) -> pl.DataFrame:
    """Return queues whose unused guarantee counts GPUs that no whole node can give.

    Quota in GPUs is not room: a queue may own eight GPUs that lie on eight nodes (HiveD, OSDI'20).

    Args:
        free: rows of ``capacity.free_capacity``.
        quota: last rows of ``quota_use`` per cluster, queue and model; the guarantee or use that is
            unknown gives no row, and neither does a model without nodes.

    Returns:
        one row per cluster, queue and model with a whole node's worth of quota left, ascending
            cluster, queue, tenant_id, gpu_model, quota_left_gpu_count f64, cell_gpu_count i64
            (GPUs of the model's largest node), cells_of_quota_count, cells_free_count i64 (nodes
            entirely idle), is_short bool (fewer cells than quota)
    """
    of_model = ["cluster", "written_model"]
    written = pl.col("gpu_model").str.replace_all(" ", "-").alias("written_model")
    cell = pl.col("gpu_count").max().over(of_model)
    cells = (
        free.with_columns(written)
        .with_columns(cell_gpu_count=cell)
        .group_by(of_model)
        .agg(
            pl.col("cell_gpu_count").first(),
            cells_free_count=(pl.col("whole_idle_count") >= pl.col("cell_gpu_count"))
            .sum()
            .cast(pl.Int64),
        )
    )
    left = pl.col("guaranteed_gpu_count") - pl.col("used_gpu_count")
    of_quota = (pl.col("quota_left_gpu_count") / pl.col("cell_gpu_count")).floor().cast(pl.Int64)
    return (
        quota.with_columns(written, quota_left_gpu_count=left)
        .join(cells, on=of_model)
        .with_columns(cells_of_quota_count=of_quota)
        .filter(pl.col("cells_of_quota_count") > 0)
        .with_columns(is_short=pl.col("cells_free_count") < pl.col("cells_of_quota_count"))
        .select(
            "cluster", "queue", "tenant_id", "gpu_model", "quota_left_gpu_count",
            "cell_gpu_count", "cells_of_quota_count", "cells_free_count", "is_short",
        )
        .sort("cluster", "queue", "gpu_model")
    )  # fmt: skip
