"""How values are printed: units, separators, percent, durations, and dashes for the unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from analytics.reports.model import Column
from dashboard import format as fmt
from steward.period import Period
from tests.support.report_builders import NOON, TENANT_COLUMNS, WEEK, table

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        pytest.param(None, "ratio", "\u2013", id="an unknown share is a dash"),
        pytest.param(0.0, "ratio", "0 %", id="a measured zero is zero"),
        pytest.param(0.8046, "ratio", "80.46 %", id="a share is percent with its sign"),
        pytest.param(1.0, "ratio", "100.00 %", id="all of it"),
        pytest.param(0.00004, "ratio", "0.004 %", id="a small share is not zero"),
        pytest.param(0.0000011, "ratio", "0.0001 %", id="just past one in a million"),
        pytest.param(0.000001, "ratio", "0.0001 %", id="exactly one in a million"),
        pytest.param(0.0000009, "ratio", "<0.0001 %", id="just below one in a million"),
        pytest.param(-0.000001, "ratio", "-0.0001 %", id="exactly one in a million below zero"),
        pytest.param(-0.0000009, "ratio", ">-0.0001 %", id="just below zero"),
        pytest.param(-0.05, "ratio", "-5.00 %", id="a negative share keeps its sign"),
        pytest.param(float("nan"), "s", "\u2013", id="no number is unknown"),
        pytest.param(float("inf"), "s", "\u2013", id="an infinite number is unknown"),
        pytest.param(51470.67, "GPU-hours", "51,470.67", id="thousands are separated"),
        pytest.param(6212, "count", "6,212", id="counts have no decimals"),
        pytest.param(0.0001, "W", "0.0001", id="a small value is not zero"),
        pytest.param(0.00000012, "W", "1e-07", id="a tiny value is not zero"),
        pytest.param(1024**3 * 1.5, "bytes", "1.50 GiB", id="sizes scale themselves"),
        pytest.param(1023, "bytes", "1,023 B", id="just below a KiB"),
        pytest.param(1024, "bytes", "1 KiB", id="exactly a KiB"),
        pytest.param(1025, "bytes", "1.00 KiB", id="just past a KiB"),
        pytest.param(3_599_999, "J", "3,599,999 J", id="just below a kWh"),
        pytest.param(3_600_000, "J", "1 kWh", id="exactly a kWh"),
        pytest.param(True, "text", "yes", id="a statement that is true"),
        pytest.param(False, "count", "no", id="a statement that is false"),
        pytest.param(NOON, "text", "2026-05-01 12:00", id="an instant"),
        pytest.param(timedelta(hours=2), "text", "2 h", id="a length"),
        pytest.param(["T4", "G2"], "text", "T4, G2", id="a list"),
        pytest.param("语音", "text", "语音", id="words"),
        pytest.param(None, "currency", "\u2013", id="an unknown amount is a dash"),
        pytest.param("0.00", "currency", "0.00", id="no money is a measured zero"),
        pytest.param("999.99", "currency", "999.99", id="just below a thousand"),
        pytest.param("1000.00", "currency", "1,000.00", id="exactly a thousand"),
        pytest.param("1234567.5", "currency", "1,234,567.5", id="digits stay as they are"),
        pytest.param("-1234.50", "currency", "-1,234.50", id="a credit"),
        pytest.param("1234.50 EUR", "currency", "1,234.50 EUR", id="an amount with its code"),
        pytest.param("12345", "currency", "12,345", id="a currency without minor units"),
        pytest.param("12345678901234567890.12", "currency", "12,345,678,901,234,567,890.12",
                     id="more digits than a float holds"),
        pytest.param("unpriced", "currency", "unpriced", id="words where no amount is"),
        pytest.param("1234.50", "text", "1234.50", id="a text stays a text"),
    ],
)  # fmt: skip
def test_cell(value: fmt.Printable, unit: str, shown: str) -> None:
    assert fmt.cell(value, unit) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.25, "0.2 s"),
        (119, "119 s"),
        (120, "2 min"),
        (121, "2 min 1 s"),
        (HOUR_S - 1, "59 min 59 s"),
        (HOUR_S, "1 h"),
        (HOUR_S + 1, "1 h"),
        (3 * HOUR_S + 14 * MINUTE_S, "3 h 14 min"),
        (DAY_S, "1 d"),
        (14 * DAY_S + HOUR_S, "14 d 1 h"),
        (-2 * HOUR_S, "-2 h"),
    ],
)
def test_duration_reads_in_its_two_largest_units(seconds: float, shown: str) -> None:
    assert fmt.duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "unit", "key", "shown"),
    [
        pytest.param(61.3, "s", "", "61.30 s", id="a short wait"),
        pytest.param(889.64, "s", "", "889.64 s (14 min 50 s)", id="a long wait reads both ways"),
        pytest.param(0.139445, "ratio", "", "13.94 %", id="two decimals"),
        pytest.param(0.139445, "ratio", "fragmentation_ratio", "13.9445 %", id="four where cited"),
        pytest.param(866232.55, "milli-GPU", "", "866,232.55 milli-GPU", id="with its unit"),
        pytest.param(0, "GPU-hours", "", "0 GPU-hours", id="zero"),
        pytest.param(None, "GPU-hours", "", "\u2013", id="unknown has no unit"),
        pytest.param(897, "count", "", "897", id="a count has no unit"),
        pytest.param("kaplan_meier", "text", "", "kaplan_meier", id="words"),
    ],
)
def test_figure(*, value: float | str | None, unit: str, key: str, shown: str) -> None:
    assert fmt.figure(value, unit, key=key) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "ratio", "\u2013"),
        (0.0, "ratio", "0 %"),
        (0.4321, "ratio", "43.2 %"),
        (51470.67, "GPU-hours", "51,471 GPU-h"),
        (99.96, "GPU-hours", "100.0 GPU-h"),
        (11640.0, "s", "3 h 14 min"),
        ("idle", "text", "idle"),
    ],
)
def test_brief(value: float | str | None, unit: str, shown: str) -> None:
    assert fmt.brief(value, unit) == shown


def test_numbers_of_a_column_share_their_decimals() -> None:
    assert fmt.cells([51470.67, 12.0, 0.0, None], "GPU-hours") == [
        "51,470.67",
        "12.00",
        "0",
        "\u2013",
    ]
    assert fmt.cells([2.0, 106.0, None], "s") == ["2", "106", "\u2013"]


def test_table_cells_follow_the_columns() -> None:
    assert fmt.table_cells(table())[3] == ("\u2013", "\u2013", "0.004 %", "\u2013", "512 B")
    assert len(fmt.table_cells(table())[0]) == len(TENANT_COLUMNS)


@pytest.mark.parametrize(
    ("title", "unit", "shown"),
    [
        ("Held", "GPU-hours", "Held (GPU-h)"),
        ("GPU-hours", "GPU-hours", "GPU-hours"),
        ("Effective", "ratio", "Effective"),
        ("Jobs", "count", "Jobs"),
        ("Wait", "s", "Wait (s)"),
        ("Slices", "s", "Slices (s)"),
        ("GPUs", "GPU", "GPUs"),
        ("Absent", "GPU", "Absent (GPU)"),
        ("Temperature", "celsius", "Temperature (\u00b0C)"),
    ],
)
def test_header_names_the_unit_once(title: str, unit: str, shown: str) -> None:
    assert fmt.header(title, unit) == shown


def test_period_names_both_ends_and_the_length() -> None:
    assert fmt.period(WEEK) == "2026-05-01 12:00 \u2013 2026-05-08 12:00 UTC (7 d)"
    instant = Period(NOON, NOON + timedelta(microseconds=1))
    assert fmt.period(instant) == "2026-05-01 12:00 \u2013 2026-05-01 12:00 UTC"


def test_instant_is_shown_in_utc() -> None:
    shanghai = datetime.fromisoformat("2026-05-01T20:00:05+08:00")
    assert fmt.instant(shanghai) == "2026-05-01 12:00:05"
    assert fmt.instant(shanghai.astimezone(UTC)) == "2026-05-01 12:00:05"


def test_coverage_that_does_not_apply_is_blank() -> None:
    assert [fmt.coverage(ratio) for ratio in (None, 0.0, 0.978)] == ["", "0 %", "97.8 %"]


def test_money_in_a_table_carries_the_code_of_its_row() -> None:
    rows = pl.DataFrame(
        {
            "team": ["a", "b", "c"],
            "cost": ["1234.50", None, "-1.00"],
            "currency": ["EUR", "EUR", None],
        }
    )
    columns = (
        Column(name="team", title="Team", unit="text"),
        Column(name="cost", title="Cost", unit="currency"),
        Column(name="currency", title="Currency", unit="text"),
    )
    shown = fmt.table_cells(table(frame=rows, columns=columns))
    assert [row[1] for row in shown] == ["1,234.50 EUR", "\u2013", "-1.00"]
    assert fmt.header("Cost", "currency") == "Cost"


def test_money_on_a_card_and_as_a_figure_keeps_its_digits() -> None:
    assert fmt.figure("1234.50", "currency") == "1,234.50"
    assert fmt.brief("1234.50", "currency") == "1,234.50"
    assert fmt.figure(None, "currency") == "\u2013"
