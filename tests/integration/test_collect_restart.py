"""The warehouse is killed and started again while the collector runs: every row, exactly once."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sql.client import connect
from steward.errors import StewardError
from tests.support.collector_process import RunningSteward, free_port, running_steward
from tests.support.exporter_server import (
    REQUEST_NUMBER,
    Answer,
    ExporterServer,
    exporter_server,
    gpu_text,
)

pytestmark = pytest.mark.slow

NODES = ("n1", "n2", "n3")
WATTS = "select node, power_w from device_sample"
FAILED = "select target, count(*) as n from scrape where not is_ok group by target"
TOTAL = """
select (select count(*) from device_sample) + (select count(*) from scrape)
+ (select count(*) from device) as n
"""


@contextmanager
def numbered_nodes() -> Iterator[ExporterServer]:
    """Serve three nodes whose power is the number of the scrape, so that each row is known."""
    answers = {
        f"/{node}": Answer(
            body=gpu_text(host=node, gpu_count=1).encode().replace(b"116.5", REQUEST_NUMBER)
        )
        for node in NODES
    }
    with exporter_server(answers) as server:
        yield server


@contextmanager
def warehouse(folder: Path, *, port: int, name: str) -> Iterator[RunningSteward]:
    arguments = ("warehouse", "--data-dir", str(folder), "--port", str(port))
    with running_steward(*arguments, cwd=folder, name=name) as running:
        running.wait_for(lambda: ask(port, TOTAL) is not None)
        yield running


def ask(port: int, statement: str) -> list[dict[str, object]] | None:
    """Return the rows; None while nothing answers."""
    with closing(connect(f"http://127.0.0.1:{port}")) as remote:
        try:
            return remote.sql(statement).to_pylist()
        except StewardError:
            return None


def told(port: int, statement: str) -> list[dict[str, object]]:
    """Return the rows of a warehouse that is known to be there."""
    rows = ask(port, statement)
    assert rows is not None
    return rows


def test_every_scrape_is_stored_once_although_the_warehouse_was_killed(tmp_path: Path) -> None:
    port = free_port()
    with numbered_nodes() as server:
        urls = [server.url(f"/{node}") for node in NODES]
        arguments = ["collect", "--scrape", *urls, "--interval-s", "0.3"]
        arguments += ["--warehouse-url", f"http://127.0.0.1:{port}", "--data-dir", str(tmp_path)]
        with running_steward(*arguments, cwd=tmp_path, name="collect") as collector:
            collector.wait_for(lambda: server.requests.total() >= 9)
            with warehouse(tmp_path, port=port, name="first") as owner:
                wait_for_delivery(collector, round_count=1)
                owner.stop(signal.SIGKILL)
            wait_for_scrapes(collector, server=server, scrape_count=15)
            with warehouse(tmp_path, port=port, name="second"):
                wait_for_delivery(collector, round_count=2)
                assert collector.stop() == 0
                check_every_scrape_once(port, server=server)
                (total,) = told(port, TOTAL)
    assert f"stopped: {total['n']} rows delivered, 0 wait on disk" in collector.log


def wait_for_delivery(collector: RunningSteward, *, round_count: int) -> None:
    """Wait until the backlog of so many absences was delivered."""
    collector.wait_for(lambda: collector.log.count("warehouse answers again") >= round_count)


def wait_for_scrapes(
    collector: RunningSteward, *, server: ExporterServer, scrape_count: int
) -> None:
    before = server.requests.total()
    collector.wait_for(lambda: server.requests.total() >= before + scrape_count)


def check_every_scrape_once(port: int, *, server: ExporterServer) -> None:
    """No served scrape is stored twice; those missing failed, or were cut off by the stop."""
    found = Counter((row["node"], row["power_w"]) for row in told(port, WATTS))
    failed = {row["target"]: row["n"] for row in told(port, FAILED)}
    assert set(found.values()) == {1}
    for node in NODES:
        stored_count = sum(name == node for name, _ in found)
        failed_count = failed.get(server.url(f"/{node}"), 0)
        assert isinstance(failed_count, int)
        missing = server.requests[f"/{node}"] - stored_count
        assert 0 <= missing <= failed_count + 1
