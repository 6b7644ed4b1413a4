"""The embedded warehouse: this process owns the file and answers itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from sql.batches import BatchIndex
from sql.catalogue import bind, named_query
from sql.engine import WAREHOUSE_FILE, Engine, failure, open_engine
from sql.limits import Limits
from sql.rows import arrow_table, fit
from sql.sandbox import cap_rows, refuse_unsafe, run_select
from sql.statedoor import STATE_FILE, STATE_ROW_LIMIT, StateDoor, shipped_tables
from sql.tables import TableShape, read_shapes, shape_of
from steward.errors import InputError
from steward.ids import BatchId
from steward.ports import AppendReceipt, ArrowTable, Parameter, StateValue

StateAnswer = list[dict[str, object]]


def open_embedded(data_dir: Path, *, limits: Limits | None = None) -> EmbeddedWarehouse:
    """Return the warehouse in this directory, created and migrated as needed.

    Raises:
        OwnedElsewhereError: another process owns it.
        NewerSchemaError: a newer version wrote it; it is left as it was.
        WarehouseError: it cannot be opened.
    """
    return EmbeddedWarehouse(data_dir, limits=Limits() if limits is None else limits)


class EmbeddedWarehouse:
    """Both directions of the warehouse port, on a file that this process owns."""

    def __init__(self, data_dir: Path, *, limits: Limits) -> None:
        """Open the file; ``open_embedded`` is the door."""
        self._path = data_dir / WAREHOUSE_FILE
        self._data_dir = data_dir
        self.limits = limits
        self.engine: Engine = open_engine(data_dir, limits=limits)
        self._batches = BatchIndex(self.engine.writing_cursor)
        self.shapes: Mapping[str, TableShape] = read_shapes(self.engine.writing_cursor)
        self._state: StateDoor | None = None

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> pa.Table:
        """Return the rows of a named query."""
        query = named_query(name)
        bound = bind(query, {} if parameters is None else parameters)
        return run_select(
            self.engine, query.text, parameters=bound, limits=self.limits, row_limit=None
        )

    def sql(self, statement: str, *, row_limit: int | None = None) -> pa.Table:
        """Return the rows of one read-only statement.

        With ``row_limit`` the first rows come, marked as truncated where there were more;
        without, more rows than the settings allow are refused.
        """
        refuse_unsafe(statement)
        most = self.limits.query_row_limit
        stop = most if row_limit is None else min(row_limit, most)
        rows = run_select(self.engine, statement, parameters={}, limits=self.limits, row_limit=stop)
        return cap_rows(rows, asked=row_limit, most=most)

    def append(self, table: str, rows: ArrowTable, *, batch_id: BatchId) -> AppendReceipt:
        """Store all rows or none, once per batch id; return when they are safe on disk."""
        shape = shape_of(table, shapes=dict(self.shapes))
        if not batch_id:
            raise InputError("the batch has no id", hint="send one, such as a UUID")
        fitted = fit(arrow_table(rows), shape=shape)
        with self.engine.write_lock:
            stored = self._batches.find(self.engine.writing_cursor, batch_id)
            if stored is None:
                self._store(fitted, table=table, batch_id=batch_id)
                return _receipt(batch_id, table=table, row_count=fitted.num_rows, is_repeat=False)
        if stored.table != table:
            raise InputError(
                f"batch {batch_id} was stored in table {stored.table}, not {table}",
                hint="give each batch an id of its own",
            )
        return _receipt(batch_id, table=table, row_count=stored.row_count, is_repeat=True)

    def _store(self, rows: pa.Table, *, table: str, batch_id: BatchId) -> None:
        """Insert the rows and their batch record in one durable transaction."""
        try:
            self._insert(rows, table=table, batch_id=batch_id)
        except duckdb.FatalException as error:
            self._reopen()
            raise failure(error, path=self._path) from error
        except duckdb.Error as error:
            raise failure(error, path=self._path) from error
        self._batches.add(batch_id)
        self.engine.count_appended(rows.num_rows)

    def _insert(self, rows: pa.Table, *, table: str, batch_id: BatchId) -> None:
        cursor = self.engine.writing_cursor
        columns = ", ".join(f'"{name}"' for name in rows.column_names)
        cursor.execute("begin transaction")
        try:
            cursor.register("incoming_rows", rows.to_reader())
            cursor.execute(
                f'insert into "{table}" ({columns}) select {columns} from incoming_rows'  # noqa: S608  # names come from the catalog
            )
            cursor.execute(
                "insert into append_batch values (now(), ?, ?, ?)", [batch_id, table, rows.num_rows]
            )
            cursor.execute("commit")
        except BaseException:
            _roll_back(cursor)
            raise
        finally:
            cursor.unregister("incoming_rows")

    def _reopen(self) -> None:
        """Start the engine anew after a failure that DuckDB calls fatal."""
        self.engine.close()
        self.engine = open_engine(self._data_dir, limits=self.limits)
        self._batches = BatchIndex(self.engine.writing_cursor)

    def state_rows(self, table: str) -> list[dict[str, object]]:
        """Return the newest rows of a state table beside the warehouse, newest first."""
        if table in shipped_tables() and not (self._data_dir / STATE_FILE).exists():
            return []  # opening the state loads SQLAlchemy, which most reports can do without
        return [dict(row) for row in self._state_door().get().rows(table)]

    def state_insert(self, table: str, row: Mapping[str, StateValue]) -> dict[str, object]:
        """Insert one row into a state table and return it as stored."""
        return dict(self._state_door().get().insert(table, row))

    def state_after(self, table: str, key: int, *, limit: int = STATE_ROW_LIMIT) -> StateAnswer:
        """Return the oldest rows first, of those with a larger key."""
        rows = self._state_door().get().rows_after(table, key, limit=limit)
        return [dict(row) for row in rows]

    def state_append(
        self, rows: Sequence[tuple[str, Mapping[str, StateValue]]], *, seen: Mapping[str, int]
    ) -> StateAnswer | None:
        """Store all rows or none; None where a table has rows its writer has not seen."""
        stored = self._state_door().get().append(rows, seen=seen)
        return None if stored is None else [dict(row) for row in stored]

    def _state_door(self) -> StateDoor:
        """Return the state beside the warehouse, which most uses never need."""
        if self._state is None:
            self._state = StateDoor(self._data_dir)
        return self._state

    def ping(self) -> None:
        """Ask the smallest question there is."""
        run_select(
            self.engine, "select 1 as one", parameters={}, limits=self.limits, row_limit=None
        )

    def close(self) -> None:
        """Close the files and let go of the directory."""
        if self._state is not None:
            self._state.close()
        self.engine.close()


def _roll_back(cursor: duckdb.DuckDBPyConnection) -> None:
    """Leave the failed transaction, which DuckDB may have left already."""
    try:
        cursor.rollback()
    except duckdb.Error:
        return


def _receipt(batch_id: BatchId, *, table: str, row_count: int, is_repeat: bool) -> AppendReceipt:
    return AppendReceipt(batch_id=batch_id, table=table, row_count=row_count, is_repeat=is_repeat)
