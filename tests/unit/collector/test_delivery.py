"""Rows on their way to a warehouse that comes and goes: in order, exactly once, bounded."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event

import pyarrow as pa
import pytest

from collector import delivery as delivery_module
from collector.backlog import Backlog, BacklogLimits, Memory, SpoiledBatchError, Waiting
from collector.batches import Batch
from collector.delivery import Delivery, DeliveryWorker, Patience
from steward.errors import AccessError, OwnedElsewhereError, StewardError, WarehouseError
from steward.ports import Warehouse
from tests.support.collector_memory_warehouse import MemoryWarehouse, unreachable


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def stored(warehouse: MemoryWarehouse, table: str = "scrape") -> list[object]:
    return [row["n"] for row in warehouse.rows(table)]


def send(delivery: Delivery, *values: int, table: str = "scrape") -> bool:
    delivery.offer([(table, numbers(*values))])
    delivery.seal()
    return delivery.deliver()


def test_rows_of_many_targets_leave_in_one_batch_per_table() -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open)
    for n in range(5):
        delivery.offer([("scrape", numbers(n)), ("device", numbers(n, -n))])
    delivery.seal()
    assert delivery.deliver()
    assert [table for table, _ in warehouse.batches.values()] == ["device", "scrape"]
    assert stored(warehouse) == [0, 1, 2, 3, 4]
    assert warehouse.open_count == 1
    assert delivery.tally.delivered_rows == {"scrape": 5, "device": 10}
    assert delivery.waiting_rows == 0


def test_nothing_to_deliver_opens_nothing() -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open)
    assert send(delivery)
    assert warehouse.open_count == 0
    assert warehouse.batches == {}


def test_null_zero_and_a_column_that_only_some_have_survive() -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open)
    delivery.offer([("scrape", pa.table({"n": pa.array([0, None], pa.int64())}))])
    delivery.offer([("scrape", pa.table({"n": pa.array([1], pa.int64()), "reason": ["x"]}))])
    delivery.seal()
    assert delivery.deliver()
    assert warehouse.rows("scrape") == [
        {"n": 0, "reason": None},
        {"n": None, "reason": None},
        {"n": 1, "reason": "x"},
    ]


@pytest.mark.parametrize("limit", [4, 5, 6])
def test_a_batch_never_has_more_rows_than_the_limit(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "BATCH_ROW_LIMIT", limit)
    warehouse = MemoryWarehouse()
    assert send(Delivery(warehouse.open), *range(5))
    assert [rows.num_rows for _, rows in warehouse.batches.values()] == (
        [4, 1] if limit == 4 else [5]
    )
    assert stored(warehouse) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "failure",
    [
        unreachable(),
        WarehouseError("the disk is full", hint="free some space"),
        OwnedElsewhereError("owned by process 1", hint="stop it"),
        AccessError("token unknown", hint="renew it"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_rows_wait_in_order_while_the_warehouse_is_away(
    failure: StewardError, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open)
    warehouse.away = failure
    assert not send(delivery, 1)
    assert not send(delivery, 2, 3)
    assert delivery.waiting_rows == 3
    assert delivery.failures_in_a_row == 2
    warehouse.away = None
    assert delivery.deliver()
    assert stored(warehouse) == [1, 2, 3]
    assert (delivery.waiting_rows, delivery.failures_in_a_row) == (0, 0)
    assert delivery.tally.failed_tries == 2
    warnings = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert warnings == [f"warehouse is away, rows wait: {failure} ({failure.hint})"]
    assert caplog.messages[-1] == "warehouse answers again after 2 tries"


def test_a_batch_whose_answer_was_lost_is_stored_once() -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open)
    warehouse.lost_answers = 2
    assert not send(delivery, 1, 2)
    assert not delivery.deliver()
    assert delivery.deliver()
    assert stored(warehouse) == [1, 2]
    assert delivery.tally.repeated_batches == 1
    assert delivery.tally.delivered_rows == {"scrape": 2}


def test_a_refused_batch_is_counted_and_does_not_block_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warehouse = MemoryWarehouse()
    warehouse.refused_tables = frozenset({"device"})
    delivery = Delivery(warehouse.open)
    delivery.offer([("device", numbers(1, 2)), ("scrape", numbers(3))])
    delivery.seal()
    assert delivery.deliver()
    assert stored(warehouse) == [3]
    assert delivery.tally.rejected_rows == {"device": 2}
    assert caplog.messages == ["the warehouse refuses 2 rows of device: no such table 'device'"]


@pytest.mark.parametrize(
    ("row_limit", "kept"), [(7, [2, 3, 4, 5, 6, 7, 8]), (6, [4, 5, 6, 7, 8]), (5, [4, 5, 6, 7, 8])]
)
def test_a_full_backlog_gives_up_the_oldest_and_says_so(
    row_limit: int, kept: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open, store=Backlog(BacklogLimits(row_limit=row_limit)))
    warehouse.away = unreachable()
    for values in ((0, 1), (2, 3), (4, 5, 6), (7, 8)):
        assert not send(delivery, *values)
    warehouse.away = None
    assert delivery.deliver()
    assert stored(warehouse) == kept
    assert delivery.tally.dropped_rows == {"scrape": 9 - len(kept)}
    assert "backlog is full: gave up the oldest 2 rows of scrape" in caplog.messages


class FailingStore(Backlog):
    """A store whose disk is full until it is told otherwise."""

    is_full = True

    def add(self, batches: Sequence[Batch], *, remember: Memory) -> Sequence[Waiting]:
        if self.is_full:
            raise WarehouseError("the spool x cannot be written: disk is full", hint="free space")
        return super().add(batches, remember=remember)


def test_where_the_disk_fails_rows_wait_in_memory_and_what_to_remember_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warehouse, store = MemoryWarehouse(), FailingStore()
    delivery = Delivery(warehouse.open, store=store)
    warehouse.away = unreachable()
    for number in (1, 2):
        delivery.offer([("scrape", numbers(number))], remember={"pod": b"%d" % number})
        delivery.seal()
    assert (delivery.waiting_rows, delivery.losable_rows, store.recall()) == (2, 2, {})
    assert [r.message for r in caplog.records if r.levelname == "ERROR"] == [
        "the spool x cannot be written: disk is full; rows wait in memory (free space)"
    ]
    store.is_full, warehouse.away = False, None
    assert send(delivery, 3)
    assert stored(warehouse) == [1, 2, 3]
    assert store.recall() == {"pod": b"2"}


def test_rows_are_on_disk_before_what_was_to_be_remembered_of_them() -> None:
    warehouse, store = MemoryWarehouse(), FailingStore()
    delivery = Delivery(warehouse.open, store=store)
    warehouse.away = unreachable()
    delivery.offer([("scrape", numbers(1))], remember={"pod": b"told"})
    delivery.seal()
    store.is_full = False
    delivery.offer([("device", numbers(2))])
    delivery.seal()
    assert (store.row_count, store.recall()) == (2, {"pod": b"told"})
    warehouse.away = None
    assert delivery.deliver()
    assert (stored(warehouse), warehouse.rows("device")) == ([1], [{"n": 2}])


class UnreadableStore(Backlog):
    """A store that cannot be read any more, nor written."""

    def add(self, batches: Sequence[Batch], *, remember: Memory) -> Sequence[Waiting]:
        if self.row_count:
            raise WarehouseError("the spool x cannot be written: malformed", hint="move it away")
        return super().add(batches, remember=remember)

    def first(self) -> Batch | None:
        raise WarehouseError("the spool x cannot be read: malformed", hint="move it away")


def test_a_store_that_fails_does_not_hold_back_what_waits_in_memory() -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open, store=UnreadableStore())
    assert not send(delivery, 1)
    assert not send(delivery, 2)
    assert stored(warehouse) == [2]


class DamagedStore(Backlog):
    """A store whose oldest batch is damaged."""

    def first(self) -> Batch | None:
        batch = super().first()
        if batch is None or stored_numbers(batch) != [1, 2]:
            return batch
        self.settle(batch)
        waiting = Waiting(batch_id=batch.batch_id, table=batch.table, row_count=2, byte_count=16)
        raise SpoiledBatchError(Path("x"), waiting=waiting)


def stored_numbers(batch: Batch) -> list[object]:
    return list(batch.rows["n"].to_pylist())


def test_a_damaged_batch_is_counted_and_told_and_does_not_block_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warehouse, store = MemoryWarehouse(), DamagedStore()
    delivery = Delivery(warehouse.open, store=store)
    warehouse.away = unreachable()
    assert not send(delivery, 1, 2)
    warehouse.away = None
    assert send(delivery, 3)
    assert stored(warehouse) == [3]
    assert delivery.tally.dropped_rows == {"scrape": 2}
    assert "2 rows of scrape in the spool x are damaged" in caplog.text


@pytest.mark.parametrize("limit_bytes", [15, 16, 17])
def test_a_batch_never_has_more_bytes_than_the_limit(
    limit_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "BATCH_BYTE_LIMIT", limit_bytes)
    warehouse = MemoryWarehouse()
    assert send(Delivery(warehouse.open), 1, 2)
    assert len(warehouse.batches) == (2 if limit_bytes == 15 else 1)
    assert stored(warehouse) == [1, 2]


def test_a_row_larger_than_the_limit_is_still_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_module, "BATCH_BYTE_LIMIT", 1)
    warehouse = MemoryWarehouse()
    assert send(Delivery(warehouse.open), 1, 2, 3)
    assert len(warehouse.batches) == 3


def test_what_to_remember_is_kept_without_any_rows() -> None:
    store = Backlog()
    delivery = Delivery(MemoryWarehouse().open, store=store)
    delivery.offer([], remember={"a": b"1", "b": b"2"})
    delivery.seal()
    delivery.offer([], remember={"a": None})
    delivery.seal()
    assert store.recall() == {"b": b"2"}


@pytest.mark.parametrize(
    ("failure_count", "delay_s"), [(1, 1), (2, 2), (5, 16), (6, 30), (7, 30), (5_000, 30)]
)
def test_patience_doubles_up_to_the_longest(failure_count: int, delay_s: float) -> None:
    assert Patience().delay_s(failure_count) == delay_s


QUICK = Patience(first_s=0.005, longest_s=0.02)


def test_the_worker_delivers_when_asked_and_keeps_trying() -> None:
    warehouse = MemoryWarehouse()
    warehouse.away = unreachable()
    delivery = Delivery(warehouse.open)
    worker = DeliveryWorker(delivery, patience=QUICK)
    delivery.offer([("scrape", numbers(1))])
    worker.flush()
    warehouse.away = None
    warehouse.wait_for_rows("scrape", 1)
    delivery.offer([("scrape", numbers(2))])
    worker.flush()
    warehouse.wait_for_rows("scrape", 2)
    assert worker.stop(grace_s=10) == 0
    assert stored(warehouse) == [1, 2]


def test_stopping_delivers_what_was_only_offered() -> None:
    warehouse = MemoryWarehouse()
    delivery = Delivery(warehouse.open)
    worker = DeliveryWorker(delivery, patience=QUICK)
    delivery.offer([("scrape", numbers(1, 2))])
    assert worker.stop(grace_s=10) == 0
    assert stored(warehouse) == [1, 2]


def test_rows_offered_while_the_last_round_ends_are_delivered_by_the_stop() -> None:
    warehouse, is_ending, may_end = MemoryWarehouse(), Event(), Event()

    @contextmanager
    def slow_to_close() -> Iterator[Warehouse]:
        with warehouse.open() as opened:
            yield opened
        is_ending.set()
        assert may_end.wait(timeout=20)

    delivery = Delivery(slow_to_close)
    worker = DeliveryWorker(delivery, patience=QUICK)
    delivery.offer([("scrape", numbers(1))])
    worker.flush()
    assert is_ending.wait(timeout=20)
    delivery.offer([("scrape", numbers(2))])
    with ThreadPoolExecutor(max_workers=1) as pool:
        lost = pool.submit(worker.stop, grace_s=20)
        while delivery.waiting_rows == 0 or not worker.is_stopping:
            Event().wait(0.001)
        may_end.set()
        assert lost.result(timeout=20) == 0
    assert stored(warehouse) == [1, 2]


def test_stopping_gives_up_after_the_grace_and_tells_how_many_rows() -> None:
    warehouse = MemoryWarehouse()
    warehouse.away = unreachable()
    delivery = Delivery(warehouse.open)
    worker = DeliveryWorker(delivery, patience=QUICK)
    delivery.offer([("scrape", numbers(1, 2))])
    assert worker.stop(grace_s=0.1) == 2
    assert delivery.tally.failed_tries > 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failure_that_nobody_foresaw_is_not_silence() -> None:
    def broken() -> AbstractContextManager[Warehouse]:
        raise ZeroDivisionError

    delivery = Delivery(broken)
    worker = DeliveryWorker(delivery, patience=QUICK)
    delivery.offer([("scrape", numbers(1))])
    worker.flush()
    assert worker.stop(grace_s=10) == 1
    with pytest.raises(WarehouseError, match="has ended"):
        worker.flush()
