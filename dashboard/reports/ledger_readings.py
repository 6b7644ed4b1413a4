"""The ledger made of readings: what a build stores, and what reports use where nothing is built.

Readings are taken in chunks of whole hours, at most a day and some two million readings, so that
memory follows the chunk and not the period.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

import polars as pl

from analytics.bookkeeping import BOOK_INPUTS, Books, hour_borders, keep_books
from analytics.bookkeeping.shapes_now import learnt_shapes
from analytics.inputs import SCHEMAS, conform
from analytics.shapes import shapes_from_json, shapes_version
from dashboard.reports.arrow import frame, state_frame
from dashboard.reports.cluster import of_cluster
from dashboard.reports.hours import DAY, ceil_hour, floor_day, floor_hour, is_day
from steward.period import Period
from steward.ports import Parameter, Reader, Source

CHUNK_READING_COUNT: Final = 2_000_000
"""A day of 1,000 GPUs read every minute is 1.4 million readings."""
LEARNT_OVER: Final = timedelta(days=28)
"""What work to expect on a day is learnt from so long before it: four whole weeks."""
TARGET: Final = "state.target_workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The ledger of one chunk, and the work it was held against to tell what is stranded."""

    books: Books
    shapes_version: str


Keep = Callable[[Period], Kept]
"""Makes the ledger of one chunk, which lies within a UTC day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeper:
    """Keeps the books of one warehouse, of one cluster or (None) of all.

    The work to expect is the one a person kept last, else learnt from all clusters over the four
    weeks before the day; where nothing is known of these, from the day itself. Every part of a day
    is held against the same work, so that parts add up to the whole.
    """

    source: Source
    cluster: str | None = None
    _shapes: dict[datetime, tuple[pl.DataFrame, str]] = field(default_factory=dict)

    def keep(self, chunk: Period) -> Kept:
        """Return the ledger of a chunk, cut at whole hours.

        Raises:
            WarehouseError: the warehouse cannot serve.
        """
        rows = {name: frame(self.source.query(name, ends(chunk))) for name in BOOK_INPUTS}
        kept = rows if self.cluster is None else of_cluster(rows, self.cluster)
        shapes, version = self._expected(floor_day(chunk.from_at))
        books = keep_books(kept, chunk, borders=hour_borders(chunk), shapes=shapes)
        return Kept(books=books, shapes_version=version)

    def _expected(self, day_at: datetime) -> tuple[pl.DataFrame, str]:
        """Return the shapes of work to expect on a day, and their version."""
        if day_at not in self._shapes:
            self._shapes[day_at] = self._stored() or self._learnt(day_at)
        return self._shapes[day_at]

    def _stored(self) -> tuple[pl.DataFrame, str] | None:
        stored = self.source.state_rows(TARGET.removeprefix("state."))[:1]
        for row in state_frame(stored, SCHEMAS[TARGET]).iter_rows(named=True):
            return shapes_from_json(row["shapes_json"]), row["version"]
        return None

    def _learnt(self, day_at: datetime) -> tuple[pl.DataFrame, str]:
        shapes = self._asked_for(Period(day_at - LEARNT_OVER, day_at))
        if shapes.is_empty():
            shapes = self._asked_for(Period(day_at, day_at + DAY))
        return shapes, shapes_version(shapes)

    def _asked_for(self, period: Period) -> pl.DataFrame:
        workloads = frame(self.source.query("workload_current", ends(period)))
        return learnt_shapes(conform("workload_current", workloads))


def ends(period: Period) -> dict[str, Parameter]:
    """Return the period as the parameters of a named query."""
    return {"from_at": period.from_at, "until_at": period.until_at}


def reading_counts(reader: Reader, period: Period) -> dict[datetime, int]:
    """Return how many readings each hour that the period reaches into holds."""
    return {at: counted[0] for at, counted in input_counts(reader, period).items()}


def input_counts(reader: Reader, period: Period) -> dict[datetime, tuple[int, int]]:
    """Return readings and holdings stored of each hour that the period reaches into."""
    whole = Period(floor_hour(period.from_at), ceil_hour(period.until_at))
    rows = frame(reader.query("ledger_input", ends(whole)))
    return {
        row["hour_at"]: (row["reading_count"], row["holding_count"])
        for row in rows.iter_rows(named=True)
    }


def chunks(pieces: Iterable[Period], counts: Mapping[datetime, int]) -> Iterator[Period]:
    """Yield the pieces cut into chunks: of one UTC day, and of not too many readings.

    Args:
        pieces: disjoint, ascending.
        counts: readings by hour; an hour that is absent holds none.
    """
    for piece in pieces:
        started, count = piece.from_at, 0
        for start, _end in pairwise((piece.from_at, *hour_borders(piece), piece.until_at)):
            more = counts.get(floor_hour(start), 0)
            is_full = count > 0 and count + more > CHUNK_READING_COUNT
            if start > started and (is_full or is_day(start)):
                yield Period(started, start)
                started, count = start, 0
            count += more
        yield Period(started, piece.until_at)
