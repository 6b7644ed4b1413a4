"""The spool outlives its process, belongs to one collector, and tells what is wrong with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from collector.backlog import BacklogLimits
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
        connection.execute("pragma user_version = 2")
    with pytest.raises(WarehouseError, match="it has version 2, this program reads 1"):
        Spool(path)


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
