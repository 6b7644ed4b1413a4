"""Which rows the warehouse does not have yet: so that overlapping texts store each job once.

A text of May and one of May and June tell the same jobs; one taken while a job ran and one taken
after it ended tell the same job twice. Rows are compared by what identifies them, batch by batch
within the batch's own span of time; the ids of batches follow from their rows, so that a repeated
batch is recognised also where its first answer was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from collector.backfill.sacct.jobs import Job
from collector.backfill.sacct.rows import (
    SOURCE,
    Row,
    allocation_rows,
    transition_rows,
    workload_rows,
)
from collector.batches import Batch, derived_batch_id
from collector.imports import stored_rows
from collector.tables import rows_table
from steward.ports import Reader

BATCH_ROWS: Final = 20_000


class RowsOf(Protocol):
    """Tells a job's rows of one table."""

    def __call__(self, job: Job, *, cluster: str) -> Iterator[Row]:
        """Yield the rows; the same job always has the same."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """A table, and what tells two of its rows from sacct apart."""

    table: str
    ordered_by: str
    key: tuple[str, ...]
    query: str
    """Finds the keys that are stored already."""
    rows_of: RowsOf


TABLES: Final = (
    Identified(
        table="workload",
        ordered_by="observed_at",
        key=("workload_uid", "observed_at"),
        query="imported_workload",
        rows_of=workload_rows,
    ),
    Identified(
        table="workload_transition",
        ordered_by="occurred_at",
        key=("workload_uid", "attempt", "transition", "occurred_at"),
        query="imported_transition",
        rows_of=transition_rows,
    ),
    Identified(
        table="allocation",
        ordered_by="started_at",
        key=("workload_uid", "device_uuid", "started_at", "ended_at"),
        query="imported_allocation",
        rows_of=allocation_rows,
    ),
)


def new_batches(
    jobs: Iterable[Job], about: Identified, *, reader: Reader, cluster: str
) -> Iterator[Batch | int]:
    """Yield the rows that are not stored yet, as batches; for each batch, how many were.

    Args:
        jobs: in any order.
        about: the table whose rows are told.
        reader: the warehouse; it is asked once for each batch.
        cluster: whose rows they are.
    """
    rows = (row for job in jobs for row in about.rows_of(job, cluster=cluster))
    ordered = sorted(rows, key=lambda row: (row[about.ordered_by], row["workload_uid"]))
    for first in range(0, len(ordered), BATCH_ROWS):
        piece = ordered[first : first + BATCH_ROWS]
        stored = _stored(about, piece, reader=reader, cluster=cluster)
        new = [row for row in piece if _key(row, about) not in stored]
        yield len(piece) - len(new)
        if new:
            keys = ["\x1e".join(map(str, _key(row, about))) for row in new]
            yield Batch(
                table=about.table,
                rows=rows_table(about.table, new),
                batch_id=derived_batch_id(SOURCE, cluster, about.table, *keys),
            )


def _key(row: Row, about: Identified) -> tuple[object, ...]:
    return tuple(row[name] for name in about.key)


def _stored(
    about: Identified, piece: Sequence[Row], *, reader: Reader, cluster: str
) -> set[tuple[object, ...]]:
    """Return the keys of stored rows within the span of time of these."""
    rows = stored_rows(
        reader,
        about.query,
        source=SOURCE,
        cluster=cluster,
        from_at=piece[0][about.ordered_by],
        until_at=piece[-1][about.ordered_by],
    )
    return {_key(row, about) for row in rows}
