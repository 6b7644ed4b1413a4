"""What goes wrong around a warehouse: each a clear error, nothing lost, nothing half-written."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import httpx
import pytest

from sql.access import open_warehouse
from sql.client import connect
from sql.ownership import OwnerCard, write_card
from sql.serve import listen
from sql.tokens import Tokens, refuse_open_bind
from sql.warehouse import EmbeddedWarehouse, open_embedded
from sql.wire import to_arrow
from steward.errors import (
    AccessError,
    InputError,
    NewerSchemaError,
    OwnedElsewhereError,
    PortInUseError,
    SettingsError,
    UnreachableError,
    WarehouseError,
)
from steward.settings import Settings
from tests.support.warehouse_rows import samples
from tests.support.warehouse_server import owner

NOBODY = "http://127.0.0.1:9"
ROOT = Path(__file__).parents[2]
FULL_DISK = """
import resource, sys
from pathlib import Path
from sql.warehouse import open_embedded
from steward.errors import WarehouseError
from tests.support.warehouse_rows import samples
warehouse = open_embedded(Path(sys.argv[1]))
warehouse.append("device_sample", samples(10), batch_id="before")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
try:
    warehouse.append("device_sample", samples(20_000), batch_id="too-large")
except WarehouseError as error:
    print("refused", error.exit_code, bool(error.hint))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
receipt = warehouse.append("device_sample", samples(20_000), batch_id="too-large")
print("repeated", receipt.row_count, receipt.is_repeat)
warehouse.close()
"""


def row_count(warehouse: EmbeddedWarehouse) -> int:
    return int(warehouse.sql("select count(*) as n from device_sample").to_pylist()[0]["n"])


def test_a_second_owner_is_refused_by_name(tmp_path: Path) -> None:
    with (
        closing(open_embedded(tmp_path)),
        pytest.raises(OwnedElsewhereError, match=r"owned by process \d+"),
    ):
        open_embedded(tmp_path)
    open_embedded(tmp_path).close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            "insert into schema_migration "
            "select max(number) + 1, 'later', 'x', now() from schema_migration",
            "_later, which this version does not know",
            id="newer",
        ),
        pytest.param(
            "update schema_migration set checksum = 'x' where number = 2", "differs", id="drift"
        ),
        pytest.param("delete from schema_migration where number = 2", "0002 is missing", id="gap"),
    ],
)
def test_a_foreign_schema_is_left_untouched(tmp_path: Path, change: str, words: str) -> None:
    open_embedded(tmp_path).close()
    file = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(change)
    before = file.read_bytes()
    with pytest.raises(NewerSchemaError, match=words):
        open_embedded(tmp_path)
    assert file.read_bytes() == before


def test_a_file_that_is_no_warehouse_is_named(tmp_path: Path) -> None:
    (tmp_path / "warehouse.duckdb").write_bytes(b"no database" * 1000)
    with pytest.raises(WarehouseError, match=r"warehouse\.duckdb is damaged"):
        open_embedded(tmp_path)


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout.splitlines() == ["refused 6 True", "repeated 20000 False"], done.stderr
    with closing(open_embedded(tmp_path)) as warehouse:
        assert row_count(warehouse) == 20_010
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY


def test_a_port_in_use_is_named() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=str(port)):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_no_token(host: str) -> None:
    refuse_open_bind(host, tokens=Tokens())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])  # noqa: S104  # refused
def test_other_machines_need_tokens(host: str) -> None:
    with pytest.raises(SettingsError, match="no token is set"):
        refuse_open_bind(host, tokens=Tokens())
    refuse_open_bind(host, tokens=Tokens(reader=("r",)))


def test_a_stale_card_is_recognised(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    write_card(tmp_path, OwnerCard(pid=gone.pid, url=NOBODY, started_at="2026-05-01T00:00:00Z"))
    with open_warehouse(Settings(data_dir=tmp_path)) as warehouse:
        assert isinstance(warehouse, EmbeddedWarehouse)


def test_no_answer_names_the_address() -> None:
    with closing(connect(NOBODY)) as warehouse, pytest.raises(UnreachableError, match=NOBODY):
        warehouse.query("data_extent")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Return the address of a server with tokens and a small body limit."""
    environ = {
        "STEWARD_WAREHOUSE_WRITER_TOKENS": "w",
        "STEWARD_WAREHOUSE_READER_TOKENS": "r",
        "STEWARD_WAREHOUSE_ADMIN_TOKENS": "a",
        "STEWARD_WAREHOUSE_BODY_LIMIT_BYTES": "200000",
    }
    with owner(tmp_path_factory.mktemp("guarded"), environ) as running:
        yield running.url


@pytest.mark.parametrize(
    ("token", "method", "path", "status"),
    [
        (None, "POST", "/v1/sql", 401),
        ("x", "POST", "/v1/sql", 401),
        ("w", "POST", "/v1/sql", 403),
        ("w", "GET", "/metrics", 403),
        ("r", "POST", "/v1/sql", 200),
        ("a", "POST", "/v1/sql", 200),
        ("r", "POST", "/v1/append/node", 403),
        ("w", "POST", "/v1/state/price", 403),
        ("r", "POST", "/v1/admin/backup", 403),
        (None, "GET", "/health", 200),
        (None, "GET", "/ready", 200),
        ("r", "GET", "/metrics", 200),
        ("r", "GET", "/v1/tables", 200),
        ("r", "GET", "/v1/state/price", 200),
        ("r", "GET", "/v1/nothing", 404),
        ("r", "GET", "/v1/sql", 405),
    ],
)
def test_a_token_allows_what_its_role_allows(
    guarded: str, token: str | None, method: str, path: str, status: int
) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = json.dumps({"statement": "select 1 as one"}) if method == "POST" else None
    answer = httpx.request(method, guarded + path, headers=headers, content=body)
    assert answer.status_code == status
    if status >= 400:
        assert set(answer.json()) == {"error", "hint", "exit_code"}


def test_a_wrong_token_is_an_access_error(guarded: str) -> None:
    with closing(connect(guarded, "wrong")) as warehouse, pytest.raises(AccessError):
        warehouse.query("data_extent")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        pytest.param(b"", 400, "no complete Arrow", id="empty"),
        pytest.param(b"garbage" * 50, 400, "no complete Arrow", id="garbage"),
        pytest.param(to_arrow(samples(50))[:-400], 400, "no complete Arrow", id="truncated"),
        pytest.param(b"x" * 200_001, 413, "larger than 200000 bytes", id="too large"),
    ],
)
def test_a_broken_body_stores_nothing(guarded: str, body: bytes, status: int, words: str) -> None:
    headers = {"Authorization": "Bearer a", "Steward-Batch-Id": "broken"}
    answer = httpx.post(f"{guarded}/v1/append/device_sample", headers=headers, content=body)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True)
    with closing(connect(guarded, "a")) as warehouse:
        found = warehouse.sql("select count(*) as n from append_batch where batch_id = 'broken'")
    assert found.to_pylist() == [{"n": 0}]


def test_an_oversize_batch_is_an_input_error(guarded: str) -> None:
    with closing(connect(guarded, "w")) as warehouse, pytest.raises(InputError, match="larger"):
        warehouse.append("device_sample", samples(20_000), batch_id="oversize")
