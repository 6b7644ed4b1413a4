"""``steward report`` from the command line to the rendered answer."""

from __future__ import annotations

import csv
import io
import json
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from analytics.reports.catalogue import REPORTS
from dashboard.cli import FORMATS
from sql.warehouse import open_embedded
from steward.main import main
from tests.support.report_rows import store_fleet


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    with closing(open_embedded(folder)) as warehouse:
        store_fleet(warehouse)
    return folder


def report(folder: Path, *arguments: str) -> int:
    return main(["report", *arguments, "--data-dir", str(folder)])


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_goes_to_a_file(full: Path, tmp_path: Path, format_name: str) -> None:
    output = tmp_path / "report"
    assert report(full, "health", "--format", format_name, "--output", str(output)) == 0
    assert output.stat().st_size > 1000


@pytest.mark.parametrize("name", list(REPORTS))
def test_the_terminal_text_is_readable_at_100_columns(
    full: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert report(full, name) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 100
    assert "Period: 2026-05-01 00:00" in text
    assert "\x1b[" not in text


def test_health_says_what_is_held_idle(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(full, "health") == 0
    lines = capsys.readouterr().out.splitlines()
    idle = next(line for line in lines if "Held idle" in line)
    assert idle.split() == ["Held", "idle", "24", "GPU-hours", "100.0", "%"]


def test_json_carries_period_and_units(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(full, "utilization", "--last", "12h", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    figures = {figure["key"]: figure for figure in document["figures"]}
    assert document["period"]["from_at"] == "2026-05-01T12:00:00.000001Z"
    assert figures["capacity_gpu_hours"]["value"] == pytest.approx(48)
    assert figures["capacity_gpu_hours"]["unit"] == "GPU-hours"


def test_one_table_as_csv(full: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(full, "utilization", "--table", "by_tenant", "--format", "csv") == 0
    text = capsys.readouterr().out.removeprefix("\ufeff")
    tenants = {row["tenant_id"]: row for row in csv.DictReader(io.StringIO(text))}
    assert float(tenants["语音"]["idle_gpu_hours"]) == pytest.approx(24)
    assert float(tenants["vision"]["idle_gpu_hours"]) == 0


def test_parquet_goes_to_a_file(full: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.parquet"
    assert report(full, "inventory", "--format", "parquet", "--output", str(output)) == 0
    rows = pl.read_parquet(output).filter(column="gpu_count", section="figures")
    assert rows["value_number"].to_list() == [4.0]


def test_the_list_names_every_report(capsys: pytest.CaptureFixture[str], full: Path) -> None:
    assert report(full, "--list") == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(REPORTS)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["helth"], 2, "did you mean 'health'?", id="a slip"),
        pytest.param([], 2, "which report?", id="no name"),
        pytest.param(["health", "--last", "soon"], 2, "not a length", id="no length"),
        pytest.param(["health", "--from", "2026-05-01"], 2, "no time zone", id="no zone"),
        pytest.param(["health", "--table", "nope"], 2, "has no table", id="no such table"),
        pytest.param(["health", "--format", "pdf"], 2, "invalid choice", id="no such format"),
        pytest.param(["health", "--output", "/no/such/x"], 2, "does not exist", id="no folder"),
    ],
)
def test_a_wrong_request_is_explained(
    full: Path, capsys: pytest.CaptureFixture[str], *, arguments: list[str], code: int, words: str
) -> None:
    assert report(full, *arguments) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert words in told.err


def test_an_empty_warehouse_is_an_input_error_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(tmp_path, "health") == 4
    told = capsys.readouterr().err
    assert "holds no rows yet" in told
    assert "steward import simulated" in told


@pytest.mark.parametrize(
    ("option", "value", "code"),
    [
        pytest.param("--host", "0.0.0.0", 11, id="an address others can reach"),  # noqa: S104  # refused
        pytest.param("--host", "nowhere.example", 2, id="no address"),
        pytest.param("--port", "70000", 3, id="no port"),
    ],
)
def test_the_dashboard_refuses_a_wrong_address(
    full: Path, capsys: pytest.CaptureFixture[str], *, option: str, value: str, code: int
) -> None:
    told = main(["dashboard", option, value, "--data-dir", str(full)])
    assert told == code
    assert capsys.readouterr().err.startswith("error: ")
