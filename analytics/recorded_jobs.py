"""Jobs as they were recorded: when each was created, when it got GPUs, how long it held them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.waits import asked_gpus
from steward.period import Period

INPUTS: Final = ("workload_current", "transition_history", "allocation_history", "device_history")
_WORKLOAD: Final = ("cluster", "workload_uid")
CREATED: Final = "created"


def recorded_jobs(frames: Mapping[str, pl.DataFrame], period: Period) -> pl.DataFrame:
    """Return the jobs that were created in a period, or held GPUs in it.

    Args:
        frames: rows of ``INPUTS``.
        period: what happened at its end or later does not count.

    Returns:
        one row per workload that asks for GPUs or held some, ascending
            cluster, workload_uid, tenant_id str | null, priority_class str | null,
            gpu_count f64 (held at most at once by count of devices, else asked for),
            gpu_models list[str] (held, else asked for, ascending; empty: any),
            created_at (first told; else when it first held), held_at | null (first), held_s f64
            (from the first take to the last release, to the period's end where it still holds; 0
            where it never held any), is_open bool (holds beyond the period)
    """
    held = _held(frames["allocation_history"], frames["device_history"], period)
    created = (
        frames["transition_history"]
        .filter((pl.col("transition") == CREATED) & (pl.col("occurred_at") < period.until_at))
        .group_by(_WORKLOAD)
        .agg(told_at=pl.col("occurred_at").min())
    )
    return (
        frames["workload_current"]
        .join(held, on=_WORKLOAD, how="left")
        .join(created, on=_WORKLOAD, how="left")
        .with_columns(
            gpu_count=pl.coalesce("held_count", asked_gpus),
            created_at=pl.coalesce("told_at", "held_at"),
            asked=pl.col("gpu_models").fill_null("").str.split("|"),
        )
        .filter(
            (pl.col("gpu_count") > 0)
            & pl.col("created_at").is_not_null()
            & (
                (pl.col("created_at") >= period.from_at)
                | (pl.col("last_at") > period.from_at).fill_null(value=False)
            )
        )
        .select(
            *(*_WORKLOAD, "tenant_id", "priority_class", "gpu_count"),
            _models().alias("gpu_models"),
            "created_at",
            "held_at",
            pl.col("held_s").fill_null(0.0),
            pl.col("is_open").fill_null(value=False),
        )
        .sort(_WORKLOAD)
    )


def _models() -> pl.Expr:
    """Return the models that were held, else those that were asked for."""
    asked = pl.col("asked").list.eval(pl.element().filter(pl.element() != ""))
    has_held = pl.col("held_models").list.len() > 0
    return pl.when(has_held).then("held_models").otherwise(asked).list.sort()


def _held(allocations: pl.DataFrame, devices: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return what each workload held: how many devices, of which models, from when to when."""
    models = (
        devices.sort("observed_at")
        .group_by("cluster", "device_uuid")
        .agg(model=pl.col("model").drop_nulls().last())
    )
    until = pl.lit(period.until_at)
    ended = pl.col("ended_at")
    return (
        allocations.filter(
            pl.col("workload_uid").is_not_null() & (pl.col("started_at") < period.until_at)
        )
        .join(models, on=["cluster", "device_uuid"], how="left")
        .with_columns(
            still=ended.is_null() | (ended > until),
            end_at=pl.min_horizontal(ended.fill_null(until), until),
        )
        .group_by(_WORKLOAD)
        .agg(
            held_at=pl.col("started_at").min(),
            last_at=pl.col("end_at").max(),
            is_open=pl.col("still").any(),
            held_models=pl.col("model").drop_nulls().unique(),
            held_count=_shares(),
        )
        .with_columns(held_s=(pl.col("last_at") - pl.col("held_at")).dt.total_microseconds() / 1e6)
    )


def _shares() -> pl.Expr:
    """Return the devices held, each counted once by its largest share."""
    key = pl.struct("device_uuid", "instance_id")
    return pl.col("gpu_share_ratio").filter(key.is_first_distinct()).sum()
