"""What travels over HTTP, both ways: rows as Arrow IPC, JSON or CSV, errors as JSON."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyarrow import csv

from sql.rows import without_nan
from sql.sandbox import is_truncated
from steward import errors
from steward.errors import InputError, StewardError

ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
CSV: Final = "text/csv"


class BodyTooLargeError(InputError):
    """The body of a request is larger than the server accepts."""


class MissingTokenError(errors.AccessError):
    """No token came, or one that the server does not know."""


def to_arrow(table: pa.Table) -> bytes:
    """Return the table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_arrow(body: bytes) -> pa.Table:
    """Return the table in an Arrow IPC stream, its buffers still those of the body.

    Raises:
        InputError: the bytes are no complete Arrow stream.
    """
    try:
        table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"the body is no complete Arrow IPC stream: {str(error).splitlines()[0]}",
            hint=f"send the rows as {ARROW}, or as JSON with Content-Type {JSON}",
        ) from error
    return table


def rows_from_json(body: bytes) -> pa.Table:
    """Return the rows of a JSON list of objects, or of an object with the key ``rows``.

    Raises:
        InputError: it is no JSON, or no list of objects, or a column mixes types.
    """
    content = json_from(body)
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError("the body is no list of rows", hint='send [{"column": value, …}, …]')
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"a column mixes types: {error}", hint="send one type per column, or null"
        ) from error


def json_from(body: bytes) -> object:
    """Return the JSON value in the body.

    Raises:
        InputError: it is none.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"the body is no JSON: {error}", hint=f"send {JSON} in UTF-8, or Arrow as {ARROW}"
        ) from error


def to_json(table: pa.Table) -> bytes:
    """Return ``{columns, rows, row_count, is_truncated}``; instants are ISO 8601, NaN is null."""
    content = {
        "columns": [{"name": f.name, "type": str(f.type)} for f in table.schema],
        "rows": [{k: plain(v) for k, v in row.items()} for row in rows_of(table)],
        "row_count": table.num_rows,
        "is_truncated": is_truncated(table),
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows as Python values.

    Raises:
        QueryError: an instant, date or length of time that the calendar here does not reach.
    """
    try:
        return table.to_pylist()
    except (OverflowError, ValueError) as error:
        raise errors.QueryError(
            f"the result holds a time outside the years 1 to 9999: {error}",
            hint="cast that column to varchar, or filter such rows out",
        ) from error


def plain(value: object) -> object:
    """Return the value in the words of JSON; decimals that are not whole become exact texts."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return next((word(value) for kind, word in WORDS if isinstance(value, kind)), str(value))


def _whole(value: Decimal) -> object:
    return int(value) if value == value.to_integral_value() else str(value)


WORDS: Final[tuple[tuple[type, Callable[[Any], object]], ...]] = (
    (float, lambda value: value if math.isfinite(value) else None),
    (date, lambda value: value.isoformat().replace("+00:00", "Z")),
    (Decimal, _whole),
    (timedelta, timedelta.total_seconds),
    (dict, lambda value: {str(key): plain(inner) for key, inner in value.items()}),
    (list, lambda value: [plain(inner) for inner in value]),
)
"""How each type that JSON lacks is told; a datetime is a date."""


def to_csv(table: pa.Table) -> bytes:
    """Return the table as CSV with a header; null is an empty field.

    Raises:
        InputError: a column holds lists or structures.
    """
    sink = io.BytesIO()
    try:
        csv.write_csv(without_nan(table), sink)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InputError(
            f"the result does not fit into CSV: {error}",
            hint="select plain columns, or ask for JSON or Arrow",
        ) from error
    return sink.getvalue()


ENCODERS: Final[Mapping[str, Callable[[pa.Table], bytes]]] = {
    JSON: to_json,
    ARROW: to_arrow,
    CSV: to_csv,
}


def accepted(header: str | None) -> str:
    """Return the media type to answer with: the most wanted that can be made, else JSON."""
    wanted = sorted(_wishes(header or JSON), key=lambda wish: -wish[1])
    for kind, _weight in wanted:
        if kind in ENCODERS:
            return kind
    return JSON


def _wishes(header: str) -> list[tuple[str, float]]:
    wishes: list[tuple[str, float]] = []
    for part in header.split(","):
        kind, _, rest = part.partition(";")
        weight = rest.strip().removeprefix("q=") if rest else "1"
        try:
            wishes.append((kind.strip().lower(), float(weight)))
        except ValueError:
            wishes.append((kind.strip().lower(), 1.0))
    return wishes


def error_to_json(error: StewardError) -> bytes:
    """Return ``{error, hint, exit_code}``."""
    content = {"error": error.message, "hint": error.hint, "exit_code": error.exit_code}
    return json.dumps(content, ensure_ascii=False).encode(errors="backslashreplace")


def error_from_json(body: bytes, *, status: int) -> StewardError:
    """Return the error a server told, as the class it had there."""
    try:
        content = json.loads(body)
        kind = _classes()[content["exit_code"]]
        return kind(content["error"], hint=content["hint"])
    except (ValueError, KeyError, TypeError):
        return errors.WarehouseError(
            f"the server answered with status {status} and no explanation",
            hint="check that the address is a Steward warehouse",
        )


def _classes() -> Mapping[int, type[StewardError]]:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return {kind.exit_code: kind for kind in found if issubclass(kind, StewardError)}


HTTP_STATUS: Final[Mapping[type[StewardError], int]] = {
    BodyTooLargeError: 413,
    MissingTokenError: 401,
    errors.AccessError: 403,
    InputError: 400,
    errors.QueryError: 400,
    errors.UsageError: 400,
    errors.WarehouseError: 503,
}


def status_of(error: StewardError) -> int:
    """Return the HTTP status of the nearest class that has one."""
    return next((HTTP_STATUS[kind] for kind in type(error).__mro__ if kind in HTTP_STATUS), 500)


def json_bytes(content: object) -> bytes:
    """Return plain content as JSON; bytes, which no row of ours holds, as Python spells them."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False, default=repr).encode()
