"""Bad input, as a person meets it: one clear error that names the object and the remedy.

Each has its documented exit code; nothing is lost and nothing half-written.
"""

from __future__ import annotations

import hashlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from collector.tables import NODE
from sql.engine import WAREHOUSE_FILE
from sql.warehouse import open_embedded
from steward.ids import BatchId
from tests.support.collector_process import (
    PATIENCE_S,
    environment,
    free_port,
    running_steward,
    steward,
)
from tests.support.exporter_server import (
    Answer,
    ExporterServer,
    closed_port,
    exporter_server,
    exposition,
    gpu_text,
    redirect,
)

pytestmark = pytest.mark.slow

COUNTS = """
select 'node' as name, count(*) as n from node
union all select 'device', count(*) from device
union all select 'device_sample', count(*) from device_sample
union all select 'workload', count(*) from workload
union all select 'workload_transition', count(*) from workload_transition
union all select 'scrape', count(*) from scrape
"""
LIMITED = """
import resource, runpy, sys
limit_bytes = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
runpy.run_module("steward", run_name="__main__", alter_sys=True)
"""
NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"
POD_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
GOOD_NODES = NODE_HEADER + "node-1,96000,786432,8,V100M16\nnode-2,64000,262144,0,\n"
GOOD_PODS = POD_HEADER + "pod-1,12000,16384,1,1000,,LS,Running,0,100,5\n"


@pytest.fixture(scope="module")
def server() -> Iterator[ExporterServer]:
    answers = {
        "/metrics": exposition(gpu_text(host="n1")),
        "/html": Answer(body=b"<!doctype html><title>Grafana</title>"),
        "/slow": Answer(body=b"a 1\n", drip_s=0.05),
        "/endless": Answer(is_endless=True),
        "/moved": redirect("/metrics"),
    }
    with exporter_server(answers) as running:
        yield running


def refused(done: subprocess.CompletedProcess[str], *, code: int) -> tuple[str, str]:
    """Return message and hint of the one error that the command told."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    found = re.fullmatch(r"error: (.+)\nhint: (.+)\n", done.stderr)
    assert found is not None, done.stderr
    return found[1], found[2]


def row_counts(data_dir: Path) -> dict[str, int]:
    """Return how many rows each table holds, tables without rows left out."""
    with closing(open_embedded(data_dir)) as warehouse:
        counts = {row["name"]: row["n"] for row in warehouse.sql(COUNTS).to_pylist()}
    return {table: count for table, count in counts.items() if count}


def digests(folder: Path) -> dict[str, str]:
    """Return what every file in the folder holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_targets_that_cannot_be_read(server: ExporterServer, tmp_path: Path) -> None:
    with closed_port() as port:
        down = f"http://127.0.0.1:{port}/metrics"
        urls = [server.url(path) for path in ("/metrics", "/html", "/slow", "/endless", "/moved")]
        done = steward(
            *("collect", "--once", "--scrape", *urls, down),
            *("--timeout-s", "5", "--data-dir", str(tmp_path)),
            cwd=tmp_path,
        )
    message, hint = refused(done, code=5)
    assert message.startswith("5 of 6 targets could not be read: ")
    for told in (
        f"{server.url('/html')} answers with HTML, not with a Prometheus exposition",
        f"{server.url('/slow')} did not finish its answer within 5 s",
        f"{server.url('/endless')} answered with more than 67,108,864 bytes",
        f"{server.url('/moved')} redirects to {server.url()} (HTTP 302)",
        f"{down}: connection refused, nothing listens there",
    ):
        assert told in message
    for remedy in ("collect.timeout_s", "collect.body_limit_bytes", server.url(), "start the"):
        assert remedy in hint
    assert row_counts(tmp_path) == {"device": 2, "device_sample": 2, "scrape": 6}


def test_a_file_that_is_no_exposition(tmp_path: Path) -> None:
    file, data_dir = tmp_path / "metrics.prom", tmp_path / "data"
    file.write_bytes(b"<html>hello</html>\n")
    done = steward("import", "exposition", str(file), "--data-dir", str(data_dir), cwd=tmp_path)
    message, _ = refused(done, code=4)
    assert str(file) in message
    assert row_counts(data_dir) == {}


BAD_TABLES = [
    pytest.param(GOOD_NODES, POD_HEADER.replace("qos,", ""), "pods", "qos", id="missing column"),
    pytest.param(
        GOOD_NODES.replace("model\n", "model,rack\n"), GOOD_PODS, "nodes", "rack", id="extra column"
    ),
    pytest.param(GOOD_NODES, GOOD_PODS[:-20], "pods", "2", id="truncated line"),
]


@pytest.mark.parametrize(("nodes", "pods", "culprit", "names"), BAD_TABLES)
def test_a_damaged_trace(
    tmp_path: Path, *, nodes: str, pods: str, culprit: str, names: str
) -> None:
    files = {"nodes": tmp_path / "nodes.csv", "pods": tmp_path / "pods.csv"}
    files["nodes"].write_text(nodes, encoding="utf-8")
    files["pods"].write_text(pods, encoding="utf-8")
    message, _ = refused(import_openb(files["nodes"], files["pods"], tmp_path), code=4)
    assert str(files[culprit]) in message
    assert names in message
    assert row_counts(tmp_path / "data") == {}


def test_the_sound_trace_is_imported(tmp_path: Path) -> None:
    """Without this, the damaged ones above would prove nothing."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(GOOD_NODES, encoding="utf-8")
    pods.write_text(GOOD_PODS, encoding="utf-8")
    done = import_openb(nodes, pods, tmp_path)
    assert done.returncode == 0, done.stderr
    counts = row_counts(tmp_path / "data")
    assert counts == {"node": 2, "device": 8, "workload": 1, "workload_transition": 3}


def import_openb(nodes: Path, pods: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return steward(
        *("import", "openb", "--nodes", str(nodes), "--pods", str(pods)),
        *("--data-dir", str(folder / "data")),
        cwd=folder,
    )


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Return a data folder with one row in it."""
    row = {
        "observed_at": datetime(2026, 5, 1, tzinfo=UTC),
        "cluster": "c1",
        "node": "n1",
        "source": "test",
    }
    with closing(open_embedded(tmp_path / "kept")) as warehouse:
        rows = pa.Table.from_pylist([row], schema=NODE)
        warehouse.append("node", rows, batch_id=BatchId("first"))
    return tmp_path / "kept"


def test_a_warehouse_from_a_newer_version(kept: Path) -> None:
    add_future_migration(kept)
    before = digests(kept)
    done = steward("sql", "select 1", "--data-dir", str(kept), cwd=kept.parent)
    message, hint = refused(done, code=8)
    assert str(kept / WAREHOUSE_FILE) in message
    assert "_from_the_future" in message
    assert "install" in hint
    assert digests(kept) | {"owner.lock": ""} == before | {"owner.lock": ""}


def add_future_migration(data_dir: Path) -> None:
    """Record migrations that no shipped version knows."""
    with duckdb.connect(str(data_dir / WAREHOUSE_FILE)) as connection:
        connection.execute(
            "insert into schema_migration by name "
            "select * replace (number + 1 as number, 'from_the_future' as name) "
            "from schema_migration order by number desc limit 1"
        )


def test_a_file_that_is_no_warehouse(tmp_path: Path) -> None:
    (tmp_path / WAREHOUSE_FILE).write_bytes(b"This is a letter, not a database.\n" * 400)
    before = (tmp_path / WAREHOUSE_FILE).read_bytes()
    done = steward("sql", "select 1", "--data-dir", str(tmp_path), cwd=tmp_path)
    message, _ = refused(done, code=6)
    assert WAREHOUSE_FILE in message
    assert (tmp_path / WAREHOUSE_FILE).read_bytes() == before


def test_a_second_owner(kept: Path) -> None:
    ports = (free_port(), free_port())
    arguments = ("warehouse", "--data-dir", str(kept), "--port")
    with running_steward(*arguments, str(ports[0]), cwd=kept.parent, name="owner") as owner:
        owner.wait_for(lambda: "ready" in owner.log)
        done = steward(*arguments, str(ports[1]), cwd=kept.parent)
        message, hint = refused(done, code=7)
        assert str(kept) in message
        assert str(owner.process.pid) in message
        assert "--data-dir" in hint
        assert owner.stop(signal.SIGTERM) == 0
    assert row_counts(kept) == {"node": 1}


@pytest.mark.parametrize("command", ["warehouse", "dashboard"])
def test_a_port_in_use(tmp_path: Path, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = steward(command, "--data-dir", str(tmp_path), "--port", str(port), cwd=tmp_path)
    message, hint = refused(done, code=12)
    assert str(port) in message
    assert "port" in hint


def test_a_disk_that_fills_up_while_rows_are_stored(server: ExporterServer, kept: Path) -> None:
    """A limit on file sizes stands for the full disk: the next rows do not fit any more."""
    server.answers["/many"] = exposition(
        "".join(gpu_text(host=f"n{n}", gpu_count=8) for n in range(2_000))
    )
    done = with_file_limit(
        *("collect", "--once", "--scrape", server.url("/many"), "--data-dir", str(kept)),
        limit_bytes=(kept / WAREHOUSE_FILE).stat().st_size + 65_536,
        cwd=kept.parent,
    )
    message, hint = refused(done, code=6)
    assert str(kept) in message
    assert hint
    assert row_counts(kept) == {"node": 1}


def test_a_full_disk_under_the_output(kept: Path) -> None:
    target = kept.parent / "out" / "rows.csv"
    target.parent.mkdir()
    target.write_text("the old result\n", encoding="utf-8")
    done = with_file_limit(
        *("sql", "select range as n from range(20000)", "--format", "csv"),
        *("--output", str(target), "--data-dir", str(kept)),
        limit_bytes=32_768,
        cwd=kept.parent,
    )
    message, hint = refused(done, code=4)
    assert str(target) in message
    assert "--output" in hint
    assert target.read_text(encoding="utf-8") == "the old result\n"
    assert list(target.parent.iterdir()) == [target]


def with_file_limit(
    *arguments: str, limit_bytes: int, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run one command in which no file may grow beyond the limit."""
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit_bytes), *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
