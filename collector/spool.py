"""Batches that wait on disk: one SQLite file per collector, which outlives the process.

A batch is one row with its Arrow IPC stream; the memory of the sources lies beside it and changes
in the same transaction. A killed process loses nothing that was added, and finds no half batch; a
batch that was stored but not yet forgotten is sent again and recognised by its id.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa

from collector.backlog import BacklogLimits, Memory, Waiting, WaitingLine, waiting_of
from collector.batches import Batch
from steward.errors import OwnedElsewhereError, WarehouseError
from steward.ids import BatchId, ClusterName

VERSION: Final = 1
_SCHEMA: Final = """
create table if not exists batch (
    position integer primary key autoincrement,
    batch_id text not null unique,
    table_name text not null,
    row_count integer not null,
    body blob not null
);
create table if not exists memory (key text primary key, value blob not null) without rowid;
"""
_PRAGMAS: Final = (
    "pragma auto_vacuum = incremental",
    "pragma journal_mode = wal",
    "pragma synchronous = normal",
)
"""A power cut may take the last seconds, a killed process takes nothing; neither tears the file."""
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def spool_path(data_dir: Path, cluster: ClusterName) -> Path:
    """Return where the collector of a cluster keeps what is not yet delivered."""
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in cluster)
    return data_dir / "spool" / f"{safe}.sqlite"


class Spool:
    """Batches waiting on disk, and what the sources must remember.

    Args:
        path: the file; it and its folder are created where they are not there.
        limits: what may wait, counted as it lies on disk.

    Raises:
        OwnedElsewhereError: another collector has it open.
        WarehouseError: it cannot be written, or is no spool.
    """

    is_durable: Final = True

    def __init__(self, path: Path, *, limits: BacklogLimits | None = None) -> None:
        """Open the file and find what an earlier process left."""
        self._path = path
        self._line = WaitingLine(limits if limits is not None else BacklogLimits())
        self._lock = Lock()
        with self._told("cannot be opened"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._owner = _own(path)
        try:
            with self._told("cannot be opened"):
                self._connection = _connected(path)
                self._find_left()
        except WarehouseError:
            os.close(self._owner)
            raise

    @property
    def row_count(self) -> int:
        """Return how many rows wait."""
        return self._line.row_count

    @property
    def byte_count(self) -> int:
        """Return what the waiting batches occupy on disk."""
        return self._line.byte_count

    def add(self, batches: Sequence[Batch], *, remember: Memory) -> Sequence[Waiting]:
        """Store the batches and change the memory in one transaction; return those given up.

        Raises:
            WarehouseError: the disk is full or the file cannot be written; nothing was kept.
        """
        bodies = [_body(batch) for batch in batches]
        with self._lock, self._told("cannot be written"), self._connection:
            for batch, body in zip(batches, bodies, strict=True):
                self._connection.execute(
                    "insert into batch (batch_id, table_name, row_count, body) values (?, ?, ?, ?)",
                    (batch.batch_id, batch.table, batch.rows.num_rows, body),
                )
            self._remember(remember)
        with self._lock:
            for batch, body in zip(batches, bodies, strict=True):
                self._line.append(waiting_of(batch, byte_count=len(body)))
            given_up = self._line.give_up()
        for one in given_up:
            self._delete(one.batch_id)
        return given_up

    def first(self) -> Batch | None:
        """Return the oldest batch with its rows; it is not given up until settled or released.

        Raises:
            WarehouseError: the file cannot be read.
        """
        with self._lock, self._told("cannot be read"):
            waiting = self._line.take_first()
            if waiting is None:
                return None
            (body,) = self._connection.execute(
                "select body from batch where batch_id = ?", (waiting.batch_id,)
            ).fetchone()
            with pa.ipc.open_stream(body) as stream:
                rows = stream.read_all()
        return Batch(batch_id=waiting.batch_id, table=waiting.table, rows=rows)

    def settle(self, batch: Batch) -> None:
        """Forget the batch; the file gives its space back.

        Raises:
            WarehouseError: the file cannot be written; the batch would be sent again, stored once.
        """
        self._delete(batch.batch_id)
        with self._lock:
            self._line.remove(batch.batch_id)

    def release(self) -> None:
        """Leave the batch under way waiting."""
        with self._lock:
            self._line.release()

    def recall(self) -> dict[str, bytes]:
        """Return everything that was to be remembered, by this process or an earlier one.

        Raises:
            WarehouseError: the file cannot be read.
        """
        with self._lock, self._told("cannot be read"):
            return dict(self._connection.execute("select key, value from memory"))

    def close(self) -> None:
        """Close the file; another collector may open it."""
        with self._lock:
            with suppress(sqlite3.Error):
                self._connection.execute("pragma incremental_vacuum")
            self._connection.close()
            os.close(self._owner)

    def _remember(self, remember: Memory) -> None:
        forgotten = [(key,) for key, value in remember.items() if value is None]
        kept = [(key, value) for key, value in remember.items() if value is not None]
        self._connection.executemany("delete from memory where key = ?", forgotten)
        self._connection.executemany(
            "insert into memory (key, value) values (?, ?) "
            "on conflict (key) do update set value = excluded.value",
            kept,
        )

    def _delete(self, batch_id: BatchId) -> None:
        with self._lock, self._told("cannot be written"), self._connection:
            self._connection.execute("delete from batch where batch_id = ?", (batch_id,))
        if not self._line.row_count:
            with self._lock, self._told("cannot be written"):
                self._connection.execute("pragma incremental_vacuum")

    def _find_left(self) -> None:
        found = self._connection.execute(
            "select batch_id, table_name, row_count, length(body) from batch order by position"
        )
        for batch_id, table, row_count, byte_count in found:
            self._line.append(
                Waiting(
                    batch_id=BatchId(batch_id),
                    table=table,
                    row_count=row_count,
                    byte_count=byte_count,
                )
            )

    @contextmanager
    def _told(self, fault: str) -> Iterator[None]:
        """Turn what SQLite and the disk say into one error that names the file."""
        try:
            yield
        except (OSError, sqlite3.Error, pa.ArrowInvalid) as error:
            raise WarehouseError(
                f"the spool {self._path} {fault}: {error}", hint=_hint(error)
            ) from error


def _hint(error: Exception) -> str:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return "move the file away: what it holds is then not delivered, and a new one is made"
    return "free space on its disk and see that this user may write there"


def _own(path: Path) -> int:
    """Return the open lock file of the spool.

    Raises:
        OwnedElsewhereError: another process holds it.
    """
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise OwnedElsewhereError(
            f"another collector uses the spool {path}",
            hint="stop it, or give this one its own --data-dir and --warehouse-url",
        ) from error
    return lock


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        (version,) = connection.execute("pragma user_version").fetchone()
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"it has version {version}, this program reads {VERSION}")
        connection.executescript(_SCHEMA)
        connection.execute(f"pragma user_version = {VERSION}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _body(batch: Batch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.rows.schema, options=_COMPRESSED) as stream:
        stream.write_table(batch.rows)
    return bytes(memoryview(sink.getvalue()))
