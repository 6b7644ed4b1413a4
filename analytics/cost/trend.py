"""Cost day by day in the days of a zone, what the month will come to, and days that stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final

import polars as pl

from analytics.cost.account import Account
from analytics.cost.anomaly import TRAILING_DAYS, Anomaly, anomalies, median
from analytics.cost.costing import Costing
from analytics.cost.days import days_in_month, whole_days, with_day
from analytics.cost.forecast import Forecast, forecast
from analytics.cost.rounding import Exact
from steward.period import Period

LEAST_SHARE_RATIO: Final = Fraction(1, 100)
"""Share of everybody's usual daily cost below which a team's odd day is nobody's concern."""
Who = tuple[object, object]
"""Team and model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OddDay:
    """A day on which one team's cost for one model stands out."""

    tenant_id: str | None
    model: str | None
    found: Anomaly
    driver_uid: str | None
    """The workload whose cost moved most in the same direction; None: no holder recorded."""
    driver_change: Fraction
    """By how much, against the median of the same days before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Days of one zone."""

    daily: Mapping[date, Account]
    """Every day the period touches, ascending."""
    whole: tuple[date, ...]
    """Days that are known from start to end, ascending."""
    forecast: Forecast | None
    """Of the month of the last whole day; None without one."""
    odd: tuple[OddDay, ...]
    """By day, team and model."""

    @property
    def month(self) -> date | None:
        """Return the first day of the month that is forecast."""
        return self.whole[-1].replace(day=1) if self.whole else None


def trend(costing: Costing, zone: str, *, holders: pl.DataFrame | None = None) -> Trend:
    """Return the trend of a period; its ledger is cut at the midnights of the zone.

    The day in progress is shown, and is no whole day: neither forecast nor judgement use it.

    Args:
        costing: the priced ledger.
        zone: IANA name of the zone whose days are meant.
        holders: the same with workload_uid, on the days of ``odd_spans`` at least; None: the
            ledger itself tells them.
    """
    rows, whole = _by_day(costing, zone)
    found = costing.accounts("day", rows=rows)
    daily = {day: account for (day,), account in found.items() if isinstance(day, date)}
    odd = _odd_days(costing, rows.filter("is_held"), whole=whole)
    named = rows if holders is None else with_day(holders, costing.period, zone)
    return Trend(
        daily=daily,
        whole=whole,
        forecast=_forecast(daily, whole),
        odd=_driven_days(costing, named.filter("is_held"), odd, whole=whole),
    )


def odd_spans(costing: Costing, zone: str) -> tuple[Period, ...]:
    """Return the spans of the ledger that the days which stand out are judged by, ascending."""
    rows, whole = _by_day(costing, zone)
    odd = _odd_days(costing, rows.filter("is_held"), whole=whole)
    told = {day for _, found in odd for day in (*_before(found, whole), found.day)}
    spans = rows.filter(pl.col("day").is_in(told)).select("started_at", "ended_at").unique()
    return tuple(Period(start, end) for start, end in spans.sort("started_at").iter_rows())


def _by_day(costing: Costing, zone: str) -> tuple[pl.DataFrame, tuple[date, ...]]:
    """Return the priced ledger with day, and the days that are known from start to end."""
    span = known_span(costing.rows, costing.period)
    whole = () if span is None else tuple(whole_days(span, zone))
    return with_day(costing.rows, costing.period, zone), whole


def known_span(rows: pl.DataFrame, period: Period) -> Period | None:
    """Return the part of the period that the ledger covers, None without rows."""
    if rows.is_empty():
        return None
    first, last = rows.select(pl.col("started_at").min(), pl.col("ended_at").max()).row(0)
    return Period(max(first, period.from_at), min(last, period.until_at))


def _forecast(daily: Mapping[date, Account], whole: Sequence[date]) -> Forecast | None:
    if not whole:
        return None
    first = whole[-1].replace(day=1)
    cost = {day: daily[day].capacity if day in daily else Fraction(0) for day in whole}
    month = [cost[day] for day in whole if day >= first]
    return forecast(
        [cost[day] for day in whole if day < first],
        month,
        days_in_month=days_in_month(first),
        is_month_whole=whole[0] <= first,
    )


def _odd_days(
    costing: Costing, held: pl.DataFrame, *, whole: Sequence[date]
) -> list[tuple[Who, Anomaly]]:
    """Return the days that stand out, and of which team and model."""
    series: dict[Who, dict[date, Exact]] = {}
    for (team, model, day), cost in costing.allocated(
        "tenant_id", "model", "day", rows=held
    ).items():
        if isinstance(day, date):
            series.setdefault((team, model), {})[day] = cost
    least = _least_change(costing, held, whole=whole)
    return [
        (who, found)
        for who, costs in series.items()
        for found in anomalies([(day, costs.get(day, 0)) for day in whole])
        if abs(found.cost - found.usual) >= least
    ]


def _driven_days(
    costing: Costing,
    held: pl.DataFrame,
    odd: Sequence[tuple[Who, Anomaly]],
    *,
    whole: Sequence[date],
) -> tuple[OddDay, ...]:
    """Return the days that stand out, each with what moved it, by day, team and model."""
    told = (_driven(costing, held, who, found=found, whole=whole) for who, found in odd)
    return tuple(
        sorted(told, key=lambda odd: (odd.found.day, odd.tenant_id or "", odd.model or ""))
    )


def _before(found: Anomaly, whole: Sequence[date]) -> list[date]:
    return [day for day in whole if day < found.day][-TRAILING_DAYS:]


def _least_change(costing: Costing, held: pl.DataFrame, *, whole: Sequence[date]) -> Fraction:
    by_day = {day: cost for (day,), cost in costing.allocated("day", rows=held).items()}
    if not whole:
        return Fraction(0)
    return median([Fraction(by_day.get(day, 0)) for day in whole]) * LEAST_SHARE_RATIO


def _driven(
    costing: Costing,
    held: pl.DataFrame,
    who: Who,
    *,
    found: Anomaly,
    whole: Sequence[date],
) -> OddDay:
    """Return the odd day with the workload that moved it most."""
    team, model = who
    own = held.filter(
        pl.col("tenant_id").eq_missing(pl.lit(team)), pl.col("model").eq_missing(pl.lit(model))
    )
    before = _before(found, whole)
    costs: dict[object, dict[object, Exact]] = {}
    for (uid, day), cost in costing.allocated("workload_uid", "day", rows=own).items():
        costs.setdefault(uid, {})[day] = cost
    changes = {
        uid: by_day.get(found.day, 0) - median([Fraction(by_day.get(day, 0)) for day in before])
        for uid, by_day in costs.items()
    }
    sign = 1 if found.cost > found.usual else -1
    uid = max(changes, key=lambda uid: (sign * changes[uid], str(uid)))
    return OddDay(
        tenant_id=None if team is None else str(team),
        model=None if model is None else str(model),
        found=found,
        driver_uid=None if uid is None else str(uid),
        driver_change=changes[uid],
    )
