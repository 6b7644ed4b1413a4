"""What a weaker GPU would have saved: the same device-time at the other model's price."""

from __future__ import annotations

import polars as pl

from analytics.capability import TIERS
from analytics.cost.charge import allocated_parts
from analytics.cost.priced import priced
from analytics.need import JOB


def cheapest(alternatives: pl.DataFrame, ledger: pl.DataFrame, book: pl.DataFrame) -> pl.DataFrame:
    """Return the one alternative of each job that would have saved most.

    Args:
        alternatives: rows of ``need.alternatives``.
        ledger: rows of ``ledger``, cut at price changes.
        book: what ``cost.book.price_book`` returns, for all models of the ledger.

    Returns:
        one row per job, most saved first (unknown last, then by GPU-hours): the columns of
        ``alternatives``, currency str | null, saving_parts i128 | null (null where either model has
        no price for all of the time, or prices are in different currencies)
    """
    times = (
        ledger.filter("is_held")
        .join(alternatives.select(*JOB, "model_there"), on=JOB)
        .with_row_index("_row")
    )
    moved = times.with_columns(model_here="model", model="model_there")
    here = _cost(priced(times, book), "model")
    there = _cost(priced(moved, book), "model_here").select(
        "_row", currency_there="currency", parts_there="parts"
    )
    saved = pl.col("parts") - pl.col("parts_there")
    is_told = (pl.col("currency") == pl.col("currency_there")).fill_null(value=False).all()
    is_one = pl.col("currency").n_unique() == 1
    saving = (
        here.join(there, on="_row")
        .group_by(*JOB, "model_there")
        .agg(
            currency=pl.when(is_told & is_one).then(pl.col("currency").first()),
            saving_parts=pl.when(is_told & is_one).then(saved.sum()),
        )
    )
    rank = pl.col("capability_there").replace_strict(
        TIERS, range(len(TIERS)), return_dtype=pl.Int64
    )
    told = alternatives.join(saving, on=[*JOB, "model_there"], how="left").with_columns(rank=rank)
    order = ["saving_parts", "rank", "gpu_hours", *JOB, "model_there"]
    descending = [True, True, True, False, False, False, False]
    ordered = told.sort(order, descending=descending, nulls_last=True)
    return ordered.unique(JOB, keep="first", maintain_order=True).drop("rank")


def worth_it(cheapest: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of ``cheapest`` without those known to cost no less."""
    return cheapest.filter((pl.col("saving_parts") > 0).fill_null(value=True))


def _cost(charged: pl.DataFrame, model: str) -> pl.DataFrame:
    """Return what was held of each row costs, under the model it was held of."""
    return charged.select(
        "_row",
        *[pl.col(name) for name in ("cluster", "workload_uid")],
        pl.col(model).alias("model"),
        "model_there",
        "currency",
        parts=allocated_parts(),
    )
