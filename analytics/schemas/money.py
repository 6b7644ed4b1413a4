"""Rows of the state that money needs: prices, rates, tariffs, budgets, closed periods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "state.price": rows(
            price_id=pl.Int64,
            gpu_model=pl.String,
            tenant_id=pl.String,
            amount_micros_per_gpu_hour=pl.Int64,
            currency=pl.String,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            source=pl.String,
            approver=pl.String,
            recorded_at=INSTANT,
            purchase_type=pl.String,
            cluster=pl.String,
            sku=pl.String,
            includes_energy=pl.Int64,
            list_amount_micros_per_gpu_hour=pl.Int64,
            calculator_json=pl.String,
            is_withdrawn=pl.Int64,
        ),
        "state.exchange_rate": rows(
            exchange_rate_id=pl.Int64,
            from_currency=pl.String,
            to_currency=pl.String,
            rate_micros=pl.Int64,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            source=pl.String,
            recorded_at=INSTANT,
        ),
        "state.energy_tariff": rows(
            energy_tariff_id=pl.Int64,
            cluster=pl.String,
            currency=pl.String,
            amount_micros_per_kwh=pl.Int64,
            pue_micros=pl.Int64,
            host_factor_micros=pl.Int64,
            kgco2e_micros_per_kwh=pl.Int64,
            time_zone=pl.String,
            from_hour=pl.Int64,
            until_hour=pl.Int64,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            source=pl.String,
            recorded_at=INSTANT,
        ),
        "state.shared_cost": rows(
            shared_cost_id=pl.Int64,
            name=pl.String,
            cluster=pl.String,
            currency=pl.String,
            amount_micros=pl.Int64,
            split_rule=pl.String,
            weights_json=pl.String,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            approver=pl.String,
            recorded_at=INSTANT,
        ),
        "state.budget": rows(
            budget_id=pl.Int64,
            tenant_id=pl.String,
            currency=pl.String,
            amount_micros=pl.Int64,
            time_zone=pl.String,
            valid_from_at=INSTANT,
            valid_until_at=INSTANT,
            thresholds_json=pl.String,
            approver=pl.String,
            recorded_at=INSTANT,
        ),
        "state.closed_period": rows(
            closed_period_id=pl.Int64,
            statement_id=pl.String,
            from_at=INSTANT,
            until_at=INSTANT,
            time_zone=pl.String,
            currency=pl.String,
            kind=pl.String,
            corrects_statement_id=pl.String,
            statement_json=pl.String,
            statement_sha256=pl.String,
            price_book_version=pl.String,
            watermark_at=INSTANT,
            closed_by=pl.String,
            recorded_at=INSTANT,
        ),
        "energy_by_hour": rows(
            cluster=pl.String,
            node=pl.String,
            device_uuid=pl.String,
            hour_at=INSTANT,
            first_at=INSTANT,
            first_j=pl.Float64,
            last_at=INSTANT,
            last_j=pl.Float64,
        ),
        "energy_days": rows(
            cluster=pl.String,
            node=pl.String,
            device_uuid=pl.String,
            first_at=INSTANT,
            first_j=pl.Float64,
            last_at=INSTANT,
            last_j=pl.Float64,
        ),
        "energy_hours": rows(
            cluster=pl.String,
            hour_at=INSTANT,
            used_j=pl.Int64,
            known_s=pl.Float64,
            told_s=pl.Float64,
        ),
    }
)
"""Rows of the state tables of the same names; money is in millionths of the currency, a null
``valid_until_at`` has no end, a null ``cluster`` or ``tenant_id`` means any. ``energy_by_hour``:
the first and the last reading of each board's energy counter in each hour, of the time whose energy
is not built; ``energy_days``: the same of each day whose energy is built, and ``energy_hours``: the
energy between two readings of one such day."""
