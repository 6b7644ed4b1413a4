"""The doctor's look at the data folder: what waits there, who holds it, whether there is room."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from collector.batches import Batch
from collector.doctor.waiting import (
    DISK_LOW_BYTES,
    Waiting,
    disk_findings,
    folder_findings,
    nearest_folder,
    read_waiting,
    spool_findings,
)
from collector.spool import Spool, spool_path
from collector.tables import rows_table
from steward.ids import BatchId, ClusterName
from steward.settings import CollectSettings, Settings
from tests.support.doctor_views import codes, told
from tests.support.exposition_texts import NOON

SPOOL = Path("/data/spool/default.sqlite")
LIMIT_BYTES = 1_000


def batch(row_count: int) -> Batch:
    row = {"observed_at": NOON, "cluster": "c", "node": "n", "source": "test"}
    rows = rows_table("node", [row] * row_count)
    return Batch(batch_id=BatchId("one"), table="node", rows=rows)


def settings(folder: Path) -> Settings:
    return Settings(data_dir=folder, collect=CollectSettings(spool_limit_bytes=10_000_000))


def state(row_count: int = 0, byte_count: int = 0, *, is_held: bool = False) -> Waiting:
    return Waiting(row_count=row_count, byte_count=byte_count, is_held=is_held)


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        pytest.param(state(), [], id="nothing waits"),
        pytest.param(state(1), [("gap", "spool_waits")], id="one row and nobody delivers it"),
        pytest.param(state(1, is_held=True), [("fine", "spool_in_use")], id="a collector runs"),
        pytest.param(state(0, 499, is_held=True), [("fine", "spool_in_use")], id="just inside"),
        pytest.param(
            state(9, 500, is_held=True),
            [("fine", "spool_in_use"), ("gap", "spool_fills")],
            id="exactly half full",
        ),
        pytest.param(
            state(9, 501), [("gap", "spool_waits"), ("gap", "spool_fills")], id="just past"
        ),
    ],
)
def test_what_waits(waiting: Waiting, expected: list[tuple[str, str]]) -> None:
    assert told(spool_findings(waiting, path=SPOOL, limit_bytes=LIMIT_BYTES)) == expected


@pytest.mark.parametrize(
    ("free_bytes", "room_bytes", "expected"),
    [
        pytest.param(DISK_LOW_BYTES - 1, 0, [("gap", "disk_short")], id="below what is needed"),
        pytest.param(DISK_LOW_BYTES, 0, [], id="exactly that"),
        pytest.param(DISK_LOW_BYTES + 1, 0, [], id="just above"),
        pytest.param(2**31 - 1, 2**31, [("note", "disk_short")], id="less than may be added"),
        pytest.param(2**31, 2**31, [], id="exactly what may be added"),
        pytest.param(2**31 + 1, 2**31, [], id="more than may be added"),
        pytest.param(0, 2**31, [("gap", "disk_short")], id="full"),
    ],
)
def test_room_on_the_disk(
    free_bytes: int, room_bytes: int, expected: list[tuple[str, str]]
) -> None:
    found = disk_findings(Path("/data"), free_bytes=free_bytes, room_bytes=room_bytes)
    assert told(found) == expected


def test_a_spool_is_read_while_its_collector_runs_and_afterwards(tmp_path: Path) -> None:
    path = spool_path(tmp_path, ClusterName("default"))
    assert read_waiting(path) is None
    with closing(Spool(path)) as spool:
        spool.add([batch(3)], remember={})
        running = read_waiting(path)
        assert running is not None
        assert (running.row_count, running.is_held) == (3, True)
        assert running.byte_count == spool.byte_count
    left = read_waiting(path)
    assert left is not None
    assert (left.row_count, left.is_held) == (3, False)
    with closing(Spool(path)) as again:
        assert again.row_count == 3


def test_the_folder_of_a_new_installation_is_not_made(tmp_path: Path) -> None:
    assert set(codes(folder_findings(settings(tmp_path / "new")))) <= {"disk_short"}
    assert list(tmp_path.iterdir()) == []


def test_rows_that_nobody_delivers_are_told_with_their_file(tmp_path: Path) -> None:
    path = spool_path(tmp_path, ClusterName("default"))
    with closing(Spool(path)) as spool:
        spool.add([batch(1)], remember={})
    (found,) = [one for one in folder_findings(settings(tmp_path)) if one.code == "spool_waits"]
    assert (found.subject, found.message) == (
        str(path),
        "1 row not yet delivered, and no collector runs that would do it",
    )


def test_a_file_that_is_no_spool(tmp_path: Path) -> None:
    path = spool_path(tmp_path, ClusterName("default"))
    path.parent.mkdir()
    path.write_bytes(b"no database at all, but long enough to look like one" * 10)
    (found,) = folder_findings(settings(tmp_path))
    assert (found.code, found.subject) == ("spool_unreadable", str(path))


def test_a_folder_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="ascii")
    (found,) = folder_findings(settings(tmp_path / "file" / "data"))
    assert (str(found.severity), found.code) == ("fault", "folder_unwritable")


def test_the_nearest_part_that_exists(tmp_path: Path) -> None:
    assert nearest_folder(tmp_path / "a" / "b") == tmp_path
    assert nearest_folder(tmp_path) == tmp_path
