"""``steward sql`` and ``steward db`` from end to end, with and without an owner process."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from sql.warehouse import open_embedded
from steward.main import main
from tests.support.warehouse_rows import samples
from tests.support.warehouse_server import owner, remote


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    data_dir = tmp_path / "filled"
    with closing(open_embedded(data_dir)) as warehouse:
        warehouse.append("device_sample", samples(busy_ratio=[0.0, None, 1.0]), batch_id="one")
    return data_dir


def steward(data_dir: Path, *arguments: str) -> int:
    return main([*arguments, "--data-dir", str(data_dir)])


STATEMENT = "select busy_ratio from device_sample order by sampled_at"


def test_sql_answers_in_every_format(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steward(filled, "sql", STATEMENT) == 0
    assert "3 rows" in capsys.readouterr().out
    assert steward(filled, "sql", STATEMENT, "--format", "json") == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["busy_ratio"] for row in content["rows"]] == [0.0, None, 1.0]
    assert steward(filled, "sql", STATEMENT, "--format", "csv", "--limit", "2") == 0
    printed = capsys.readouterr()
    assert pl.read_csv(io.StringIO(printed.out))["busy_ratio"].to_list() == [0.0, None]
    assert "only the first 2 rows" in printed.err
    file = filled / "rows.parquet"
    assert steward(filled, "sql", STATEMENT, "--format", "parquet", "--output", str(file)) == 0
    assert pl.read_parquet(file)["busy_ratio"].to_list() == [0.0, None, 1.0]


def test_sql_refuses_writing(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steward(filled, "sql", "drop table node") == 10
    assert "hint:" in capsys.readouterr().err


def test_check_tells_violations(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steward(filled, "db", "check") == 1
    assert "FAIL sample_has_device: 3" in capsys.readouterr().out


def test_a_backup_is_restored_whole(
    filled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, other = tmp_path / "backup", tmp_path / "other"
    with owner(filled):
        assert steward(filled, "db", "backup", str(backup)) == 0
        assert steward(filled, "db", "restore", str(backup), "--force") == 7
    assert steward(filled, "db", "backup", str(backup)) == 4
    assert steward(other, "db", "restore", str(backup)) == 0
    assert steward(other, "db", "restore", str(backup)) == 4
    assert steward(other, "db", "restore", str(backup), "--force") == 0
    capsys.readouterr()
    assert steward(other, "sql", "select count(*) as n from device_sample", "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3"
    with closing(open_embedded(other)) as warehouse:
        assert warehouse.append("device_sample", samples(), batch_id="one").is_repeat


def test_a_damaged_backup_is_refused(filled: Path, tmp_path: Path) -> None:
    backup, other = tmp_path / "backup", tmp_path / "other"
    assert steward(filled, "db", "backup", str(backup)) == 0
    file = backup / "warehouse.duckdb"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    assert steward(other, "db", "restore", str(backup)) == 4
    assert not (other / "warehouse.duckdb").exists()


def test_info_names_owner_and_tables(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert steward(filled, "db", "info") == 0
    printed = capsys.readouterr().out
    assert "owner: none" in printed
    assert "device_sample" in printed


def test_state_is_served(tmp_path: Path) -> None:
    price = {
        "gpu_model": "A100",
        "amount_micros_per_gpu_hour": 1,
        "currency": "EUR",
        "valid_from_at": "2026-01-01T00:00:00Z",
        "source": "list",
        "approver": "me",
    }
    with remote(tmp_path) as warehouse:
        stored = warehouse.state_insert("price", price)
        assert warehouse.state_rows("price") == [stored]
        assert "price" in str(warehouse.describe()["state_tables"])
