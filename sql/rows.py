"""The border for rows: whatever comes in leaves as exactly the table's Arrow shape, or not at all.

Casts are lossless or refused; NaN becomes null; a naive timestamp is refused since its instant is
unknown; columns absent from the rows are left to the table (null).
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from sql.tables import TableShape
from steward.errors import InputError
from steward.ports import ArrowTable

_EARLIEST_US: Final = -62_135_596_800_000_000
"""The first microsecond of year 1."""
_LATEST_US: Final = 253_402_300_799_999_999
"""The last microsecond of year 9999."""


def arrow_table(rows: ArrowTable) -> pa.Table:
    """Return the rows as a pyarrow table, without copying where Arrow allows it."""
    if isinstance(rows, pa.Table):
        return rows
    return pa.RecordBatchReader.from_stream(rows).read_all()


def fit(rows: pa.Table, *, shape: TableShape) -> pa.Table:
    """Return the rows in the table's types, with only the columns that came in.

    Raises:
        InputError: an unknown or repeated column, a value that does not fit its type, a naive
            timestamp, or a null (or an absent column) where the table forbids it.
    """
    _refuse_strangers(rows.column_names, shape=shape)
    columns = [
        _column(rows.column(field.name), field=field, table=shape.name)
        for field in shape.schema
        if field.name in rows.column_names
    ]
    kept = [field for field in shape.schema if field.name in rows.column_names]
    return pa.table(columns, schema=pa.schema(kept))


def _refuse_strangers(names: list[str], *, shape: TableShape) -> None:
    known = shape.schema.names
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise InputError(
                f"table {shape.name} has no column {name!r}",
                hint=f"did you mean {near[0]!r}?" if near else f"columns: {', '.join(known)}",
            )
        if names.count(name) > 1:
            raise InputError(
                f"column {name!r} of table {shape.name} came twice", hint="send each column once"
            )
    absent = sorted(shape.required.difference(names))
    if absent:
        raise InputError(
            f"table {shape.name} needs the columns {', '.join(absent)}",
            hint="send them; they must not be null",
        )


def _column(
    values: pa.ChunkedArray[Any], *, field: pa.Field[Any], table: str
) -> pa.ChunkedArray[Any]:
    _refuse_naive(values.type, field=field, table=table)
    try:
        fitted = values if values.type == field.type else values.cast(field.type, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"column {table}.{field.name} does not fit {field.type}: {reason}",
            hint=f"send {field.type}, or values that convert to it without loss",
        ) from error
    _refuse_beyond_calendar(fitted, field=field, table=table)
    fitted = _nan_to_null(fitted)
    if not field.nullable and fitted.null_count:
        raise InputError(
            f"column {table}.{field.name} has {fitted.null_count} nulls, where none is allowed",
            hint="leave out rows whose identity is unknown",
        )
    return fitted


def _refuse_naive(kind: pa.DataType, *, field: pa.Field[Any], table: str) -> None:
    if not pa.types.is_timestamp(field.type) or pa.types.is_null(kind):
        return
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return
    raise InputError(
        f"column {table}.{field.name} came as {kind}, which has no time zone",
        hint="send timestamps with a time zone, best timestamp[us, tz=UTC]",
    )


def _refuse_beyond_calendar(
    values: pa.ChunkedArray[Any], *, field: pa.Field[Any], table: str
) -> None:
    """Refuse instants that no report could show: they are mistakes, such as a wrong unit."""
    if not pa.types.is_timestamp(field.type) or values.null_count == len(values):
        return
    ends = pc.min_max(values.cast(pa.int64()))
    if ends["min"].as_py() >= _EARLIEST_US and ends["max"].as_py() <= _LATEST_US:
        return
    raise InputError(
        f"column {table}.{field.name} holds an instant outside the years 1 to 9999",
        hint="look at its unit: seconds, milliseconds and microseconds are easily mixed up",
    )


def _nan_to_null(values: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    if not pa.types.is_floating(values.type):
        return values
    is_nan = pc.is_nan(values)
    if not pc.any(is_nan).as_py():
        return values
    cleaned: pa.ChunkedArray[Any] = pc.if_else(is_nan, pa.scalar(None, values.type), values)
    return cleaned


def without_nan(table: pa.Table) -> pa.Table:
    """Return the table with null in the place of NaN."""
    columns = [_nan_to_null(column) for column in table.columns]
    return pa.table(columns, schema=table.schema)
