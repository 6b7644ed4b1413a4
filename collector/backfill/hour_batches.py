"""Cuts an hour's rows into batches whose ids follow from the hour, not from how it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from collector.batches import Batch, derived_batch_id
from steward.ids import BatchId
from steward.period import Period

BATCH_ROWS: Final = 20_000
"""Some 10 MB of samples: rows wait in memory until so many are there."""
_SOURCE: Final = "prometheus"


@dataclass(slots=True)
class _Waiting:
    """Rows of one table that no batch has taken yet."""

    pieces: list[pa.Table] = field(default_factory=list)
    row_count: int = 0
    first_row: int = 0
    """How many rows of the hour were in batches before."""


@dataclass(slots=True, kw_only=True)
class HourBatches:
    """One hour's rows on their way to the warehouse.

    Rows come in the order of time and target whatever the spans that were asked for, so cutting
    them every so many rows gives the same batches each time.
    """

    identity: str
    """What else, beside the hour, makes the rows: server, cluster, selector."""
    hour: Period
    waiting: dict[str, _Waiting] = field(default_factory=dict)
    last_id: BatchId | None = None

    def add(self, rows: Iterable[tuple[str, pa.Table]]) -> Iterator[Batch]:
        """Take rows; yield the batches that became full."""
        for table, piece in rows:
            waiting = self.waiting.setdefault(table, _Waiting())
            waiting.pieces.append(piece)
            waiting.row_count += piece.num_rows
            if waiting.row_count >= BATCH_ROWS:
                yield from self._cut(table, waiting)

    def finish(self) -> Iterator[Batch]:
        """Yield what is left, by table."""
        for table, waiting in sorted(self.waiting.items()):
            if waiting.row_count:
                rows = pa.concat_tables(waiting.pieces)
                yield self._batch(table, waiting, rows)
        self.waiting = {}

    def _cut(self, table: str, waiting: _Waiting) -> Iterator[Batch]:
        rows = pa.concat_tables(waiting.pieces)
        while rows.num_rows >= BATCH_ROWS:
            yield self._batch(table, waiting, rows.slice(0, BATCH_ROWS))
            rows = rows.slice(BATCH_ROWS)
        waiting.pieces, waiting.row_count = ([rows], rows.num_rows) if rows.num_rows else ([], 0)

    def _batch(self, table: str, waiting: _Waiting, rows: pa.Table) -> Batch:
        self.last_id = _batch_id(self.identity, self.hour, table, first_row=waiting.first_row)
        waiting.first_row += rows.num_rows
        return Batch(table=table, rows=rows, batch_id=self.last_id)


def first_batch_id(identity: str, hour: Period, table: str) -> BatchId:
    """Return the id of an hour's first batch for a table."""
    return _batch_id(identity, hour, table, first_row=0)


def _batch_id(identity: str, hour: Period, table: str, *, first_row: int) -> BatchId:
    return derived_batch_id(_SOURCE, identity, hour.from_at.isoformat(), table, str(first_row))
