"""Small mutable state (prices, policies, approvals, the action ledger) in SQLite by SQLAlchemy.

Never in DuckDB: these rows are few, transactional and unique-constrained.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.pool import ConnectionPoolEntry

from sql.auditchain import AUDIT, FIRST, HASHES, SEALED, sealed
from sql.migrate import AppliedMigration, Migration, migrate, shipped_migrations
from sql.statedoor import STATE_FILE, STATE_ROW_LIMIT, refuse_newer
from steward.errors import InputError, QueryError, WarehouseError

OWN_TABLE: Final = "schema_migration"

StateValue = str | int | float | None
StateRow = Mapping[str, StateValue]
StateRows = tuple[StateRow, ...]


def open_state(data_dir: Path) -> StateStore:
    """Return the state of this data directory, created and migrated as needed.

    Raises:
        NewerSchemaError: a newer version wrote it; it is left as it was.
        WarehouseError: it cannot be opened.
    """
    path = data_dir / STATE_FILE
    refuse_newer(path)
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 10.0})
    sa.event.listen(engine, "connect", _set_up)
    sa.event.listen(engine, "begin", _begin)
    try:
        with _told(path):
            migrate(StateTarget(engine, path=path), shipped=shipped_migrations("state"))
            return StateStore(engine, path=path)
    except BaseException:
        engine.dispose()
        raise


class StateStore:
    """Lists and inserts rows of the state tables; rows are never changed in place."""

    def __init__(self, engine: sa.Engine, *, path: Path) -> None:
        """Read the tables' shapes; ``open_state`` is the door."""
        self._engine = engine
        self._path = path
        metadata = sa.MetaData()
        metadata.reflect(engine)
        self._tables = {t.name: t for t in metadata.sorted_tables if t.name != OWN_TABLE}

    @property
    def table_names(self) -> tuple[str, ...]:
        """Return the names of all tables, ascending."""
        return tuple(sorted(self._tables))

    def rows(self, table: str, *, limit: int = STATE_ROW_LIMIT) -> tuple[StateRow, ...]:
        """Return the newest rows first, at most ``limit``.

        Raises:
            QueryError: there is no such table.
        """
        found = self._table(table)
        key = next(iter(found.primary_key.columns))
        statement = sa.select(found).order_by(key.desc()).limit(limit)
        with _told(self._path), self._engine.connect() as connection:
            return tuple(dict(row) for row in connection.execute(statement).mappings())

    def rows_after(self, table: str, key: int, *, limit: int = STATE_ROW_LIMIT) -> StateRows:
        """Return the oldest rows first, of those with a larger key, at most ``limit``.

        Key 0 is before all rows, also those that somebody put into the file below 1.

        Raises:
            QueryError: there is no such table.
        """
        found = self._table(table)
        column = next(iter(found.primary_key.columns))
        statement = sa.select(found).order_by(column).limit(limit)
        if key != 0:
            statement = statement.where(column > key)
        with _told(self._path), self._engine.connect() as connection:
            return tuple(dict(row) for row in connection.execute(statement).mappings())

    def insert(self, table: str, row: StateRow) -> dict[str, StateValue]:
        """Store one row and return it as stored, with its key and time of recording.

        Raises:
            QueryError: there is no such table.
            InputError: an unknown column, a value that breaks a rule, or a row that is there.
        """
        stored = self.append(((table, row),), seen={})
        return dict(stored[0]) if stored else {}

    def append(
        self, rows: Sequence[tuple[str, StateRow]], *, seen: Mapping[str, int]
    ) -> StateRows | None:
        """Store all rows or none, in one transaction; return them as stored.

        Rows of the audit are sealed here: they come without hashes.

        Args:
            rows: each with the name of its table.
            seen: by table, the newest key its writer has read (0: none); a table that has newer
                rows is one that somebody else wrote to meanwhile, and then nothing is stored.

        Returns:
            the rows, or None where a table has rows its writer has not seen.

        Raises:
            QueryError: there is no such table.
            InputError: an unknown column, a value that breaks a rule, or a row that is there.
        """
        known = [(self._table(name), row) for name, row in rows]
        fitted = [
            (table, {name: _value(table, name, value) for name, value in row.items()})
            for table, row in known
        ]
        watched = {self._table(name): key for name, key in seen.items()}
        try:
            with _told(self._path), self._engine.begin() as connection:
                if any(_newest(connection, table) > key for table, key in watched.items()):
                    return None
                return tuple(_insert(connection, table, row) for table, row in fitted)
        except sa.exc.IntegrityError as error:
            names = ", ".join(dict.fromkeys(name for name, _row in rows))
            raise InputError(
                f"the row for {names} breaks a rule: {error.orig}",
                hint="correct the row; a row that is there already is not stored twice",
            ) from error

    def backup_to(self, target: Path) -> None:
        """Copy a consistent state into a new file, while others read and write."""
        with _told(self._path), self._engine.connect() as connection:
            source = connection.connection.driver_connection
            destination = sqlite3.connect(target)
            try:
                if isinstance(source, sqlite3.Connection):
                    source.backup(destination)
            finally:
                destination.close()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _table(self, name: str) -> sa.Table:
        found = self._tables.get(name)
        if found is not None:
            return found
        near = get_close_matches(name, self._tables, n=1)
        raise QueryError(
            f"there is no state table {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"one of {', '.join(self.table_names)}",
        )


def _newest(connection: sa.Connection, table: sa.Table) -> int:
    """Return the largest key of the table, 0 where it is empty."""
    key = next(iter(table.primary_key.columns))
    return int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(key), 0))).scalar_one())


def _insert(connection: sa.Connection, table: sa.Table, row: StateRow) -> Mapping[str, StateValue]:
    values = _sealed(connection, table, row) if table.name == AUDIT else row
    statement = sa.insert(table).values(values).returning(*table.columns)
    return dict(connection.execute(statement).mappings().one())


def _sealed(connection: sa.Connection, table: sa.Table, row: StateRow) -> dict[str, object]:
    """Return the row of the audit with its place in the chain.

    Raises:
        InputError: it brings hashes of its own, or lacks what they cover.
    """
    if row.keys() & {"audit_id", *HASHES} or not row.keys() >= set(SEALED):
        raise InputError(
            "a row of the audit is sealed by the warehouse",
            hint=f"send {', '.join(SEALED)}, and no hashes",
        )
    newest = sa.select(table.c.sha256).order_by(table.c.audit_id.desc()).limit(1)
    previous = connection.execute(newest).scalar()
    return sealed(row, previous=FIRST if previous is None else str(previous))


def _value(table: sa.Table, name: str, value: StateValue) -> StateValue:
    if name not in table.columns:
        raise InputError(
            f"state table {table.name} has no column {name!r}",
            hint=f"columns: {', '.join(table.columns.keys())}",
        )
    if _is_counted(table.columns[name]) and table.name != AUDIT:
        raise InputError(
            f"{table.name}.{name} is given by the warehouse: the newest row has the largest",
            hint="leave it out; the answer tells it",
        )
    if value is not None and name.endswith("_at"):
        return _instant(table, name, value)
    if isinstance(value, str) and name.endswith("_json"):
        _refuse_no_json(table, name, value)
    return _exact(table, name, value)


def _is_counted(column: sa.Column[object]) -> bool:
    """Tell whether the database counts it up: names that are keys are their writer's."""
    return column.primary_key and isinstance(column.type, sa.Integer)


def _refuse_no_json(table: sa.Table, name: str, text: str) -> None:
    """Refuse what SQLite takes for JSON and readers do not: they would fail at it for ever."""
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{table.name}.{name} is no JSON: {error}", hint="send a text that is JSON as a whole"
        ) from error


def _exact(table: sa.Table, name: str, value: StateValue) -> StateValue:
    """Refuse what SQLite would store as another type: its columns do not insist."""
    wants_integer = isinstance(table.columns[name].type, sa.Integer)
    is_right = _is_integer(value) if wants_integer else _is_text(value)
    if value is None or is_right:
        return int(value) if isinstance(value, bool) else value
    raise InputError(
        f"{table.name}.{name} is {value!r}, not {'an integer' if wants_integer else 'a text'}",
        hint="money is an integer in millionths of the currency; JSON columns take JSON texts",
    )


def _is_integer(value: StateValue) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _is_text(value: StateValue) -> bool:
    """Tell whether it is a text of whole characters and no NUL: JSON can spell both."""
    is_whole = isinstance(value, str) and value.encode(errors="ignore").decode() == value
    return is_whole and "\0" not in str(value)


def _instant(table: sa.Table, name: str, value: StateValue) -> str:
    """Return the instant in one spelling, so that texts compare as instants do."""
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else None
        if instant is not None and instant.tzinfo is not None:
            at = instant.astimezone(UTC)
            return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        pass  # no instant, or one whose zone lifts it out of the calendar
    raise InputError(
        f"{table.name}.{name} is no instant with a time zone: {value!r}",
        hint="write it as 2026-05-01T00:00:00Z",
    )


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn failures of the database into words for a person."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.DatabaseError as error:
        raise WarehouseError(
            f"the state in {path} cannot be read or written: {error.orig}",
            hint="check free space and permissions, or restore a backup with: steward db restore",
        ) from error


def _set_up(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
    """Let SQLAlchemy begin transactions itself, so that migrations are all or nothing."""
    connection.isolation_level = None
    for pragma in ("journal_mode = wal", "synchronous = full", "foreign_keys = on"):
        connection.execute(f"pragma {pragma}")


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql("begin immediate")


class StateTarget:
    """The state database as something to migrate."""

    def __init__(self, engine: sa.Engine, *, path: Path) -> None:
        """Keep the engine; its owner disposes of it."""
        self._engine = engine
        self._path = path

    @property
    def label(self) -> str:
        """Name the file."""
        return str(self._path)

    def applied(self) -> Sequence[AppliedMigration]:
        """Return what was applied, ascending by number."""
        if not sa.inspect(self._engine).has_table(OWN_TABLE):
            return ()
        with self._engine.connect() as connection:
            rows = connection.execute(
                sa.text("select number, name, checksum from schema_migration order by number")
            ).all()
        return tuple(AppliedMigration(number=n, name=name, checksum=c) for n, name, c in rows)

    def apply(self, migration: Migration) -> None:
        """Run the migration and record it, in one transaction.

        Somebody else may have done so since it was found pending: then nothing is done.
        """
        with self._engine.begin() as connection:
            connection.exec_driver_sql(
                "create table if not exists schema_migration (number integer primary key, "
                "name text not null, checksum text not null, applied_at text not null)"
            )
            done = sa.text("select 1 from schema_migration where number = :number")
            if connection.execute(done, {"number": migration.number}).scalar() is not None:
                return
            for statement in statements(migration.text):
                connection.exec_driver_sql(statement)
            connection.execute(
                sa.text(
                    "insert into schema_migration values "
                    "(:number, :name, :checksum, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"
                ),
                {
                    "number": migration.number,
                    "name": migration.name,
                    "checksum": migration.checksum,
                },
            )


def statements(script: str) -> tuple[str, ...]:
    """Return the single statements of a script."""
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return tuple(found)
