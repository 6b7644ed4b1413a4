"""``steward enforce`` and ``steward audit`` as commands, as far as no cluster is needed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from steward.main import main


def run(folder: Path, *arguments: str) -> int:
    return main([*arguments, "--data-dir", str(folder)])


def test_freezing_is_told_recorded_and_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "enforce", "freeze", "--reason", "maintenance") == 0
    assert capsys.readouterr().out == "default: nothing acts\n"
    assert run(tmp_path, "enforce", "thaw", "--reason", "over", "--everywhere") == 0
    assert capsys.readouterr().out == "every cluster: acts are done again\n"
    assert run(tmp_path, "audit", "list", "--format", "json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["action"], row["subject_uid"]) for row in rows] == [
        ("thaw", "*"),
        ("freeze", "default"),
    ]


def test_an_audit_is_whole_until_a_word_in_it_is_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        run(tmp_path, "enforce", "freeze", "--reason", f"reason {number}")
    capsys.readouterr()
    assert run(tmp_path, "audit", "verify") == 0
    assert capsys.readouterr().out.startswith("3 rows, whole; head ")
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as state, state:
        state.execute("update audit set actor = 'somebody' where audit_id = 2")
    assert run(tmp_path, "audit", "verify") == 1
    assert capsys.readouterr().out == (
        "broken at audit 2: its words are not those that were sealed\n1 rows before it are whole\n"
    )


def test_rows_cut_off_at_the_end_show_against_a_head_that_was_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        run(tmp_path, "enforce", "freeze", "--reason", f"reason {number}")
    capsys.readouterr()
    run(tmp_path, "audit", "verify")
    head = capsys.readouterr().out.split()[-1]
    assert run(tmp_path, "audit", "verify", "--expect", head) == 0
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as state, state:
        state.execute("delete from audit where audit_id = 3")
    assert run(tmp_path, "audit", "verify") == 0
    assert run(tmp_path, "audit", "verify", "--expect", head) == 1


def test_an_empty_ledger_has_no_acts_and_an_empty_audit_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "enforce", "list") == 0
    assert run(tmp_path, "audit", "list") == 0
    assert run(tmp_path, "audit", "verify") == 0
    assert capsys.readouterr().out == (
        f"nothing was done yet\nnothing is recorded\n0 rows, whole; head {'0' * 64}\n"
    )


@pytest.mark.parametrize("part", ["plan", "doctor", "run", "undo"])
def test_without_a_named_cluster_the_setting_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    flags = {"run": ["--once"], "undo": ["--all"]}.get(part, [])
    assert run(tmp_path, "enforce", part, *flags) == 3
    assert "kubernetes.access" in capsys.readouterr().err


def test_permissions_are_printed_as_yaml_that_names_what_is_enabled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_ENFORCE_KINDS", "Deployment")
    assert run(tmp_path, "enforce", "rbac") == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [one["kind"] for one in documents] == [
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ]
    patched = [rule["resources"] for rule in documents[1]["rules"] if "patch" in rule["verbs"]]
    assert patched == [["deployments", "deployments/scale"]]


def test_a_workload_that_nobody_knows_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("enforce", "explain", "team/job", "--at", "2026-05-01T00:00:00Z")
    assert run(tmp_path, *flags) == 4
    assert "no workload 'team/job'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("", id="empty"),
        pytest.param("0" * 63, id="one digit less"),
        pytest.param("0" * 65, id="one digit more"),
        pytest.param("A" * 64, id="upper case"),
        pytest.param(f" {'0' * 63}", id="a blank"),
        pytest.param("\x1b[2J" + "0" * 60, id="an escape"),
    ],
)
def test_a_head_that_is_none_is_no_sign_of_removed_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], head: str
) -> None:
    assert run(tmp_path, "audit", "verify", f"--expect={head}") == 2
    told = capsys.readouterr().err
    assert "is no head of an audit" in told
    assert "\x1b" not in told
