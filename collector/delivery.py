"""Carries rows to the warehouse: coalesced into batches, each stored exactly once, with patience.

A batch keeps its id over all tries, so a try whose answer was lost is recognised by the warehouse.
While the warehouse is away batches wait in a bounded backlog; what has to be given up is counted
and said.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread
from typing import Final

import pyarrow as pa

from collector.backlog import Backlog, BacklogLimits
from collector.batches import Batch
from steward.errors import InputError, StewardError, WarehouseError
from steward.ids import new_batch_id
from steward.ports import ArrowTable, OpenWarehouse, Writer

log = logging.getLogger(__name__)

BATCH_ROW_LIMIT: Final = 50_000
"""Rows in one batch: far below what the warehouse takes in one request."""


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
    """Given up because the backlog was full."""
    rejected_rows: Counter[str] = field(default_factory=Counter)
    """Refused by the warehouse as not fitting its tables."""
    failed_tries: int = 0


class Delivery:
    """The way from scrapes to the warehouse.

    Args:
        open_warehouse: opens it for one round; nothing stays open between rounds, so that another
            process may own an embedded warehouse meanwhile.
        limits: how much may wait.
    """

    def __init__(
        self, open_warehouse: OpenWarehouse, *, limits: BacklogLimits | None = None
    ) -> None:
        """Start with nothing to deliver."""
        self._open_warehouse = open_warehouse
        self._backlog = Backlog(limits if limits is not None else BacklogLimits())
        self._pending: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._lock = Lock()
        self._in_flight: Batch | None = None
        self._failures_in_a_row = 0
        self.tally = DeliveryTally()

    @property
    def failures_in_a_row(self) -> int:
        """Return how many rounds failed since the last one that did not."""
        return self._failures_in_a_row

    @property
    def waiting_rows(self) -> int:
        """Return how many rows are not yet delivered, sealed into batches or not."""
        with self._lock:
            pending = sum(table.num_rows for tables in self._pending.values() for table in tables)
        batch = self._in_flight
        return self._backlog.row_count + pending + (0 if batch is None else batch.rows.num_rows)

    @property
    def waiting_bytes(self) -> int:
        """Return what the sealed batches occupy while they wait."""
        return self._backlog.memory_bytes

    def probe(self) -> None:
        """Open the warehouse and close it again.

        Raises:
            StewardError: it cannot be opened.
        """
        with self._open_warehouse():
            return

    def offer(self, rows: Iterable[tuple[str, ArrowTable]]) -> None:
        """Take over rows by table; they leave with the next batch of their table."""
        tables = [(name, pa.table(table)) for name, table in rows]
        with self._lock:
            for name, table in tables:
                if table.num_rows:
                    self._pending[name].append(table)

    def seal(self) -> None:
        """Coalesce everything offered so far into batches with ids, and queue them."""
        with self._lock:
            pending, self._pending = self._pending, defaultdict(list)
        for name in sorted(pending):
            for batch in _batches(name, pending[name]):
                self._give_up(self._backlog.add(batch))

    def round(self) -> None:
        """Send every queued batch, oldest first.

        Raises:
            StewardError: not everything is stored; safe to repeat.
        """
        self._in_flight = self._backlog.take()
        if self._in_flight is None:
            return
        try:
            with self._open_warehouse() as warehouse:
                while self._in_flight is not None:
                    self._append(warehouse, self._in_flight)
                    self._in_flight = self._backlog.take()
        finally:
            self._put_back()

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

    def _put_back(self) -> None:
        """Queue the batch again whose try failed."""
        batch, self._in_flight = self._in_flight, None
        if batch is not None:
            self._give_up(self._backlog.put_back(batch))

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

    def _give_up(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            self.tally.dropped_rows[batch.table] += batch.rows.num_rows
            log.warning(
                "backlog is full: gave up the oldest %d rows of %s",
                batch.rows.num_rows,
                batch.table,
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
        """Deliver what is left, for at most this long; return how many rows are not delivered."""
        self._delivery.seal()
        with self._condition:
            self._stop_at_s = time.monotonic() + grace_s
            self._condition.notify_all()
        self._thread.join(timeout=grace_s)
        return self._delivery.waiting_rows

    def _run(self) -> None:
        while self._has_work():
            is_done = self._delivery.deliver()
            if is_done and self.is_stopping and not self._delivery.waiting_rows:
                return
            if not is_done:
                self._wait()

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
        piece = rows.slice(start, BATCH_ROW_LIMIT)
        yield Batch(batch_id=new_batch_id(), table=name, rows=piece)
