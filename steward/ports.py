"""Ports: what one room may ask of another, without importing it.

Tables cross rooms as Arrow streams (the Arrow PyCapsule interface), so that neither side needs the
other's frame library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from steward.ids import BatchId

Parameter = str | int | float | bool | datetime | None
"""A value bound to ``$name`` in a query: never text pasted into SQL."""
StateValue = str | int | float | None
"""A value in a row of a state table: instants are ISO 8601 texts, money whole millionths."""


class ArrowTable(Protocol):
    """Columns with names and types, readable by every Arrow library without copying."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table as an Arrow C stream capsule."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendReceipt:
    """What the warehouse says of a batch once it is safe on disk."""

    batch_id: BatchId
    table: str
    row_count: int
    """Rows stored by this batch, also when the batch was a repeat."""
    is_repeat: bool
    """The same batch was stored before; nothing was stored now."""


class Reader(Protocol):
    """Answers questions from stored rows."""

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Return the rows of a named query.

        Raises:
            QueryError: no such query, or its parameters do not fit.
            WarehouseError: the warehouse cannot serve.
        """
        ...

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Return the rows of one read-only statement, at most ``row_limit`` of them.

        Raises:
            QueryError: not read-only, wrong, too slow, too large.
        """
        ...


class Writer(Protocol):
    """Stores rows, exactly once per batch."""

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store all rows or none; return only once they survive ``kill -9``.

        Columns absent from ``rows`` are stored as null; a repeated ``batch_id`` stores nothing.

        Raises:
            InputError: no such table, an unknown column, a type that does not fit, a null
                where the table forbids it.
            WarehouseError: the warehouse cannot serve (disk full, unreachable); safe to repeat.
        """
        ...


class StateReader(Protocol):
    """Lists rows of the small state beside the warehouse: prices, policies, approvals."""

    def state_rows(self, table: str) -> Sequence[Mapping[str, object]]:
        """Return the newest rows of a state table, newest first.

        Raises:
            QueryError: there is no such table.
            WarehouseError: the state cannot be read.
        """
        ...


@runtime_checkable
class StateLog(StateReader, Protocol):
    """Reads state tables from their beginning and appends to them as one."""

    def state_after(
        self, table: str, key: int, *, limit: int = 10_000
    ) -> Sequence[Mapping[str, object]]:
        """Return the oldest rows first, of those with a larger key, at most ``limit``.

        Raises:
            QueryError: there is no such table.
            WarehouseError: the state cannot be read.
        """
        ...

    def state_append(
        self, rows: Sequence[tuple[str, Mapping[str, StateValue]]], *, seen: Mapping[str, int]
    ) -> Sequence[Mapping[str, object]] | None:
        """Store rows of several tables, all or none; return them as stored.

        Args:
            rows: each with its table's name; rows of the audit come without hashes.
            seen: by table, the newest key that was read of it; None comes back, and nothing is
                stored, where somebody else wrote to such a table meanwhile.

        Raises:
            InputError: an unknown column, a value that breaks a rule, or a row that is there.
            WarehouseError: the state cannot be written.
        """
        ...


class Source(Reader, StateReader, Protocol):
    """What a report may ask: named queries and state tables."""


class Warehouse(Reader, Writer, Protocol):
    """Both directions, embedded or remote: the same protocol and the same contract tests."""

    def close(self) -> None:
        """Release the file or the connection."""
        ...


class OpenWarehouse(Protocol):
    """Opens a warehouse for the length of a ``with`` block."""

    def __call__(self) -> AbstractContextManager[Warehouse]:
        """Return the open warehouse as a context."""
        ...


class Scrape(Protocol):
    """One reading of one source: batches of rows by table name."""

    def batches(self) -> Iterator[tuple[str, ArrowTable]]:
        """Yield each table's name with its rows."""
        ...
