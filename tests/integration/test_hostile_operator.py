"""What a hostile or unlucky operator sends: one clear error each, and the owner lives on."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from sql.access import open_warehouse
from sql.ask import render
from sql.client import RemoteWarehouse, connect
from sql.ownership import OwnerLock, read_card
from sql.warehouse import EmbeddedWarehouse, open_embedded
from steward.errors import InputError, OwnedElsewhereError, QueryError, WarehouseError
from steward.ids import new_batch_id
from steward.settings import Settings
from tests.support.warehouse_rows import samples
from tests.support.warehouse_server import owner

HALF_CHARACTER = "\ud800"
ARROW = {"Steward-Batch-Id": "odd"}
JSON_ROWS = {"Steward-Batch-Id": "odd", "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a real owner process."""
    with owner(tmp_path_factory.mktemp("hostile")) as running:
        yield running.url


def statement(text: str) -> bytes:
    return json.dumps({"statement": text}).encode()


@pytest.mark.parametrize(
    ("path", "headers", "body", "words"),
    [
        ("/v1/sql", {}, statement(f"select '{HALF_CHARACTER}'"), "no UTF-8"),
        ("/v1/sql", {}, statement("update extensions"), "only reading"),
        ("/v1/sql", {}, statement("select 'infinity'::timestamptz"), "1 to 9999"),
        ("/v1/sql", {}, statement("select '-infinity'::date"), "1 to 9999"),
        ("/v1/sql", {}, statement("select x" + "x" * 9_000), "Referenced column"),
        ("/v1/append/node", JSON_ROWS, b'[{"node": "\\ud800"}]', "column"),
        ("/v1/append/node\ud800".encode("utf-8", "replace").decode(), ARROW, b"", "Arrow"),
        ("/v1/state/price", {}, b'{"currency": "\\ud800"}', "not a text"),
        ("/v1/state/price", {}, b'{"amount_micros_per_gpu_hour": 1' + b"0" * 30 + b"}", "integer"),
        (
            "/v1/query/node_history",
            {},
            b'{"from_at": "0001-01-01T00:00:00+23:59", "until_at": "2026-01-01T00:00:00Z"}',
            "no instant",
        ),
        ("/v1/admin/backup", {}, b'{"destination": "/a\\u0000b"}', "cannot be a folder"),
        (
            "/v1/admin/backup",
            {},
            json.dumps({"destination": "/" + "x" * 5_000}).encode(),
            "cannot be a folder",
        ),
    ],
)
def test_no_body_makes_the_owner_fail(
    url: str, path: str, headers: dict[str, str], body: bytes, words: str
) -> None:
    answer = httpx.post(url + path, headers=headers, content=body)
    told = answer.json()
    assert (answer.status_code, words in told["error"]) == (400, True), told
    assert len(told["error"]) < 2_000
    assert httpx.get(f"{url}/ready").json() == {"status": "ready"}


@pytest.mark.parametrize("limit", ["-1", "9" * 5_000, "²", "1e3", ""])
def test_a_limit_is_a_count(url: str, limit: str) -> None:
    answer = httpx.get(f"{url}/v1/state/price", params={"limit": limit})
    assert (answer.status_code, answer.json()["exit_code"]) == (400, 10)


@pytest.mark.parametrize(
    "write",
    [
        "explain analyze delete from append_batch",
        "explain analyze copy (select 1) to '{file}'",
        "with t as (insert into append_batch values (now(), 'a', 'b', 1) returning *) from t",
        "select * from query('drop table append_batch')",
        "select * from read_text('{file}')",
        "select 1 /* ; */; drop table append_batch",
    ],
)
def test_no_statement_writes_or_leaves_the_warehouse(tmp_path: Path, write: str) -> None:
    target = tmp_path / "target"
    with closing(open_embedded(tmp_path)) as warehouse:
        warehouse.append("device_sample", samples(1), batch_id=new_batch_id())
        with pytest.raises(QueryError):
            warehouse.sql(write.format(file=target))
        assert warehouse.sql("select count(*) as n from append_batch").to_pylist() == [{"n": 1}]
    assert not target.exists()


def test_columns_of_one_name_are_all_shown(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)) as warehouse:
        rows = warehouse.sql("select 1 as a, 2 as a, 3 as a_1, 4 as a")
    assert rows.to_pylist() == [{"a": 1, "a_1": 2, "a_1_1": 3, "a_2": 4}]
    assert [word for word in "1234" if word in str(render(rows, form="table"))] == list("1234")


@pytest.mark.parametrize("microseconds", [-(2**63) + 1, -62_135_596_800_000_001])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_instant_beyond_the_calendar_is_refused(
    tmp_path: Path, microseconds: int, sign: int
) -> None:
    beyond = microseconds if sign > 0 else min(2**63 - 1, 253_402_300_800_000_000)
    rows = samples(1)
    instants = pa.array([beyond], pa.int64()).cast(pa.timestamp("us", "UTC"))
    place = rows.column_names.index("sampled_at")
    with (
        closing(open_embedded(tmp_path)) as warehouse,
        pytest.raises(InputError, match=r"sampled_at holds an instant outside the years 1 to 9999"),
    ):
        warehouse.append(
            "device_sample", rows.set_column(place, "sampled_at", instants), batch_id=new_batch_id()
        )


@pytest.mark.parametrize(
    "card",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"pid": "a", "url": "x", "started_at": "x"}',
        b'{"pid": 99999999999999999999, "url": "x", "started_at": "x"}',
        b'{"pid": %d, "url": 5, "started_at": "x"}' % os.getpid(),
        b'{"pid": %d, "url": "nonsense", "started_at": "x"}' % os.getpid(),
        b'{"pid": %d}' % os.getpid(),
        None,
    ],
)
def test_a_card_that_lies_is_not_believed(tmp_path: Path, card: bytes | None) -> None:
    path = tmp_path / "owner.json"
    if card is None:
        path.mkdir()
    else:
        path.write_bytes(card)
    with open_warehouse(Settings(data_dir=tmp_path)) as warehouse:
        assert isinstance(warehouse, EmbeddedWarehouse)


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert read_card(file) is None
    with pytest.raises(WarehouseError, match=str(file)):
        open_embedded(file)


def test_a_directory_held_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    lock = OwnerLock.acquire(tmp_path)
    release = threading.Timer(0.1, lock.release)
    release.start()
    OwnerLock.acquire(tmp_path, patience_s=30.0).release()
    release.join()


def test_a_directory_held_for_long_is_refused(tmp_path: Path) -> None:
    with closing(open_embedded(tmp_path)), pytest.raises(OwnedElsewhereError, match=r"\d+"):
        OwnerLock.acquire(tmp_path, patience_s=0.0)


@pytest.mark.parametrize("kept_bytes", [8_192, 13_000])
def test_a_cut_off_file_is_called_damaged(tmp_path: Path, kept_bytes: int) -> None:
    open_embedded(tmp_path).close()
    file = tmp_path / "warehouse.duckdb"
    file.write_bytes(file.read_bytes()[:kept_bytes])
    with pytest.raises(WarehouseError, match="damaged"):
        open_embedded(tmp_path)


class Stranger(BaseHTTPRequestHandler):
    """Answers everything with 200 and something else than a warehouse would."""

    def do_GET(self) -> None:
        """Answer."""
        content = b"<html>hello</html>"
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815  # the name that the server calls

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def stranger() -> Iterator[RemoteWarehouse]:
    """Yield a client of a server that is no warehouse."""
    server = HTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with closing(connect(f"http://127.0.0.1:{server.server_port}")) as client:
        yield client
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("method", "arguments", "named"),
    [
        ("query", ("data_extent",), {}),
        ("sql", ("select 1",), {}),
        ("append", ("device_sample", samples(1)), {"batch_id": "b"}),
        ("describe", (), {}),
        ("state_rows", ("price",), {}),
        ("state_insert", ("price", {}), {}),
        ("backup", ("/nowhere",), {}),
    ],
)
def test_a_stranger_at_the_address_is_told_apart(
    stranger: RemoteWarehouse, method: str, arguments: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(WarehouseError, match="is no Steward warehouse"):
        getattr(stranger, method)(*arguments, **named)
    assert not stranger.is_ready()
