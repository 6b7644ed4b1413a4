"""The door to the state database for a server that must be ready quickly.

SQLAlchemy takes longer to import than the warehouse takes to open, so the state opens a moment
after the start, in a thread of its own; whoever needs it before opens it and waits.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sql.migrate import AppliedMigration, pending, shipped_migrations
from steward.errors import StewardError, WarehouseError

if TYPE_CHECKING:
    from sql.state import StateStore

STATE_FILE: Final = "state.sqlite"
OPENING_DELAY_S: Final = 2.0
"""Leaves the processor to the start of the server."""
STATE_ROW_LIMIT: Final = 10_000
"""Rows one listing of a state table may have."""


class StateDoor:
    """The state of one data directory, opened behind the caller's back."""

    def __init__(self, data_dir: Path) -> None:
        """Check the schema now, open later in a thread.

        Raises:
            NewerSchemaError: a newer version wrote the state; it is left as it was.
            WarehouseError: the file is damaged.
        """
        refuse_newer(data_dir / STATE_FILE)
        self._data_dir = data_dir
        self._lock = threading.Lock()
        self._store: StateStore | None = None
        self._opener = threading.Timer(OPENING_DELAY_S, self._open_ahead)
        self._opener.daemon = True
        self._opener.start()

    def get(self) -> StateStore:
        """Return the open state.

        Raises:
            WarehouseError: it cannot be opened.
        """
        with self._lock:
            if self._store is None:
                from sql.state import open_state  # noqa: PLC0415  # must not delay the start

                self._store = open_state(self._data_dir)
            return self._store

    def close(self) -> None:
        """Close the state, if it was opened."""
        self._opener.cancel()
        self._opener.join()
        with self._lock:
            if self._store is not None:
                self._store.close()

    def _open_ahead(self) -> None:
        """Open before anyone asks; whoever asks is told why it failed."""
        with suppress(StewardError):
            self.get()


@cache
def shipped_tables() -> frozenset[str]:
    """Return the names of the state tables that this version creates."""
    created = re.compile(r"^create table (\w+)", re.MULTILINE)
    scripts = (migration.text for migration in shipped_migrations("state"))
    return frozenset(name for script in scripts for name in created.findall(script))


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
