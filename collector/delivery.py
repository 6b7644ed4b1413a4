"""Carries rows to the warehouse: coalesced into batches, each stored exactly once, with patience.

A batch keeps its id over all tries, so a try whose answer was lost is recognised by the warehouse.
While the warehouse is away batches wait in a bounded store, on disk as a rule; what has to be given
up is counted and said. Where the disk fails, batches wait in memory until it works again.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread
from typing import Final

import pyarrow as pa

from collector.backlog import Backlog, BatchStore, Memory, SpoiledBatchError, Waiting
from collector.batches import Batch
from steward.errors import InputError, StewardError, WarehouseError
from steward.ids import new_batch_id
from steward.ports import ArrowTable, OpenWarehouse, Writer
from steward.units import MIB_BYTES

log = logging.getLogger(__name__)

BATCH_ROW_LIMIT: Final = 50_000
"""Rows in one batch: far below what the warehouse takes in one request."""
BATCH_BYTE_LIMIT: Final = 32 * MIB_BYTES
"""Bytes in one batch of several rows, for rows with texts that no honest source has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait before the next try: doubling, up to the longest."""

    first_s: float = 1.0
    longest_s: float = 30.0

    def delay_s(self, failure_count: int) -> float:
        """Return the wait after this many failures in a row (1 or more)."""
        return min(self.longest_s, self.first_s * 2.0 ** min(failure_count - 1, 30))


@dataclass(slots=True)
class DeliveryTally:
    """What became of the rows so far, by table."""

    delivered_rows: Counter[str] = field(default_factory=Counter)
    repeated_batches: int = 0
    """Batches that the warehouse already had: an earlier try arrived, its answer did not."""
    dropped_rows: Counter[str] = field(default_factory=Counter)
    """Given up because the backlog was full, or the disk damaged them."""
    rejected_rows: Counter[str] = field(default_factory=Counter)
    """Refused by the warehouse as not fitting its tables."""
    failed_tries: int = 0


class Delivery:
    """The way from scrapes to the warehouse.

    Args:
        open_warehouse: opens it for one round; nothing stays open between rounds, so that another
            process may own an embedded warehouse meanwhile.
        store: where batches wait; in memory by default.
    """

    def __init__(self, open_warehouse: OpenWarehouse, *, store: BatchStore | None = None) -> None:
        """Start with what the store has left to deliver."""
        self._open_warehouse = open_warehouse
        self._store: BatchStore = store if store is not None else Backlog()
        self._overflow = Backlog()
        self._pending: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._memory: dict[str, bytes | None] = {}
        self._lock = Lock()
        self._sealing = Lock()
        self._failures_in_a_row = 0
        self._is_store_failing = False
        self.tally = DeliveryTally()

    @property
    def failures_in_a_row(self) -> int:
        """Return how many rounds failed since the last one that did not."""
        return self._failures_in_a_row

    @property
    def waiting_rows(self) -> int:
        """Return how many rows are not yet delivered, sealed into batches or not."""
        kept = self._store.row_count if self._store.is_durable else 0
        return kept + self.losable_rows

    @property
    def losable_rows(self) -> int:
        """Return how many of them would be lost if the process ended now."""
        with self._lock:
            pending = sum(table.num_rows for tables in self._pending.values() for table in tables)
        stores = (self._overflow,) if self._store.is_durable else (self._overflow, self._store)
        return pending + sum(store.row_count for store in stores)

    @property
    def waiting_bytes(self) -> int:
        """Return what the sealed batches occupy while they wait."""
        return self._store.byte_count + self._overflow.byte_count

    def probe(self) -> None:
        """Open the warehouse and close it again.

        Raises:
            StewardError: it cannot be opened.
        """
        with self._open_warehouse():
            return

    def offer(
        self,
        rows: Iterable[tuple[str, ArrowTable]],
        *,
        remember: Mapping[str, bytes | None] | None = None,
    ) -> None:
        """Take over rows by table; they leave with the next batch of their table.

        Args:
            rows: tables by name.
            remember: what their source must still know after a restart; stored together with them.
        """
        tables = [(name, pa.table(table)) for name, table in rows]
        with self._lock:
            for name, table in tables:
                if table.num_rows:
                    self._pending[name].append(table)
            self._memory.update(remember or {})

    def seal(self) -> None:
        """Coalesce everything offered so far into batches with ids, and have the store keep them.

        Where the store fails, the batches wait in memory. What was to be remembered is stored with
        them once it works again: neither is ever on disk without the other.
        """
        with self._sealing:
            with self._lock:
                pending, self._pending = self._pending, defaultdict(list)
                memory, self._memory = self._memory, {}
            batches = [one for name in sorted(pending) for one in _batches(name, pending[name])]
            if batches or memory:
                self._keep(batches, memory)

    def _keep(self, batches: Sequence[Batch], memory: Memory) -> None:
        stranded = self._overflow.batches()
        try:
            given_up = self._store.add([*stranded, *batches], remember=memory)
        except WarehouseError as error:
            self._tell_failing_store(error)
            given_up = self._overflow.add(batches, remember={})
            with self._lock:
                self._memory = {**memory, **self._memory}
        else:
            if self._is_store_failing:
                log.info("the spool can be written again: rows wait on disk")
            self._is_store_failing = False
            for one in stranded:
                self._overflow.settle(one)
        self._note_given_up(given_up)

    def _tell_failing_store(self, error: WarehouseError) -> None:
        if not self._is_store_failing:
            log.error("%s; rows wait in memory (%s)", error, error.hint)
        self._is_store_failing = True

    def round(self) -> None:
        """Send every waiting batch, oldest first.

        Raises:
            StewardError: not everything is stored; safe to repeat.
        """
        stores = [store for store in (self._store, self._overflow) if store.row_count]
        if not stores:
            return
        failures: list[StewardError] = []
        with self._open_warehouse() as warehouse:
            for store in stores:
                try:
                    self._send_all(warehouse, store)
                except StewardError as error:  # what waits elsewhere may still be sent
                    failures.append(error)
        if failures:
            raise failures[0]

    def _send_all(self, warehouse: Writer, store: BatchStore) -> None:
        try:
            while (batch := self._first(store)) is not None:
                self._append(warehouse, batch)
                store.settle(batch)
        finally:
            store.release()

    def _first(self, store: BatchStore) -> Batch | None:
        """Return the oldest batch that can be read; what is damaged is counted and told."""
        while True:
            try:
                return store.first()
            except SpoiledBatchError as error:
                self.tally.dropped_rows[error.waiting.table] += error.waiting.row_count
                log.error("%s (%s)", error, error.hint)  # noqa: TRY400 - the message says all

    def deliver(self) -> bool:
        """Send every queued batch; tell whether all are stored. A failure is logged once."""
        try:
            self.round()
        except StewardError as error:  # away, full, token refused: all of it may pass
            self.tally.failed_tries += 1
            self._failures_in_a_row += 1
            if self._failures_in_a_row == 1:
                log.warning("warehouse is away, rows wait: %s (%s)", error, error.hint)
            return False
        if self._failures_in_a_row:
            log.info("warehouse answers again after %d tries", self._failures_in_a_row)
        self._failures_in_a_row = 0
        return True

    def _append(self, warehouse: Writer, batch: Batch) -> None:
        try:
            receipt = warehouse.append(batch.table, batch.rows, batch_id=batch.batch_id)
        except InputError as error:
            self.tally.rejected_rows[batch.table] += batch.rows.num_rows
            log.error(  # noqa: TRY400 - an expected failure: the message says all, no traceback
                "the warehouse refuses %d rows of %s: %s", batch.rows.num_rows, batch.table, error
            )
            return
        self.tally.delivered_rows[batch.table] += batch.rows.num_rows
        self.tally.repeated_batches += receipt.is_repeat

    def _note_given_up(self, batches: Iterable[Waiting]) -> None:
        for batch in batches:
            self.tally.dropped_rows[batch.table] += batch.row_count
            log.warning(
                "backlog is full: gave up the oldest %d rows of %s", batch.row_count, batch.table
            )


class DeliveryWorker:
    """A thread that delivers whenever it is asked to, and again after a failure.

    The thread ends with the process even where the warehouse does not answer.
    """

    def __init__(self, delivery: Delivery, *, patience: Patience | None = None) -> None:
        """Start the thread."""
        self._delivery = delivery
        self._patience = patience if patience is not None else Patience()
        self._condition = Condition()
        self._is_asked = False
        self._stop_at_s: float | None = None
        self._thread = Thread(target=self._run, name="delivery", daemon=True)
        self._thread.start()

    @property
    def is_stopping(self) -> bool:
        """Tell whether the end was asked for: what is sealed by then is still delivered."""
        return self._stop_at_s is not None

    def flush(self) -> None:
        """Seal what was offered and have it delivered soon; return at once.

        Raises:
            WarehouseError: the thread met a failure that nobody foresaw, and has ended.
        """
        if not self._thread.is_alive():
            raise WarehouseError(
                "delivery to the warehouse has ended", hint="see the traceback before, then restart"
            )
        self._delivery.seal()
        with self._condition:
            self._is_asked = True
            self._condition.notify_all()

    def stop(self, *, grace_s: float) -> int:
        """Deliver what is left, for at most this long; return how many rows are not delivered.

        What the store keeps on disk is delivered by the next process.
        """
        self._delivery.seal()
        with self._condition:
            self._stop_at_s = time.monotonic() + grace_s
            self._condition.notify_all()
        self._thread.join(timeout=grace_s)
        return self._delivery.waiting_rows

    def _run(self) -> None:
        while self._has_work():
            is_done = self._delivery.deliver()
            if self.is_stopping and self._may_end(is_done=is_done):
                return
            if not is_done:
                self._wait()

    def _may_end(self, *, is_done: bool) -> bool:
        """Tell whether nothing is left that another try would save."""
        left = self._delivery.waiting_rows if is_done else self._delivery.losable_rows
        return left == 0

    def _has_work(self) -> bool:
        """Wait for something to do; tell whether there is time left to do it."""
        with self._condition:
            self._condition.wait_for(lambda: self._is_asked or self._stop_at_s is not None)
            self._is_asked = False
            return self._stop_at_s is None or time.monotonic() < self._stop_at_s

    def _wait(self) -> None:
        """Let the time to the next try pass, less of it when stopping."""
        delay_s = self._patience.delay_s(self._delivery.failures_in_a_row)
        with self._condition:
            self._is_asked = True
            if self._stop_at_s is None:
                self._condition.wait_for(lambda: self.is_stopping, timeout=delay_s)
            else:
                self._condition.wait(timeout=min(delay_s, self._patience.first_s))


def _batches(name: str, tables: list[pa.Table]) -> Iterator[Batch]:
    """Yield the rows of one table as batches of bounded size, in order."""
    rows = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    for start in range(0, rows.num_rows, BATCH_ROW_LIMIT):
        for piece in _pieces(rows.slice(start, BATCH_ROW_LIMIT)):
            yield Batch(batch_id=new_batch_id(), table=name, rows=piece)


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows in pieces of bounded size, or of one row."""
    if rows.num_rows > 1 and rows.nbytes > BATCH_BYTE_LIMIT:
        middle = rows.num_rows // 2
        yield from _pieces(rows.slice(0, middle))
        yield from _pieces(rows.slice(middle))
    else:
        yield rows
