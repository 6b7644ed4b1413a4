"""The spool outlives its process, belongs to one collector, and tells what is wrong with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from collector.backlog import BacklogLimits, SpoiledBatchError
from collector.batches import Batch
from collector.spool import Spool, spool_path
from steward.errors import OwnedElsewhereError, WarehouseError
from steward.ids import BatchId, ClusterName


def batch(name: str, *values: int) -> Batch:
    rows = pa.table({"n": pa.array(values, pa.int64())})
    return Batch(batch_id=BatchId(name), table="scrape", rows=rows)


def test_what_was_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "spool.sqlite"
    with closing(Spool(path)) as spool:
        spool.add([batch("a", 1), batch("b", 2, 3)], remember={"pod/1": b"seen"})
        first = spool.first()
        assert first is not None
        spool.settle(first)
    with closing(Spool(path)) as spool:
        assert (spool.row_count, spool.first()) == (2, batch("b", 2, 3))
        assert spool.recall() == {"pod/1": b"seen"}


def test_a_lower_bound_at_the_next_start_gives_up_with_the_next_batch(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path)) as spool:
        spool.add([batch("a", 1), batch("b", 2)], remember={})
    with closing(Spool(path, limits=BacklogLimits(row_limit=2))) as spool:
        assert [one.batch_id for one in spool.add([batch("c", 3)], remember={})] == ["a"]


def test_a_batch_added_twice_changes_nothing(tmp_path: Path) -> None:
    with closing(Spool(tmp_path / "spool.sqlite")) as spool:
        spool.add([batch("a", 1)], remember={"k": b"1"})
        with pytest.raises(WarehouseError, match="cannot be written"):
            spool.add([batch("b", 2), batch("a", 1)], remember={"k": b"2"})
        assert (spool.row_count, spool.recall()) == (1, {"k": b"1"})


def test_a_second_collector_is_refused_and_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path)):
        with pytest.raises(OwnedElsewhereError, match="another collector uses the spool") as told:
            Spool(path)
        assert "--data-dir" in told.value.hint
    Spool(path).close()


@pytest.mark.parametrize(
    "content", [b"not a database, but long enough to be one" * 40, b"\x00" * 4096, b"short"]
)
def test_a_file_that_is_no_spool_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "spool.sqlite"
    path.write_bytes(content)
    with pytest.raises(WarehouseError, match="cannot be opened") as told:
        Spool(path)
    assert "move the file away" in told.value.hint
    assert path.read_bytes() == content


def test_a_spool_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    Spool(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 3")
    with pytest.raises(WarehouseError, match="it has version 3, this program reads 2"):
        Spool(path)


def test_batches_of_a_spool_without_checksums_are_still_delivered(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path)) as spool:
        spool.add([batch("a", 1)], remember={"k": b"1"})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("alter table batch drop column checksum")
        connection.execute("alter table memory drop column checksum")
        connection.execute("pragma user_version = 1")
    with closing(Spool(path)) as spool:
        spool.add([batch("b", 2)], remember={})
        assert (list(taken(spool)), spool.recall()) == ([batch("a", 1), batch("b", 2)], {"k": b"1"})


def taken(spool: Spool) -> Iterator[Batch]:
    while (first := spool.first()) is not None:
        spool.settle(first)
        yield first


@pytest.mark.parametrize(
    "damage",
    [
        "update batch set body = zeroblob(length(body)) where batch_id = 'b'",
        "update batch set body = x'' where batch_id = 'b'",
        "update batch set body = 'text' where batch_id = 'b'",
        "update batch set table_name = 'device' where batch_id = 'b'",
        "update batch set row_count = 'x' where batch_id = 'b'",
        "update batch set row_count = 7 where batch_id = 'b'",
        "update batch set checksum = checksum + 1 where batch_id = 'b'",
        "update batch set checksum = 'x' where batch_id = 'b'",
        "update batch set checksum = null, body = substr(body, 1, 200) where batch_id = 'b'",
    ],
)
def test_a_damaged_batch_is_given_up_and_does_not_block_the_others(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path)) as spool:
        spool.add([batch("a", 1), batch("b", 2, 3), batch("c", 4)], remember={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    with closing(Spool(path)) as spool:
        spool.settle(batch("a", 1))
        with pytest.raises(SpoiledBatchError, match=r"in the spool .* are damaged"):
            spool.first()
        assert list(taken(spool)) == [batch("c", 4)]
    with closing(Spool(path)) as spool:
        assert spool.row_count == 0


@pytest.mark.parametrize(
    "damage",
    [
        "update memory set value = x'00' where key = 'b'",
        "update memory set value = 'text' where key = 'b'",
        "update memory set checksum = checksum + 1 where key = 'b'",
        "update memory set key = 'c' where key = 'b'",
    ],
)
def test_damaged_memory_is_left_out_and_told(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path)) as spool:
        spool.add([], remember={"a": b"1", "b": b"2"})
        spool.add([], remember={"b": b"3"})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    with closing(Spool(path)) as spool:
        assert spool.recall() == {"a": b"1"}
        assert "is damaged and left out" in caplog.text
        spool.add([], remember={"b": b"4", "c": None})
        assert spool.recall() == {"a": b"1", "b": b"4"}


def test_a_file_that_cannot_be_written_gives_out_what_it_has_and_heals(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path)) as spool:
        spool.add([batch("a", 1), batch("b", 2)], remember={"k": b"1"})
        spool._connection.execute("pragma query_only = true")
        assert list(taken(spool)) == [batch("a", 1), batch("b", 2)]
        with pytest.raises(WarehouseError, match="cannot be written"):
            spool.add([batch("c", 3)], remember={"k": b"2"})
        assert (spool.row_count, spool.recall()) == (0, {"k": b"1"})
        spool._connection.execute("pragma query_only = false")
        spool.add([batch("c", 3)], remember={"k": b"2"})
    with closing(Spool(path)) as spool:
        assert list(taken(spool)) == [batch("c", 3)]


def test_what_is_given_up_on_a_full_disk_is_told_and_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    with closing(Spool(path, limits=BacklogLimits(row_limit=1))) as spool:
        with closing(sqlite3.connect(path)) as other:
            other.execute(
                "create trigger full before delete on batch "
                "begin select raise(abort, 'database or disk is full'); end"
            )
        given_up = spool.add([batch("a", 1), batch("b", 2)], remember={})
        assert [one.batch_id for one in given_up] == ["a"]
        assert list(taken(spool)) == [batch("b", 2)]


def test_the_file_gives_its_space_back_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    empty = batch("empty")
    with closing(Spool(path)) as spool:
        spool.add([batch(str(n), *range(n, 5_000 + n)) for n in range(40)], remember={})
        assert len(list(taken(spool))) == 40
        spool.add([empty], remember={})
        with closing(sqlite3.connect(path)) as reader:
            (page_count,) = reader.execute("pragma page_count").fetchone()
        assert page_count < 10


@pytest.mark.parametrize("batch_count", [0, 40])
def test_each_flipped_byte_costs_at_most_what_it_hits(tmp_path: Path, batch_count: int) -> None:
    """What comes out was put in; a file too damaged to be one is named."""
    path, whole = tmp_path / "spool.sqlite", tmp_path / "whole"
    given = [batch(f"batch {n}", *range(300 * n)) for n in range(batch_count)]
    with closing(Spool(whole)) as spool:
        spool.add(given, remember={"key": b"value"})
    content = whole.read_bytes()
    for place in range(0, len(content), len(content) // 30):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        with suppress(WarehouseError), closing(Spool(path)) as spool:
            assert all(one in given for one in survivors(spool))
            assert spool.recall() in ({}, {"key": b"value"})


def survivors(spool: Spool) -> Iterator[Batch]:
    while spool.row_count:
        with suppress(SpoiledBatchError):
            yield from taken(spool)


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(WarehouseError, match=r"spool /proc/1/spool/a\.sqlite cannot be opened"):
        Spool(Path("/proc/1/spool/a.sqlite"))


def test_a_folder_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite"
    path.mkdir()
    with pytest.raises(WarehouseError, match=str(path)):
        Spool(path)


@pytest.mark.parametrize(
    ("cluster", "name"), [("prod-1", "prod-1.sqlite"), ("a/b c", "a_b_c.sqlite")]
)
def test_each_cluster_has_its_own_file(cluster: str, name: str) -> None:
    assert spool_path(Path("/data"), ClusterName(cluster)) == Path("/data/spool") / name
