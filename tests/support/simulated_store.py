"""The rows of a simulated fleet in the warehouse's own tables, asked by the named queries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

import duckdb
import polars as pl

from analytics.inputs import queries
from collector.sources.simulated import SimulationParameters
from steward.period import Period
from tests.support.simulated_fleets import batches

SQL = Path(__file__).parents[2] / "sql"


def stored(asked: SimulationParameters) -> duckdb.DuckDBPyConnection:
    """Return a connection to all rows of the fleet; the caller closes it."""
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    for path in sorted((SQL / "migrations" / "warehouse").glob("*.sql")):
        for statement in duckdb.extract_statements(path.read_text(encoding="utf-8")):
            connection.execute(statement)
    for batch in batches(asked):
        names = ", ".join(batch.rows.column_names)
        connection.register("incoming", batch.rows)
        connection.execute(f"insert into {batch.table} ({names}) select {names} from incoming")  # noqa: S608  # names of our own tables
    return connection


def whole_period(asked: SimulationParameters) -> Period:
    """Return the period that was simulated."""
    return Period(asked.from_at, asked.until_at)


@cache
def fleet_frames(asked: SimulationParameters) -> dict[str, pl.DataFrame]:
    """Return the rows of every named query of reports over the whole simulation."""
    ends = {"from_at": asked.from_at, "until_at": asked.until_at}
    with stored(asked) as connection:
        return {name: _ask(connection, name, ends) for name in queries()}


def _ask(
    connection: duckdb.DuckDBPyConnection, name: str, ends: Mapping[str, datetime]
) -> pl.DataFrame:
    text = (SQL / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    return pl.DataFrame(connection.sql(text, params=ends).to_arrow_table())
