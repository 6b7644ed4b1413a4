"""Builders of rows of the money tables with harmless defaults: a case shows what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import count

import polars as pl

from analytics.inputs import SCHEMAS
from tests.support.analytics_frames import NOON, empty

MONTH_START = NOON.replace(day=1, hour=0)
LONG_AGO = datetime(2020, 1, 1, tzinfo=NOON.tzinfo)
_ids = count(1)


def price(rate: str = "4.00", **given: object) -> dict[str, object]:
    """Return a row of the price book: 4.00 USD for an H100 since long ago."""
    return {
        "price_id": next(_ids),
        "gpu_model": "H100",
        "amount_micros_per_gpu_hour": micros(rate),
        "currency": "USD",
        "valid_from_at": LONG_AGO,
        "source": "contract",
        "approver": "ann",
        "recorded_at": LONG_AGO,
        "purchase_type": "on_demand",
        "includes_energy": 1,
        "is_withdrawn": 0,
        **given,
    }


def exchange(rate: str, **given: object) -> dict[str, object]:
    """Return what one USD is worth in CNY."""
    return {
        "exchange_rate_id": next(_ids),
        "from_currency": "USD",
        "to_currency": "CNY",
        "rate_micros": micros(rate),
        "valid_from_at": LONG_AGO,
        "source": "bank",
        "recorded_at": LONG_AGO,
        **given,
    }


def shared(amount: str, **given: object) -> dict[str, object]:
    """Return a shared cost of the hour after noon, split by direct cost."""
    return {
        "shared_cost_id": next(_ids),
        "name": "platform",
        "currency": "USD",
        "amount_micros": micros(amount),
        "split_rule": "proportional",
        "valid_from_at": NOON,
        "valid_until_at": NOON.replace(hour=NOON.hour + 1),
        "approver": "ann",
        "recorded_at": LONG_AGO,
        **given,
    }


def budget(amount: str, **given: object) -> dict[str, object]:
    """Return everybody's budget for the month of May."""
    return {
        "budget_id": next(_ids),
        "currency": "USD",
        "amount_micros": micros(amount),
        "time_zone": "UTC",
        "valid_from_at": datetime(2026, 5, 1, tzinfo=NOON.tzinfo),
        "valid_until_at": datetime(2026, 6, 1, tzinfo=NOON.tzinfo),
        "thresholds_json": "[0.5, 0.8, 1.0]",
        "approver": "ann",
        "recorded_at": LONG_AGO,
        **given,
    }


def closed(**given: object) -> dict[str, object]:
    """Return a closed May."""
    number = next(_ids)
    return {
        "closed_period_id": number,
        "statement_id": f"s{number}",
        "from_at": datetime(2026, 5, 1, tzinfo=NOON.tzinfo),
        "until_at": datetime(2026, 6, 1, tzinfo=NOON.tzinfo),
        "time_zone": "UTC",
        "currency": "USD",
        "kind": "statement",
        "statement_json": "{}",
        "statement_sha256": "0" * 64,
        "price_book_version": "v",
        "watermark_at": NOON,
        "closed_by": "ann",
        "recorded_at": datetime(2026, 6, 3, tzinfo=NOON.tzinfo),
        **given,
    }


def tariff(amount: str, **given: object) -> dict[str, object]:
    """Return a tariff for all hours of the day, at a PUE of 1."""
    return {
        "energy_tariff_id": next(_ids),
        "currency": "USD",
        "amount_micros_per_kwh": micros(amount),
        "pue_micros": 1_000_000,
        "host_factor_micros": 1_000_000,
        "time_zone": "UTC",
        "from_hour": 0,
        "until_hour": 24,
        "valid_from_at": LONG_AGO,
        "source": "contract",
        "recorded_at": LONG_AGO,
        **given,
    }


def rows(table: str, *given: Mapping[str, object]) -> pl.DataFrame:
    """Return rows of a state table as the reader gives them; columns not named are null."""
    if not given:
        return empty(f"state.{table}")
    schema = SCHEMAS[f"state.{table}"]
    columns = {name: [row.get(name) for row in given] for name in schema}
    return pl.DataFrame(columns, schema=schema)


def money_frames(
    ledger: pl.DataFrame, **tables: list[dict[str, object]]
) -> dict[str, pl.DataFrame]:
    """Return the frames of the cost report: the ledger, and these rows of state tables."""
    names = ("price", "exchange_rate", "shared_cost", "closed_period", "budget", "energy_tariff")
    state = {f"state.{name}": rows(name, *tables.get(name, [])) for name in names}
    return {"ledger": ledger, "state.capability": empty("state.capability"), **state}


def micros(text: str) -> int:
    """Return a decimal text in whole millionths."""
    whole, _, rest = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return sign * (abs(int(whole)) * 1_000_000 + int(rest.ljust(6, "0") or 0))
