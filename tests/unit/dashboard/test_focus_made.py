"""The export as it is made of stored rows: statements, corrections, and what is told beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest

from analytics.focus.terms import Terms
from analytics.reports.model import Question
from dashboard.reports.focus import Made, Wish, grid, in_seconds, made
from dashboard.reports.focus_files import as_csv, as_parquet
from steward.period import Period
from tests.support.focus_sample import (
    HOUR,
    START,
    TWO_HOURS,
    closed_row,
    hour,
    price,
    sample_frames,
)
from tests.support.ledger_rows import free, held, ledger

ONE = ledger(held(used=1, **hour(0)))
CLOSED_AT = START + timedelta(days=33)


def answer(**given: object) -> Made:
    """Return the export of one GPU-hour at 2.50, closed as the case says."""
    frames = sample_frames(**({"rows": ONE, "shared": False} | given))  # type: ignore[arg-type]  # a test's own words
    return made(frames, Question(period=TWO_HOURS), Wish(terms=Terms()))


def by_statement(found: Made) -> dict[tuple[object, ...], Decimal]:
    """Return the billed cost of each statement and class."""
    sums: dict[tuple[object, ...], Decimal] = {}
    for row in found.export.frame.iter_rows(named=True):
        key = (row["InvoiceId"], row["ChargeClass"])
        sums[key] = sums.get(key, Decimal(0)) + row["BilledCost"]
    return sums


def test_open_period_has_no_statement() -> None:
    found = answer()
    assert by_statement(found) == {(None, None): Decimal("2.5")}
    assert found.notes == ()


def test_closed_period_carries_its_statement() -> None:
    found = answer(closed=(closed_row(1, "CB-1", total="2.50"),))
    assert by_statement(found) == {("CB-1", None): Decimal("2.5")}
    assert found.notes == ()


def test_correction_is_told_beside_the_statement_it_corrects() -> None:
    later = price(
        8, "H100", amount_micros_per_gpu_hour=2_600_000, recorded_at=CLOSED_AT + timedelta(days=1)
    )
    correction = closed_row(
        2, "CB-1-c1", kind="correction", corrects_statement_id="CB-1", total="0.10",
        bills=[{"team": "team-a", "total": "0.10"}], recorded_at=CLOSED_AT + timedelta(days=2),
    )  # fmt: skip
    found = answer(
        prices=(price(7, "H100"), later),
        closed=(closed_row(1, "CB-1", total="2.50"), correction),
    )
    assert by_statement(found) == {
        ("CB-1", None): Decimal("2.5"),
        ("CB-1-c1", "Correction"): Decimal("0.10"),
    }


def test_rows_that_say_otherwise_carry_no_statement() -> None:
    found = answer(closed=(closed_row(1, "CB-1", total="2.40"),))
    assert by_statement(found) == {(None, None): Decimal("2.5")}
    (note,) = found.notes
    assert "add up to 2.50 USD, statement CB-1 says 2.40 USD" in note


def test_nothing_priced_is_said() -> None:
    found = answer(prices=())
    assert found.export.frame.is_empty()
    nothing, unpriced = found.notes
    assert nothing.endswith("has a price: the file holds the header only.")
    assert unpriced == "1.00 GPU-hours without a price are not in the file: H100."


def test_currencies_stay_those_of_the_prices() -> None:
    rows = ledger(held(used=1, **hour(0)), free(model="A100", free_idle=1, **hour(0)))
    prices = (price(1, "H100"), price(2, "A100", currency="EUR"))
    found = answer(rows=rows, prices=prices)
    assert found.notes == ("Rows are in the currencies of their prices: EUR, USD.",)
    assert found.export.total("EUR") == found.export.total("USD") == Decimal("2.5")


@pytest.mark.parametrize(
    ("end_us", "end_s"),
    [
        pytest.param(0, 0, id="full second"),
        pytest.param(1, 1, id="a tick past it"),
        pytest.param(999_999, 1, id="a tick before the next"),
    ],
)
def test_period_is_widened_to_full_seconds(end_us: int, end_s: int) -> None:
    end = START + HOUR
    period = Period(START + timedelta(microseconds=5), end + timedelta(microseconds=end_us))
    assert in_seconds(period) == Period(START, end + timedelta(seconds=end_s))


def test_grid_of_hours_and_days() -> None:
    period = Period(START + HOUR / 2, START + 26 * HOUR)
    hours = grid(period, grain="hour", zone="UTC")
    assert hours[0] == START + HOUR
    assert hours[-1] == START + 25 * HOUR
    assert START + HOUR * 18.5 in grid(period, grain="hour", zone="Asia/Kolkata")
    assert grid(period, grain="day", zone="UTC") == (START + 24 * HOUR,)
    assert grid(period, grain="day", zone="Asia/Shanghai") == (START + 16 * HOUR,)


def test_day_on_which_clocks_change_has_its_own_length() -> None:
    period = Period(datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 23, tzinfo=UTC))
    assert grid(period, grain="day", zone="Europe/Berlin") == (
        datetime(2026, 3, 29, 22, tzinfo=UTC),
    )


def test_csv_keeps_every_decimal_and_leaves_unknown_empty() -> None:
    text = as_csv(answer().export.frame.select("BilledCost", "InvoiceId", "ChargePeriodStart"))
    assert text == (
        "BilledCost,InvoiceId,ChargePeriodStart\n2.500000000000,,2026-05-01T00:00:00Z\n"
    )


@pytest.mark.parametrize(
    ("decimals", "dtype"), [("decimal", pl.Decimal(38, 12)), ("double", pl.Float64())]
)
def test_parquet_types(decimals: str, dtype: pl.DataType) -> None:
    content = as_parquet(answer().export.frame, decimals=decimals)  # type: ignore[arg-type]  # parametrised over both
    assert pl.read_parquet(content).schema["BilledCost"] == dtype
