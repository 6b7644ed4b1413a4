"""Numbered migrations: each applied together with its record, in one transaction.

Nothing here knows which database it moves; ``engine`` and ``state`` bring theirs as a
``MigrationTarget``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sql.assets import sql_files
from steward.errors import NewerSchemaError


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step, as shipped."""

    number: int
    name: str
    checksum: str
    """SHA-256 of the text."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedMigration:
    """One step, as a database remembers it."""

    number: int
    name: str
    checksum: str


class MigrationTarget(Protocol):
    """A database that can be moved."""

    @property
    def label(self) -> str:
        """Name the database in messages."""
        ...

    def applied(self) -> Sequence[AppliedMigration]:
        """Return what was applied, ascending by number; empty for a new database."""
        ...

    def apply(self, migration: Migration) -> None:
        """Run the migration and record it, in one transaction."""
        ...


def shipped_migrations(kind: str) -> tuple[Migration, ...]:
    """Return the migrations of ``warehouse`` or ``state``, ascending by number."""
    return tuple(
        Migration(
            number=int(file.name.partition("_")[0]),
            name=file.name.partition("_")[2],
            checksum=file.checksum,
            text=file.text,
        )
        for file in sql_files(f"migrations/{kind}")
    )


def pending(
    applied: Sequence[AppliedMigration], *, shipped: Sequence[Migration], label: str
) -> tuple[Migration, ...]:
    """Return the shipped migrations that were not applied yet, ascending.

    Raises:
        NewerSchemaError: the database knows a migration that this version does not, one was
            changed after it was applied, or numbers are missing in between.
    """
    _refuse_gap([step.number for step in shipped], label="the shipped migrations")
    _refuse_gap([step.number for step in applied], label=label)
    known = {step.number: step for step in shipped}
    for step in applied:
        _refuse_stranger(step, known=known.get(step.number), label=label)
    return tuple(step for step in shipped if step.number > len(applied))


def migrate(target: MigrationTarget, *, shipped: Sequence[Migration]) -> tuple[Migration, ...]:
    """Apply what is pending and return it.

    Raises:
        NewerSchemaError: as ``pending``; nothing was changed.
    """
    steps = pending(target.applied(), shipped=shipped, label=target.label)
    for step in steps:
        target.apply(step)
    return steps


def _refuse_gap(numbers: Sequence[int], *, label: str) -> None:
    for expected, number in enumerate(numbers, start=1):
        if number != expected:
            raise NewerSchemaError(
                f"{label}: migration {expected:04d} is missing before {number:04d}",
                hint="restore the latest backup, or install the version that wrote this warehouse",
            )


def _refuse_stranger(step: AppliedMigration, *, known: Migration | None, label: str) -> None:
    title = f"{step.number:04d}_{step.name}"
    if known is None:
        raise NewerSchemaError(
            f"{label} has migration {title}, which this version does not know",
            hint="install the version of Steward that wrote it, or a later one",
        )
    if (known.name, known.checksum) != (step.name, step.checksum):
        raise NewerSchemaError(
            f"{label}: migration {title} differs from the shipped {known.number:04d}_{known.name}",
            hint="install the version of Steward that wrote it; migrations are never edited",
        )
