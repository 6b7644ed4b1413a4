"""How many workers a job has: parts of it that each need their GPUs on one node."""

from __future__ import annotations

import polars as pl

from analytics.waits import WORKLOAD


def with_workers(
    attempts: pl.DataFrame, requests: pl.DataFrame, allocations: pl.DataFrame
) -> pl.DataFrame:
    """Return the attempts with the size and number of their workers.

    Args:
        attempts: rows of ``waits.attempts``.
        requests: rows of ``worker_request``.
        allocations: rows of ``allocation_history``: where no pod is stored, the most that one of
            the workload's pods held at once from one moment on.

    Returns:
        the attempts in their order, with worker_gpu_count, worker_count i64 | null, workers str |
        null (its bucket); null: no pod of the workload was ever seen
    """
    # 64 bits tell pods apart: holders are many, and their names are long
    pod = pl.struct(*WORKLOAD, "namespace", "pod", "started_at").hash()
    held = (
        allocations.filter(pl.col("pod").is_not_null())
        .select(*WORKLOAD, pod=pod)
        .group_by("pod")
        .agg(pl.col(WORKLOAD).first(), held_count=pl.len().cast(pl.Int64))
        .group_by(WORKLOAD)
        .agg(pl.col("held_count").max())
    )
    count = (pl.col("gpu_count") / pl.col("worker_gpu_count")).ceil().cast(pl.Int64)
    return (
        attempts.join(requests, on=WORKLOAD, how="left", maintain_order="left")
        .join(held, on=WORKLOAD, how="left", maintain_order="left")
        .with_columns(worker_gpu_count=pl.coalesce("worker_gpu_count", "held_count"))
        .with_columns(worker_count=count)
        .with_columns(workers=_bucket())
        .drop("held_count")
    )


def _bucket() -> pl.Expr:
    count = pl.col("worker_count")
    return (
        pl.when(count == 1)
        .then(pl.lit("1 worker"))
        .when(count.is_between(2, 4))
        .then(pl.lit("2-4 workers"))
        .when(count.is_between(5, 8))
        .then(pl.lit("5-8 workers"))
        .when(count > 8)
        .then(pl.lit("more than 8 workers"))
    )
