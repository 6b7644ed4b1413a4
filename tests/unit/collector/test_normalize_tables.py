"""The rows that collectors build have the columns, types and required columns of the warehouse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from collector.tables import SCHEMAS

MIGRATIONS = Path(__file__).parents[3] / "sql" / "migrations" / "warehouse"
TYPES = {
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
    "VARCHAR": pa.string(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
}


@pytest.fixture(scope="module")
def warehouse_schemas() -> dict[str, pa.Schema]:
    """Each table of the migrated warehouse as an Arrow schema."""
    fields: dict[str, list[pa.Field[Any]]] = {}
    with duckdb.connect() as connection:
        for path in sorted(MIGRATIONS.glob("*.sql")):
            connection.execute(path.read_text("utf-8"))
        rows = connection.execute(
            "select table_name, column_name, data_type, is_nullable from duckdb_columns() "
            "where schema_name = 'main' and not internal order by table_name, column_index"
        ).fetchall()
    for table, column, kind, is_nullable in rows:
        fields.setdefault(table, []).append(pa.field(column, TYPES[kind], nullable=is_nullable))
    return {table: pa.schema(columns) for table, columns in fields.items()}


@pytest.mark.parametrize("table", SCHEMAS)
def test_rows_fit_their_table(table: str, warehouse_schemas: dict[str, pa.Schema]) -> None:
    """Columns are matched by name, so their order is free."""
    assert sorted(SCHEMAS[table], key=_name) == sorted(warehouse_schemas[table], key=_name)


def _name(field: pa.Field[Any]) -> str:
    return field.name
