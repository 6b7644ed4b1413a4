"""What GPU-hours cost whoever holds them, as values: for sums over spans that no ledger knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

import polars as pl
from polars import selectors as cs

from analytics.cost.book import price_book
from analytics.schemas.money import SCHEMAS
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

SHARE_DENOMINATOR_MOST = 5_040
"""Shares of a GPU that are not exact in binary, such as sevenths and tenths, are taken as meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One price while it holds."""

    period: Period
    currency: str
    micros_per_gpu_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The prices of one cluster."""

    by_holder: Mapping[tuple[str, str | None], Sequence[Rate]]
    """By GPU model and team; without a team, for everybody who has no prices of their own."""
    teams: frozenset[str]
    """Teams that have."""

    def cost(
        self, period: Period, *, model: str | None, tenant_id: str | None, gpu_count: float
    ) -> dict[str, Fraction] | None:
        """Return what holding GPUs costs in millionths of each currency, exactly.

        None: some part of the time has no price, so what all of it costs is not known.
        """
        team = tenant_id if tenant_id in self.teams else None
        gpus = Fraction(gpu_count).limit_denominator(SHARE_DENOMINATOR_MOST)
        found: defaultdict[str, Fraction] = defaultdict(Fraction)
        priced = timedelta()
        for rate in self.by_holder.get((model or "", team), ()):
            both = rate.period.intersection(period)
            if both is not None:
                hours = Fraction(both.length // _MICROSECOND, _MICROSECONDS_PER_HOUR)
                found[rate.currency] += hours * gpus * rate.micros_per_gpu_hour
                priced += both.length
        return dict(found) if priced == period.length else None


_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_PER_HOUR = SECONDS_PER_HOUR * (timedelta(seconds=1) // _MICROSECOND)


def rates(
    rows: Sequence[Mapping[str, object]], period: Period, *, models: Sequence[str], cluster: str
) -> Rates:
    """Return the prices that hold in a period.

    Args:
        rows: of the state table ``price``.
        period: what is priced.
        models: GPU models that are held.
        cluster: where.
    """
    book = price_book(_frame(rows), period, models=models, clusters=[cluster])
    found: defaultdict[tuple[str, str | None], list[Rate]] = defaultdict(list)
    columns = ("gpu_model", "tenant_id", "currency", "rate_micros")
    spans = ("valid_from_at", "valid_until_at")
    for model, team, currency, micros, from_at, until_at in book.select(*columns, *spans).rows():
        rate = Rate(
            period=_within(period, from_at, until_at),
            currency=currency,
            micros_per_gpu_hour=micros,
        )
        found[model, team].append(rate)
    teams = frozenset(team for _, team in found if team is not None)
    return Rates(by_holder=dict(found), teams=teams)


def _within(period: Period, from_at: datetime, until_at: datetime | None) -> Period:
    last_at = period.until_at if until_at is None else min(until_at, period.until_at)
    return Period(max(from_at, period.from_at), last_at)


def _frame(rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Return rows of the state table in declared types; instants are read from their texts."""
    schema = SCHEMAS["state.price"]
    instants = [name for name, kind in schema.items() if kind.is_temporal()]
    as_text = {name: pl.String() if name in instants else kind for name, kind in schema.items()}
    columns = {name: [row.get(name) for row in rows] for name in schema}
    told = pl.DataFrame(columns, schema=as_text, strict=False)
    return told.with_columns(
        cs.by_name(instants).str.to_datetime(time_unit="us", time_zone="UTC")
    ).cast(schema)
