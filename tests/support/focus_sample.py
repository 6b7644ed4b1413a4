"""A month's beginning that has everything an export can have: a ledger, prices, shared costs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl

from analytics.cost.costing import INPUTS
from analytics.focus.priced import Entry
from steward.period import Period
from tests.support.analytics_frames import empty, framed
from tests.support.ledger_rows import free, held, ledger

START = datetime(2026, 5, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TWO_HOURS = Period(START, START + 2 * HOUR)


def price(price_id: int, gpu_model: str, **given: object) -> dict[str, object]:
    """Return one row of ``state.price``."""
    return {
        "price_id": price_id,
        "gpu_model": gpu_model,
        "amount_micros_per_gpu_hour": 2_500_000,
        "currency": "USD",
        "valid_from_at": START - timedelta(days=30),
        "source": "contract",
        "approver": "finance",
        "recorded_at": START - timedelta(days=30),
        "purchase_type": "on_demand",
        "includes_energy": 1,
        "is_withdrawn": 0,
        **given,
    }


def state(name: str, *rows: dict[str, object]) -> pl.DataFrame:
    """Return rows of a state table."""
    return framed(f"state.{name}", rows)


def hour(number: int) -> dict[str, object]:
    """Return the ends of one hour of the sample."""
    return {"started_at": START + number * HOUR, "ended_at": START + (number + 1) * HOUR}


def sample_ledger() -> pl.DataFrame:
    """Return two hours of three teams on three models, with every leaf and an unknown team."""
    first, second = hour(0), hour(1)
    return ledger(
        held(used=0.3, idle=0.2, unknown=0.1, **first),
        held(tenant_id="team-b", workload_uid="w2", unknown=1 / 7, **first),
        held(tenant_id=None, workload_uid=None, workload_class=None, unknown=0.1, **first),
        free(free_idle=2, stranded=1, down=0.5, **first),
        free(reserved_unused=3, queue="q", tenant_id="team-b", **first),
        held(model="A100", used=1 / 3, tenant_id="team-c", **second),
        free(model="A100", free_idle=2 / 3, node="n2", **second),
        held(model="L40S", used=0.7, tenant_id="team-d", **second),
        held(model="B200", used=1, **second),
    )


def sample_frames(
    *,
    rows: pl.DataFrame | None = None,
    prices: tuple[dict[str, object], ...] | None = None,
    closed: tuple[dict[str, object], ...] = (),
    shared: bool = True,
) -> dict[str, pl.DataFrame]:
    """Return the inputs of a costing; B200 has no price."""
    if prices is None:
        prices = (
            price(7, "H100", sku="h100-sxm", list_amount_micros_per_gpu_hour=3_000_000),
            price(8, "A100", purchase_type="reserved", amount_micros_per_gpu_hour=1_333_333),
            price(9, "L40S", purchase_type="spot", amount_micros_per_gpu_hour=777_777),
        )
    storage: dict[str, object] = {
        "shared_cost_id": 1,
        "name": "storage",
        "currency": "USD",
        "amount_micros": 1_000_000,
        "split_rule": "proportional",
        "valid_from_at": TWO_HOURS.from_at,
        "valid_until_at": TWO_HOURS.until_at,
        "approver": "finance",
        "recorded_at": START,
    }
    given = {
        "ledger": sample_ledger() if rows is None else rows,
        "state.price": state("price", *prices),
        "state.shared_cost": state("shared_cost", *((storage,) if shared else ())),
        "state.closed_period": state("closed_period", *closed),
    }
    return {name: given.get(name, empty(name)) for name in INPUTS}


def closed_row(number: int, statement_id: str, **given: object) -> dict[str, object]:
    """Return one row of ``state.closed_period``; total and bills go into its document."""
    document = {"total": given.pop("total"), "bills": given.pop("bills", [])}
    return {
        "closed_period_id": number,
        "statement_id": statement_id,
        "from_at": TWO_HOURS.from_at,
        "until_at": TWO_HOURS.until_at,
        "time_zone": "UTC",
        "currency": "USD",
        "kind": "statement",
        "statement_json": json.dumps(document),
        "statement_sha256": "0" * 64,
        "price_book_version": "b",
        "watermark_at": TWO_HOURS.until_at,
        "closed_by": "finance",
        "recorded_at": START + timedelta(days=33),
        **given,
    }


def lending(amount: str = "0.25") -> tuple[Entry, Entry]:
    """Return what a borrower pays and what the lender is credited."""

    def entry(team: str, signed: Decimal, *, is_credit: bool) -> Entry:
        return Entry(
            kind="credit" if is_credit else "fee",
            tenant_id=team,
            charged=TWO_HOURS,
            currency="USD",
            amount=signed,
            description="Borrowed capacity",
        )

    paid = Decimal(amount)
    return (
        entry("team-a", paid, is_credit=False),
        entry("team-b", -paid, is_credit=True),
    )
