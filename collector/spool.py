"""Batches that wait on disk: one SQLite file per collector, which outlives the process.

A batch is one row with its Arrow IPC stream; the memory of the sources lies beside it and changes
in the same transaction. A killed process loses nothing that was added, and finds no half batch; a
batch that was stored but not yet forgotten is sent again and recognised by its id. Each batch has
a checksum: what the disk changed is given up and told, never delivered.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

import pyarrow as pa

from collector.backlog import (
    BacklogLimits,
    Memory,
    SpoiledBatchError,
    Waiting,
    WaitingLine,
    waiting_of,
)
from collector.batches import Batch
from steward.errors import OwnedElsewhereError, WarehouseError
from steward.ids import BatchId, ClusterName

log = logging.getLogger(__name__)

VERSION: Final = 2
_SCHEMA: Final = """
create table if not exists batch (
    position integer primary key autoincrement,
    batch_id text not null unique,
    table_name text not null,
    row_count integer not null,
    body blob not null,
    checksum integer
);
create table if not exists memory (
    key text primary key,
    value blob not null,
    checksum integer
) without rowid;
"""
_PRAGMAS: Final = (
    "pragma auto_vacuum = incremental",
    "pragma journal_mode = wal",
    "pragma synchronous = normal",
)
"""A power cut may take the last seconds, a killed process takes nothing; neither tears the file."""
_GIVEN_BACK_PAGES: Final = 4_096
"""Pages that the file gives back in one step; the next batch waits no longer than for one."""
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
        self._done: list[BatchId] = []
        """Batches that do not wait any more and are still in the file."""
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
        added: list[Waiting] = []
        with self._lock, self._told("cannot be written"), self._connection:
            added.extend(map(self._insert, batches))
            self._remember(remember)
        with self._lock:
            for one in added:
                self._line.append(one)
            given_up = self._line.give_up()
            self._done += [one.batch_id for one in given_up]
        self._forget_done()
        return given_up

    def first(self) -> Batch | None:
        """Return the oldest batch with its rows; it is not given up until settled or released.

        Raises:
            SpoiledBatchError: it is not what was stored, and has been given up.
            WarehouseError: the file cannot be read.
        """
        with self._lock:
            waiting = self._line.take_first()
            if waiting is None:
                return None
            with self._told("cannot be read"):
                found = self._connection.execute(
                    "select cast(body as blob), checksum from batch where batch_id = ?",
                    (waiting.batch_id,),
                ).fetchone()
        rows = None if found is None else _rows_of(waiting, *found)
        if rows is None:
            self._settle(waiting.batch_id)
            raise SpoiledBatchError(self._path, waiting=waiting)
        return Batch(batch_id=waiting.batch_id, table=waiting.table, rows=rows)

    def settle(self, batch: Batch) -> None:
        """Forget the batch; once nothing waits the file gives its space back.

        Where the file cannot be written the batch is forgotten with a later one; another process
        would send it again, and the warehouse would know it.
        """
        self._settle(batch.batch_id)

    def release(self) -> None:
        """Leave the batch under way waiting."""
        with self._lock:
            self._line.release()

    def recall(self) -> dict[str, bytes]:
        """Return everything that was to be remembered, by this process or an earlier one.

        What the disk changed is left out and told: its source then begins anew with that object.

        Raises:
            WarehouseError: the file cannot be read.
        """
        with self._lock, self._told("cannot be read"):
            found = self._connection.execute(
                "select cast(key as text), cast(value as blob), checksum from memory"
            ).fetchall()
        return {
            key: value for key, value, checksum in found if self._is_whole(key, value, checksum)
        }

    def _is_whole(self, key: str, value: bytes, checksum: int | None) -> bool:
        if checksum is None or checksum == _checksum(key, value):
            return True
        log.error("what the spool %s remembers of %s is damaged and left out", self._path, key)
        return False

    def close(self) -> None:
        """Close the file; another collector may open it."""
        with self._lock:
            with suppress(sqlite3.Error):
                self._connection.execute("pragma incremental_vacuum").fetchall()
            self._connection.close()
            os.close(self._owner)

    def _remember(self, remember: Memory) -> None:
        forgotten = [(key,) for key, value in remember.items() if value is None]
        kept = [
            (key, value, _checksum(key, value))
            for key, value in remember.items()
            if value is not None
        ]
        self._connection.executemany("delete from memory where key = ?", forgotten)
        self._connection.executemany(
            "insert into memory (key, value, checksum) values (?, ?, ?) on conflict (key) "
            "do update set value = excluded.value, checksum = excluded.checksum",
            kept,
        )

    def _insert(self, batch: Batch) -> Waiting:
        body = _body(batch)
        waiting = waiting_of(batch, byte_count=len(body))
        self._connection.execute(
            "insert into batch (batch_id, table_name, row_count, body, checksum) "
            "values (?, ?, ?, ?, ?)",
            (batch.batch_id, batch.table, waiting.row_count, body, _checksum(_name(waiting), body)),
        )
        return waiting

    def _settle(self, batch_id: BatchId) -> None:
        with self._lock:
            self._line.remove(batch_id)
            self._done.append(batch_id)
        self._forget_done()

    def _forget_done(self) -> None:
        """Delete what does not wait any more; a file that cannot be written keeps it for now."""
        with suppress(sqlite3.Error):
            with self._lock, self._connection:
                gone = [(one,) for one in self._done]
                self._connection.executemany("delete from batch where batch_id = ?", gone)
                self._done.clear()
            while not self._line.row_count and self._give_back():
                pass

    def _give_back(self) -> bool:
        """Make the file shorter by one step; tell whether that left more to give back."""
        with self._lock:
            before = self._free_pages()
            self._connection.execute(f"pragma incremental_vacuum({_GIVEN_BACK_PAGES})").fetchall()
            return 0 < self._free_pages() < before

    def _free_pages(self) -> int:
        (count,) = self._connection.execute("pragma freelist_count").fetchone()
        return int(count)

    def _find_left(self) -> None:
        found = self._connection.execute(
            "select cast(batch_id as text), cast(table_name as text), cast(row_count as integer), "
            "length(body) from batch order by position"
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
        except (OSError, sqlite3.Error) as error:
            raise WarehouseError(
                f"the spool {self._path} {fault}: {error}", hint=_hint(error)
            ) from error


class _VersionError(sqlite3.DatabaseError):
    """The file was written by a newer program."""


def _hint(error: Exception) -> str:
    if isinstance(error, _VersionError):
        return "run the newer program that wrote it, or move the file away undelivered"
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
        if version not in range(VERSION + 1):
            raise _VersionError(f"it has version {version}, this program reads {VERSION}")
        if version != VERSION:  # a file that is up to date opens on a full disk, too
            _bring_up_to_date(connection, version=version)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _bring_up_to_date(connection: sqlite3.Connection, *, version: int) -> None:
    with connection:
        connection.execute("begin")
        if version == 1:  # it has no checksums
            connection.execute("alter table batch add column checksum integer")
            connection.execute("alter table memory add column checksum integer")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"pragma user_version = {VERSION}")


def _name(waiting: Waiting) -> str:
    """Return what of a batch is not in its body."""
    return f"{waiting.batch_id} {waiting.table} {waiting.row_count} "


def _checksum(name: str, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(name.encode()))


def _rows_of(waiting: Waiting, body: bytes, checksum: int | None) -> pa.Table | None:
    """Return the rows in a body; None where it is not what was stored."""
    if checksum is not None and checksum != _checksum(_name(waiting), body):
        return None
    try:
        with pa.ipc.open_stream(body) as stream:
            return stream.read_all()
    except (pa.ArrowException, OSError, ValueError):
        return None


def _body(batch: Batch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.rows.schema, options=_COMPRESSED) as stream:
        stream.write_table(batch.rows)
    return bytes(memoryview(sink.getvalue()))
