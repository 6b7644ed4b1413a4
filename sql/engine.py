"""The open DuckDB file: its lock, its settings, its cursors. One engine per data directory.

A connection shared by threads gives silently wrong results, so there is one writing cursor under a
lock and a pool of reading cursors, each lent to one query at a time.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb

from sql.assets import sql_files
from sql.limits import Limits
from sql.migrate import AppliedMigration, Migration, migrate, shipped_migrations
from sql.ownership import OwnerLock
from steward.errors import NewerSchemaError, WarehouseError

WAREHOUSE_FILE: Final = "warehouse.duckdb"
CHECKPOINT_BYTES: Final = 128 * 1024 * 1024
"""Write-ahead log at which DuckDB folds it into the file, within the append that reaches it."""
CHECKPOINT_ROWS: Final = 300_000
"""Appended rows after which the log is folded in the background, before DuckDB would do it: some
90 MB of it, replayed in about 0.4 s. Large appends go past the log, so that its size alone would
never trigger this, and what they leave in memory would be written only at the end."""
READER_COUNT: Final = 8
"""Queries that run at the same time; further ones wait for a cursor."""
READER_WAIT_S: Final = 30.0
DAMAGE_SIGNS: Final = ("not a valid duckdb database", "corrupt", "could not read enough bytes")
WRITER_MEMORY_BYTES: Final = 256 * 1024 * 1024
"""Memory beyond that of all questions, so that appends go on beside them."""
logger = logging.getLogger(__name__)


class Engine:
    """An open warehouse file. Made by ``open_engine``."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, *, lock: OwnerLock, limits: Limits
    ) -> None:
        """Take over the connection and the lock; both are released by ``close``."""
        self._connection = connection
        self._lock = lock
        self.write_lock = threading.RLock()
        """Held by whoever uses ``writing_cursor``."""
        self.writing_cursor = connection.cursor()
        self._unfolded_row_count = 0
        self._is_closing = False
        self._fold_wanted = threading.Event()
        threading.Thread(target=self._fold, name="checkpoint", daemon=True).start()
        self._readers: queue.LifoQueue[duckdb.DuckDBPyConnection] = queue.LifoQueue()
        for _ in range(READER_COUNT):
            self._readers.put(_reading_cursor(connection, limits=limits))
        connection.execute("set lock_configuration = true")

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Lend a cursor in a read-only transaction, rolled back at the end.

        Raises:
            WarehouseError: all cursors stayed busy for too long.
        """
        try:
            cursor = self._readers.get(timeout=READER_WAIT_S)
        except queue.Empty:
            raise WarehouseError(
                f"all {READER_COUNT} readers of the warehouse are busy",
                hint="ask again later, or narrow the questions that run now",
            ) from None
        try:
            cursor.execute("begin transaction read only")
            yield cursor
        finally:
            _end(cursor)
            self._readers.put(cursor)

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file; waits for the writer, not for readers."""
        with self.write_lock:
            self.writing_cursor.execute("checkpoint")

    def count_appended(self, row_count: int) -> None:
        """Take note of a committed append, under the write lock; fold the log when due."""
        self._unfolded_row_count += row_count
        if self._unfolded_row_count >= CHECKPOINT_ROWS:
            self._unfolded_row_count = 0
            self._fold_wanted.set()

    def _fold(self) -> None:
        """Fold the log whenever it is wanted, until the engine closes.

        A failure is told and left to the next time: nothing is lost, it is all in the log.
        """
        while self._fold_wanted.wait():
            with self.write_lock:
                if self._is_closing:
                    return
                self._fold_wanted.clear()
                try:
                    self.checkpoint()
                except duckdb.Error as error:
                    logger.warning("the write-ahead log was not folded: %s", error)

    def close(self) -> None:
        """Close the file, then let go of the directory. The writer itself may call it."""
        with self.write_lock:
            self._is_closing = True
            self._fold_wanted.set()
            try:
                self._connection.close()
            finally:
                self._lock.release()


def open_engine(data_dir: Path, *, limits: Limits) -> Engine:
    """Open, create or migrate the warehouse file in this directory.

    Raises:
        OwnedElsewhereError: another process owns the directory.
        NewerSchemaError: a newer version wrote it; the file is left as it was.
        WarehouseError: it cannot be opened.
    """
    lock = OwnerLock.acquire(data_dir)
    try:
        connection = connect_file(data_dir, limits=limits)
        try:
            return Engine(connection, lock=lock, limits=limits)
        except BaseException:
            connection.close()
            raise
    except BaseException:
        lock.release()
        raise


def connect_file(data_dir: Path, *, limits: Limits) -> duckdb.DuckDBPyConnection:
    """Return a connection with settings, migrations and views in place, not yet locked."""
    path = data_dir / WAREHOUSE_FILE
    connection = _open_file(path, data_dir=data_dir, limits=limits)
    try:
        migrate(WarehouseTarget(connection, path=path), shipped=shipped_migrations("warehouse"))
        for view in sql_files("views"):
            connection.execute(view.text)
    except NewerSchemaError:
        connection.execute("pragma disable_checkpoint_on_shutdown")
        connection.close()
        raise
    except duckdb.Error as error:
        connection.close()
        raise failure(error, path=path) from error
    return connection


def _open_file(path: Path, *, data_dir: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    try:
        connection = duckdb.connect(
            str(path),
            config={
                "checkpoint_threshold": f"{CHECKPOINT_BYTES}B",
                "temp_directory": str(data_dir / "spill"),
                "max_temp_directory_size": "8GB",
                "memory_limit": f"{limits.query_memory_bytes + WRITER_MEMORY_BYTES}B",
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        if limits.thread_count is not None:
            connection.execute(f"set threads = {limits.thread_count}")
        connection.execute("set enable_external_access = false")
        connection.execute("set global TimeZone = 'UTC'")
    except duckdb.Error as error:
        raise failure(error, path=path) from error
    return connection


def _reading_cursor(
    connection: duckdb.DuckDBPyConnection, *, limits: Limits
) -> duckdb.DuckDBPyConnection:
    cursor = connection.cursor()
    cursor.execute(f"set operator_memory_limit = '{limits.query_memory_bytes // 2}B'")
    return cursor


def _end(cursor: duckdb.DuckDBPyConnection) -> None:
    """Leave the transaction; there is none left after some failures."""
    try:
        cursor.rollback()
    except duckdb.TransactionException:
        return


def failure(error: duckdb.Error, *, path: Path) -> WarehouseError:
    """Return what a failure of the engine means to a person, with the remedy."""
    text = str(error).splitlines()[0]
    lowered = str(error).lower()
    if "version number" in lowered or "newer version" in lowered:
        return NewerSchemaError(
            f"{path} was written by a newer storage version: {text}",
            hint="install the version of Steward that wrote it, or a later one",
        )
    if any(sign in lowered for sign in DAMAGE_SIGNS):
        return WarehouseError(
            f"{path} is damaged or no warehouse: {text}",
            hint="restore a backup with: steward db restore SRC",
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return WarehouseError(
            f"{path}: not enough memory: {text}", hint="repeat it; run fewer questions at once"
        )
    return WarehouseError(
        f"{path} cannot be read or written: {text}",
        hint="check free space and permissions of the directory, then repeat; nothing was lost",
    )


class WarehouseTarget:
    """The warehouse file as something to migrate."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, path: Path) -> None:
        """Keep the connection; its owner closes it."""
        self._connection = connection
        self._path = path

    @property
    def label(self) -> str:
        """Name the file."""
        return str(self._path)

    def applied(self) -> Sequence[AppliedMigration]:
        """Return what was applied, ascending by number."""
        exists = self._connection.execute(
            "select count(*) from duckdb_tables() where table_name = 'schema_migration'"
        ).fetchall()[0][0]
        if not exists:
            return ()
        rows = self._connection.execute(
            "select number, name, checksum from schema_migration order by number"
        ).fetchall()
        return tuple(AppliedMigration(number=n, name=name, checksum=c) for n, name, c in rows)

    def apply(self, migration: Migration) -> None:
        """Run the migration and record it, in one transaction."""
        self._connection.execute("begin transaction")
        try:
            self._connection.execute(
                "create table if not exists schema_migration (number integer not null, "
                "name varchar not null, checksum varchar not null, applied_at timestamptz not null)"
            )
            self._connection.execute(migration.text)
            self._connection.execute(
                "insert into schema_migration values (?, ?, ?, now())",
                [migration.number, migration.name, migration.checksum],
            )
            self._connection.execute("commit")
        except duckdb.Error:
            _end(self._connection)
            raise
