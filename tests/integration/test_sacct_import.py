"""``steward import sacct`` into a real warehouse: whole, once, and nothing of what is broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from collector.backfill.sacct import news
from sql.access import open_warehouse
from steward.main import main
from steward.settings import Settings
from tests.support.collector_process import environment
from tests.support.sacct_texts import (
    CANCELLED,
    DONE,
    PENDING,
    RUNNING,
    STEP,
    sacct_file,
    sacct_text,
)

pytestmark = pytest.mark.slow

TABLES = ("workload", "workload_transition", "allocation")


def rows(folder: Path, table: str, *, cluster: str = "default") -> list[dict[str, object]]:
    """Return a table's rows of a cluster."""
    with open_warehouse(Settings(data_dir=folder)) as warehouse:
        found = pa.table(warehouse.sql(f"select * from {table} order by all"))  # noqa: S608 - names of this file
    return [row for row in found.to_pylist() if row["cluster"] == cluster]


def counts(folder: Path) -> dict[str, int]:
    """Return the rows of each table."""
    return {name: len(rows(folder, name)) for name in TABLES}


def run(*arguments: str, folder: Path) -> int:
    """Run the command as a person would."""
    return main(["import", "sacct", *arguments, "--data-dir", str(folder)])


def numbered(job: Mapping[str, str], number: int) -> dict[str, str]:
    """Return the job under another number, submitted as many minutes later."""
    return {
        **job,
        "JobID": str(number),
        **{
            name: (job[name][:14] + f"{number % 60:02d}" + job[name][16:])
            for name in ("Submit", "Eligible")
        },
        "Start": job["Start"].replace("10:05", "13:05")
        if "10:05" in job["Start"]
        else job["Start"],
        "End": job["End"].replace("12:05", "14:05") if "12:05" in job["End"] else job["End"],
    }


def test_a_text_is_stored_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = sacct_file(tmp_path, DONE, STEP, {**CANCELLED, "JobID": "101"})
    folder = tmp_path / "w"
    assert run(str(file), folder=folder) == 0
    told = capsys.readouterr()
    assert "times are read as UTC" in told.err
    assert "1 steps belong to their jobs" in told.out
    assert counts(folder) == {"workload": 2, "workload_transition": 6, "allocation": 4}
    assert run(str(file), "--time-zone", "UTC", folder=folder) == 0
    told = capsys.readouterr()
    assert "already imported" in told.out
    assert "read as UTC" not in told.err
    assert counts(folder)["workload_transition"] == 6


def test_overlapping_texts_store_each_job_once(tmp_path: Path) -> None:
    jobs = [numbered(DONE, number) for number in range(200, 240)]
    may, june = (
        sacct_file(tmp_path, *jobs[:30], name="may"),
        sacct_file(tmp_path, *jobs[20:], name="june"),
    )
    apart, whole = tmp_path / "apart", tmp_path / "whole"
    for file in (may, june, may):
        assert run(str(file), folder=apart) == 0
    assert run(str(sacct_file(tmp_path, *jobs, name="all")), folder=whole) == 0
    for table in TABLES:
        assert rows(apart, table) == rows(whole, table)


def test_a_job_seen_waiting_then_running_then_ended_is_one_life(tmp_path: Path) -> None:
    for number, job in enumerate((PENDING, RUNNING, DONE, RUNNING)):
        assert run(str(sacct_file(tmp_path, job, name=f"{number}")), folder=tmp_path / "w") == 0
    transitions = [str(row["transition"]) for row in rows(tmp_path / "w", "workload_transition")]
    assert sorted(transitions) == ["created", "finished", "scheduled", "started"]
    held = rows(tmp_path / "w", "allocation")
    assert [row["ended_at"] is None for row in held].count(True) == 4
    with open_warehouse(Settings(data_dir=tmp_path / "w")) as warehouse:
        started = held[0]["started_at"]
        assert isinstance(started, datetime)
        period = {"from_at": started, "until_at": started + timedelta(hours=9)}
        history = pa.table(warehouse.query("allocation_history", period)).to_pylist()
    assert len(history) == 4
    assert all(row["ended_at"] is not None for row in history)


@pytest.mark.parametrize("batch_rows", [1, 7])
def test_the_size_of_batches_does_not_matter(
    batch_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [numbered(DONE, number) for number in range(200, 210)]
    file = sacct_file(tmp_path, *jobs)
    run(str(file), folder=tmp_path / "whole")
    # The size is a constant of the module; thousands of jobs would only be slower.
    monkeypatch.setattr(news, "BATCH_ROWS", batch_rows)
    for _ in range(2):
        assert run(str(file), folder=tmp_path / "small") == 0
    for table in TABLES:
        assert rows(tmp_path / "small", table) == rows(tmp_path / "whole", table)


def test_a_broken_last_line_stores_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = sacct_file(tmp_path, DONE, {**DONE, "JobID": "101", "End": "soon"})
    assert run(str(file), folder=tmp_path / "w") == 4
    told = capsys.readouterr().err
    assert f"{file}:3: column End is no time: 'soon'" in told
    assert "nothing was stored" in told
    assert not (tmp_path / "w").exists()


def test_jobs_of_two_clusters_are_not_mixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ("Cluster", *DONE)
    file = tmp_path / "two"
    file.write_text(
        sacct_text([{**DONE, "Cluster": "a"}, {**DONE, "Cluster": "b"}], columns=columns)
    )
    assert run(str(file), folder=tmp_path / "w") == 4
    assert "jobs of 2 clusters (a, b)" in capsys.readouterr().err
    file.write_text(sacct_text([{**DONE, "Cluster": "a"}], columns=columns))
    assert run(str(file), "--cluster", "north", folder=tmp_path / "w") == 0
    assert len(rows(tmp_path / "w", "workload", cluster="north")) == 1
    assert run(str(file), "--cluster", "south", folder=tmp_path / "w") == 0
    assert len(rows(tmp_path / "w", "workload", cluster="south")) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["absent"], 4, "cannot read absent"),
        ([], 2, "FILE"),
        (["f", "--time-zone", "Mars/Base"], 2, "is no time zone"),
    ],
)
def test_a_wrong_command_line(
    arguments: list[str],
    code: int,
    *,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*arguments, folder=tmp_path / "w") == code
    assert told in capsys.readouterr().err


def test_a_header_alone_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(sacct_file(tmp_path)), folder=tmp_path / "w") == 4
    assert "a header and no jobs" in capsys.readouterr().err


def test_standard_input_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    done = subprocess.run(
        [sys.executable, "-m", "steward", "import", "sacct", "-", "--data-dir", str(folder)],
        input=sacct_text([DONE]).encode(),
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert b"imported standard input: 1 jobs" in done.stdout
    assert len(rows(folder, "workload")) == 1
