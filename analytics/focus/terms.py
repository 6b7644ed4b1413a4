"""Who provides, who pays and on which statement: the same on every row of an export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT
from steward.period import Period

SERVICE_CATEGORY: Final = "AI and Machine Learning"
SERVICE_SUBCATEGORY: Final = "AI Platforms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The names on an export."""

    provider: str = "GPU platform"
    """Who provides the service and issues the statement."""
    host: str | None = None
    """Whose data centre or cloud it runs in; None: the provider's."""
    billing_account_id: str = "gpu-platform"
    billing_account_name: str = "GPU platform"
    service: str = "GPU platform"
    invoice_id: str | None = None
    """Statement that the rows belong to; None: none yet."""
    billing: Period | None = None
    """Billing period of the statement; None: the calendar month of each charge."""
    time_zone: str = "UTC"
    """IANA name of the zone whose months are billed."""


def with_terms(rows: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """Return rows with the names and the billing period; an entry's own statement stays."""
    start, end = _billing_period(terms)
    names = {
        "ProviderName": terms.provider,
        "PublisherName": terms.provider,
        "ServiceProviderName": terms.provider,
        "HostProviderName": terms.host or terms.provider,
        "InvoiceIssuerName": terms.provider,
        "BillingAccountId": terms.billing_account_id,
        "BillingAccountName": terms.billing_account_name,
        "BillingAccountType": "Cost pool",
        "ServiceName": terms.service,
        "ServiceCategory": SERVICE_CATEGORY,
        "ServiceSubcategory": SERVICE_SUBCATEGORY,
    }
    own = pl.lit(terms.invoice_id, dtype=pl.String)
    return rows.with_columns(
        *[pl.lit(value).alias(name) for name, value in names.items()],
        pl.coalesce("InvoiceId", own).alias("InvoiceId"),
        start.alias("BillingPeriodStart"),
        end.alias("BillingPeriodEnd"),
    )


def _billing_period(terms: Terms) -> tuple[pl.Expr, pl.Expr]:
    if terms.billing is not None:
        ends = (terms.billing.from_at, terms.billing.until_at)
        start, end = (pl.lit(at).cast(INSTANT) for at in ends)
        is_own = pl.col("issued_at").is_null()
        later = _month(pl.col("issued_at"), terms.time_zone)
        pairs = zip((start, end), later, strict=True)
        start, end = (pl.when(is_own).then(own).otherwise(other) for own, other in pairs)
        return start, end
    return _month(pl.coalesce("issued_at", "ChargePeriodStart"), terms.time_zone)


def _month(instant: pl.Expr, time_zone: str) -> tuple[pl.Expr, pl.Expr]:
    month = instant.dt.convert_time_zone(time_zone).dt.truncate("1mo")
    after = month.dt.offset_by("1mo")
    return month.dt.convert_time_zone("UTC"), after.dt.convert_time_zone("UTC")
