"""``steward ledger build`` from the command line, once and following."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from sql.client import RemoteWarehouse
from sql.warehouse import open_embedded
from steward.main import main
from tests.support.floor_children import wait_until
from tests.support.report_rows import START, store_fleet
from tests.support.warehouse_server import remote

NOWHERE = "http://127.0.0.1:9"
"""The discard port: nothing answers there."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    with closing(open_embedded(folder)) as warehouse:
        store_fleet(warehouse)
    return folder


def ledger(*arguments: str) -> int:
    return main(["ledger", *arguments])


def test_a_build_says_what_it_stored_and_the_next_finds_nothing_to_do(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--data-dir", str(fleet))
    assert ledger("build", "--until", f"{START:%Y-%m-%d}T05:30Z", *place) == 0
    assert capsys.readouterr().out == "built 5 hours and 0 days of the ledger, 20 rows\n"
    assert ledger("build", *place) == 0
    assert capsys.readouterr().out == "built 18 hours and 0 days of the ledger, 72 rows\n"
    assert ledger("build", "--again", *place) == 0
    assert capsys.readouterr().out == "built 0 hours and 0 days of the ledger, 0 rows\n"
    assert ledger("build", "--quiet", *place) == 0
    assert capsys.readouterr().out == ""


def test_an_empty_warehouse_has_no_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ledger("build", "--data-dir", str(tmp_path)) == 0
    assert capsys.readouterr().out == "built 0 hours and 0 days of the ledger, 0 rows\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "required", id="no action"),
        pytest.param(["rebuild"], "invalid choice", id="no such action"),
        pytest.param(["build", "--from", "2026-05-01"], "no time zone", id="no zone"),
        pytest.param(
            ["build", "--every", "soon"], "--every 'soon' is not a length", id="no length"
        ),
    ],
)
def test_a_wrong_order_is_explained(
    capsys: pytest.CaptureFixture[str], *, arguments: list[str], words: str
) -> None:
    assert ledger(*arguments) == 2
    assert words in capsys.readouterr().err


def following(url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "steward", "ledger", "build", "--follow"]
    environ = {"STEWARD_WAREHOUSE_URL": url, "PATH": ""}
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)


def url_of(folder: Path) -> str:
    """Return the address in the card of the owner's running process."""
    return str(json.loads((folder / "owner.json").read_text(encoding="utf-8"))["url"])


def built_count(warehouse: RemoteWarehouse) -> int:
    return pl.DataFrame(warehouse.sql("select count(*) as n from ledger_build")).item()


def test_a_follower_builds_over_http_until_it_is_stopped(tmp_path: Path) -> None:
    with remote(tmp_path) as warehouse:
        store_fleet(warehouse)
        with following(url_of(tmp_path)) as process:
            wait_until(lambda: built_count(warehouse) == 23, within_s=60)
            process.send_signal(signal.SIGTERM)
        assert process.returncode == -signal.SIGTERM


def test_a_follower_waits_for_a_warehouse_that_is_away() -> None:
    with following(NOWHERE) as process:
        assert process.stderr is not None
        assert "the ledger is built later: no answer" in process.stderr.readline()
        assert process.poll() is None
        process.kill()
