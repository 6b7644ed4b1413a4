"""Read-only statements under limits: what they may be, how long they run, how much they return.

The first guard is DuckDB's own parser (one SELECT or EXPLAIN), the second a read-only transaction,
the third the engine's locked settings without any access to files or the network.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import duckdb
import pyarrow as pa

from sql.engine import Engine
from sql.limits import Limits
from steward.errors import QueryError, WarehouseError
from steward.ports import Parameter

ALLOWED: Final = frozenset({duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN})
CHUNK_ROWS: Final = 65_536
MESSAGE_CHARACTERS: Final = 600
TRUNCATED_KEY: Final = b"steward.is_truncated"
"""Schema metadata set to ``true`` where a row limit cut the result."""


def refuse_unsafe(statement: str) -> None:
    """Accept exactly one SELECT or EXPLAIN.

    Raises:
        QueryError: it does not parse, is no single statement, or may change something.
    """
    _refuse_half_characters(statement)
    try:
        found = duckdb.extract_statements(statement)
    except duckdb.Error as error:
        raise QueryError(
            f"the statement does not parse: {_first_lines(error)}", hint="correct the SQL"
        ) from error
    if len(found) != 1:
        raise QueryError(
            f"{len(found)} statements came where one is answered", hint="send one statement"
        )
    kind = _kind(found[0])
    if kind not in ALLOWED:
        word = "this" if kind is None else f"this {kind.name}"
        raise QueryError(
            f"{word} statement is refused: only reading is allowed",
            hint="send one SELECT or EXPLAIN",
        )


def _kind(statement: duckdb.Statement) -> duckdb.StatementType | None:
    """Return the kind of a statement; None for one that DuckDB's Python side has no word for."""
    try:
        return statement.type
    except ValueError:
        return None


def _refuse_half_characters(statement: str) -> None:
    try:
        statement.encode()
    except UnicodeEncodeError as error:
        raise QueryError(
            f"the statement is no UTF-8 at character {error.start}", hint="send it as UTF-8"
        ) from error


def run_select(
    engine: Engine,
    statement: str,
    *,
    parameters: Mapping[str, Parameter],
    limits: Limits,
    row_limit: int | None,
) -> pa.Table:
    """Return the rows of one statement.

    Args:
        engine: the open warehouse.
        statement: passed ``refuse_unsafe``, or is one of our own.
        parameters: values bound to ``$name``.
        limits: time and memory.
        row_limit: rows after which reading stops; None reads all.
            The result then holds one row more than the limit, so that the caller can tell.

    Raises:
        QueryError: wrong, too slow or too large.
        WarehouseError: the engine failed.
    """
    with engine.reading() as cursor:
        try:
            with _deadline(cursor, limits.query_timeout_s):
                reader = cursor.sql(statement, params=dict(parameters)).to_arrow_reader(CHUNK_ROWS)
                with reader:
                    return _collect(
                        reader, byte_limit=limits.query_memory_bytes, row_limit=row_limit
                    )
        except duckdb.Error as error:
            raise _meaning(error, limits=limits) from error
        except pa.ArrowException as error:
            raise _meaning(error, limits=limits) from error


def _collect(reader: pa.RecordBatchReader, *, byte_limit: int, row_limit: int | None) -> pa.Table:
    chunks: list[pa.RecordBatch] = []
    row_count = byte_count = 0
    for chunk in reader:
        chunks.append(chunk)
        row_count += chunk.num_rows
        byte_count += chunk.nbytes
        if byte_count > byte_limit:
            raise QueryError(
                f"the result is larger than {byte_limit} bytes",
                hint="aggregate, narrow the period, or raise warehouse.query_memory_bytes",
            )
        if row_limit is not None and row_count > row_limit:
            break
    table = _distinct(pa.Table.from_batches(chunks, schema=reader.schema))
    return table if row_limit is None else table.slice(0, row_limit + 1)


def _distinct(table: pa.Table) -> pa.Table:
    """Return the table with a name of its own for each column: ``a``, ``a_1``, as DuckDB counts."""
    names: dict[str, None] = {}
    for name in table.column_names:
        tries = (name if n == 0 else f"{name}_{n}" for n in itertools.count())
        names[next(each for each in tries if each not in names)] = None
    return table.rename_columns(list(names))


def cap_rows(result: pa.Table, *, asked: int | None, most: int) -> pa.Table:
    """Return the result cut to what was asked for, marked as truncated where it was cut.

    Raises:
        QueryError: no limit was asked for and there are more rows than ``most``.
    """
    limit = most if asked is None else min(asked, most)
    if result.num_rows <= limit:
        return result
    if asked is None:
        raise QueryError(
            f"the result has more than {most} rows",
            hint="aggregate, add a LIMIT, or ask with a row limit to get the first rows",
        )
    return result.slice(0, limit).replace_schema_metadata(
        {**(result.schema.metadata or {}), TRUNCATED_KEY: b"true"}
    )


def is_truncated(result: pa.Table) -> bool:
    """Tell whether a row limit cut this result."""
    return (result.schema.metadata or {}).get(TRUNCATED_KEY) == b"true"


@contextmanager
def _deadline(cursor: duckdb.DuckDBPyConnection, timeout_s: float) -> Iterator[None]:
    """Interrupt the cursor when the time is over, never after the block has ended."""
    guard = threading.Lock()
    is_over = False

    def stop() -> None:
        with guard:
            if not is_over:
                cursor.interrupt()

    timer = threading.Timer(timeout_s, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with guard:
            is_over = True
        timer.cancel()


def _meaning(error: Exception, *, limits: Limits) -> QueryError | WarehouseError:
    text = _first_lines(error)
    if isinstance(error, duckdb.InterruptException) or "INTERRUPT" in text:
        return QueryError(
            f"the statement was stopped after {limits.query_timeout_s:g} s",
            hint="narrow the period, or raise warehouse.query_timeout_s",
        )
    if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in text:
        return QueryError(
            f"the statement needs more memory than allowed: {text}",
            hint="aggregate or narrow it, or raise warehouse.query_memory_bytes",
        )
    if isinstance(error, (duckdb.FatalException, duckdb.InternalException, duckdb.IOException)):
        return WarehouseError(
            f"the warehouse failed to answer: {text}", hint="restart it; then run: steward db check"
        )
    return QueryError(f"the statement failed: {text}", hint="correct the SQL")


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " · ".join(lines[:3])
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[:MESSAGE_CHARACTERS]}…"
