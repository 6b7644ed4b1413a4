"""Batches that wait for the warehouse: in order, bounded, the oldest of the bulk given up first.

What fills a backlog are samples; the few rows that say once what a device is are kept longest.

Several threads may use one backlog; nothing here talks to the warehouse.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from collector.batches import Batch
from steward.units import MIB_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogLimits:
    """How much may wait; whichever is reached first counts."""

    row_limit: int = 2_000_000
    memory_limit_bytes: int = 512 * MIB_BYTES


class Backlog:
    """A bounded queue of batches.

    Args:
        limits: a batch that alone exceeds them is given up at once.
    """

    def __init__(self, limits: BacklogLimits) -> None:
        """Start empty."""
        self._limits = limits
        self._batches: deque[Batch] = deque()
        self._lock = Lock()
        self._rows_by_table: Counter[str] = Counter()
        self._memory_bytes = 0

    @property
    def row_count(self) -> int:
        """Return how many rows wait."""
        return self._rows_by_table.total()

    @property
    def memory_bytes(self) -> int:
        """Return what the waiting batches occupy."""
        return self._memory_bytes

    def add(self, batch: Batch) -> Sequence[Batch]:
        """Queue the batch last; return those that had to be given up for it."""
        with self._lock:
            self._batches.append(batch)
            return self._kept(batch)

    def put_back(self, batch: Batch) -> Sequence[Batch]:
        """Queue a batch that was taken first again; return those given up."""
        with self._lock:
            self._batches.appendleft(batch)
            return self._kept(batch)

    def take(self) -> Batch | None:
        """Return the first batch and forget it; None where nothing waits."""
        with self._lock:
            return self._remove(self._batches[0]) if self._batches else None

    def _kept(self, batch: Batch) -> Sequence[Batch]:
        self._rows_by_table[batch.table] += batch.rows.num_rows
        self._memory_bytes += batch.rows.nbytes
        given_up: list[Batch] = []
        while (
            self.row_count > self._limits.row_limit
            or self._memory_bytes > self._limits.memory_limit_bytes
        ):
            bulk = max(self._rows_by_table, key=lambda table: self._rows_by_table[table])
            oldest = next(waiting for waiting in self._batches if waiting.table == bulk)
            given_up.append(self._remove(oldest))
        return given_up

    def _remove(self, batch: Batch) -> Batch:
        place = next(n for n, waiting in enumerate(self._batches) if waiting is batch)
        del self._batches[place]
        self._rows_by_table[batch.table] -= batch.rows.num_rows
        self._memory_bytes -= batch.rows.nbytes
        return batch
