"""The price book: which price a GPU-hour has, for whom, where, and from when to when.

Rows of ``state.price`` are never changed. Of rows for one model, cluster, team and purchase type
that overlap, the one recorded last counts while it holds; a withdrawn row says that there is no
price. A missing price stays missing: it is null and listed, never 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl

from analytics.cost import dated
from analytics.schemas.columns import INSTANT, rows
from steward.period import Period

PURCHASE_ORDER: Final = ("tco", "reserved", "on_demand", "spot")
"""Where several kinds of price hold for one GPU, the first of these counts: what the hardware
costs its owner, then what was committed to, then what a provider lists."""
KEY: Final = ("gpu_model", "cluster", "tenant_id", "purchase_type")
BOOK: Final = rows(
    gpu_model=pl.String,
    cluster=pl.String,
    tenant_id=pl.String,
    purchase_type=pl.String,
    currency=pl.String,
    rate_micros=pl.Int64,
    list_rate_micros=pl.Int64,
    includes_energy=pl.Boolean,
    sku=pl.String,
    source=pl.String,
    valid_from_at=INSTANT,
    valid_until_at=INSTANT,
    price_id=pl.Int64,
    book_version=pl.String,
)
VERSION_DIGITS: Final = 16
"""Hexadecimal digits of a book's version: enough that no two books of one house share it."""


def resolved(prices: pl.DataFrame) -> pl.DataFrame:
    """Return each price with the time in which it counts.

    Args:
        prices: rows of ``state.price``, any order.

    Returns:
        the columns of ``state.price``, spans of one key disjoint, withdrawn rows left out; by
        gpu_model, cluster, tenant_id, purchase_type (nulls last) and valid_from_at
    """
    return dated.latest(prices, key=KEY, identity="price_id").filter(pl.col("is_withdrawn") == 0)


def price_book(
    prices: pl.DataFrame,
    period: Period,
    *,
    models: Sequence[str],
    clusters: Sequence[str],
    closed: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the one price of each model, cluster and instant of the period.

    A team's own price comes before the general one, then a cluster's own before the general one,
    then ``PURCHASE_ORDER`` decides.

    Args:
        prices: rows of ``state.price``, any order.
        period: what is priced; spans of the book are cut to it.
        models: the names that the ledger gives its GPUs. A name is looked up as it is; where the
            book has no such name, by ``model_key``.
        clusters: the clusters of the ledger.
        closed: rows of ``state.closed_period``. Inside a closed span only prices count that were
            recorded before it was closed, so that a closed week keeps its money.

    Returns:
        the columns of ``BOOK``: gpu_model is the ledger's own name, cluster is never null. Spans of
        one gpu_model, cluster and tenant_id are disjoint. Rows without tenant_id are for everybody;
        a team that has prices of its own has all of its prices in rows of its tenant_id. By
        gpu_model, cluster, tenant_id (nulls last) and valid_from_at. book_version is the same for
        the same prices in the same period, whatever else was recorded.
    """
    named = prices.rename({"gpu_model": "book_model"}).join(
        spelled(prices["gpu_model"], models), on="book_model"
    )
    parts = []
    for span, as_of in _spans(period, closed):
        known = named if as_of is None else named.filter(pl.col("recorded_at") <= as_of)
        parts.append(dated.clipped(resolved(known.select(prices.columns)), span))
    offers = pl.concat(parts)
    teams = offers["tenant_id"].drop_nulls().unique().sort().to_list()
    effective = pl.concat(_effective(offers, team, clusters=clusters) for team in (None, *teams))
    ordered = effective.sort("gpu_model", "cluster", "tenant_id", "valid_from_at", nulls_last=True)
    return ordered.select(
        *[pl.col(name) for name in ("gpu_model", "cluster", "tenant_id", "purchase_type")],
        "currency",
        rate_micros="amount_micros_per_gpu_hour",
        list_rate_micros="list_amount_micros_per_gpu_hour",
        includes_energy=pl.col("includes_energy") == 1,
        sku="sku",
        source="source",
        valid_from_at="valid_from_at",
        valid_until_at="valid_until_at",
        price_id="price_id",
        book_version=pl.lit(book_version(ordered)),
    )


def _effective(
    offers: pl.DataFrame, tenant_id: str | None, *, clusters: Sequence[str]
) -> pl.DataFrame:
    """Return the one offer of each model, cluster and instant that counts for a team."""
    is_for = pl.col("tenant_id").is_null()
    if tenant_id is not None:
        is_for |= pl.col("tenant_id") == tenant_id
    rank = pl.col("purchase_type").replace_strict(
        PURCHASE_ORDER, range(len(PURCHASE_ORDER)), return_dtype=pl.Int64
    )
    weakest_first = [
        pl.col("tenant_id").is_not_null(), pl.col("cluster").is_not_null(), -rank, "price_id",
        "valid_from_at",
    ]  # fmt: skip
    everywhere = pl.DataFrame({"_at": sorted(set(clusters))}, schema={"_at": pl.String})
    placed = (
        offers.filter(is_for)
        .join(everywhere, how="cross")
        .filter(pl.col("cluster").is_null() | (pl.col("cluster") == pl.col("_at")))
        .sort(weakest_first)
        .with_row_index("_strength")
        .with_columns(cluster="_at", tenant_id=pl.lit(tenant_id, dtype=pl.String))
    )
    return dated.latest(placed, key=("gpu_model", "cluster"), identity="_strength").select(
        offers.columns
    )


def model_key(name: pl.Expr) -> pl.Expr:
    """Return a model's name without what spellings differ in.

    Lower case, without a leading ``NVIDIA``, blanks and underscores as hyphens:
    ``NVIDIA A100-SXM4-40GB``, ``A100 SXM4 40GB`` and ``a100_sxm4_40gb`` are one model.
    ``H100-SXM`` and ``H100-PCIE`` stay apart, for they have different prices.
    """
    bare = name.str.strip_chars().str.to_lowercase().str.replace(r"^nvidia[\s_-]+", "")
    return bare.str.replace_all(r"[\s_-]+", "-")


def spelled(book_names: pl.Series, models: Sequence[str]) -> pl.DataFrame:
    """Return which names of the book mean which models.

    Returns:
        book_model str, gpu_model str; by gpu_model and book_model. A model that the book names
        exactly has no other name; one that it does not know has no row.
    """
    names = pl.DataFrame({"book_model": book_names.unique().cast(pl.String)})
    wanted = pl.DataFrame({"gpu_model": sorted(set(models))}, schema={"gpu_model": pl.String})
    exact = names.join(wanted, left_on="book_model", right_on="gpu_model").select(
        "book_model", gpu_model="book_model"
    )
    rest = wanted.join(exact, on="gpu_model", how="anti")
    near = names.with_columns(key=model_key(pl.col("book_model"))).join(
        rest.with_columns(key=model_key(pl.col("gpu_model"))), on="key"
    )
    pairs = pl.concat([exact, near.select("book_model", "gpu_model")])
    return pairs.sort("gpu_model", "book_model")


def price_instants(
    prices: pl.DataFrame, period: Period, *, closed: pl.DataFrame | None = None
) -> tuple[datetime, ...]:
    """Return the instants inside the period at which a price may change, ascending."""
    ends = dated.instants(prices, period)
    if closed is None:
        return ends
    return tuple(sorted({*ends, *dated.instants(_closed_spans(closed), period)}))


def recorded_until(period: Period, closed: pl.DataFrame) -> datetime | None:
    """Return up to when what was recorded counts for a period; None: everything does.

    Only a period inside one closed span has such an instant.
    """
    spans = _spans(period, closed)
    return spans[0][1] if len(spans) == 1 else None


def book_version(book: pl.DataFrame) -> str:
    """Return a name for these prices: equal prices, equal name."""
    said = book.select(
        *KEY,
        "currency",
        "amount_micros_per_gpu_hour",
        pl.col("valid_from_at").dt.epoch("us"),
        pl.col("valid_until_at").dt.epoch("us"),
        "price_id",
    )
    text = json.dumps(said.rows(), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:VERSION_DIGITS]


def _spans(period: Period, closed: pl.DataFrame | None) -> list[tuple[Period, datetime | None]]:
    """Return the parts of the period, each with the recording time up to which prices count."""
    if closed is None or closed.is_empty():
        return [(period, None)]
    found: list[tuple[Period, datetime | None]] = []
    reached_at = period.from_at
    frozen = dated.clipped(
        dated.latest(_closed_spans(closed), key=(), identity="closed_period_id"), period
    ).sort(dated.FROM)
    for from_at, until_at, as_of in frozen.select(
        dated.FROM, dated.UNTIL, "recorded_at"
    ).iter_rows():
        if reached_at < from_at:
            found.append((Period(reached_at, from_at), None))
        found.append((Period(from_at, until_at), as_of))
        reached_at = until_at
    if reached_at < period.until_at or not found:
        found.append((Period(reached_at, period.until_at), None))
    return found


def _closed_spans(closed: pl.DataFrame) -> pl.DataFrame:
    return closed.select(
        "closed_period_id", "recorded_at", valid_from_at="from_at", valid_until_at="until_at"
    )
