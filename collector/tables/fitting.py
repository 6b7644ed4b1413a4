"""Rows as columns: one value that fits no column costs that value, not the rows beside it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

log = logging.getLogger(__name__)

Row = Mapping[str, Any]

_FIRST_US: Final = -62_135_596_800_000_000
"""The first microsecond of year 1."""
_LAST_US: Final = 253_402_300_799_999_999
"""The last microsecond of year 9999."""
_MISFITS: Final = (pa.ArrowException, OverflowError, UnicodeError, ValueError, TypeError)
"""What Arrow raises for a number, text or instant that its column cannot hold."""


def fitted(rows: list[Row], *, schema: pa.Schema, name: str) -> pa.Table:
    """Return the rows as a table of the schema.

    A value that its column cannot hold becomes null; a row is left out where that column must not
    be null. Both are logged.

    Args:
        rows: mappings by column; absent keys are null.
        schema: names, types, and which columns refuse null.
        name: of the table, for the log.
    """
    try:
        table = pa.Table.from_pylist(rows, schema=schema)
    except _MISFITS:
        table = None
    if table is not None and _is_on_calendar(table):
        return table
    kept = [one for one in (_fitting(row, schema=schema, name=name) for row in rows) if one]
    return pa.Table.from_pylist(kept, schema=schema)


def _fitting(row: Row, *, schema: pa.Schema, name: str) -> Row | None:
    """Return the row without what does not fit; None where too much is lost."""
    misfits = [field for field in schema if not _fits(row.get(field.name), kind=field.type)]
    for field in misfits:
        fate = "the value" if field.nullable else "the row"
        log.warning("%s.%s cannot hold what a source says: %s is left out", name, field.name, fate)
    if not all(field.nullable for field in misfits):
        return None
    return {**row, **dict.fromkeys((field.name for field in misfits), None)}


def _fits(value: object, *, kind: pa.DataType) -> bool:
    try:
        return _is_within(pa.array([value], kind))
    except _MISFITS:
        return False


def _is_on_calendar(table: pa.Table) -> bool:
    columns = zip(table.schema, table.columns, strict=True)
    return all(_is_within(column) for field, column in columns if pa.types.is_timestamp(field.type))


def _is_within(values: pa.Array[Any] | pa.ChunkedArray[Any]) -> bool:
    """Return whether no instant is outside the years 1 to 9999."""
    if not pa.types.is_timestamp(values.type) or values.null_count == len(values):
        return True
    ends = pc.min_max(values.cast(pa.int64()))
    return bool(ends["min"].as_py() >= _FIRST_US and ends["max"].as_py() <= _LAST_US)
