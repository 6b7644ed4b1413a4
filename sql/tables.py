"""Which tables may be appended to, and the Arrow shape each demands."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import duckdb
import pyarrow as pa

from steward.errors import InputError

OWN_TABLES: Final = frozenset({"append_batch", "schema_migration"})
"""Written by the warehouse itself, never appended to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """The columns of one table, in their stored order."""

    name: str
    schema: pa.Schema
    """Field ``nullable`` says whether null may be stored."""

    @property
    def required(self) -> frozenset[str]:
        """Return the names of columns in which null is refused."""
        return frozenset(field.name for field in self.schema if not field.nullable)


def read_shapes(cursor: duckdb.DuckDBPyConnection) -> dict[str, TableShape]:
    """Return the shape of every table that may be appended to, by name."""
    rows = cursor.execute(
        "select table_name, column_name, is_nullable from duckdb_columns() "
        "where schema_name = 'main' and not internal and table_name in "
        "(select table_name from duckdb_tables()) order by table_name, column_index"
    ).fetchall()
    nullable: dict[str, dict[str, bool]] = {}
    for table, column, is_nullable in rows:
        if table not in OWN_TABLES:
            nullable.setdefault(table, {})[column] = bool(is_nullable)
    return {name: _shape(cursor, name=name, nullable=nullable[name]) for name in nullable}


def _shape(
    cursor: duckdb.DuckDBPyConnection, *, name: str, nullable: dict[str, bool]
) -> TableShape:
    schema = cursor.table(name).limit(0).to_arrow_table().schema
    fields = [
        pa.field(field.name, _utc(field.type), nullable=nullable[field.name]) for field in schema
    ]
    return TableShape(name=name, schema=pa.schema(fields))


def _utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(kind) else kind


def shape_of(table: str, *, shapes: dict[str, TableShape]) -> TableShape:
    """Return one table's shape.

    Raises:
        InputError: there is no such table to append to; the nearest one is named.
    """
    found = shapes.get(table)
    if found is not None:
        return found
    near = get_close_matches(table, shapes, n=1)
    raise InputError(
        f"there is no table {table!r} to append to",
        hint=f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(sorted(shapes))}",
    )


COUNT_ROWS: Final = (
    "select table_name, estimated_size as row_count, column_count from duckdb_tables() "
    "where schema_name = 'main' order by table_name"
)
"""Each table with its rows."""
