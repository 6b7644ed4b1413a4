"""Where batches wait, in memory and on disk: the same order, bounds and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from collector.backlog import Backlog, BacklogLimits, BatchStore
from collector.batches import Batch
from collector.spool import Spool
from steward.ids import BatchId

OpenStore = Callable[[BacklogLimits], BatchStore]


def batch(name: str, *values: int | None, table: str = "scrape") -> Batch:
    rows = pa.table({"n": pa.array(values, pa.int64())})
    return Batch(batch_id=BatchId(name), table=table, rows=rows)


def row_limit(count: int) -> BacklogLimits:
    return BacklogLimits(row_limit=count)


@pytest.fixture(params=["memory", "disk"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    numbers = count()
    with ExitStack() as opened:

        def on_disk(limits: BacklogLimits) -> BatchStore:
            path = tmp_path / f"{next(numbers)}.sqlite"
            return opened.enter_context(closing(Spool(path, limits=limits)))

        yield Backlog if request.param == "memory" else on_disk


def taken(store: BatchStore) -> Iterator[str]:
    while (first := store.first()) is not None:
        store.settle(first)
        yield first.batch_id


def test_batches_leave_in_order_with_their_rows(open_store: OpenStore) -> None:
    store = open_store(BacklogLimits())
    batches = [batch("a", 0, None), batch("b", table="device"), batch("c", 7)]
    assert store.add(batches, remember={}) == []
    assert store.row_count == 3
    assert store.first() == batches[0]
    store.release()
    assert store.first() == batches[0]
    assert list(taken(store)) == ["a", "b", "c"]
    assert (store.row_count, store.byte_count, store.first()) == (0, 0, None)


@pytest.mark.parametrize(("limit", "given_up"), [(2, ["a"]), (3, []), (4, [])])
def test_the_bound_in_rows(open_store: OpenStore, limit: int, given_up: list[str]) -> None:
    store = open_store(row_limit(limit))
    assert store.add([batch("a", 1)], remember={}) == []
    dropped = store.add([batch("b", 2, 3)], remember={})
    assert [one.batch_id for one in dropped] == given_up
    assert store.row_count == 3 - len(given_up)


@pytest.mark.parametrize(("spare_bytes", "given_up"), [(-1, 1), (0, 0), (1, 0)])
def test_the_bound_in_bytes(open_store: OpenStore, spare_bytes: int, given_up: int) -> None:
    measured = open_store(BacklogLimits())
    measured.add([batch("a", 1), batch("b", 2)], remember={})
    limit_bytes = measured.byte_count + spare_bytes
    store = open_store(BacklogLimits(byte_limit=limit_bytes))
    dropped = store.add([batch("a", 1), batch("b", 2)], remember={})
    assert [one.batch_id for one in dropped] == ["a"][:given_up]


def test_the_bulk_is_given_up_before_the_few_rows_that_are_said_once(
    open_store: OpenStore,
) -> None:
    store = open_store(row_limit(6))
    store.add([batch("d", 1, 2, table="device"), batch("a", 1, 2), batch("b", 3, 4)], remember={})
    assert [one.batch_id for one in store.add([batch("c", 5)], remember={})] == ["a"]
    assert list(taken(store)) == ["d", "b", "c"]


def test_a_batch_under_way_is_not_given_up_and_a_released_one_is(open_store: OpenStore) -> None:
    store = open_store(row_limit(2))
    store.add([batch("a", 1), batch("b", 2)], remember={})
    store.first()
    assert [one.batch_id for one in store.add([batch("c", 3)], remember={})] == ["b"]
    store.release()
    assert [one.batch_id for one in store.add([batch("d", 4)], remember={})] == ["a"]
    assert list(taken(store)) == ["c", "d"]


def test_a_batch_larger_than_the_bound_is_given_up_at_once(open_store: OpenStore) -> None:
    store = open_store(row_limit(1))
    assert [one.batch_id for one in store.add([batch("a", 1, 2)], remember={})] == ["a"]
    assert store.first() is None


def test_the_memory_keeps_the_last_value_and_forgets_none(open_store: OpenStore) -> None:
    store = open_store(BacklogLimits())
    store.add([], remember={"a": b"1", "b": b"", "c": b"3"})
    store.add([batch("x", 1)], remember={"a": b"2", "c": None, "never": None})
    assert store.recall() == {"a": b"2", "b": b""}
