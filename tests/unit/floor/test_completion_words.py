"""Completion: the right words at each place, in the shell itself too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steward.catalogue import offers
from steward.completion import SCRIPTS, words
from steward.main import main

SHARED = ["--config", "--data-dir", "--help", "--log-format", "--log-level"]


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        pytest.param(["comp"], ["completion"], id="a command"),
        pytest.param(["--v"], ["--version"], id="a flag of the front door"),
        pytest.param(["settings", ""], ["schema", "show"], id="an action"),
        pytest.param(["settings", "sh"], ["show"], id="part of an action"),
        pytest.param(["settings", "show", "--"], sorted([*SHARED, "--format"]), id="flags"),
        pytest.param(["settings", "show", "--form"], ["--format"], id="part of a flag"),
        pytest.param(["settings", "show", "--format", ""], ["json", "table"], id="its choices"),
        pytest.param(["settings", "show", "--config", ""], [], id="a path is the shell's"),
        pytest.param(["settings", "schema", "--format", "m"], ["markdown"], id="of that action"),
        pytest.param(["try", "w"], ["well"], id="a positional's choices"),
        pytest.param(["try", "well", "--colour", ""], ["green", "red"], id="of another room"),
        pytest.param(["completion", "--"], SHARED, id="hidden flags stay hidden"),
        pytest.param(["xyzzy", ""], [], id="no such command"),
        pytest.param(["absent", ""], [], id="a command that cannot load"),
    ],
)
def test_words(typed: list[str], expected: list[str]) -> None:
    assert words(typed) == expected


@pytest.mark.parametrize("typed", [[], [""]])
def test_every_command_is_offered_first(typed: list[str]) -> None:
    assert words(typed) == sorted([*offers(), "--help", "--version"])


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_the_script_is_printed(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    assert "steward completion --words" in capsys.readouterr().out


def test_without_a_shell_it_asks_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    assert "hint: name one of bash, fish, zsh" in capsys.readouterr().err


def test_words_are_offered_even_with_faulty_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_LOG_LEVEL", "loud")

    assert main(["completion", "--words", "settings", "show", "--form"]) == 0
    assert capsys.readouterr().out == "--format\n"


@pytest.fixture
def command_folder(tmp_path: Path) -> Path:
    """Return a folder with the command ``steward`` of this very Python."""
    command = tmp_path / "steward"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m steward "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["steward", "comp"], ["completion"]),
        (["steward", "settings", ""], ["schema", "show"]),
        (["steward", "settings", "show", "--format", "j"], ["json"]),
        (["steward", "settings", "show", "--config", ""], []),
    ],
)
def test_bash_completes(command_folder: Path, line: list[str], expected: list[str]) -> None:
    program = (
        'eval "$(steward completion bash)"\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        "_steward steward\n"
        '[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", *line],
        env={**os.environ, "PATH": f"{command_folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert (done.stdout.splitlines(), done.stderr) == (expected, "")
