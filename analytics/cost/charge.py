"""From device-time to money: each span of the ledger at the price in force, exactly.

Money is whole parts: ticks x price in millionths of the currency per GPU-hour, 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows
from analytics.usage import TREE, gpu_hours, leaf

PRICES: Final = rows(
    gpu_model=pl.String,
    cluster=pl.String,
    purchase_type=pl.String,
    currency=pl.String,
    rate_micros=pl.Int64,
    valid_from_at=INSTANT,
    valid_until_at=INSTANT,
    price_id=pl.Int64,
    book_version=pl.String,
)
"""Prices in force: one row per model, cluster (null: every cluster without its own) and span that
does not overlap another of the same model and cluster; ``valid_until_at`` null: still in force.
``rate_micros``: millionths of the currency per GPU-hour."""
_PRICED_BY: Final = ["model", "cluster", "started_at"]
OF_PRICE: Final = ("currency", "rate_micros", "purchase_type", "price_id", "book_version")
LEAF_PARTS: Final = tuple(f"{name}_parts" for name in TREE)
"""The cost of each leaf; they add up to ``capacity_parts``."""
PARTS: Final = ("capacity_parts", *LEAF_PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """The ledger with its cost, and what has no price."""

    rows: pl.DataFrame
    """Rows of the ledger in their order, with ``OF_PRICE`` and ``PARTS``: null where no price was
    in force, never 0."""

    @property
    def unpriced(self) -> pl.DataFrame:
        """Return the device-time without a price: one row per cluster and model, ascending.

        cluster str, model str | null (last), gpu_hours f64, node_count i64, from_at datetime,
        until_at datetime
        """
        return unpriced(self.rows)


def price_instants(prices: pl.DataFrame) -> tuple[datetime, ...]:
    """Return the instants at which a price starts or ends, ascending: the ledger is cut there."""
    ends = pl.concat([prices["valid_from_at"], prices["valid_until_at"]])
    return tuple(ends.drop_nulls().unique().sort().to_list())


def charge(ledger: pl.DataFrame, prices: pl.DataFrame) -> Charged:
    """Return what the capacity of each row of the ledger costs, leaf by leaf.

    Args:
        ledger: rows of ``ledger``, cut at ``price_instants``.
        prices: rows of ``PRICES``.

    Raises:
        ValueError: a price of the row's model starts or ends inside a span: which part of the
            device-time lies before it is then unknown.
    """
    _refuse_uncut(ledger, prices)
    priced = _with_price(ledger, prices)
    rate = pl.col("rate_micros").cast(pl.Int128)
    costs = {f"{name}_parts": leaf(name) * rate for name in TREE}
    wall = pl.col("wall_ticks").cast(pl.Int128)
    found = priced.with_columns(capacity_parts=wall * rate, **costs)
    return Charged(rows=found)


def costs(charged: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return cost summed over any columns of the charged ledger; currencies never mix.

    Returns:
        one row per combination of keys and currency, ascending (nulls last): keys,
        currency str | null (null: without a price), wall_ticks i128, ``PARTS`` i128 | null
        (null: nothing of it has a price)
    """
    sums = [
        pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in PARTS
    ]
    wall = pl.col("wall_ticks").cast(pl.Int128).sum()
    by = [*keys, "currency"]
    return charged.group_by(by).agg(wall, *sums).sort(by, nulls_last=True)


def unpriced(charged: pl.DataFrame) -> pl.DataFrame:
    """Return the device-time of the charged ledger without a price, as ``Charged.unpriced``."""
    missing = charged.filter(pl.col("rate_micros").is_null() & (pl.col("wall_ticks") > 0))
    return (
        missing.group_by("cluster", "model")
        .agg(
            gpu_hours=gpu_hours(pl.col("wall_ticks").cast(pl.Int128).sum()),
            node_count=pl.col("node").n_unique().cast(pl.Int64),
            from_at=pl.col("started_at").min(),
            until_at=pl.col("ended_at").max(),
        )
        .sort("cluster", "model", nulls_last=True)
    )


def allocated_parts() -> pl.Expr:
    """Return the cost of all allocated leaves, i128 | null."""
    return pl.col("used_parts") + pl.col("allocated_idle_parts") + pl.col("unknown_use_parts")


def unallocated_parts() -> pl.Expr:
    """Return the cost of all unallocated leaves, i128 | null."""
    return pl.col("capacity_parts") - allocated_parts()


def _refuse_uncut(ledger: pl.DataFrame, prices: pl.DataFrame) -> None:
    instants = pl.concat(
        [prices.select("gpu_model", at=end) for end in ("valid_from_at", "valid_until_at")]
    ).drop_nulls()
    if instants.is_empty() or ledger.is_empty():
        return
    spans = ledger.select("model", "started_at", "ended_at").unique().drop_nulls()
    inside = spans.join(instants, left_on="model", right_on="gpu_model").filter(
        (pl.col("started_at") < pl.col("at")) & (pl.col("at") < pl.col("ended_at"))
    )
    if not inside.is_empty():
        model, at = inside.sort("at", "model").select("model", "at").row(0)
        raise ValueError(
            f"the ledger is not cut at {at.isoformat()}, when a price of {model} changes"
        )


def _with_price(ledger: pl.DataFrame, prices: pl.DataFrame) -> pl.DataFrame:
    # A ledger has many rows but few spans and models: prices are looked up for these.
    spans = ledger.select(_PRICED_BY).unique().sort(_PRICED_BY, nulls_last=True)
    own = _in_force(spans, prices.filter(pl.col("cluster").is_not_null()), ("model", "cluster"))
    common = _in_force(spans, prices.filter(pl.col("cluster").is_null()), ("model",))
    has_own = own["price_id"].is_not_null()
    picked = spans.with_columns(
        pl.when(has_own).then(own[name]).otherwise(common[name]).alias(name) for name in OF_PRICE
    )
    return ledger.join(picked, on=_PRICED_BY, how="left", nulls_equal=True, maintain_order="left")


def _in_force(spans: pl.DataFrame, prices: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return ``OF_PRICE`` for each of the spans, in their order; null where none is in force."""
    starts = prices.rename({"gpu_model": "model"}).select(
        *keys, *OF_PRICE, "valid_until_at", started_at="valid_from_at"
    )
    numbered = spans.with_row_index("_row")
    found = numbered.sort("started_at").join_asof(
        starts.sort("started_at"), on="started_at", by=list(keys), check_sortedness=False
    )
    until = pl.col("valid_until_at")
    in_force = until.is_null() | (until > pl.col("started_at"))
    return found.sort("_row").select(
        pl.when(in_force).then(pl.col(name)).alias(name) for name in OF_PRICE
    )
