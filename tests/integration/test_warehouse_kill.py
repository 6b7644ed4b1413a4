"""Ten times ``kill -9`` of the owner and of a writer: what was acknowledged is there, once."""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sql.client import connect
from sql.warehouse import open_embedded
from steward.errors import WarehouseError
from steward.ids import BatchId
from tests.support.warehouse_rows import samples
from tests.support.warehouse_server import Owner, start_owner

ROUND_COUNT = 10
BATCH_ROWS = 1_000
ACKNOWLEDGED_COUNT = 5
RESTART_LIMIT_S = 2.0
"""From the start of the process to its first answer, for the median of the restarts."""
WRITER = """
import sys
from sql.client import connect
from tests.support.warehouse_rows import samples
label, url = sys.argv[1], sys.stdin.readline().strip()
warehouse = connect(url)
rows = samples(1000)
for number in range(1_000_000):
    batch_id = f"{label}-{number}"
    warehouse.append("device_sample", rows, batch_id=batch_id)
    print(batch_id, flush=True)
"""


def start_writer(label: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, label],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def killed_writer(writer: subprocess.Popen[str], url: str) -> list[str]:
    """Let the writer append, kill it in the middle, return what it saw acknowledged."""
    assert writer.stdin is not None
    assert writer.stdout is not None
    with writer:
        writer.stdin.write(f"{url}\n")
        writer.stdin.flush()
        seen = [writer.stdout.readline().strip() for _ in range(ACKNOWLEDGED_COUNT)]
        writer.kill()
        return seen + [line.strip() for line in writer.stdout if line.endswith("\n")]


def append_until_killed(owner: Owner, label: str) -> list[str]:
    """Append from here until the owner is killed under it; return what was acknowledged."""
    acknowledged: list[str] = []
    enough = threading.Event()

    def work() -> None:
        with closing(connect(owner.url)) as warehouse:
            try:
                for number in range(1_000_000):
                    batch_id = BatchId(f"{label}-{number}")
                    warehouse.append("device_sample", samples(BATCH_ROWS), batch_id=batch_id)
                    acknowledged.append(batch_id)
                    if len(acknowledged) == ACKNOWLEDGED_COUNT:
                        enough.set()
            except WarehouseError:
                return

    thread = threading.Thread(target=work)
    thread.start()
    assert enough.wait(timeout=30)
    owner.kill()
    thread.join(timeout=30)
    return acknowledged


@pytest.mark.slow
def test_what_was_acknowledged_survives_ten_kills(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    restarts_s: list[float] = []
    for number in range(ROUND_COUNT):
        owner = start_owner(tmp_path)
        restarts_s.append(owner.ready_after_s)
        writer = start_writer(f"writer-{number}")
        acknowledged += killed_writer(writer, owner.url)
        acknowledged += append_until_killed(owner, f"owner-{number}")
    with closing(open_embedded(tmp_path)) as warehouse:
        rows = warehouse.sql("select batch_id, row_count from append_batch").to_pylist()
        total = warehouse.sql("select count(*) as row_count from device_sample").to_pylist()
    stored = [row["batch_id"] for row in rows]
    sys.stdout.write(f"restarts, s: {[round(after_s, 2) for after_s in restarts_s]}\n")
    assert sorted(set(stored)) == sorted(stored)
    assert set(acknowledged) <= set(stored)
    assert len(acknowledged) >= ROUND_COUNT * 2 * ACKNOWLEDGED_COUNT
    assert total[0]["row_count"] == sum(row["row_count"] for row in rows)
    assert {row["row_count"] for row in rows} == {BATCH_ROWS}
    assert statistics.median(restarts_s[1:]) < RESTART_LIMIT_S
