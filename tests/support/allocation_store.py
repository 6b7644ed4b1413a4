"""The warehouse's tables in memory, asked who held what by the query that reports use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import duckdb
import polars as pl

from analytics.inputs import conform
from collector.tables import rows_table

SQL = Path(__file__).parents[2] / "sql"


class AllocationStore:
    """Rows of ``allocation`` as the collector tells them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep the connection that holds the tables."""
        self._connection = connection

    def add(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Store rows; columns they do not name are null."""
        self._connection.register("given", rows_table("allocation", rows))
        self._connection.sql("insert into allocation by name select * from given")

    def ask(self, from_at: datetime, until_at: datetime) -> pl.DataFrame:
        """Return the rows of ``allocation_history``, conformed."""
        text = (SQL / "queries" / "allocation_history.sql").read_text()
        ends = {"from_at": from_at, "until_at": until_at}
        found = self._connection.sql(text, params=ends).to_arrow_table()
        return conform("allocation_history", pl.DataFrame(found))


@contextmanager
def allocation_store() -> Iterator[AllocationStore]:
    """Provide an empty store."""
    with duckdb.connect() as connection:
        for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
            for statement in duckdb.extract_statements(path.read_text()):
                connection.sql(statement)
        yield AllocationStore(connection)
