"""What the doctor prints, its last sentence, its exit code, and the list of its codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from collector.doctor.codes import Code
from collector.doctor.diagnosis import Diagnosis
from collector.doctor.finding import (
    Finding,
    Severity,
    counted,
    fault,
    fine,
    gap,
    lasting,
    named,
    note,
    ordered,
)
from collector.doctor.report import as_json, print_diagnosis, printable
from collector.scrape import Reason

DOCUMENT = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text(encoding="utf-8")


def diagnosis(*findings: Finding, role: str | None = None) -> Diagnosis:
    return Diagnosis(
        findings=ordered(findings),
        target_count=4,
        device_count=32,
        cluster_role=role,
        binding_command=None if role is None else "kubectl create clusterrolebinding x",
    )


def unprofiled(*targets: str) -> list[Finding]:
    return [
        gap(Code.PROFILING_ABSENT, target, message="no profiling metrics", remedy="add them")
        for target in targets
    ]


def refused(target: str) -> Finding:
    return fault(Reason.REFUSED, target, message=f"{target}: connection refused", remedy="start it")


ODD = note(Code.NAMES_UNKNOWN, "a", message="3 metric names not used: x")
WELL = fine(Code.TARGET_COMPLETE, "a", message="8 devices")


def documented() -> dict[str, set[str]]:
    """Return the severities of each code as the document lists them."""
    word = "(?:fault|gap|note|fine)"
    row = re.compile(rf"^\| ((?:`\w+`(?:, )?)+) \| ({word}(?:, {word})*) \|", re.MULTILINE)
    return {
        code: set(severities.split(", "))
        for cells, severities in row.findall(DOCUMENT)
        for code in re.findall(r"`(\w+)`", cells)
    }


def test_the_document_lists_every_code_and_no_other() -> None:
    assert documented().keys() == {*map(str, Code), *map(str, Reason)}
    assert set().union(*documented().values()) == {*map(str, Severity)}


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        (code, severity)
        for code, severities in sorted(documented().items())
        for severity in sorted(severities & {"fault", "gap"})
    ],
)
def test_every_fault_and_gap_has_words_for_the_last_sentence(code: str, severity: str) -> None:
    one = Finding(code=code, severity=Severity(severity), subject="a", message="m", remedy="r")
    assert re.fullmatch(rf"1 {severity}: [\w' ,]+", diagnosis(one).conclusion)


@pytest.mark.parametrize(
    ("findings", "sentence", "exit_code"),
    [
        pytest.param([WELL], "nothing is missing: 4 targets with 32 devices", 0, id="fine"),
        pytest.param(
            [WELL, ODD],
            "nothing is missing: 4 targets with 32 devices (1 note beside)",
            0,
            id="a note",
        ),
        pytest.param(
            unprofiled("a", "b"),
            "1 gap: effective utilisation unknown on 2 of 4 targets",
            0,
            id="one gap on two targets",
        ),
        pytest.param(
            [
                *unprofiled("a", "b"),
                gap(Code.DISK_SHORT, "/", message="full", remedy="free it"),
                gap(Code.POWER_ABSENT, "a", message="none", remedy="add it"),
                ODD,
            ],
            "3 gaps: the disk is nearly full; power unknown on 1 of 4 targets; effective "
            "utilisation unknown on 2 of 4 targets (1 note beside)",
            0,
            id="three gaps",
        ),
        pytest.param(
            [refused("c"), fault(Reason.EMPTY, "d", message="", remedy=""), *unprofiled("a")],
            "1 fault and 1 gap: 2 of 4 targets cannot be read; effective utilisation unknown on "
            "1 of 4 targets",
            5,
            id="targets that cannot be read are one fault",
        ),
        pytest.param(
            [
                fault(Code.PERMISSION_MISSING, "c", message="pods", remedy="allow"),
                gap(Code.PERMISSION_MISSING, "c", message="jobs", remedy="allow"),
            ],
            "1 fault: permissions missing in the cluster",
            5,
            id="a fault that is a gap elsewhere is told once",
        ),
    ],
)
def test_the_last_sentence_and_the_exit_code(
    findings: list[Finding], sentence: str, exit_code: int
) -> None:
    found = diagnosis(*findings)
    assert (found.conclusion, found.exit_code) == (sentence, exit_code)


def printed(capsys: pytest.CaptureFixture[str], found: Diagnosis, form: str = "table") -> str:
    print_diagnosis(found, form=form)
    return capsys.readouterr().out


def test_the_worst_comes_first_and_the_sentence_last(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, diagnosis(WELL, ODD, *unprofiled("a"), refused("b")))
    places = [out.index(word) for word in ("FAULT", "GAP", "NOTE", "FINE", "1 fault and 1 gap")]
    assert places == sorted(places)
    assert "b      connection refused  start it" in out


def test_many_targets_with_one_finding_are_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, diagnosis(*unprofiled(*(f"node{n:03}" for n in range(1_000)))))
    assert re.search(r"node000 +no profiling metrics +add them", out)
    assert [word in out for word in ("node002", "node003", "and 997 more")] == [True, False, True]


def test_many_messages_with_one_remedy_are_a_few_rows(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        note(Code.NODE_FROM_ADDRESS, f"t{n}", message=f"called {n}", remedy="name it")
        for n in range(6)
    ]
    out = printed(capsys, diagnosis(*found))
    assert re.findall(r"called (\d)", out) == ["0", "1", "2"]
    assert re.search(r"and 3 more +much the same", out)
    assert out.count("name it") == 1


def test_the_role_is_printed_ready_to_apply(capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, diagnosis(WELL, role="kind: ClusterRole\nrules: []\n"))
    assert "\nkind: ClusterRole\nrules: []\n" in out
    assert "and its binding: kubectl create clusterrolebinding x\n" in out


def test_what_could_move_a_terminals_cursor_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = note(Code.LINES_DROPPED, "a", message="line \x1b[2J[red]\u202e end")
    out = printed(capsys, diagnosis(hostile))
    assert "line \\x1b[2J[red]\\u202e end" in out
    assert "\x1b" not in out
    assert printable("plain 日本 \n text") == "plain 日本 \n text"


def test_json_has_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    found = diagnosis(refused("b"), *unprofiled(*(f"n{n}" for n in range(5))), WELL)
    content = json.loads(printed(capsys, found, "json"))
    assert content == json.loads(as_json(found))
    assert content["counts"] == {"fault": 1, "gap": 5, "note": 0, "fine": 1}
    assert (content["exit_code"], len(content["findings"])) == (5, 7)
    assert content["findings"][0] == {
        "code": "connection_refused",
        "severity": "fault",
        "subject": "b",
        "message": "b: connection refused",
        "remedy": "start it",
    }


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["b", "a", "b"], "a, b"),
        ("edcba", "a, b, c, d, e"),
        ("fedcba", "a, b, c, d, e and 1 more"),
    ],
)
def test_names_in_a_sentence(names: Iterable[str], text: str) -> None:
    assert named(names) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods"), (1_000, "1,000 pods")]
)
def test_counts_in_a_sentence(count: int, text: str) -> None:
    assert counted(count, "pod") == text


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0, "0 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
        (1e9, "11,574 days"),
    ],
)
def test_lengths_of_time_in_a_sentence(duration_s: float, text: str) -> None:
    assert lasting(duration_s) == text
