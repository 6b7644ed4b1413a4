"""Names, types and order of the columns that each version and mode of the export has."""

from __future__ import annotations

from typing import Final, Literal

import polars as pl

from analytics.focus.amounts import AMOUNT
from analytics.schemas.columns import INSTANT

Version = Literal["1.2", "1.3"]
Mode = Literal["internal", "split"]

_TEXTS: Final = [
    "AvailabilityZone",
    "BillingAccountId",
    "BillingAccountName",
    "BillingAccountType",
    "BillingCurrency",
    "CapacityReservationId",
    "CapacityReservationStatus",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "CommitmentDiscountUnit",
    "ConsumedUnit",
    "InvoiceId",
    "InvoiceIssuerName",
    "PricingCategory",
    "PricingCurrency",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "SubAccountType",
    "Tags",
]
_AMOUNTS: Final = [
    "BilledCost",
    "CommitmentDiscountQuantity",
    "ConsumedQuantity",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "ListCost",
    "ListUnitPrice",
    "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost",
    "PricingCurrencyListUnitPrice",
    "PricingQuantity",
]
_INSTANTS: Final = (
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargePeriodEnd",
    "ChargePeriodStart",
)
_SINCE_1_3: Final = ("HostProviderName", "ServiceProviderName")
_SPLIT: Final = (
    "AllocatedMethodDetails",
    "AllocatedMethodId",
    "AllocatedResourceId",
    "AllocatedResourceName",
    "AllocatedTags",
)
OWN: Final = pl.Schema(
    {
        "x_CostLeaf": pl.String(),
        "x_UsedCost": AMOUNT,
        "x_AllocatedIdleCost": AMOUNT,
        "x_UnknownUseCost": AMOUNT,
        "x_EffectiveUtilization": pl.Float64(),
        "x_MetricCoverage": pl.Float64(),
        "x_GpuModel": pl.String(),
        "x_QueueName": pl.String(),
        "x_WorkloadClass": pl.String(),
        "x_PriorityClass": pl.String(),
        "x_PriceBookVersion": pl.String(),
    }
)
"""Columns of our own, after those of the specification."""


def schema(*, version: Version, mode: Mode) -> pl.Schema:
    """Return the columns in the order in which they are written: alphabetical, then our own."""
    names = [*_TEXTS, *_AMOUNTS, *_INSTANTS]
    if version == "1.3":
        names += _SINCE_1_3
    if mode == "split":
        names += _SPLIT
    types: dict[str, pl.DataType] = {
        **dict.fromkeys(_AMOUNTS, AMOUNT),
        **dict.fromkeys(_INSTANTS, INSTANT),
    }
    return pl.Schema({**{name: types.get(name, pl.String()) for name in sorted(names)}, **OWN})
