"""``steward collect`` as a long-running process: signals, metrics, what it says at the end."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import socket
import sqlite3
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector import collect as collect_module
from collector.cli import COLLECT
from collector.spool import Spool, spool_path
from sql.warehouse import open_embedded
from steward.clock import FixedClock
from steward.command import Context
from steward.errors import PortInUseError, UsageError, WarehouseError
from steward.ids import ClusterName
from steward.settings import CollectSettings, Settings, WarehouseSettings
from tests.support.collector_process import PATIENCE_S, free_port, running_steward
from tests.support.exporter_server import (
    Answer,
    ExporterServer,
    closed_port,
    exporter_server,
    exposition,
    gpu_text,
)

DOCUMENT = Path(__file__).parents[2] / "docs" / "collect.md"
BAD = {
    "/slow": Answer(body=b"a 1\n", drip_s=0.05),
    "/html": Answer(body=b"<!doctype html>"),
    "/gone": Answer(status="404 Not Found"),
}


@pytest.fixture
def server() -> Iterator[ExporterServer]:
    with exporter_server({"/metrics": exposition(gpu_text(host="n1")), **BAD}) as running:
        yield running


def metrics_text(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        text: str = response.read().decode()
    return text


@pytest.mark.slow
def test_it_collects_until_sigterm_and_delivers_everything(
    server: ExporterServer, tmp_path: Path
) -> None:
    port = free_port()
    urls = [server.url(path) for path in ("/metrics", *BAD)]
    arguments = ["collect", "--scrape", *urls, "--data-dir", str(tmp_path)]
    arguments += ["--interval-s", "0.5", "--metrics-port", str(port)]
    with running_steward(*arguments, cwd=tmp_path, name="c") as collector:
        collector.wait_for(
            lambda: min(server.requests[f"/{n}"] for n in ("metrics", "slow", "html", "gone")) >= 4
        )
        text = metrics_text(port)
        assert collector.stop(signal.SIGTERM) == 0
    told = re.search(r"stopped: (\d+) rows delivered, 0 wait", collector.log)
    assert told is not None, collector.log
    with closing(open_embedded(tmp_path)) as warehouse:
        rows = warehouse.sql(
            "select 'rows' as name, (select count(*) from device_sample)"
            " + (select count(*) from device) + (select count(*) from scrape) as n"
            " union all select coalesce(reason, 'ok'), count(*) from scrape group by all"
            " union all select 'samples', count(*) from device_sample"
        ).to_pylist()
    counts = {row["name"]: row["n"] for row in rows}
    assert counts.pop("rows") == int(told[1])
    assert counts.pop("samples") == 2 * counts["ok"]
    assert set(counts) == {"ok", "timeout", "not_exposition", "http_status"}
    check_log(collector.log, urls=urls[1:])
    check_metrics(text)


def check_log(log: str, *, urls: list[str]) -> None:
    """A target that stays bad is told once; the good one may have met one slow moment."""
    for url in urls:
        assert sum(" warning " in line and url in line for line in log.splitlines()) == 1, log


def check_metrics(text: str) -> None:
    """Outcomes are counted, and every metric is documented."""
    for outcome in ("ok", "http_status", "not_exposition"):
        line = rf'^steward_collect_scrapes_total\{{outcome="{outcome}"\}} (\d+)'
        found = re.search(line, text, re.MULTILINE)
        assert found is not None, text
        assert int(found[1]) >= 1
    documented = DOCUMENT.read_text(encoding="utf-8")
    names = set(re.findall(r"^(steward_collect_\w+)", text, re.MULTILINE))
    assert len(names) == 9
    assert [name for name in names if f"`{name}" not in documented] == []


def collect(
    data_dir: Path, *urls: str, warehouse_url: str | None = None, metrics_port: int | None = None
) -> int:
    """Run the command in this process."""
    settings = Settings(
        data_dir=data_dir,
        collect=CollectSettings(targets=urls, interval_s=0.2),
        warehouse=WarehouseSettings(url=warehouse_url),
    )
    args = argparse.Namespace(
        action=None, format=None, patient=False, scrape=[], once=False, metrics_port=metrics_port
    )
    clock = FixedClock(datetime(2026, 5, 1, tzinfo=UTC))
    return COLLECT.run(args, Context(settings=settings, clock=clock))


def signal_after_scrapes(server: ExporterServer, which: signal.Signals) -> threading.Thread:
    """Send this process the signal once the server was asked three times."""

    def watch() -> None:
        until_s = time.monotonic() + PATIENCE_S
        while server.requests["/metrics"] < 3 and time.monotonic() < until_s:
            time.sleep(0.01)
        os.kill(os.getpid(), which)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


def test_ctrl_c_ends_it_with_the_shells_exit_code(server: ExporterServer, tmp_path: Path) -> None:
    signal_after_scrapes(server, signal.SIGINT)
    assert collect(tmp_path, server.url()) == 130
    with closing(open_embedded(tmp_path)) as warehouse:
        (row,) = warehouse.sql("select count(*) as n from scrape").to_pylist()
    assert row["n"] >= 2


def test_rows_that_cannot_be_delivered_wait_for_the_next_collector(
    server: ExporterServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    signal_after_scrapes(server, signal.SIGTERM)
    with closed_port() as port:
        assert collect(tmp_path, server.url(), warehouse_url=f"http://127.0.0.1:{port}") == 0
    assert sum("warehouse is away" in message for message in caplog.messages) == 1
    told = re.fullmatch(r"stopped: 0 rows delivered, (\d+) wait on disk", caplog.messages[-1])
    assert told is not None
    with closing(Spool(spool_path(tmp_path, ClusterName("default")))) as spool:
        assert spool.row_count == int(told[1]) > 0


def test_rows_that_can_neither_be_delivered_nor_kept_are_told(
    server: ExporterServer,
    tmp_path: Path,
    *,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collect_module, "GRACE_S", 0.3)
    signal_after_scrapes(server, signal.SIGTERM)
    blocker = threading.Thread(target=_break_spool, args=(tmp_path, server), daemon=True)
    blocker.start()
    with (
        closed_port() as port,
        pytest.raises(WarehouseError, match=r"^\d+ rows could neither be delivered nor kept"),
    ):
        collect(tmp_path, server.url(), warehouse_url=f"http://127.0.0.1:{port}")
    assert sum("rows wait in memory" in message for message in caplog.messages) == 1


def _break_spool(folder: Path, server: ExporterServer) -> None:
    """Take the tables away while the collector runs, as a damaged disk would."""
    path = spool_path(folder, ClusterName("default"))
    while not (path.exists() and server.requests["/metrics"]):
        time.sleep(0.005)
    with closing(sqlite3.connect(path, timeout=20)) as connection:
        connection.execute("drop table batch")


def test_a_taken_metrics_port(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(PortInUseError, match=r"of 127\.0\.0\.1 is in use") as caught,
    ):
        collect(tmp_path, "http://127.0.0.1:1", metrics_port=taken.getsockname()[1])
    assert caught.value.hint == "choose another with --metrics-port"


@pytest.mark.parametrize("port", [0, 65_536])
def test_no_such_metrics_port(tmp_path: Path, port: int) -> None:
    with pytest.raises(UsageError, match=f"no port has the number {port}"):
        collect(tmp_path, "http://127.0.0.1:1", metrics_port=port)
