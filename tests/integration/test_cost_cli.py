"""Money on a real data folder: prices, the cost report, closing, a later price, a correction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from sql.state import open_state
from sql.warehouse import open_embedded
from steward.main import main
from tests.support.price_commands import steward
from tests.support.report_rows import store_fleet

DAY = "2026-05-01"
CLOSED = f"CB-{DAY}"
PRICE = ("price", "set", "--model", "H100", "--currency", "USD")
RATE = (*PRICE, "--rate", "4.00", "--from", "2026-01-01T00:00:00Z")
DEARER = (*PRICE, "--rate", "5.00", "--from", f"{DAY}T12:00:00Z")
NAMES = ("team", "cluster", "model", "node", "class", "workload", "user", "queue", "priority")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with four H100s for a day: two held by two teams, one of them idle."""
    with closing(open_embedded(tmp_path)) as warehouse:
        store_fleet(warehouse)
    return tmp_path


def cost(
    folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> Mapping[str, Sequence[Mapping[str, object]]]:
    """Return figures and tables of the cost report."""
    capsys.readouterr()
    asked = ["report", "cost", "--period", DAY, "--format", "json", *arguments]
    assert main([*asked, "--data-dir", str(folder)]) == 0
    document = json.loads(capsys.readouterr().out)
    tables = {table["key"]: table["records"] for table in document["tables"]}
    return {"figures": document["figures"], **tables}


def value(found: Mapping[str, Sequence[Mapping[str, object]]], key: str) -> object:
    return {one["key"]: one["value"] for one in found["figures"]}[key]


def cents(rows: Sequence[Mapping[str, object]], name: str) -> int:
    return sum(int(str(row[name]).replace(".", "")) for row in rows if row[name] is not None)


def test_without_prices_money_is_unknown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = cost(folder, capsys)
    assert value(found, "capacity_cost") is None
    assert value(found, "unpriced_gpu_hours") == 96
    assert steward(folder, "close", DAY) == 4
    assert "no price is in force" in capsys.readouterr().err


@pytest.mark.parametrize("word", NAMES)
def test_all_groupings_sum_to_the_total(
    folder: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    assert steward(folder, *RATE) == 0
    shared = ("price", "shared", "platform", "--amount", "0.97", "--currency", "USD")
    span = ("--from", f"{DAY}T00:00:00Z", "--until", f"{DAY}T12:00:00Z")
    assert steward(folder, *shared, *span) == 0
    found = cost(folder, capsys, "--by", word)
    table = f"by_{'tenant' if word == 'team' else word}"
    assert value(found, "capacity_cost") == "384.00"
    assert value(found, "total_cost") == "384.97"
    assert cents(found[table], "total_cost") == 38_497
    assert cents(found["leaves"], "cost") == 38_400


def test_teams_bear_what_they_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steward(folder, *RATE) == 0
    rows = {row["tenant_id"]: row for row in cost(folder, capsys)["by_tenant"]}
    assert {name: row["direct_cost"] for name, row in rows.items()} == {
        "vision": "96.00",
        "语音": "96.00",
    }
    assert rows["语音"]["allocated_idle_cost"] == "96.00"
    assert rows["语音"]["idle_cost"] == "96.00"


def test_a_price_counts_from_its_instant_on(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert steward(folder, *RATE) == 0
    assert steward(folder, *DEARER) == 0
    assert value(cost(folder, capsys), "capacity_cost") == "432.00"


class TestClosing:
    def closed(self, folder: Path, name: str = "statement.json") -> bytes:
        """Close the day, or show it, and return the statement's bytes."""
        assert steward(folder, "close", DAY, "--output", str(folder / name)) == 0
        return (folder / name).read_bytes()

    def test_a_statement_names_its_sources_and_its_hash(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(folder, *RATE) == 0
        text = self.closed(folder)
        document = json.loads(text)
        assert document["total"] == "384.00"
        assert cents(document["lines"], "amount") == cents(document["bills"], "total") == 38_400
        assert document["watermark_at"] == "2026-05-02T00:00:00.000000Z"
        assert hashlib.sha256(text).hexdigest() in capsys.readouterr().out

    def test_a_closed_day_stays_as_it_was_after_a_price_change(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(folder, *RATE) == 0
        first = self.closed(folder)
        report = cost(folder, capsys)
        assert steward(folder, *DEARER) == 0
        assert f"{CLOSED} is closed and keeps its prices" in capsys.readouterr().out
        assert self.closed(folder, "again.json") == first
        assert "would differ by 48.00 USD" in capsys.readouterr().out
        assert cost(folder, capsys) == report

    def test_the_difference_is_a_correction_of_its_own(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(folder, *RATE) == 0
        first = self.closed(folder)
        assert steward(folder, *DEARER) == 0
        output = folder / "correction.json"
        assert steward(folder, "close", DAY, "--correct", "--output", str(output)) == 0
        document = json.loads(output.read_bytes())
        assert (document["kind"], document["corrects_statement_id"]) == ("correction", CLOSED)
        assert document["total"] == "48.00"
        assert cents(document["lines"], "amount") == cents(document["bills"], "total") == 4_800
        assert self.closed(folder, "again.json") == first
        assert value(cost(folder, capsys), "capacity_cost") == "432.00"
        assert steward(folder, "close", DAY, "--correct") == 0
        assert "needs no correction" in capsys.readouterr().out

    def test_what_is_not_complete_is_refused_or_closed_with_a_reason(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(folder, *RATE) == 0
        assert steward(folder, "close", "2026-05") == 4
        assert "the newest row is of 2026-05-02" in capsys.readouterr().err
        assert steward(folder, "close", "2026-05", "--reason", "the cluster was sold") == 0
        assert "reason: the cluster was sold (the newest row" in capsys.readouterr().out

    def test_a_missing_price_is_refused(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(folder, *RATE, "--until", f"{DAY}T12:00:00Z") == 0
        assert steward(folder, "close", DAY) == 4
        assert "48.00 GPU-hours have no price" in capsys.readouterr().err

    def test_a_period_is_closed_once(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert steward(folder, *RATE) == 0
        self.closed(folder)
        half = f"{DAY}T00:00Z/{DAY}T12:00Z"
        assert steward(folder, "close", half) == 4
        assert f"closed already by {CLOSED}" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            pytest.param(("--correct",), "is not closed", id="nothing to correct"),
            pytest.param(("--currency", "dollar"), "no currency", id="no currency"),
            pytest.param(("--zone", "Nowhere"), "no time zone", id="no zone"),
        ],
    )
    def test_what_is_wrong_is_explained(
        self,
        folder: Path,
        capsys: pytest.CaptureFixture[str],
        arguments: tuple[str, ...],
        words: str,
    ) -> None:
        assert steward(folder, "close", DAY, *arguments) == 2
        assert words in capsys.readouterr().err

    def test_a_changed_statement_is_found_out(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with closing(open_state(folder)) as state:
            state.insert("closed_period", _forged())
        assert steward(folder, *RATE) == 0
        assert steward(folder, "close", DAY) == 6
        assert "its hash differs" in capsys.readouterr().err


def _forged() -> dict[str, str]:
    return {
        "statement_id": CLOSED,
        "from_at": f"{DAY}T00:00:00Z",
        "until_at": "2026-05-02T00:00:00Z",
        "time_zone": "UTC",
        "currency": "USD",
        "kind": "statement",
        "statement_json": "{}",
        "statement_sha256": "0" * 64,
        "price_book_version": "v",
        "watermark_at": f"{DAY}T00:00:00Z",
        "closed_by": "ann",
    }
