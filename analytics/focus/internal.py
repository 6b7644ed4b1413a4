"""The platform as provider: each team is a sub account; what nobody holds is the pool's."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.focus.priced import ALLOCATED_KIND
from analytics.focus.usage import charged, tags, with_json

POOL: Final = "steward:pool"
"""Sub account of time that no one holds."""
UNATTRIBUTED: Final = "steward:unattributed"
"""Sub account of time that someone holds whose team is not known."""
TAGGED: Final = ("workload_class", "queue", "priority_class")
"""Columns that become tags. People's names are not among them."""


def usage_rows(time: pl.DataFrame) -> pl.DataFrame:
    """Return one row per span, team, workload, SKU and kind, in the order of ``time``.

    Args:
        time: rows of ``priced.lines``, not told apart by node.
    """
    rows = charged(time).with_columns(*_account(), *_resource(), *_reservation())
    details = {"x_GpuModel": "model", "x_PurchaseType": "purchase_type"}
    rows = with_json(rows, "SkuPriceDetails", details, constant={"GpuCount": 1})
    return with_json(rows, "Tags", tags(TAGGED), constant={})


def sub_account(tenant: pl.Expr, *, is_pool: pl.Expr) -> list[pl.Expr]:
    """Return the three columns of the sub account."""
    account = (
        pl.when(is_pool)
        .then(pl.lit(POOL))
        .when(tenant.is_null())
        .then(pl.lit(UNATTRIBUTED))
        .otherwise(tenant)
    )
    name = (
        pl.when(is_pool)
        .then(pl.lit("Pool"))
        .when(tenant.is_null())
        .then(pl.lit("Unattributed"))
        .otherwise(tenant)
    )
    kind = (
        pl.when(is_pool)
        .then(pl.lit("Pool"))
        .when(tenant.is_null())
        .then(pl.lit("Unattributed"))
        .otherwise(pl.lit("Team"))
    )
    return [
        account.alias("SubAccountId"),
        name.alias("SubAccountName"),
        kind.alias("SubAccountType"),
    ]


def _account() -> list[pl.Expr]:
    return sub_account(pl.col("tenant_id"), is_pool=pl.col("kind") != ALLOCATED_KIND)


def _resource() -> list[pl.Expr]:
    workload = pl.col("workload_uid")
    return [
        workload.alias("ResourceId"),
        pl.when(workload.is_not_null()).then(pl.lit("Workload")).alias("ResourceType"),
    ]


def _reservation() -> list[pl.Expr]:
    """Return the guarantee that time was kept free for."""
    is_kept = pl.col("kind") == "reserved_unused"
    holder = pl.coalesce("queue", "tenant_id", pl.lit("unknown"))
    return [
        pl.when(is_kept)
        .then(pl.format("guarantee/{}/{}", pl.col("cluster").fill_null("unknown"), holder))
        .alias("CapacityReservationId"),
        pl.when(is_kept).then(pl.lit("Unused")).alias("CapacityReservationStatus"),
    ]
