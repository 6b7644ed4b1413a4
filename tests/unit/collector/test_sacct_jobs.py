"""What Slurm's accounting text means: jobs, attempts, tasks, components, and every fault."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from collector.backfill.sacct.jobs import Job, jobs_of
from collector.backfill.sacct.lines import read_sacct
from collector.backfill.sacct.rows import (
    UNEVEN,
    Row,
    allocation_rows,
    transition_rows,
    workload_rows,
)
from collector.backfill.sacct.values import zone_named
from steward.errors import InputError, UsageError
from tests.support.sacct_texts import (
    CANCELLED,
    COLUMNS,
    DONE,
    GIVEN,
    PENDING,
    RUNNING,
    STEP,
    sacct_file,
    sacct_text,
)

Fields = Mapping[str, str]


def jobs(folder: Path, *lines: Fields, zone: str | None = None) -> dict[str, Job]:
    """Return the jobs of a text with these lines."""
    text = read_sacct(sacct_file(folder, *lines))
    return jobs_of(text, zone=zone_named(zone)).jobs


def held(job: Job) -> list[Row]:
    """Return a job's allocations."""
    return list(allocation_rows(job, cluster="c"))


def transitions(job: Job) -> list[tuple[str, int, str, str | None]]:
    """Return a job's transitions: time of day, attempt, word, reason."""
    return [
        (f"{row['occurred_at']:%H:%M}", row["attempt"], row["transition"], row["reason"])
        for row in transition_rows(job, cluster="c")
    ]


def test_a_job_that_ran_to_its_end(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, DONE, STEP).values()
    assert transitions(job) == [
        ("10:00", 1, "created", None),
        ("10:05", 1, "scheduled", None),
        ("10:05", 1, "started", None),
        ("12:05", 1, "finished", "COMPLETED"),
    ]
    (workload,) = workload_rows(job, cluster="c")
    assert workload == {
        "observed_at": datetime(2026, 5, 1, 10, 5, tzinfo=UTC),
        "cluster": "c",
        "workload_uid": "slurm/100",
        "kind": "SlurmJob",
        "namespace": None,
        "name": "train",
        "tenant_id": "vision",
        "owner": "ann",
        "queue": "gpu",
        "priority_class": "normal",
        "priority": 4294,
        "cpu_milli": 16_000,
        "memory_bytes": 64 * 2**30,
        "gpu_count": 4,
        "gpu_milli": 1_000,
        "gpu_models": "a100",
        "source": "sacct",
    }
    assert [(row["node"], row["device_uuid"], row["conflict"]) for row in held(job)] == [
        ("gpu001", "gpu001/slurm-100-0", None),
        ("gpu001", "gpu001/slurm-100-1", None),
        ("gpu002", "gpu002/slurm-100-2", None),
        ("gpu002", "gpu002/slurm-100-3", None),
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(PENDING, [("10:00", "created", None)], id="still waiting"),
        pytest.param(
            CANCELLED,
            [("10:00", "created", None), ("11:00", "finished", "CANCELLED")],
            id="cancelled while waiting",
        ),
        pytest.param(
            {**CANCELLED, "Start": CANCELLED["End"]},
            [("10:00", "created", None), ("11:00", "finished", "CANCELLED")],
            id="cancelled while waiting, as older versions print it: Start is End",
        ),
        pytest.param(
            RUNNING,
            [("10:00", "created", None), ("10:05", "scheduled", None), ("10:05", "started", None)],
            id="running",
        ),
        pytest.param(
            {**PENDING, "Start": "2026-05-01T19:00:00"},
            [("10:00", "created", None)],
            id="waiting, with the start that the scheduler expects",
        ),
        pytest.param(
            {**PENDING, "Eligible": "2026-05-01T10:03:00"},
            [("10:00", "created", None), ("10:03", "admitted", "eligible")],
            id="waited for another job first",
        ),
    ],
)
def test_what_has_not_happened_is_not_told(
    fields: Fields, expected: list[tuple[str, str, str | None]], tmp_path: Path
) -> None:
    (job,) = jobs(tmp_path, fields).values()
    assert [(at, word, why) for at, _, word, why in transitions(job)] == expected


REQUEUED = (
    {**DONE, "State": "PREEMPTED", "End": "2026-05-01T10:30:00"},
    {
        **DONE,
        "State": "NODE_FAIL",
        "Submit": "2026-05-01T10:30:00",
        "Start": "2026-05-01T10:40:00",
        "End": "2026-05-01T11:00:00",
    },
    {
        **DONE,
        "Submit": "2026-05-01T11:00:00",
        "Start": "2026-05-01T11:10:00",
        "End": "2026-05-01T12:00:00",
    },
)


@pytest.mark.parametrize("restarts", [("0", "1", "2"), ("", "", ""), ("0", "0", "0")])
def test_each_requeue_is_an_attempt_with_its_own_wait(
    restarts: tuple[str, str, str], tmp_path: Path
) -> None:
    lines = [{**line, "Restarts": n} for line, n in zip(REQUEUED, restarts, strict=True)]
    (job,) = jobs(tmp_path, *lines).values()
    assert transitions(job) == [
        ("10:00", 1, "created", None),
        ("10:05", 1, "scheduled", None),
        ("10:05", 1, "started", None),
        ("10:30", 1, "preempted", "PREEMPTED"),
        ("10:30", 2, "requeued", None),
        ("10:40", 2, "scheduled", None),
        ("10:40", 2, "started", None),
        ("11:00", 2, "evicted", "NODE_FAIL"),
        ("11:00", 3, "requeued", None),
        ("11:10", 3, "scheduled", None),
        ("11:10", 3, "started", None),
        ("12:00", 3, "finished", "COMPLETED"),
    ]
    assert len(held(job)) == 12


def test_without_duplicates_restarts_tell_which_attempt_is_seen(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, {**REQUEUED[2], "Restarts": "2"}).values()
    assert [(attempt, word) for _, attempt, word, _ in transitions(job)] == [
        (3, "requeued"),
        (3, "scheduled"),
        (3, "started"),
        (3, "finished"),
    ]


def test_tasks_of_an_array_are_jobs(tmp_path: Path) -> None:
    found = jobs(
        tmp_path,
        {**DONE, "JobID": "102_7"},
        {**STEP, "JobID": "102_7.0"},
        {**PENDING, "JobID": "102_[8-9,20-24:2%2]"},
    )
    assert list(found) == ["102_7", "102_8", "102_9", "102_20", "102_22", "102_24"]


def test_a_list_of_tasks_that_was_cut_short_is_one_job(tmp_path: Path) -> None:
    text = read_sacct(sacct_file(tmp_path, {**PENDING, "JobID": "102_[1,3,5,7,...]"}))
    found = jobs_of(text, zone=UTC)
    assert list(found.jobs) == ["102_[1,3,5,7,...]"]
    assert found.cut_array_count == 1


def test_components_of_a_job_count_together(tmp_path: Path) -> None:
    second = {
        **DONE,
        "JobID": "1853+1",
        "AllocTRES": "cpu=4,gres/gpu:l40=1,gres/gpu=1,mem=8G",
        "NodeList": "l1",
        "End": "2026-05-01T12:06:00",
    }
    (job,) = jobs(tmp_path, {**DONE, "JobID": "1853+0"}, second).values()
    (run,) = job.runs
    assert (job.uid, run.asked.gpu_count, run.asked.gpu_models) == ("1853", 5, "a100|l40")
    assert run.ended_at == datetime(2026, 5, 1, 12, 6, tzinfo=UTC)
    nodes = [row["node"] for row in held(job)]
    assert nodes == ["gpu001", "gpu001", "gpu002", "gpu002", "l1"]


@pytest.mark.parametrize(
    ("tres", "gpu_count", "models"),
    [
        pytest.param("cpu=1,mem=1G", 0, None, id="none: zero GPUs"),
        pytest.param("cpu=1,gres/gpu=0", 0, None, id="zero said"),
        pytest.param("cpu=1,gres/gpu:a100=2,gres/gpu:h100=1", 3, "a100|h100", id="typed only"),
        pytest.param("gres/gpu=3,gres/gpu:a100=2", 3, "a100", id="the plain count is the total"),
        pytest.param("gres/gpu:a100_1g.5gb=1,gres/gpu=1", 1, "a100_1g.5gb", id="a MIG instance"),
        pytest.param("cpu=1,gres/gpumem=80G,gres/gpuutil=30", 0, None, id="usage is no count"),
    ],
)
def test_gpus_are_counted_once(
    tres: str, gpu_count: int, *, models: str | None, tmp_path: Path
) -> None:
    (job,) = jobs(tmp_path, {**DONE, "AllocTRES": tres, "ReqTRES": tres}).values()
    asked = job.runs[0].asked
    assert (asked.gpu_count, asked.gpu_models) == (gpu_count, models)


def test_unknown_resources_are_null_and_not_zero(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, {**DONE, "AllocTRES": "", "ReqTRES": ""}).values()
    (workload,) = workload_rows(job, cluster="c")
    unknown = ("gpu_count", "gpu_milli", "cpu_milli", "memory_bytes", "gpu_models")
    assert [workload[name] for name in unknown] == [None] * 5
    assert not held(job)


@pytest.mark.parametrize(
    ("count", "expected", "conflict"),
    [
        pytest.param(1, [1, 0], UNEVEN, id="one GPU of two nodes"),
        pytest.param(2, [1, 1], None, id="one each"),
        pytest.param(3, [2, 1], UNEVEN, id="three: the first has one more, and it is said"),
    ],
)
def test_gpus_are_shared_out_among_nodes(
    count: int, expected: list[int], *, conflict: str | None, tmp_path: Path
) -> None:
    (job,) = jobs(tmp_path, {**DONE, "AllocTRES": f"gres/gpu={count}"}).values()
    rows = held(job)
    nodes = [row["node"] for row in rows]
    assert [nodes.count("gpu001"), nodes.count("gpu002")] == expected
    assert {row["conflict"] for row in rows} == {conflict}


@pytest.mark.parametrize(
    ("listed", "nodes"),
    [
        ("n1", ["n1"]),
        ("n1,n2", ["n1", "n2"]),
        ("node[001-003,007]", ["node001", "node002", "node003", "node007"]),
        ("a[9-11]-ib,b", ["a9-ib", "a10-ib", "a11-ib", "b"]),
        ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
        ("None assigned", []),
        ("", []),
    ],
)
def test_lists_of_nodes_are_expanded(listed: str, nodes: list[str], tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, {**RUNNING, "NodeList": listed}).values()
    assert list(job.runs[0].parts[0].nodes) == nodes


@pytest.mark.parametrize(
    ("zone", "text", "hour"),
    [
        pytest.param(None, "2026-05-01T10:00:00", 10, id="UTC where no zone is named"),
        pytest.param("Europe/Berlin", "2026-05-01T10:00:00", 8, id="summer time"),
        pytest.param("Europe/Berlin", "2026-01-01T10:00:00", 9, id="winter time"),
        pytest.param(
            "Europe/Berlin", "2026-10-25T02:30:00", 0, id="an hour that comes twice: the first"
        ),
        pytest.param("Asia/Shanghai", "2026-05-01T10:00:00", 2, id="east"),
        pytest.param("Asia/Shanghai", "2026-05-01T10:00:00+00:00", 10, id="a zone of its own wins"),
        pytest.param("Asia/Shanghai", "1777629600", 10, id="seconds since 1970"),
    ],
)
def test_times_are_local(zone: str | None, text: str, *, hour: int, tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, {**PENDING, "Submit": text}, zone=zone).values()
    assert job.runs[0].submitted_at.hour == hour


def test_no_such_zone() -> None:
    with pytest.raises(UsageError, match="'Mars/Base' is no time zone"):
        zone_named("Mars/Base")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"JobID": "abc"}, "column JobID is no job id: 'abc'"),
        ({"JobID": "1_[x]"}, "column JobID has no list of tasks"),
        ({"JobID": "1_[0-9999999]"}, "column JobID has more than 1,000,000 tasks"),
        ({"State": "done"}, "column State is no state of a job: 'done'"),
        ({"Submit": "Unknown"}, "column Submit is blank"),
        ({"Submit": "yesterday"}, "column Submit is no time: 'yesterday'"),
        ({"Submit": "99"}, "column Submit is no time of a job"),
        ({"End": "2026-05-01T10:04:59"}, "column End is before Start"),
        ({"AllocTRES": "cpu"}, "column AllocTRES is no list of resources"),
        ({"AllocTRES": "gres/gpu=many"}, "column AllocTRES has a count that is none"),
        ({"AllocTRES": "mem=lots"}, "column AllocTRES has an amount that is no number"),
        ({"NodeList": "n[1-"}, "column NodeList is no list of nodes"),
        ({"NodeList": "n[a-b]"}, "column NodeList has no range of numbers"),
        ({"NodeList": "n[1-900000]"}, "column NodeList has more than 100,000 nodes"),
        ({"Priority": "high"}, "column Priority is no whole number"),
    ],
)
def test_a_bad_field_is_told_with_line_and_column(
    fields: Fields, told: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        jobs(tmp_path, DONE, {**DONE, "JobID": "101", **fields})
    assert error.value.message.startswith(f"{tmp_path / 'sacct.txt'}:3: {told}")
    assert "nothing was stored" in error.value.hint


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("\n \n", "is empty", id="blank"),
        pytest.param("100|COMPLETED|2026\n", "no header line", id="--noheader"),
        pytest.param("JobID|State\n1|X\n", "missing Submit, Start, End", id="columns missing"),
        pytest.param("JobID|" + "|".join(COLUMNS) + "\n", "repeated columns: JobID", id="repeated"),
        pytest.param(
            "       JobID    JobName \n------------ ----------\n", "fixed width", id="for people"
        ),
        pytest.param("<html>\n", "missing JobID", id="HTML"),
        pytest.param(b"JobID|Submit\xff\n", "not UTF-8", id="bytes"),
    ],
)
def test_what_is_no_accounting_text_is_refused(
    text: str | bytes, told: str, tmp_path: Path
) -> None:
    file = tmp_path / "sacct.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=told):
        read_sacct(file)


def test_separators_in_a_job_name_are_understood_where_they_can_be(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, {**DONE, "JobName": "a|b||c"}).values()
    assert job.name == "a|b||c"
    assert job.account == "vision"
    columns = (*COLUMNS, "Comment")
    file = tmp_path / "two.txt"
    file.write_text(sacct_text([{**DONE, "JobName": "a|b"}], columns=columns))
    with pytest.raises(
        InputError, match=r"two.txt:2: has 18 fields where the header has 17"
    ) as told:
        list(read_sacct(file).lines())
    assert "leave JobName" in told.value.hint


def test_a_cut_line_is_told(tmp_path: Path) -> None:
    file = tmp_path / "cut.txt"
    file.write_text(sacct_text([DONE]) + "101|train|ann\n")
    with pytest.raises(InputError, match=r"cut.txt:3: has 3 fields"):
        list(read_sacct(file).lines())


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_parsable_and_gzip_read_the_same(ending: str, tmp_path: Path) -> None:
    plain = jobs(tmp_path, DONE)
    file = tmp_path / "trailing.txt.gz"
    text = sacct_text([DONE], is_trailing=True).replace("\n", ending)
    file.write_bytes(gzip.compress(text.encode()))
    assert jobs_of(read_sacct(file), zone=UTC).jobs == plain
    file.write_text(sacct_text([DONE], is_trailing=True).rstrip("|\n") + "|x\n")
    with pytest.raises(InputError, match="does not end with the separator"):
        list(read_sacct(file).lines())


def test_a_job_told_twice_is_one(tmp_path: Path) -> None:
    earlier = {**RUNNING, "AllocTRES": GIVEN}
    for lines in ((earlier, DONE), (DONE, earlier), (DONE, DONE)):
        (job,) = jobs(tmp_path, *lines).values()
        words = [word for _, _, word, _ in transitions(job)]
        assert words == ["created", "scheduled", "started", "finished"]
