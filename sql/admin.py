"""``steward db``: what an operator does to the databases."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from sql.access import open_warehouse, remote_of
from sql.ask import render
from sql.backup import restore_backup, take_backup
from sql.client import RemoteWarehouse
from sql.engine import WAREHOUSE_FILE
from sql.limits import limits_of
from sql.migrate import shipped_migrations
from sql.ownership import read_card
from sql.quality import violations
from sql.statedoor import STATE_FILE, StateDoor
from sql.tables import COUNT_ROWS
from sql.warehouse import open_embedded
from steward.clock import Clock
from steward.settings import Settings

VIOLATED_EXIT_CODE = 1


def migrate_all(settings: Settings) -> int:
    """Create or upgrade both databases; return 0."""
    with (
        closing(open_embedded(settings.data_dir, limits=limits_of(settings.warehouse))),
        closing(StateDoor(settings.data_dir)) as state,
    ):
        state.get()
    for kind, file in (("warehouse", WAREHOUSE_FILE), ("state", STATE_FILE)):
        latest = shipped_migrations(kind)[-1]
        sys.stdout.write(
            f"{settings.data_dir / file}: at migration {latest.number:04d}_{latest.name}\n"
        )
    return 0


def check(settings: Settings) -> int:
    """Run all data-quality checks; return 1 when a row violates one, else 0."""
    with open_warehouse(settings) as warehouse:
        found = violations(warehouse)
    for violation in found:
        mark = "ok  " if violation.row_count == 0 else "FAIL"
        sys.stdout.write(f"{mark} {violation.name}: {violation.row_count} ({violation.purpose})\n")
    total = sum(violation.row_count for violation in found)
    sys.stdout.write(f"{len(found)} checks, {total} violations\n")
    return VIOLATED_EXIT_CODE if total else 0


def info(settings: Settings) -> int:
    """Print files, owner, and the rows of each table; return 0."""
    card = read_card(settings.data_dir)
    owner = "none" if card is None else f"process {card.pid} at {card.url} since {card.started_at}"
    with open_warehouse(settings) as warehouse:
        rows = warehouse.sql(COUNT_ROWS)
    for name in (WAREHOUSE_FILE, f"{WAREHOUSE_FILE}.wal", STATE_FILE):
        path = settings.data_dir / name
        if path.exists():
            sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")
    sys.stdout.write(f"owner: {owner}\n\n{render(rows, form='table')!s}")
    return 0


def backup(settings: Settings, destination: Path, *, clock: Clock) -> int:
    """Write a backup, by the owner where one runs; return 0."""
    target = destination.absolute()
    remote = remote_of(settings)
    if remote is None:
        _backup_here(settings, target, clock=clock)
    else:
        _backup_there(remote, target)
    sys.stdout.write(f"backup written to {target}\n")
    return 0


def _backup_there(remote: RemoteWarehouse, target: Path) -> None:
    with closing(remote):
        remote.backup(str(target))


def _backup_here(settings: Settings, target: Path, *, clock: Clock) -> None:
    with (
        closing(open_embedded(settings.data_dir, limits=limits_of(settings.warehouse))) as own,
        closing(StateDoor(settings.data_dir)) as state,
    ):
        take_backup(
            own.engine,
            state=state,
            data_dir=settings.data_dir,
            destination=target,
            taken_at=clock.now(),
        )


def restore(settings: Settings, source: Path, *, is_forced: bool) -> int:
    """Put a backup in place; return 0."""
    manifest = restore_backup(source, data_dir=settings.data_dir, is_forced=is_forced)
    total = sum(manifest.row_counts.values())
    sys.stdout.write(f"restored {total} rows of {manifest.taken_at} into {settings.data_dir}\n")
    return 0
