"""What every row of charged device-time says, whoever it is charged to: costs, quantities, SKU."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from analytics.focus import amounts
from analytics.focus.priced import ALLOCATED_KIND

UNIT: Final = "GPU-Hours"
METER: Final = "GPU time"
TAG_PREFIX: Final = "steward/"
"""Before the keys of tags that the platform sets, as the specification asks."""
_PRICING: Final = {"on_demand": "Standard", "spot": "Dynamic", "reserved": "Committed"}
_OTHER_PRICING: Final = "Other"
_LEAF_COSTS: Final = {
    "x_UsedCost": "used_ticks",
    "x_AllocatedIdleCost": "allocated_idle_ticks",
    "x_UnknownUseCost": "unknown_use_ticks",
}


def charged(lines: pl.DataFrame) -> pl.DataFrame:
    """Return lines with their costs, quantities, SKU and times, in the same order.

    Args:
        lines: rows of ``priced.lines``, in the order in which they are written.

    Returns:
        the lines with the columns of the specification that do not depend on the mode. Costs of
        one currency add up to its parts, rounded; quantities likewise.
    """
    return lines.with_columns(*_costs(), *_quantities(), *_times(), *_sku()).with_columns(
        *_prices(), *_commitment(), *_leaves(), ChargeDescription=_description()
    )


def _costs() -> list[pl.Expr]:
    ticks = pl.col("ticks")
    effective = amounts.money(ticks * pl.col("rate_micros"), over="currency")
    listed = amounts.money(ticks * pl.col("list_rate_micros"), over="currency")
    names = ("EffectiveCost", "BilledCost", "ContractedCost", "PricingCurrencyEffectiveCost")
    return [*[effective.alias(name) for name in names], listed.alias("ListCost")]


def _quantities() -> list[pl.Expr]:
    return [
        amounts.hours(pl.col("ticks")).alias("PricingQuantity"),
        pl.lit(UNIT).alias("PricingUnit"),
    ]


def _times() -> list[pl.Expr]:
    return [
        pl.col("started_at").alias("ChargePeriodStart"),
        pl.col("ended_at").alias("ChargePeriodEnd"),
        pl.lit("Usage").alias("ChargeCategory"),
        pl.lit("Usage-Based").alias("ChargeFrequency"),
    ]


def _sku() -> list[pl.Expr]:
    sku = pl.coalesce("sku", "model", pl.lit("unknown model"))
    return [
        sku.alias("SkuId"),
        pl.lit(METER).alias("SkuMeter"),
        pl.format("price-{}/{}", pl.col("price_id").fill_null(0), sku).alias("SkuPriceId"),
        pl.col("purchase_type")
        .replace_strict(_PRICING, default=_OTHER_PRICING, return_dtype=pl.String)
        .fill_null(_OTHER_PRICING)
        .alias("PricingCategory"),
        pl.col("cluster").alias("RegionId"),
        pl.col("cluster").alias("RegionName"),
    ]


def _prices() -> list[pl.Expr]:
    contracted, listed = (amounts.price(pl.col(n)) for n in ("rate_micros", "list_rate_micros"))
    quantity = pl.col("PricingQuantity")
    consumed = (
        pl.when(pl.col("kind") == ALLOCATED_KIND)
        .then(quantity)
        .when(~_is_reserved())
        .then(pl.lit(0).cast(amounts.AMOUNT))
    )
    return [
        contracted.alias("ContractedUnitPrice"),
        contracted.alias("PricingCurrencyContractedUnitPrice"),
        listed.alias("ListUnitPrice"),
        listed.alias("PricingCurrencyListUnitPrice"),
        pl.col("currency").alias("BillingCurrency"),
        pl.col("currency").alias("PricingCurrency"),
        consumed.alias("ConsumedQuantity"),
        pl.when(consumed.is_not_null()).then(pl.lit(UNIT)).alias("ConsumedUnit"),
    ]


def _commitment() -> list[pl.Expr]:
    """Return the commitment that time at a reserved price draws on; null for other prices."""
    is_used = pl.col("kind") == ALLOCATED_KIND
    facts = {
        "CommitmentDiscountId": pl.format("reservation/{}", "SkuPriceId"),
        "CommitmentDiscountName": pl.format("Reserved {}", "SkuId"),
        "CommitmentDiscountCategory": pl.lit("Usage"),
        "CommitmentDiscountType": pl.lit("Reserved capacity"),
        "CommitmentDiscountStatus": pl.when(is_used)
        .then(pl.lit("Used"))
        .otherwise(pl.lit("Unused")),
        "CommitmentDiscountQuantity": pl.col("PricingQuantity"),
        "CommitmentDiscountUnit": pl.lit(UNIT),
    }
    return [pl.when(_is_reserved()).then(value).alias(name) for name, value in facts.items()]


def _is_reserved() -> pl.Expr:
    return (pl.col("purchase_type") == "reserved").fill_null(value=False)


def _leaves() -> list[pl.Expr]:
    """Return what a row's cost is made of; what rounding leaves over goes to the largest part."""
    is_allocated = pl.col("kind") == ALLOCATED_KIND
    floors = {
        name: amounts.floored(pl.col(ticks) * pl.col("rate_micros"))
        for name, ticks in _LEAF_COSTS.items()
    }
    rest = pl.col("EffectiveCost") - pl.sum_horizontal(floors.values())
    largest = pl.max_horizontal(*_LEAF_COSTS.values())
    is_earlier_largest = pl.lit(value=False)
    costs = []
    for name, ticks in _LEAF_COSTS.items():
        is_largest = (pl.col(ticks) == largest) & ~is_earlier_largest
        cost = pl.when(is_largest).then(floors[name] + rest).otherwise(floors[name])
        costs.append(pl.when(is_allocated).then(cost.cast(amounts.AMOUNT)).alias(name))
        is_earlier_largest |= pl.col(ticks) == largest
    known = pl.col("used_ticks") + pl.col("allocated_idle_ticks")
    whole = pl.col("ticks").cast(pl.Float64)
    return [
        *costs,
        pl.when(known > 0)
        .then(pl.col("used_ticks").cast(pl.Float64) / known.cast(pl.Float64))
        .alias("x_EffectiveUtilization"),
        pl.when(is_allocated).then(known.cast(pl.Float64) / whole).alias("x_MetricCoverage"),
        pl.col("kind").alias("x_CostLeaf"),
        pl.col("model").alias("x_GpuModel"),
        pl.col("queue").alias("x_QueueName"),
        pl.col("workload_class").alias("x_WorkloadClass"),
        pl.col("priority_class").alias("x_PriorityClass"),
        pl.col("book_version").alias("x_PriceBookVersion"),
    ]


def _description() -> pl.Expr:
    kind = pl.col("kind").str.replace("_", " ")
    return pl.format("{} GPU time, {}", "SkuId", kind)


def with_json(
    frame: pl.DataFrame, name: str, keys: Mapping[str, str], *, constant: Mapping[str, object]
) -> pl.DataFrame:
    """Return the frame with a column of JSON objects; keys of null values are left out.

    Args:
        frame: any rows.
        name: the new column.
        keys: column by key of the object.
        constant: further keys, the same in each row.
    """
    columns = list(dict.fromkeys(keys.values()))
    combinations = frame.select(columns).unique().sort(columns, nulls_last=True)
    texts = [_object(row, keys, constant) for row in combinations.iter_rows(named=True)]
    coded = combinations.with_columns(pl.Series(name, texts, dtype=pl.String))
    return frame.join(coded, on=columns, how="left", nulls_equal=True, maintain_order="left")


def _object(
    row: Mapping[str, object], keys: Mapping[str, str], constant: Mapping[str, object]
) -> str | None:
    values = {key: row[column] for key, column in keys.items() if row[column] is not None}
    whole = {**constant, **values}
    return json.dumps(whole, ensure_ascii=False, sort_keys=True) if whole else None


def tags(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns by the keys of the tags that they become."""
    return {f"{TAG_PREFIX}{name.removesuffix('_id')}": name for name in columns}
