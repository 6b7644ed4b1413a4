"""What a change of an object is worth: rows, what to remember, and pods that ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

import pyarrow as pa

from collector.lifecycle.memory import Memory
from collector.tables import SCHEMAS, rows_table

SOURCE: Final = "kubernetes"
_LIMITS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    table: tuple(
        (column.name, 2 ** (column.type.bit_width - 1))
        for column in schema
        if pa.types.is_integer(column.type)
    )
    for table, schema in SCHEMAS.items()
}
"""Columns of whole numbers, with the first number that is too large."""
Row: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """A pod whose containers hold nothing any more."""

    namespace: str
    pod: str
    pod_uid: str
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What is to be stored together, in one transaction."""

    rows: tuple[tuple[str, Row], ...] = ()
    """Rows with the name of their table, in order."""
    remember: Mapping[str, bytes | None] = field(default_factory=dict)
    """Entries of the durable memory; None forgets one."""
    ended_pods: tuple[PodEnd, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything to store or to hand on."""
        return bool(self.rows or self.remember or self.ended_pods)

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows as one table per name, in order of first appearance."""
        by_table: dict[str, list[Row]] = {}
        for table, row in self.rows:
            by_table.setdefault(table, []).append(row)
        for table, rows in by_table.items():
            yield table, rows_table(table, rows)


class Ledger:
    """Collects what one or more changes are worth."""

    def __init__(self, cluster: str, memory: Memory) -> None:
        """Begin with an empty page."""
        self.cluster = cluster
        self.memory = memory
        self.observed_at: datetime | None = None
        self._rows: list[tuple[str, Row]] = []
        self._ends: list[PodEnd] = []

    @property
    def now(self) -> datetime:
        """Return when the change in hand was observed."""
        if self.observed_at is None:
            raise RuntimeError("no change is being applied")
        return self.observed_at

    def add(self, table: str, **columns: object) -> None:
        """Add a row with the cluster; a number that its column cannot hold is left out."""
        row = {"cluster": self.cluster, **columns}
        for column, limit in _LIMITS[table]:
            number = row.get(column)
            if isinstance(number, int) and not -limit <= number < limit:
                row[column] = None
        self._rows.append((table, row))

    def add_observed(self, table: str, **columns: object) -> None:
        """Add a row of a state: with the cluster, the time of observation and the source."""
        self.add(table, **{"observed_at": self.now, "source": SOURCE, **columns})

    def end_pod(self, *, namespace: str, pod: str, pod_uid: str, finished_at: datetime) -> None:
        """Note that a pod ended."""
        self._ends.append(
            PodEnd(namespace=namespace, pod=pod, pod_uid=pod_uid, finished_at=finished_at)
        )

    def take(self) -> Output:
        """Return what was collected, and begin anew."""
        output = Output(
            rows=tuple(self._rows),
            remember=self.memory.take_changes(),
            ended_pods=tuple(self._ends),
        )
        self._rows, self._ends = [], []
        return output
