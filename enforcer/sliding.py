"""A history that moves on with the controller: each round reads only what is new of the readings.

Readings arrive late, from spools above all. So each round reads the last minutes anew, and once an
hour all of them: until then a gap that was filled later is a gap, which makes nobody idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from analytics.evidence.found import CELL_S, readings
from analytics.evidence.stored import CELLED, QUERIES, joined, of_cluster
from enforcer.history import History, asked, state_of
from steward.period import Period
from steward.ports import Reader, StateReader

if TYPE_CHECKING:
    import polars as pl

LATE: Final = timedelta(minutes=10)
"""Readings that arrive later than this are seen by the next reading of everything."""
ALL_EVERY: Final = timedelta(hours=1)


class SlidingHistory:
    """What is stored of one cluster, up to one instant after another.

    Args:
        reader: of the warehouse.
        state: of the state beside it.
        cluster: whose rows.
        cell_s: length of the cells in which readings come; it divides ``LATE``.
    """

    def __init__(
        self, reader: Reader, state: StateReader, *, cluster: str, cell_s: int = CELL_S
    ) -> None:
        """Read nothing yet."""
        self._reader = reader
        self._state = state
        self._cluster = cluster
        self._cell_s = cell_s
        self._kept: Mapping[str, pl.DataFrame] = {}
        self._known: Period | None = None
        self._all_at: datetime | None = None

    def until(self, at: datetime, *, back: timedelta) -> History:
        """Return the history of a period that ends at an instant, an end of a cell.

        Raises:
            QueryError: a named query is missing.
            WarehouseError: the warehouse cannot serve; the next call reads what this one lacked.
        """
        period = Period(at - back, at)
        known = self._reusable(period)
        fresh = Period(known.until_at - LATE, at) if known is not None else period
        cells = {name: self._cells(name, period, fresh=fresh) for name in CELLED}
        others = {
            name: asked(self._reader, name, period, cell_s=self._cell_s)
            for name in QUERIES
            if name not in CELLED
        }
        frames = of_cluster({**others, **cells}, self._cluster)
        told = History(
            cluster=self._cluster,
            period=period,
            frames=frames,
            readings=readings(frames, cell_s=self._cell_s),
            state=state_of(self._state),
        )
        self._kept, self._known = cells, period
        self._all_at = at if known is None else self._all_at
        return told

    def _reusable(self, period: Period) -> Period | None:
        """Return the period of what is kept, None where all must be read."""
        known, all_at = self._known, self._all_at
        if known is None or all_at is None:
            return None
        reaches = known.from_at <= period.from_at <= known.until_at - LATE
        is_later = known.until_at <= period.until_at < all_at + ALL_EVERY
        return known if reaches and is_later else None

    def _cells(self, name: str, period: Period, *, fresh: Period) -> pl.DataFrame:
        new = asked(self._reader, name, fresh, cell_s=self._cell_s)
        if fresh == period:
            return new
        return joined(name, self._kept[name], new, period=period, fresh=fresh)
