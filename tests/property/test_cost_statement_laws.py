"""The laws of cost that speak of statements and of time, numbered as in ``docs/cost-rules.md``.

Fleets and prices are random; the price book, the calendar, statements and figures are the
product's own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.cost.costing import cost_instants, costing
from analytics.cost.days import days, midnight, midnights, with_day
from analytics.cost.rounding import units_of
from analytics.cost.statement import Heading, sha256_of, statement, text_of
from analytics.inputs import empty
from analytics.reports.cost_figures import ratio_figures
from analytics.usage import totals
from analytics.utilization import leaves
from steward.calendar_period import period_from
from steward.period import Period
from steward.units import TICKS_PER_MICROSECOND
from tests.support.analytics_frames import HOUR, NOON
from tests.support.cost_cases import EARLY, at_rate, charged
from tests.support.cost_worlds import END, IN_CI, Piece, fleets, ledger_of
from tests.support.price_rows import closed, money_frames, price

pytestmark = pytest.mark.timeout(600)
WINDOW: Final = Period(NOON, END)
RATE_CHANGE: Final = st.tuples(st.integers(0, 14_399), st.integers(0, 9_999))
CLOSED_AT: Final = END + HOUR
MICROS_PER_CENT: Final = 10_000
Price = dict[str, object]


def always(period: Period) -> Piece:
    """Return one device that is free all through a period."""
    return Piece(
        from_at=period.from_at,
        until_at=period.until_at,
        keys={"cluster": "c", "node": "n", "model": "H100", "is_held": False},
        parts={"free_idle_ticks": TICKS_PER_MICROSECOND},
    )


ZONES: Final = st.sampled_from(
    [
        "UTC",
        "Asia/Shanghai",
        "America/New_York",
        "Europe/Berlin",
        "Australia/Lord_Howe",
        "America/St_Johns",
        "Africa/Cairo",
        "America/Santiago",
    ]
)


@given(ZONES, st.integers(1, 12), st.integers(2024, 2027), st.integers(1, 3))
@IN_CI
def test_invariant_08_time_zone(zone: str, month: int, year: int, gpus: int) -> None:
    whole = period_from(f"{year}-{month:02}", zone=zone, until_at=datetime(2030, 1, 1, tzinfo=UTC))
    spans = [whole.from_at, *midnights(whole, zone), whole.until_at]
    told = ledger_of([always(whole)] * gpus, spans)
    dated = with_day(charged(told, at_rate("1.00")).rows, whole, zone)
    by_day = {
        day: units_of(parts)
        for day, parts in dated.group_by("day").agg(pl.col("capacity_parts").sum()).iter_rows()
    }
    assert sorted(by_day) == days(whole, zone)
    for day, spent in by_day.items():
        period = period_from(day.isoformat(), zone=zone, until_at=whole.until_at)
        assert (period.from_at, period.until_at) == (
            midnight(day, zone),
            midnight(day + timedelta(days=1), zone),
        )
        assert spent == gpus * Fraction(period.length / HOUR)
        local = period.from_at.astimezone(ZoneInfo(zone))
        assert local.date() == day
    assert sum(by_day.values()) == gpus * Fraction(whole.length / HOUR)


def told_prices(changes: Sequence[tuple[int, int]], *, recorded_at: datetime) -> list[Price]:
    """Return prices, each from its second on without an end."""
    return [
        price(
            gpu_model=model,
            amount_micros_per_gpu_hour=cents * MICROS_PER_CENT,
            valid_from_at=NOON + timedelta(seconds=start),
            recorded_at=recorded_at,
        )
        for start, cents in changes
        for model in ("H100", "T4")
    ]


def first_prices() -> list[Price]:
    """Return prices that hold until others do."""
    return [price(gpu_model=model, valid_from_at=EARLY) for model in ("H100", "T4")]


def cut_ledger(fleet: list[Piece], prices: list[Price]) -> pl.DataFrame:
    """Return the ledger of the window, cut wherever any of the prices changes."""
    state = money_frames(empty("ledger"), price=prices)
    return ledger_of(fleet, [NOON, END, *cost_instants(state, WINDOW)])


def document(ledger: pl.DataFrame, prices: list[Price], shut: Sequence[Price] = ()) -> str:
    """Return the text of a statement of the window."""
    heading = Heading(
        statement_id="CB-1",
        time_zone="UTC",
        watermark_at=WINDOW.until_at,
        config_hash="c",
        reason=None,
    )
    state = money_frames(ledger, price=prices, closed_period=[*shut])
    return text_of(statement(costing(state, WINDOW), heading))


@given(fleets(), st.lists(RATE_CHANGE, max_size=3), st.lists(RATE_CHANGE, min_size=1, max_size=2))
@IN_CI
def test_invariant_06_closed_periods_keep_their_money(
    fleet: list[Piece], before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    known = [*first_prices(), *told_prices(before, recorded_at=EARLY)]
    later = [*known, *told_prices(after, recorded_at=CLOSED_AT + HOUR)]
    ledger = cut_ledger(fleet, later)
    shut = closed(from_at=WINDOW.from_at, until_at=WINDOW.until_at, recorded_at=CLOSED_AT)
    first = document(ledger, known, [shut])
    assert document(ledger, later, [shut]) == first
    assert json.loads(first)["total"] == json.loads(document(ledger, known))["total"]


@given(fleets(), st.lists(RATE_CHANGE, max_size=3), st.integers(0, 9_999))
@IN_CI
def test_invariant_15_one_snapshot(
    fleet: list[Piece], changes: list[tuple[int, int]], seed: int
) -> None:
    prices = [*first_prices(), *told_prices(changes, recorded_at=EARLY)]
    ledger = cut_ledger(fleet, prices)
    first = document(ledger, prices)
    shuffled = ledger.sample(fraction=1.0, shuffle=True, seed=seed)
    random = Random(seed)  # noqa: S311  # shuffles rows
    again = document(shuffled, random.sample(prices, len(prices)))
    assert sha256_of(again) == sha256_of(first)
    told = json.loads(first)
    assert told["watermark_at"]
    assert told["config_hash"]
    dearer = [{**one, "amount_micros_per_gpu_hour": _more(one)} for one in prices]
    other = json.loads(document(ledger, dearer))
    assert told["price_book_version"] != other["price_book_version"]


def _more(row: Price) -> int:
    return int(str(row["amount_micros_per_gpu_hour"])) + 1


@given(fleets())
@IN_CI
def test_invariant_17_coverage_is_printed(fleet: list[Piece]) -> None:
    ledger = ledger_of(fleet, [NOON, END])
    summed = totals(ledger).row(0, named=True)
    used = summed["used_measured_ticks"] + summed["used_estimated_ticks"]
    known = used + summed["ineffective_ticks"] + summed["idle_ticks"]
    held = known + summed["unknown_ticks"]

    (told,) = leaves(ledger).iter_rows(named=True)
    assert told["utilization_ratio"] == (used / known if known else None)
    assert told["coverage_ratio"] == (known / held if held else None)

    prices = [price("4.00", gpu_model=model) for model in ("H100", "T4")]
    found = costing(money_frames(ledger, price=prices), WINDOW)
    figures = {one.key: one for one in ratio_figures(found)}
    by_money = figures["used_of_known_ratio"]
    assert by_money.value == (used / known if known else None)
    assert by_money.coverage_ratio == (known / held if held else None)
    text = f"{by_money.value} {by_money.coverage_ratio}".lower()
    assert "nan" not in text
    assert "inf" not in text
