"""What the export is made of: priced rows of the ledger, and amounts that stand beside usage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

import polars as pl

from analytics.schemas.columns import INSTANT, rows
from analytics.schemas.usage import KEYS, LEAVES
from analytics.usage import ALLOCATED, gpu_hours, leaf
from steward.period import Period

ALLOCATED_KIND: Final = "allocated"
UNALLOCATED: Final = ("down", "stranded", "reserved_unused", "free_idle")
PRICE: Final = (
    "currency",
    "price_id",
    "sku",
    "purchase_type",
    "rate_micros",
    "list_rate_micros",
    "book_version",
)
HOLDER: Final = ("tenant_id", "workload_class", "workload_uid", "queue", "priority_class")
_PLACE: Final = ("started_at", "ended_at", "cluster", "node", "model")
_OWNED: Final = (ALLOCATED_KIND, "reserved_unused")
"""Kinds whose rows keep who they belong to; the others belong to nobody."""

PRICED: Final = rows(
    started_at=INSTANT,
    ended_at=INSTANT,
    **dict.fromkeys(KEYS, pl.String) | {"is_held": pl.Boolean, "tier": pl.Int8},
    **dict.fromkeys(LEAVES, pl.Int64),
    currency=pl.String,
    price_id=pl.Int64,
    sku=pl.String,
    purchase_type=pl.String,
    rate_micros=pl.Int64,
    list_rate_micros=pl.Int64,
    book_version=pl.String,
)
"""Columns read of priced ledger rows: one per span, combination of ``KEYS`` and price; spans lie
within the hours (or days) of the export. ``rate_micros``: price in force, millionths of the
currency per GPU-hour, null where no price is known; ``list_rate_micros``: before discounts, null
where there is none of its own."""

Kind = Literal["correction", "credit", "fee", "shared", "rounding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An amount that is not device-time at a price."""

    kind: Kind
    tenant_id: str | None
    """None: the pool's; ``internal.UNATTRIBUTED``: of somebody whose team is not known."""
    charged: Period
    """The time the amount is for."""
    currency: str
    amount: Decimal
    """Currency units, at most as many decimals as are written; negative gives back."""
    description: str
    invoice_id: str | None = None
    """None: that of the export."""
    issued_at: datetime | None = None
    """When it was stated, for the billing period; None: in the month it is charged for."""


def lines(priced: pl.DataFrame, *, is_by_node: bool) -> pl.DataFrame:
    """Return device-time by what is charged.

    Args:
        priced: rows of ``PRICED``; rows without a price are left out (see ``unpriced``).
        is_by_node: tell nodes apart.

    Returns:
        one row per span, cluster (node), model, price, kind and holder, ascending
            started_at, ended_at, cluster, node (null unless asked for), model, ``PRICE``,
            kind (``allocated`` or one of ``UNALLOCATED``), ``HOLDER`` (null where nobody's),
            ticks, used_ticks, allocated_idle_ticks, unknown_use_ticks i128
        Only kinds with any time; list_rate_micros falls back to rate_micros.
    """
    known = priced.filter(pl.col("rate_micros").is_not_null())
    parts = [_of_kind(known, ALLOCATED_KIND, *[leaf(name) for name in ALLOCATED])]
    parts += [
        _of_kind(known, name, *[pl.lit(0, pl.Int128)] * len(ALLOCATED)) for name in UNALLOCATED
    ]
    node = "node" if is_by_node else pl.lit(None, dtype=pl.String).alias("node")
    keys = (*_PLACE, *PRICE, "kind", *HOLDER)
    return (
        pl.concat(parts)
        .filter(pl.col("ticks") > 0)
        .with_columns(node, pl.col("list_rate_micros").fill_null(pl.col("rate_micros")))
        .group_by(keys)
        .agg(pl.col("ticks", *(f"{name}_ticks" for name in ALLOCATED)).sum())
        .sort(keys, nulls_last=True)
    )


def unpriced(priced: pl.DataFrame) -> pl.DataFrame:
    """Return device-time that has no price: it is told, never written as costing nothing.

    Returns:
        one row per cluster and model, ascending: cluster, model, gpu_hours f64
    """
    return (
        priced.filter(pl.col("rate_micros").is_null())
        .group_by("cluster", "model")
        .agg(ticks=_wall().sum())
        .filter(pl.col("ticks") > 0)
        .sort("cluster", "model", nulls_last=True)
        .select("cluster", "model", gpu_hours=gpu_hours(pl.col("ticks")))
    )


def _of_kind(priced: pl.DataFrame, kind: str, *allocated: pl.Expr) -> pl.DataFrame:
    nobody = pl.lit(None, dtype=pl.String)
    split = [expr.alias(f"{name}_ticks") for name, expr in zip(ALLOCATED, allocated, strict=True)]
    ticks = (
        pl.sum_horizontal(f"{name}_ticks" for name in ALLOCATED)
        if kind == ALLOCATED_KIND
        else leaf(kind)
    )
    holder = [pl.col(name) if kind in _OWNED else nobody.alias(name) for name in HOLDER]
    return (
        priced.with_columns(split)
        .with_columns(ticks=ticks.cast(pl.Int128), kind=pl.lit(kind))
        .select(*_PLACE, *PRICE, "kind", *holder, "ticks", *(f"{name}_ticks" for name in ALLOCATED))
    )


def _wall() -> pl.Expr:
    return pl.sum_horizontal(pl.col(name).cast(pl.Int128) for name in LEAVES)
