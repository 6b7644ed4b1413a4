"""The named queries behind fairness, reclaim and value, on the warehouse's own tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl
import pytest

from analytics.inputs import SCHEMAS, conform
from tests.support.analytics_frames import HOUR, MINUTE, NOON

SQL = Path(__file__).parents[3] / "sql"
MINUTES = (-120, -60, 0, 30, 60)
"""Of the rows at these minutes, the period of one hour from noon has the last before it and two."""


class Store:
    """The warehouse's tables in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep the connection that holds the tables."""
        self._connection = connection

    def add(self, table: str, *rows: Mapping[str, object]) -> None:
        """Insert rows; columns they do not name are null."""
        for row in rows:
            names, marks = ", ".join(row), ", ".join(f"${name}" for name in row)
            statement = f"insert into {table} ({names}) values ({marks})"  # noqa: S608  # names from the tests
            self._connection.sql(statement, params=dict(row))

    def ask(self, name: str, until_at: datetime = NOON + HOUR) -> pl.DataFrame:
        """Return the rows of a query, conformed."""
        text = (SQL / "queries" / f"{name}.sql").read_text()
        ends = {"from_at": NOON, "until_at": until_at}
        rows = pl.DataFrame(self._connection.sql(text, params=ends).to_arrow_table())
        assert rows.columns == list(SCHEMAS[name])
        return conform(name, rows)


@pytest.fixture
def store() -> Iterator[Store]:
    with duckdb.connect() as connection:
        for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
            for statement in duckdb.extract_statements(path.read_text()):
                connection.sql(statement)
        yield Store(connection)


QUOTA = {"cluster": "c", "queue": "q", "source": "t"}


def test_quota_before_the_period_is_carried_in_once(store: Store) -> None:
    for model in ("H100", None):
        store.add(
            "quota_snapshot",
            *[
                {**QUOTA, "gpu_model": model, "observed_at": NOON + m * MINUTE, "used_gpu_count": m}
                for m in MINUTES
            ],
        )
    found = store.ask("quota_use")
    assert found.filter(pl.col("gpu_model").is_null())["used_gpu_count"].to_list() == [-60, 0, 30]
    assert found.height == 6


def test_verdicts_before_the_period_are_carried_in_once(store: Store) -> None:
    same = {"cluster": "c", "reason_codes": "idle", "window_s": 60.0, "evidence_json": "{}"}
    for uid in ("w1", "w2"):
        store.add(
            "verdict",
            *[
                {**same, "workload_uid": uid, "verdict": str(m), "judged_at": NOON + m * MINUTE}
                for m in MINUTES
            ],
        )
    found = store.ask("verdict_history")
    assert found.select("workload_uid", "verdict").rows() == [
        (uid, verdict) for uid in ("w1", "w2") for verdict in ("-60", "0", "30")
    ]


def test_places_as_last_observed(store: Store) -> None:
    store.add(
        "node",
        *[
            {"cluster": "c", "node": "n1", "source": "t", "rack": f"r{m}", "memory_bytes": 1,
             "observed_at": NOON + m * MINUTE}
            for m in MINUTES
        ],
    )  # fmt: skip
    assert store.ask("node_place").rows() == [("c", "n1", "r30", None, 1)]


WORK = {"cluster": "c", "kind": "Job", "name": "w", "source": "t"}


def test_standing_is_the_last_of_work_not_over_before(store: Store) -> None:
    for uid in ("open", "over"):
        for minute, priority in ((-120, "old"), (-60, "standard"), (60, "later")):
            store.add(
                "workload",
                {**WORK, "workload_uid": uid, "priority_class": priority, "memory_bytes": 5,
                 "observed_at": NOON + minute * MINUTE},
            )  # fmt: skip
    store.add(
        "workload_transition",
        {"cluster": "c", "workload_uid": "over", "attempt": 1, "transition": "finished",
         "occurred_at": NOON - MINUTE, "observed_at": NOON, "source": "t"},
    )  # fmt: skip
    found = store.ask("workload_standing")
    assert found.select("workload_uid", "priority_class", "memory_bytes").rows() == [
        ("open", "standard", 5)
    ]
