"""Amounts beside usage as rows: corrections of what was invoiced, credits, fees, shared costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from analytics.focus.amounts import AMOUNT
from analytics.focus.internal import UNATTRIBUTED, sub_account
from analytics.focus.priced import Entry
from analytics.schemas.columns import INSTANT

_COSTS: Final = (
    "BilledCost",
    "EffectiveCost",
    "ContractedCost",
    "ListCost",
    "PricingCurrencyEffectiveCost",
)
_SCHEMA: Final = pl.Schema(
    {
        "ChargePeriodStart": INSTANT,
        "ChargePeriodEnd": INSTANT,
        "tenant_id": pl.String(),
        "ChargeCategory": pl.String(),
        "ChargeClass": pl.String(),
        "x_CostLeaf": pl.String(),
        "BillingCurrency": pl.String(),
        "amount": AMOUNT,
        "ChargeDescription": pl.String(),
        "InvoiceId": pl.String(),
        "issued_at": INSTANT,
    }
)


def entry_rows(entries: Sequence[Entry], *, is_split: bool) -> pl.DataFrame:
    """Return one row per entry, ascending by all it says.

    A correction has class ``Correction``; what gives back is a credit, the rest an adjustment.
    Rows of entries have neither quantity nor price nor SKU.

    Args:
        entries: any order.
        is_split: charges have no sub account of a team.
    """
    facts = [
        (
            entry.charged.from_at,
            entry.charged.until_at,
            entry.tenant_id,
            "Credit" if entry.kind == "credit" else "Adjustment",
            "Correction" if entry.kind == "correction" else None,
            entry.kind,
            entry.currency,
            entry.amount,
            entry.description,
            entry.invoice_id,
            entry.issued_at,
        )
        for entry in entries
    ]
    rows = pl.DataFrame(facts, schema=_SCHEMA, orient="row").sort(pl.all(), nulls_last=True)
    tenant = pl.col("tenant_id")
    known = pl.when(tenant != UNATTRIBUTED).then(tenant)
    accounts = [] if is_split else sub_account(known, is_pool=tenant.is_null())
    return rows.with_columns(
        *[pl.col("amount").alias(name) for name in _COSTS],
        *accounts,
        ChargeFrequency=pl.lit("One-Time"),
        PricingCurrency=pl.col("BillingCurrency"),
    ).drop("amount", "tenant_id")
