"""Which batch ids were stored: an exact answer without scanning a table at each append.

All ids are held as 64-bit digests (8 bytes each, in one sorted array); only where a digest is
known does the table itself decide.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from steward.ids import BatchId

FOLD_COUNT: Final = 65_536
"""New digests kept in a set before they join the array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """What the warehouse remembers of one batch."""

    table: str
    row_count: int


def digest(batch_id: str) -> int:
    """Return 64 bits of the id, the same as ``md5_number_lower`` in SQL."""
    return int.from_bytes(
        hashlib.md5(batch_id.encode(), usedforsecurity=False).digest()[8:], "little"
    )


class BatchIndex:
    """The ids stored so far. Used by the one writer only."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Read the digests of all stored ids."""
        found = cursor.execute(
            "select md5_number_lower(batch_id) as digest from append_batch order by 1"
        ).fetchnumpy()["digest"]
        self._sorted: NDArray[np.uint64] = np.asarray(found, dtype=np.uint64)
        self._fresh: set[int] = set()

    def find(self, cursor: duckdb.DuckDBPyConnection, batch_id: BatchId) -> StoredBatch | None:
        """Return the stored batch of this id, or None."""
        if not self._maybe(digest(batch_id)):
            return None
        rows = cursor.execute(
            "select table_name, row_count from append_batch where batch_id = ?", [batch_id]
        ).fetchall()
        return StoredBatch(table=rows[0][0], row_count=rows[0][1]) if rows else None

    def add(self, batch_id: BatchId) -> None:
        """Remember an id whose batch was just committed."""
        self._fresh.add(digest(batch_id))
        if len(self._fresh) >= FOLD_COUNT:
            fresh = np.fromiter(self._fresh, dtype=np.uint64, count=len(self._fresh))
            self._sorted = np.sort(np.concatenate([self._sorted, fresh]))
            self._fresh.clear()

    def _maybe(self, key: int) -> bool:
        if key in self._fresh:
            return True
        place = int(np.searchsorted(self._sorted, np.uint64(key)))
        return place < len(self._sorted) and int(self._sorted[place]) == key
