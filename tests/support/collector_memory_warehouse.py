"""A warehouse in memory: exactly once per batch id, and it can be away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Condition

import pyarrow as pa

from steward.errors import InputError, QueryError, StewardError, UnreachableError
from steward.ids import BatchId
from steward.ports import AppendReceipt, ArrowTable, Parameter


class MemoryWarehouse:
    """Keeps batches by id; see ``away`` and ``fail_after`` for its bad days."""

    def __init__(self) -> None:
        """Start empty and at work."""
        self.batches: dict[BatchId, tuple[str, pa.Table]] = {}
        self.away: StewardError | None = None
        """Raised at every opening while it is set."""
        self.lost_answers = 0
        """So many appends are stored, and then fail."""
        self.refused_tables: frozenset[str] = frozenset()
        self.open_count = 0
        self.changed = Condition()

    @contextmanager
    def open(self) -> Iterator[MemoryWarehouse]:
        """Open for one round."""
        if self.away is not None:
            raise self.away
        self.open_count += 1
        yield self

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store the batch, unless it is stored already."""
        if table in self.refused_tables:
            raise InputError(f"no such table {table!r}", hint="use a table of the warehouse")
        is_repeat = batch_id in self.batches
        kept = pa.table(rows)
        with self.changed:
            self.batches.setdefault(batch_id, (table, kept))
            self.changed.notify_all()
        if self.lost_answers:
            self.lost_answers -= 1
            raise unreachable()
        return AppendReceipt(
            batch_id=batch_id, table=table, row_count=kept.num_rows, is_repeat=is_repeat
        )

    def rows(self, table: str) -> list[dict[str, object]]:
        """Return the stored rows of a table in the order of their batches."""
        kept = [rows for name, rows in self.batches.values() if name == table]
        return [row for rows in kept for row in rows.to_pylist()]

    def wait_for_rows(self, table: str, row_count: int, *, timeout_s: float = 20) -> None:
        """Return once the table holds at least so many rows."""
        with self.changed:
            assert self.changed.wait_for(
                lambda: len(self.rows(table)) >= row_count, timeout=timeout_s
            ), f"{len(self.rows(table))} rows of {table} instead of {row_count}"

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> ArrowTable:
        """Refuse: this warehouse only keeps."""
        raise QueryError(f"no query {name!r} {parameters}", hint="ask a real warehouse")

    def sql(self, statement: str, *, row_limit: int | None = None) -> ArrowTable:
        """Refuse: this warehouse only keeps."""
        raise QueryError(f"no SQL here: {statement} {row_limit}", hint="ask a real warehouse")

    def close(self) -> None:
        """Nothing to release."""


def unreachable() -> UnreachableError:
    """Return the failure of a warehouse that is away."""
    return UnreachableError("no answer from http://127.0.0.1:1", hint="start the warehouse")
