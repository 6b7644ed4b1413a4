"""``steward report`` from the command line to the rendered answer."""

from __future__ import annotations

import csv
import io
import json
import re
import runpy
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from analytics.reports.catalogue import REPORTS
from dashboard.cli import FORMATS
from dashboard.reports.ask import ask
from sql.warehouse import open_embedded
from steward.errors import UsageError
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


@pytest.mark.parametrize(
    ("words", "zone", "from_at", "until_at"),
    [
        ("2026-05-01", "UTC", "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"),
        ("2026-05-01", "Asia/Shanghai", "2026-04-30T16:00:00Z", "2026-05-01T16:00:00Z"),
        ("2026-05-01T06:00Z/PT90M", "UTC", "2026-05-01T06:00:00Z", "2026-05-01T07:30:00Z"),
    ],
)
def test_a_period_in_words(
    full: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    words: str,
    zone: str,
    from_at: str,
    until_at: str,
) -> None:
    assert report(full, "devices", "--period", words, "--zone", zone, "--format", "json") == 0
    period = json.loads(capsys.readouterr().out)["period"]
    assert (period["from_at"], period["until_at"]) == (from_at, until_at)


@pytest.fixture(scope="module", params=["readings", "ledger"])
def two_clusters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    with closing(open_embedded(folder)) as warehouse:
        for cluster in ("default", "east"):
            store_fleet(warehouse, cluster=cluster)
    if request.param == "ledger":
        assert main(["ledger", "build", "--quiet", "--data-dir", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("name", list(REPORTS))
def test_one_cluster_of_two_is_told_as_if_it_were_alone(
    full: Path, two_clusters: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert report(two_clusters, name, "--cluster", "default", "--format", "json") == 0
    narrowed = json.loads(capsys.readouterr().out)
    assert report(full, name, "--format", "json") == 0
    assert narrowed == json.loads(capsys.readouterr().out)


def test_a_report_is_asked_from_python(full: Path) -> None:
    found = ask("utilization", period="last-12h", data_dir=full)
    assert found.figure("capacity_gpu_hours").value == pytest.approx(48)
    assert found.table("leaves")["gpu_hours"].sum() == pytest.approx(48)
    with pytest.raises(UsageError, match="has no table 'nope'"):
        found.table("nope")
    with pytest.raises(UsageError, match="has no figure 'nope'"):
        found.figure("nope")


def test_the_documented_example_runs(
    full: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reports.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    left = runpy.run_path(str(tmp_path / "example.py"), init_globals={"data_dir": full})
    assert left["leaves"]["gpu_hours"].sum() == pytest.approx(96)
    assert capsys.readouterr().out.endswith(" 96.0\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"name": "helth"}, "no report 'helth'", id="no such report"),
        pytest.param({"name": "health", "url": "http://127.0.0.1:1"}, "both say", id="two places"),
        pytest.param({"name": "health", "period": "soon"}, "is no period", id="no period"),
    ],
)
def test_a_wrong_question_from_python_is_explained(
    full: Path, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ask(**arguments, data_dir=full)  # type: ignore[arg-type]  # texts by name


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
        pytest.param(["health", "--period", "soon"], 2, "is no period", id="no period"),
        pytest.param(
            ["health", "--period", "may", "--last", "7d"], 2, "both say which", id="two periods"
        ),
        pytest.param(["health", "--zone", "Mars/Base"], 2, "no time zone", id="no such zone"),
        pytest.param(["health", "--currency", "euro"], 2, "no ISO 4217", id="no such currency"),
        pytest.param(["utilization", "--by", "colour"], 2, "no grouping by", id="no grouping"),
        pytest.param(["devices", "--by", "team"], 2, "takes no --by", id="a report without any"),
        pytest.param(
            ["health", "--cluster", "other"], 2, "the clusters are default", id="no such cluster"
        ),
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
