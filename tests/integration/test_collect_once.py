"""``steward collect --once`` as a person calls it: table, rows, exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.cli import COLLECT
from sql.warehouse import open_embedded
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import SourceError, UnreachableError, UsageError
from steward.settings import Settings, WarehouseSettings
from tests.support.collector_process import steward
from tests.support.exporter_server import (
    ExporterServer,
    closed_port,
    exporter_server,
    exposition,
    gpu_text,
    redirect,
)

pytestmark = pytest.mark.slow
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[ExporterServer]:
    answers = {f"/{node}": exposition(gpu_text(host=node)) for node in ("n1", "n2")}
    with exporter_server(answers | {"/moved": redirect("/n1")}) as running:
        yield running


def rows(data_dir: Path, statement: str) -> list[dict[str, object]]:
    warehouse = open_embedded(data_dir)
    try:
        return warehouse.sql(statement).to_pylist()
    finally:
        warehouse.close()


def collect_once(data_dir: Path, *urls: str) -> tuple[int, str, str]:
    done = steward(
        "collect", "--once", "--scrape", *urls, "--data-dir", str(data_dir), cwd=data_dir
    )
    return done.returncode, done.stdout, done.stderr


def test_all_good_and_each_target_once(server: ExporterServer, tmp_path: Path) -> None:
    before, second = server.requests["/n2"], server.url("/n2")
    spellings = (second, second.removeprefix("http://"), second.replace("http", "HTTP"))
    code, out, err = collect_once(tmp_path, server.url("/n1"), *spellings)
    assert (code, err) == (0, "")
    assert server.requests["/n2"] - before == 1
    lines = out.splitlines()
    assert lines[0].split() == [
        "target",
        "result",
        "samples",
        "dropped",
        "lines",
        "bytes",
        "seconds",
    ]
    assert [line.split()[:3] for line in lines[1:]] == [
        [server.url("/n1"), "ok", "4"],
        [server.url("/n2"), "ok", "4"],
    ]
    found = rows(
        tmp_path,
        "select node, device_uuid, busy_ratio, power_w from device_sample order by device_uuid",
    )
    assert found == [
        {"node": n, "device_uuid": f"GPU-{n}-{i}", "busy_ratio": 0.5, "power_w": 116.5}
        for n in ("n1", "n2")
        for i in (0, 1)
    ]


def run_once(data_dir: Path, *urls: str, warehouse_url: str | None = None) -> int:
    """Run the command in this process."""
    settings = Settings(data_dir=data_dir, warehouse=WarehouseSettings(url=warehouse_url))
    args = argparse.Namespace(
        action=None, format=None, patient=False, scrape=list(urls), once=True, metrics_port=None
    )
    return COLLECT.run(args, Context(settings=settings, clock=FixedClock(NOON)))


def test_failed_targets_are_named_and_the_others_stored(
    server: ExporterServer, tmp_path: Path, *, capsys: pytest.CaptureFixture[str]
) -> None:
    with closed_port() as port:
        down = f"http://127.0.0.1:{port}/metrics"
        urls = (server.url("/n1"), down, server.url("/moved"))
        with pytest.raises(SourceError, match=r"^2 of 3 targets could not be read: ") as caught:
            run_once(tmp_path, *urls)
    assert f"{down}: connection refused" in caught.value.message
    assert f"scrape that address: {server.url('/n1')}" in caught.value.hint
    assert capsys.readouterr().out.count("\n") == 4
    found = rows(tmp_path, "select target, is_ok, reason from scrape order by is_ok, reason")
    assert found == [
        {"target": down, "is_ok": False, "reason": "connection_refused"},
        {"target": server.url("/moved"), "is_ok": False, "reason": "redirect"},
        {"target": server.url("/n1"), "is_ok": True, "reason": None},
    ]
    assert rows(tmp_path, "select count(*) as n from device_sample") == [{"n": 2}]


def test_bad_addresses_are_told_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    code, out, err = collect_once(tmp_path, "ftp://x", "good:9400", "y:0")
    assert (code, out) == (2, "")
    assert "bad target 'ftp://x'" in err
    assert "bad target 'y:0'" in err
    assert err.count("error:") == err.count("hint:") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_scrape(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is nothing to collect from"):
        run_once(tmp_path)


def test_a_warehouse_that_is_away_fails_the_one_round(
    server: ExporterServer, tmp_path: Path
) -> None:
    with closed_port() as port, pytest.raises(UnreachableError, match=f"127.0.0.1:{port}"):
        run_once(tmp_path, server.url("/n1"), warehouse_url=f"http://127.0.0.1:{port}")


def test_many_failed_targets_are_named_up_to_a_limit(
    server: ExporterServer, tmp_path: Path
) -> None:
    urls = [server.url(f"/missing{n}") for n in range(12)]
    with pytest.raises(SourceError, match=r"^12 of 12 targets .*; and 2 more, see the table$"):
        run_once(tmp_path, *urls)
    found = rows(tmp_path, "select reason, count(*) as n from scrape group by all")
    assert found == [{"reason": "http_status", "n": 12}]


def test_one_failed_target_is_told_as_it_is(server: ExporterServer, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"/moved redirects to .*/n1 \(HTTP 302\)$"):
        run_once(tmp_path, server.url("/moved"))
