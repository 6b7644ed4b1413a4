"""Collector and warehouse are killed again and again: no row twice, only a last moment lost."""

from __future__ import annotations

import random
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from sql.client import connect
from steward.errors import StewardError
from tests.support.collector_process import RunningSteward, free_port, running_steward
from tests.support.exporter_server import REQUEST_NUMBER, Answer, ExporterServer, exporter_server

pytestmark = pytest.mark.slow

KILL_COUNT = 3
SAMPLES_PER_HOLDER = 6
LOSABLE = 3
"""Samples of a node within a flush of 0.25 s and the moment in which it is written."""
WATTS = "select power_w::integer as n from device_sample"
FAILED = "select count(*) as n from scrape where not is_ok"
SCRAPES = "select count(*) as n, count(distinct scraped_at) as different from scrape"
HELD = "select pod, started_at, ended_at from allocation order by started_at, observed_at"


def text(holder: int) -> Answer:
    """Return a node's text; its power is the number of the request, its holder changes often."""
    labels = (
        'gpu="0",UUID="GPU-1",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="n1",'
        f'namespace="a",pod="p{holder}",container="c"'
    )
    lines = (
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 50",
        f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} @N@",
    )
    assert REQUEST_NUMBER == b"@N@"
    return Answer(body="\n".join((*lines, "")).encode())


def let_pass(running: RunningSteward, server: ExporterServer, sample_count: int) -> None:
    """Return after so many more scrapes, in which the holder changes."""
    until = server.requests["/n1"] + sample_count

    def is_past() -> bool:
        asked = server.requests["/n1"]
        server.answers["/n1"] = text(asked // SAMPLES_PER_HOLDER)
        return asked >= until

    running.wait_for(is_past)


@contextmanager
def warehouse(folder: Path, *, port: int, name: str) -> Iterator[RunningSteward]:
    arguments = ("warehouse", "--data-dir", str(folder / "owner"), "--port", str(port))
    with running_steward(*arguments, cwd=folder, name=name) as running:
        running.wait_for(lambda: bool(ask(port, SCRAPES)))
        yield running


def ask(port: int, statement: str) -> list[dict[str, object]]:
    """Return the rows; none while nothing answers."""
    with closing(connect(f"http://127.0.0.1:{port}")) as remote:
        try:
            return remote.sql(statement).to_pylist()
        except StewardError:
            return []


def test_nothing_is_doubled_or_lost_although_all_are_killed(tmp_path: Path) -> None:
    dice, port = random.Random(4), free_port()  # noqa: S311 - repeatable test input
    killed_at: list[int] = []
    with exporter_server({"/n1": text(0)}) as server, ExitStack() as owners:
        arguments = ["collect", "--scrape", server.url("/n1"), "--interval-s", "0.25"]
        arguments += ["--warehouse-url", f"http://127.0.0.1:{port}", "--data-dir", str(tmp_path)]
        for number in range(KILL_COUNT):
            with running_steward(*arguments, cwd=tmp_path, name=f"c{number}") as collector:
                let_pass(collector, server, dice.randrange(4, 12))
                if number % 2:
                    with warehouse(tmp_path, port=port, name=f"w{number}") as owner:
                        let_pass(collector, server, dice.randrange(1, 9))
                        owner.stop(signal.SIGKILL)
                collector.stop(signal.SIGKILL)
                killed_at.append(server.requests["/n1"])
        with running_steward(*arguments, cwd=tmp_path, name="last") as collector:
            let_pass(collector, server, 8)
            owners.enter_context(warehouse(tmp_path, port=port, name="w"))
            collector.wait_for(lambda: "warehouse answers again" in collector.log)
            assert collector.stop() == 0
            killed_at.append(server.requests["/n1"])
            assert "0 wait on disk" in collector.log
        check_samples(port, killed_at=killed_at)
        check_holders(port)


def check_samples(port: int, *, killed_at: list[int]) -> None:
    """Each sample is there once; what is missing was read just before a kill."""
    found = Counter(int(str(row["n"])) for row in ask(port, WATTS))
    assert set(found.values()) == {1}
    missing = set(range(1, killed_at[-1] + 1)) - set(found)
    losable = {end - back for end in killed_at for back in range(LOSABLE)}
    (failed,) = ask(port, FAILED)
    assert len(missing - losable) <= int(str(failed["n"])), "only a scrape that failed"
    (scrapes,) = ask(port, SCRAPES)
    assert scrapes["n"] == scrapes["different"]


def check_holders(port: int) -> None:
    """The intervals of the GPU follow each other, and the last one alone is open."""
    ends: defaultdict[tuple[object, object], object] = defaultdict(lambda: None)
    told: Counter[tuple[object, ...]] = Counter()
    for row in ask(port, HELD):
        ends[row["started_at"], row["pod"]] = row["ended_at"]
        told[row["started_at"], row["pod"], row["ended_at"]] += 1
    assert set(told.values()) == {1}
    intervals = sorted((start, end, pod) for (start, pod), end in ends.items() if end != start)
    assert [end is None for _, end, _ in intervals] == [False] * (len(intervals) - 1) + [True]
    for (_, end, _), (start, _, _) in pairwise(intervals):
        assert str(end) <= str(start)
    assert len({pod for _, _, pod in intervals}) > KILL_COUNT
