"""Batches that wait for the warehouse: in order, bounded, the oldest of the bulk given up first.

What fills a store are samples; the few rows that say once what a device is are kept longest.
Beside the batches a store keeps what sources must remember over a restart, changed in the same
step as the batches that it goes with: after a crash both are there, or neither.

Several threads may use one store; nothing here talks to the warehouse.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

from collector.batches import Batch
from steward.errors import InputError
from steward.ids import BatchId
from steward.units import MIB_BYTES

Memory = Mapping[str, bytes | None]
"""What to remember by key; None forgets the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogLimits:
    """How much may wait; whichever is reached first counts."""

    row_limit: int = 2_000_000
    byte_limit: int = 512 * MIB_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One batch that waits, without its rows."""

    batch_id: BatchId
    table: str
    row_count: int
    byte_count: int


class SpoiledBatchError(InputError):
    """A waiting batch is not what was stored; the store has given it up.

    Args:
        path: the file it lay in.
        waiting: what was lost.
    """

    def __init__(self, path: Path, *, waiting: Waiting) -> None:
        """Name the file and what was lost."""
        super().__init__(
            f"{waiting.row_count} rows of {waiting.table} in the spool {path} are damaged",
            hint="they are left out; look into the health of the disk",
        )
        self.waiting = waiting


class BatchStore(Protocol):
    """Where batches wait: in memory or on disk."""

    @property
    def is_durable(self) -> bool:
        """Tell whether what waits here outlives the process."""
        ...

    @property
    def row_count(self) -> int:
        """Return how many rows wait, the batch under way included."""
        ...

    @property
    def byte_count(self) -> int:
        """Return what the waiting batches occupy."""
        ...

    def add(self, batches: Sequence[Batch], *, remember: Memory) -> Sequence[Waiting]:
        """Queue the batches last and change the memory, all or nothing; return those given up.

        Raises:
            WarehouseError: nothing was kept.
        """
        ...

    def first(self) -> Batch | None:
        """Return the oldest batch, which is now under way and not given up; None without one.

        Raises:
            SpoiledBatchError: the oldest batch is damaged, and has been given up.
            WarehouseError: the store cannot be read now.
        """
        ...

    def settle(self, batch: Batch) -> None:
        """Forget the batch under way: it is stored, or refused for good."""
        ...

    def release(self) -> None:
        """Leave the batch under way waiting: its try failed."""
        ...

    def recall(self) -> dict[str, bytes]:
        """Return everything that was to be remembered."""
        ...


class WaitingLine:
    """The order and the bounds of a store; not safe for several threads by itself."""

    def __init__(self, limits: BacklogLimits) -> None:
        """Start empty."""
        self._limits = limits
        self._line: deque[Waiting] = deque()
        self._rows_by_table: Counter[str] = Counter()
        self._under_way: BatchId | None = None
        self.byte_count = 0

    @property
    def row_count(self) -> int:
        """Return how many rows wait."""
        return self._rows_by_table.total()

    def append(self, waiting: Waiting) -> None:
        """Put a batch last, whatever the bounds."""
        self._line.append(waiting)
        self._rows_by_table[waiting.table] += waiting.row_count
        self.byte_count += waiting.byte_count

    def take_first(self) -> Waiting | None:
        """Return the oldest batch and call it under way."""
        if not self._line:
            return None
        self._under_way = self._line[0].batch_id
        return self._line[0]

    def release(self) -> None:
        """Call no batch under way."""
        self._under_way = None

    def remove(self, batch_id: BatchId) -> None:
        """Forget a batch; one that is not there is forgotten already."""
        found = next((one for one in self._line if one.batch_id == batch_id), None)
        if found is not None:
            self._drop(found)
        if self._under_way == batch_id:
            self._under_way = None

    def give_up(self) -> list[Waiting]:
        """Forget the oldest of the bulk until the bounds hold; return them."""
        given_up: list[Waiting] = []
        while self.row_count > self._limits.row_limit or self.byte_count > self._limits.byte_limit:
            victim = self._victim()
            if victim is None:
                break
            self._drop(victim)
            given_up.append(victim)
        return given_up

    def _victim(self) -> Waiting | None:
        free = [one for one in self._line if one.batch_id != self._under_way]
        tables = sorted({one.table for one in free})
        if not tables:
            return None
        bulk = max(tables, key=lambda table: self._rows_by_table[table])
        return next(one for one in free if one.table == bulk)

    def _drop(self, waiting: Waiting) -> None:
        self._line.remove(waiting)
        self._rows_by_table[waiting.table] -= waiting.row_count
        self.byte_count -= waiting.byte_count


class Backlog:
    """Batches waiting in memory; they are lost with the process.

    Args:
        limits: a batch that alone exceeds them is given up at once.
    """

    is_durable: Final = False

    def __init__(self, limits: BacklogLimits | None = None) -> None:
        """Start empty."""
        self._line = WaitingLine(limits if limits is not None else BacklogLimits())
        self._batches: dict[BatchId, Batch] = {}
        self._memory: dict[str, bytes] = {}
        self._lock = Lock()

    @property
    def row_count(self) -> int:
        """Return how many rows wait."""
        return self._line.row_count

    @property
    def byte_count(self) -> int:
        """Return what the waiting batches occupy in memory."""
        return self._line.byte_count

    def add(self, batches: Sequence[Batch], *, remember: Memory) -> Sequence[Waiting]:
        """Queue the batches last and change the memory; return those given up for them."""
        with self._lock:
            for batch in batches:
                self._batches[batch.batch_id] = batch
                self._line.append(waiting_of(batch, byte_count=batch.rows.nbytes))
            change_memory(self._memory, remember)
            given_up = self._line.give_up()
            for one in given_up:
                del self._batches[one.batch_id]
            return given_up

    def first(self) -> Batch | None:
        """Return the oldest batch; it is not given up until it is settled or released."""
        with self._lock:
            waiting = self._line.take_first()
            return None if waiting is None else self._batches[waiting.batch_id]

    def batches(self) -> list[Batch]:
        """Return all that wait, oldest first."""
        with self._lock:
            return list(self._batches.values())

    def settle(self, batch: Batch) -> None:
        """Forget the batch."""
        with self._lock:
            self._line.remove(batch.batch_id)
            self._batches.pop(batch.batch_id, None)

    def release(self) -> None:
        """Leave the batch under way waiting."""
        with self._lock:
            self._line.release()

    def recall(self) -> dict[str, bytes]:
        """Return what is remembered: nothing of an earlier process."""
        with self._lock:
            return dict(self._memory)


def waiting_of(batch: Batch, *, byte_count: int) -> Waiting:
    """Return the batch without its rows."""
    return Waiting(
        batch_id=batch.batch_id,
        table=batch.table,
        row_count=batch.rows.num_rows,
        byte_count=byte_count,
    )


def change_memory(memory: dict[str, bytes], remember: Memory) -> None:
    """Set and forget the keys that ``remember`` names."""
    for key, value in remember.items():
        if value is None:
            memory.pop(key, None)
        else:
            memory[key] = value
