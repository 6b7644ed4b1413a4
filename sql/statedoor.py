"""The door to the state database for a server that must be ready quickly.

SQLAlchemy takes longer to import than the warehouse takes to open, so the state opens in a thread
of its own; whoever needs it first waits for it.
"""

from __future__ import annotations

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sql.migrate import AppliedMigration, pending, shipped_migrations
from steward.errors import WarehouseError

if TYPE_CHECKING:
    from sql.state import StateStore

STATE_FILE: Final = "state.sqlite"
STATE_ROW_LIMIT: Final = 10_000
"""Rows one listing of a state table may have."""


class StateDoor:
    """The state of one data directory, opened behind the caller's back."""

    def __init__(self, data_dir: Path) -> None:
        """Check the schema now, open in a thread.

        Raises:
            NewerSchemaError: a newer version wrote the state; it is left as it was.
            WarehouseError: the file is damaged.
        """
        refuse_newer(data_dir / STATE_FILE)
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="state")
        self._opening: Future[StateStore] = self._pool.submit(_open, data_dir)

    def get(self) -> StateStore:
        """Return the open state.

        Raises:
            WarehouseError: it cannot be opened.
        """
        return self._opening.result()

    def close(self) -> None:
        """Close the state, once it is open."""
        self._pool.shutdown()
        if self._opening.exception() is None:
            self._opening.result().close()


def _open(data_dir: Path) -> StateStore:
    from sql.state import open_state  # noqa: PLC0415  # its import is what must not delay the start

    return open_state(data_dir)


def refuse_newer(path: Path) -> None:
    """Look at the migrations of a state file without changing it.

    Raises:
        NewerSchemaError: this version does not know them all.
        WarehouseError: it is no SQLite file.
    """
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            applied = _applied(connection)
    except sqlite3.DatabaseError as error:
        raise WarehouseError(
            f"{path} is damaged or no state database: {error}",
            hint="restore a backup with: steward db restore SRC",
        ) from error
    pending(applied, shipped=shipped_migrations("state"), label=str(path))


def _applied(connection: sqlite3.Connection) -> tuple[AppliedMigration, ...]:
    tables = connection.execute("select name from sqlite_master where type = 'table'").fetchall()
    if ("schema_migration",) not in tables:
        return ()
    rows = connection.execute(
        "select number, name, checksum from schema_migration order by number"
    ).fetchall()
    return tuple(AppliedMigration(number=n, name=name, checksum=c) for n, name, c in rows)
