"""The history of a simulated fleet, as the enforcer reads it from a warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache

import duckdb
import pyarrow as pa

from collector.sources.simulated import SimulationParameters
from enforcer.history import History, history
from sql.catalogue import named_query
from steward.period import Period
from steward.ports import Parameter
from tests.support.simulated_store import stored


class StoredFleet:
    """Answers named queries from the rows of a simulated fleet; its state tables are empty."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep the connection."""
        self._connection = connection

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> pa.Table:
        """Return the rows of a named query."""
        text = named_query(name).text
        return self._connection.sql(text, params=dict(parameters or {})).to_arrow_table()

    def sql(self, statement: str, *, row_limit: int | None = None) -> pa.Table:
        """Refuse: nothing asks."""
        raise AssertionError(statement, row_limit)

    def state_rows(self, table: str) -> Sequence[Mapping[str, object]]:
        """Return no rows."""
        assert table
        return ()


@cache
def fleet_history(asked: SimulationParameters, *, from_at: datetime, cell_s: int) -> History:
    """Return the history of a fleet from an instant to its end."""
    with stored(asked) as connection:
        fleet = StoredFleet(connection)
        period = Period(from_at, asked.until_at)
        return history(fleet, fleet, period, cluster=asked.cluster, cell_s=cell_s)
