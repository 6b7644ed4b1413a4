"""Backups: a consistent copy of both databases with a manifest, verified before it counts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb

from sql.engine import WAREHOUSE_FILE, Engine, WarehouseTarget
from sql.migrate import pending, shipped_migrations
from sql.ownership import OwnerLock
from sql.statedoor import STATE_FILE, StateDoor
from steward.errors import InputError, WarehouseError
from steward.version import __version__

MANIFEST_FILE: Final = "backup.json"
PARTS: Final = (WAREHOUSE_FILE, STATE_FILE)
READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds."""

    version: str
    """The version of Steward that took it."""
    taken_at: str
    """ISO 8601, UTC."""
    row_counts: Mapping[str, int]
    """Rows by table of the warehouse."""
    checksums: Mapping[str, str]
    """SHA-256 by file."""

    def as_json(self) -> dict[str, object]:
        """Return the fields as plain values."""
        return asdict(self)


def take_backup(
    engine: Engine, *, state: StateDoor, data_dir: Path, destination: Path, taken_at: datetime
) -> Manifest:
    """Write a backup into a new folder, while others go on reading; appends wait for the copy.

    Raises:
        InputError: the destination exists already.
        WarehouseError: the copy failed or does not read back; nothing is left behind.
    """
    _refuse_destination(destination)
    draft = destination.with_name(f".{destination.name}.{os.getpid()}.partial")
    try:
        draft.mkdir(parents=True)
        _copy_warehouse(engine, data_dir=data_dir, draft=draft)
        state.get().backup_to(draft / STATE_FILE)
        manifest = _describe(draft, taken_at=taken_at)
        _write_manifest(draft, manifest)
        draft.rename(destination)
    except (OSError, duckdb.Error) as error:
        raise WarehouseError(
            f"the backup to {destination} failed: {error}",
            hint="check free space and permissions there, then repeat; nothing was left behind",
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _refuse_destination(destination: Path) -> None:
    try:
        destination.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:  # too long, or with a null character
        raise InputError(
            f"{str(destination)[:80]!r} cannot be a folder: {error.args[-1]}",
            hint="name a folder that does not exist",
        ) from error
    raise InputError(f"{destination} exists already", hint="name a folder that does not exist")


def _copy_warehouse(engine: Engine, *, data_dir: Path, draft: Path) -> None:
    """Copy the file and what a busy reader kept in the log; no writer moves meanwhile."""
    with engine.write_lock:
        engine.checkpoint()
        for name in (WAREHOUSE_FILE, f"{WAREHOUSE_FILE}.wal"):
            source = data_dir / name
            if source.exists():
                shutil.copyfile(source, draft / name)
    duckdb.connect(str(draft / WAREHOUSE_FILE)).close()


def _describe(folder: Path, *, taken_at: datetime) -> Manifest:
    return Manifest(
        version=__version__,
        taken_at=taken_at.isoformat(timespec="seconds"),
        row_counts=row_counts(folder / WAREHOUSE_FILE),
        checksums={name: _checksum(folder / name) for name in PARTS},
    )


def row_counts(file: Path) -> dict[str, int]:
    """Return the rows by table of a warehouse file that nobody has open.

    Raises:
        NewerSchemaError: this version does not know the file's migrations.
    """
    with duckdb.connect(str(file), read_only=True) as connection:
        target = WarehouseTarget(connection, path=file)
        pending(target.applied(), shipped=shipped_migrations("warehouse"), label=target.label)
        names = connection.execute("select table_name from duckdb_tables() order by 1").fetchall()
        return {name: connection.table(name).count("*").fetchall()[0][0] for (name,) in names}


def _checksum(file: Path) -> str:
    total = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(READ_BYTES):
            total.update(chunk)
    return total.hexdigest()


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST_FILE).write_text(json.dumps(asdict(manifest), indent=2), encoding="utf-8")
    for name in (*PARTS, MANIFEST_FILE):
        with (folder / name).open("rb") as stream:
            os.fsync(stream.fileno())


def read_backup(source: Path) -> Manifest:
    """Return a backup's manifest, after its files were compared with it.

    Raises:
        InputError: there is no backup, or its files are not what the manifest says.
        NewerSchemaError: a newer version took it.
    """
    try:
        manifest = Manifest(**json.loads((source / MANIFEST_FILE).read_text(encoding="utf-8")))
        found = {name: _checksum(source / name) for name in PARTS}
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{source} is no complete backup: {error}",
            hint="name a folder written by: steward db backup",
        ) from error
    if found != manifest.checksums or row_counts(source / WAREHOUSE_FILE) != manifest.row_counts:
        raise InputError(
            f"the files in {source} differ from their manifest", hint="use another backup"
        )
    return manifest


def restore_backup(source: Path, *, data_dir: Path, is_forced: bool) -> Manifest:
    """Put a backup in the place of a data directory's databases.

    The new files are complete beside the old ones before the old ones make way; those are kept in
    the folder ``replaced`` until the next forced restore.

    Raises:
        InputError: the backup is not whole, or a warehouse is there and ``is_forced`` is false.
        OwnedElsewhereError: a process owns the directory.
    """
    manifest = read_backup(source)
    lock = OwnerLock.acquire(data_dir)
    try:
        present = [name for name in _all_files() if (data_dir / name).exists()]
        if present and not is_forced:
            raise InputError(
                f"{data_dir} holds a warehouse already",
                hint="restore into an empty folder, or add --force to replace it",
            )
        _swap(source, data_dir=data_dir, present=present)
    except OSError as error:
        raise WarehouseError(
            f"the restore to {data_dir} failed: {error}",
            hint=f"free some space and repeat; what was there is in {data_dir / 'replaced'}",
        ) from error
    finally:
        lock.release()
    return manifest


def _all_files() -> tuple[str, ...]:
    return (
        WAREHOUSE_FILE,
        f"{WAREHOUSE_FILE}.wal",
        STATE_FILE,
        f"{STATE_FILE}-wal",
        f"{STATE_FILE}-shm",
    )


def _swap(source: Path, *, data_dir: Path, present: list[str]) -> None:
    staged = data_dir / "restoring"
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    try:
        for name in PARTS:
            shutil.copyfile(source / name, staged / name)
            with (staged / name).open("rb") as stream:
                os.fsync(stream.fileno())
        _set_aside(data_dir, present=present)
        for name in PARTS:
            (staged / name).replace(data_dir / name)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _set_aside(data_dir: Path, *, present: list[str]) -> None:
    if not present:
        return
    aside = data_dir / "replaced"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    for name in reversed(present):
        (data_dir / name).replace(aside / name)
