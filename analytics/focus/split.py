"""A node's time as the charge, split among the workloads that held it (version 1.3 on).

Rows repeat every dimension of the charge they are split from, so no team is in them except in the
``Allocated`` columns. What nobody held is a row without an allocated resource.
"""

from __future__ import annotations

import json
from typing import Final

import polars as pl

from analytics.focus import amounts
from analytics.focus.priced import ALLOCATED_KIND, PRICE
from analytics.focus.usage import UNIT, charged, tags, with_json

METHOD: Final = "gpu-time-share/v1"
"""Shares of a charge are shares of its GPU time: ``docs/focus.md`` documents the method."""
ORIGIN: Final = ("started_at", "ended_at", "cluster", "node", "model", *PRICE)
"""What makes one charge that is split."""
ALLOCATED_TAGS: Final = ("tenant_id", "workload_class", "queue", "priority_class")
_REST: Final = "unattributed"
"""Allocated resource of time that something unknown held."""


def usage_rows(time: pl.DataFrame) -> pl.DataFrame:
    """Return one row per charge and part of it, in the order of ``time``.

    Args:
        time: rows of ``priced.lines``, told apart by node.

    Returns:
        rows whose ``AllocatedRatio`` add up to exactly 1 within each charge
    """
    rows = charged(time).with_columns(
        whole=pl.col("ticks").sum().over(_origin()), is_allocated=pl.col("kind") == ALLOCATED_KIND
    )
    rows = rows.with_columns(
        *_resource(),
        ratio=amounts.ratio(pl.col("ticks"), whole=pl.col("whole"), over=_origin()),
        AllocatedMethodId=pl.lit(METHOD),
        AllocatedResourceId=pl.when("is_allocated").then(
            pl.coalesce("workload_uid", pl.lit(_REST))
        ),
    ).with_columns(AllocatedResourceName=pl.col("AllocatedResourceId"))
    details = {"x_GpuModel": "model", "x_PurchaseType": "purchase_type"}
    rows = with_json(rows, "SkuPriceDetails", details, constant={"GpuCount": 1})
    rows = with_json(rows, "AllocatedTags", tags(ALLOCATED_TAGS), constant={})
    return rows.with_columns(AllocatedMethodDetails=_details(rows))


def _origin() -> pl.Expr:
    return pl.struct(ORIGIN)


def _resource() -> list[pl.Expr]:
    node = pl.format("{}/{}", pl.col("cluster").fill_null("unknown"), "node")
    return [
        node.alias("ResourceId"),
        pl.col("node").alias("ResourceName"),
        pl.when(node.is_not_null()).then(pl.lit("GPU node")).alias("ResourceType"),
    ]


def _details(rows: pl.DataFrame) -> pl.Series:
    """Return the share and quantity of each row, as the specification writes them."""
    pairs = zip(rows["ratio"], rows["PricingQuantity"], strict=True)
    unit = json.dumps(UNIT)
    texts = [
        f'{{"Elements": [{{"AllocatedRatio": {ratio:f}, "UsageUnit": {unit}, '
        f'"UsageQuantity": {quantity:f}}}]}}'
        for ratio, quantity in pairs
    ]
    return pl.Series(texts, dtype=pl.String)
