"""The warehouse is away for forty rounds and the collector is killed once: every sample, once."""

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
ROUNDS = 40
"""Ten minutes at fifteen seconds."""
BUSY = Answer(status="503 Service Unavailable", body=b"starting\n")
WATTS = "select node, power_w::integer as n from device_sample"
SCRAPES = "select count(*) as n from scrape"


def good(node: str) -> Answer:
    """Answer with the number of the request as the power, so that each sample is known."""
    body = gpu_text(host=node, gpu_count=1).encode()
    return Answer(body=body.replace(b"116.5", REQUEST_NUMBER))


@contextmanager
def collector(
    folder: Path, server: ExporterServer, *, port: int, name: str
) -> Iterator[RunningSteward]:
    urls = [server.url(f"/{node}") for node in NODES]
    arguments = ["collect", "--scrape", *urls, "--interval-s", "0.25"]
    arguments += ["--warehouse-url", f"http://127.0.0.1:{port}", "--data-dir", str(folder)]
    with running_steward(*arguments, cwd=folder, name=name) as running:
        yield running


def asked_of(server: ExporterServer) -> int:
    """Return how often the node asked least was asked."""
    return min(server.requests[f"/{node}"] for node in NODES)


def numbers(port: int) -> Counter[tuple[str, int]]:
    with closing(connect(f"http://127.0.0.1:{port}")) as warehouse:
        return Counter((row["node"], row["n"]) for row in warehouse.sql(WATTS).to_pylist())


def is_there(port: int) -> bool:
    with closing(connect(f"http://127.0.0.1:{port}")) as warehouse:
        try:
            warehouse.sql(SCRAPES)
        except StewardError:
            return False
    return True


def quiet(running: RunningSteward, server: ExporterServer) -> None:
    """Let the exporters fail for so long that all good samples are on disk."""
    server.answers.update({f"/{node}": BUSY for node in NODES})
    at = asked_of(server)
    running.wait_for(lambda: asked_of(server) >= at + 4)


def test_every_sample_is_stored_once_although_both_were_away(tmp_path: Path) -> None:
    port = free_port()
    with exporter_server({f"/{node}": good(node) for node in NODES}) as server:
        with collector(tmp_path, server, port=port, name="first") as first:
            first.wait_for(lambda: asked_of(server) >= ROUNDS // 2)
            quiet(first, server)
            first.stop(signal.SIGKILL)
        killed_at = dict(server.requests)
        server.answers.update({f"/{node}": good(node) for node in NODES})
        with collector(tmp_path, server, port=port, name="second") as second:
            second.wait_for(lambda: asked_of(server) >= ROUNDS + 4)
            owner = ("warehouse", "--data-dir", str(tmp_path / "owner"), "--port", str(port))
            with running_steward(*owner, cwd=tmp_path, name="owner") as warehouse:
                warehouse.wait_for(lambda: is_there(port))
                second.wait_for(lambda: "warehouse answers again" in second.log)
                assert second.stop() == 0
                stored = numbers(port)
    assert "rows of an earlier run wait in" in second.log
    assert "0 wait on disk" in second.log
    assert set(stored.values()) == {1}
    for node in NODES:
        found = sorted(number for name, number in stored if name == node)
        before = [number for number in found if number <= killed_at[f"/{node}"]]
        after = [number for number in found if number > killed_at[f"/{node}"]]
        assert before == list(range(1, len(before) + 1))
        assert len(before) >= ROUNDS // 2
        assert after == list(range(killed_at[f"/{node}"] + 1, after[-1] + 1))
        assert server.requests[f"/{node}"] - after[-1] <= 1, "only a scrape cut off by the stop"
