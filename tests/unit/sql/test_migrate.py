"""Migrations: numbers without gaps, checksums that hold, all or nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from sql.engine import WarehouseTarget
from sql.migrate import AppliedMigration, Migration, pending, shipped_migrations
from sql.state import open_state, statements
from steward.errors import InputError, NewerSchemaError, QueryError


def step(number: int, text: str = "select 1") -> Migration:
    return Migration(number=number, name=f"m{number}", checksum=text, text=text)


def done(number: int, text: str = "select 1") -> AppliedMigration:
    return AppliedMigration(number=number, name=f"m{number}", checksum=text)


@pytest.mark.parametrize("kind", ["warehouse", "state"])
def test_shipped_migrations_are_numbered_without_gaps(kind: str) -> None:
    numbers = [migration.number for migration in shipped_migrations(kind)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_only_what_is_new_is_pending() -> None:
    assert pending([done(1)], shipped=[step(1), step(2)], label="x") == (step(2),)
    assert pending([], shipped=[step(1)], label="x") == (step(1),)
    assert pending([done(1)], shipped=[step(1)], label="x") == ()


@pytest.mark.parametrize(
    ("applied", "shipped", "words"),
    [
        ([done(1), done(2)], [step(1)], "0002_m2"),
        ([done(1, "other")], [step(1)], "differs"),
        ([done(2)], [step(1), step(2)], "0001 is missing"),
        ([], [step(2)], "0001 is missing"),
    ],
)
def test_a_strange_history_is_refused(
    applied: list[AppliedMigration], shipped: list[Migration], words: str
) -> None:
    with pytest.raises(NewerSchemaError, match=words):
        pending(applied, shipped=shipped, label="x")


def test_a_failing_migration_leaves_nothing() -> None:
    with duckdb.connect(":memory:") as connection:
        target = WarehouseTarget(connection, path=Path("x"))
        with pytest.raises(duckdb.Error):
            target.apply(step(1, "create table a (b integer); select * from nowhere"))
        assert connection.execute("select count(*) from duckdb_tables()").fetchall() == [(0,)]
        assert target.applied() == ()


def test_a_script_is_split_at_statements_not_at_semicolons() -> None:
    assert len(statements("create table a (b text default ';');\nselect\n1;\n")) == 2


PRICE = {
    "gpu_model": "A100",
    "amount_micros_per_gpu_hour": 0,
    "currency": "EUR",
    "valid_from_at": "2026-01-01T00:00:00+01:00",
    "source": "list",
    "approver": "me",
}


def test_a_price_is_stored_exactly(tmp_path: Path) -> None:
    with closing(open_state(tmp_path)) as state:
        stored = state.insert("price", PRICE)
        assert stored["amount_micros_per_gpu_hour"] == 0
        assert stored["valid_from_at"] == "2025-12-31T23:00:00.000Z"
        assert stored["valid_until_at"] is None
        assert state.rows("price") == (stored,)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"amount_micros_per_gpu_hour": -1}, id="negative"),
        pytest.param({"amount_micros_per_gpu_hour": 1.5}, id="not exact"),
        pytest.param({"currency": "euro"}, id="currency"),
        pytest.param({"valid_from_at": "2026-01-01"}, id="naive"),
        pytest.param({"valid_until_at": "2025-01-01T00:00:00Z"}, id="ends before it starts"),
        pytest.param({"approver": None}, id="nobody approved"),
        pytest.param({"colour": "red"}, id="unknown column"),
    ],
)
def test_a_wrong_price_is_refused(tmp_path: Path, fault: dict[str, object]) -> None:
    with closing(open_state(tmp_path)) as state:
        with pytest.raises(InputError):
            state.insert("price", {**PRICE, **fault})
        assert state.rows("price") == ()


def test_a_report_runs_once_per_time(tmp_path: Path) -> None:
    run = {"report_id": 1, "scheduled_for_at": "2026-01-01T00:00:00Z", "outcome": "started"}
    with closing(open_state(tmp_path)) as state:
        state.insert("report_definition", {"name": "n", "report": "health", "author": "me"})
        state.insert("report_run", run)
        with pytest.raises(InputError, match="breaks a rule"):
            state.insert("report_run", run)
        with pytest.raises(QueryError, match="no state table"):
            state.rows("prices")
