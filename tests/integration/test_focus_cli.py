"""``steward focus`` from the command line to the file."""

from __future__ import annotations

import argparse
import csv
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from dashboard.reports.focus_cli import FOCUS
from sql.warehouse import open_embedded
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import UsageError
from steward.settings import load
from tests.support.report_rows import store_fleet

NOW = datetime(2026, 5, 3, tzinfo=UTC)
HOURS = ("--period", "2026-05-01T00:00Z/PT3H")
DAY = ("--period", "2026-05-01", "--grain", "day")
PRICE = {
    "gpu_model": "H100",
    "amount_micros_per_gpu_hour": 2_500_000,
    "currency": "USD",
    "valid_from_at": "2026-05-01T00:00:00+00:00",
    "source": "contract",
    "approver": "finance",
}
WHOLE, THREE_HOURS = Decimal(240), Decimal(30)
"""Four GPUs of 2.50 for a day, and for three hours."""


@pytest.fixture(scope="module")
def priced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("priced")
    with closing(open_embedded(folder)) as warehouse:
        store_fleet(warehouse)
        warehouse.state_insert("price", PRICE)
    return folder


@pytest.fixture(scope="module")
def unpriced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpriced")
    with closing(open_embedded(folder)) as warehouse:
        store_fleet(warehouse)
    return folder


def focus(folder: Path, *arguments: str) -> int:
    parser = argparse.ArgumentParser()
    FOCUS.add_arguments(parser)
    settings = load(flags={"data_dir": str(folder)})
    return FOCUS.run(
        parser.parse_args(arguments), Context(settings=settings, clock=FixedClock(NOW))
    )


def test_csv_adds_up_to_the_capacity(priced: Path, tmp_path: Path) -> None:
    output = tmp_path / "may.csv"
    assert focus(priced, *HOURS, "--output", str(output)) == 0
    with output.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert sum(Decimal(row["EffectiveCost"]) for row in rows) == THREE_HOURS
    assert rows[0]["ChargePeriodStart"] == "2026-05-01T00:00:00Z"
    assert rows[0]["ChargePeriodEnd"] == "2026-05-01T01:00:00Z"
    assert {row["SubAccountType"] for row in rows} >= {"Team", "Pool"}
    assert not output.read_bytes().startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("decimals", "dtype"), [("decimal", pl.Decimal(38, 12)), ("double", pl.Float64())]
)
def test_parquet_has_the_type_asked_for(
    priced: Path, tmp_path: Path, decimals: str, dtype: pl.DataType
) -> None:
    output = tmp_path / "may.parquet"
    arguments = ("--format", "parquet", "--decimals", decimals, "--output", str(output))
    assert focus(priced, *DAY, *arguments) == 0
    rows = pl.read_parquet(output)
    assert rows.schema["EffectiveCost"] == dtype
    assert float(rows["EffectiveCost"].sum()) == pytest.approx(float(WHOLE))


def test_day_grain_has_days_of_the_zone(priced: Path, tmp_path: Path) -> None:
    output = tmp_path / "days.parquet"
    span = ("--from", "2026-05-01T00:00:00Z", "--until", "2026-05-02T00:00:00Z")
    arguments = ("--grain", "day", "--format", "parquet", "--output", str(output))
    assert focus(priced, *span, "--zone", "Asia/Shanghai", *arguments) == 0
    starts = pl.read_parquet(output)["ChargePeriodStart"].unique().sort().to_list()
    assert starts == [datetime(2026, 5, 1, hour, tzinfo=UTC) for hour in (0, 16)]


def test_split_adds_up_to_the_same(priced: Path, tmp_path: Path) -> None:
    output = tmp_path / "split.parquet"
    arguments = ("--mode", "split", "--format", "parquet", "--output", str(output))
    assert focus(priced, *DAY, *arguments) == 0
    rows = pl.read_parquet(output)
    assert sum(rows["BilledCost"], Decimal(0)) == WHOLE
    assert rows["AllocatedMethodId"].null_count() == 0


def test_nothing_priced_gives_a_header_and_one_message(
    unpriced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "empty.csv"
    assert focus(unpriced, *DAY, "--output", str(output)) == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 1
    said = capsys.readouterr().err
    assert "header only" in said
    assert "96.00 GPU-hours without a price" in said


def test_period_without_rows_gives_a_header_and_one_message(
    priced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "empty.csv"
    assert focus(priced, "--period", "2025-01-01", "--grain", "day", "--output", str(output)) == 0
    assert len(output.read_text(encoding="utf-8").splitlines()) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_version_without_split_columns_is_refused(priced: Path) -> None:
    with pytest.raises(UsageError, match="no columns for a split"):
        focus(priced, "--mode", "split", "--version", "1.2")


def test_names_are_on_every_row(priced: Path, tmp_path: Path) -> None:
    output = tmp_path / "named.parquet"
    names = ("--provider", "AI lab", "--host", "own", "--account", "DE-1", "--invoice", "CB-1")
    arguments = ("--version", "1.3", "--format", "parquet", "--output", str(output))
    assert focus(priced, *DAY, *names, *arguments) == 0
    rows = pl.read_parquet(output)
    columns = ("ProviderName", "HostProviderName", "BillingAccountId", "InvoiceId")
    assert rows.select(columns).unique().rows() == [("AI lab", "own", "DE-1", "CB-1")]
