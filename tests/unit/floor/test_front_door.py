"""The front door: help, version, exit codes and one clear error, whatever a command does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from steward.catalogue import extras_by_package, load_command, missing_part, offers
from steward.front import GROUPS, grouped
from steward.main import main
from steward.version import __version__

HEAVY = {"duckdb", "polars", "pyarrow", "numpy", "sqlalchemy", "streamlit", "httpx", "rich"}


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error."""
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_help_names_every_command_once_under_a_heading(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    code, out, err = told(capsys, *arguments)
    listed = re.findall(r"^  ([a-z]+) {2,}\S", out.partition("Examples:")[0], re.MULTILINE)

    assert (code, err) == (0, "")
    assert sorted(listed) == sorted(offers())
    assert max(map(len, out.splitlines())) <= 100


def test_every_own_command_has_a_heading() -> None:
    assert set(grouped()) <= set(GROUPS)


@pytest.mark.parametrize("name", sorted(offers()))
def test_a_summary_is_one_short_line(name: str) -> None:
    command = load_command(name)

    assert command.name == name
    assert command.summary[0].isupper()
    assert not command.summary.endswith(".")
    assert len(command.summary) <= 85


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert told(capsys, flag) == (0, f"steward {__version__}\n", "")


@pytest.mark.usefixtures("room")
def test_a_command_gets_settings_and_clock(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "try", "well") == (0, "well at 8420 UTC\n", "")


@pytest.mark.usefixtures("room")
def test_a_flag_named_like_a_setting_is_the_last_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_WAREHOUSE_PORT", "1")

    assert told(capsys, "try", "well", "--port", "2") == (0, "well at 2 UTC\n", "")


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        pytest.param(
            ["try", "clear"],
            5,
            "error: target a:9400 is down\nhint: start it\n",
            id="a failure that was foreseen",
        ),
        pytest.param(
            ["try", "unforeseen"],
            1,
            "error: unexpected ZeroDivisionError: division by zero\n"
            "hint: this is a fault in steward; repeat with --log-level debug to see where\n",
            id="a failure that was not",
        ),
        pytest.param(["try", "ctrl-c"], 130, "", id="Ctrl-C"),
        pytest.param(["try", "own"], 42, "", id="a code of its own"),
        pytest.param(
            ["try", "part"],
            13,
            "error: the Python module streamlit_that_is_not_there is not installed\n"
            "hint: install gpu-steward again: it needs that module\n",
            id="a part missing while it runs",
        ),
        pytest.param(
            ["absent"],
            13,
            "error: the Python module steward_test_room_without_module is not installed\n"
            "hint: install gpu-steward again: it needs that module\n",
            id="a part missing when it loads",
        ),
        pytest.param(
            ["try", "sideways"],
            2,
            "error: argument how: invalid choice: 'sideways'",
            id="an argument that does not fit",
        ),
        pytest.param(
            ["try", "well", "--colr", "red"],
            2,
            "error: unrecognized arguments: --colr red\nhint: see `steward try --help`\n",
            id="an unknown flag",
        ),
        pytest.param(
            ["try", "well", "--port", "70000"],
            3,
            "error: --port must be at most 65535, not 70000\n"
            "hint: `steward settings schema` describes every setting\n",
            id="a wrong setting",
        ),
        pytest.param(
            ["tri"],
            2,
            "error: there is no command 'tri'\nhint: did you mean `steward try`?\n",
            id="nearly a command",
        ),
        pytest.param(
            ["xyzzy"],
            2,
            "error: there is no command 'xyzzy'\nhint: see `steward --help`\n",
            id="no command at all",
        ),
        pytest.param(
            ["--data-dir", "/x", "try"],
            2,
            "error: --data-dir stands before the command\n",
            id="a flag before the command",
        ),
        pytest.param(
            ["odd"],
            1,
            "error: unexpected TypeError: steward_test_room:NOT_A_COMMAND is not a Command\n",
            id="an entry point that offers no command",
        ),
    ],
)
def test_failures(
    capsys: pytest.CaptureFixture[str], *, arguments: list[str], code: int, error: str
) -> None:
    ended, out, err = told(capsys, *arguments)

    assert (ended, out, err[: len(error)]) == (code, "", error)
    assert "Traceback" not in err
    assert err.count("error:") == err.count("hint:") == int(bool(error))


@pytest.mark.usefixtures("room")
def test_debug_shows_where_it_happened(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = told(capsys, "try", "unforeseen", "--log-level", "debug")

    assert "Traceback" in err
    assert "steward_test_room.py" in err


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("arguments", [("try", "--help"), ("help", "try")])
def test_help_of_a_command(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    code, out, _ = told(capsys, *arguments)

    assert code == 0
    assert "usage: steward try" in out
    assert "Try something." in out
    assert "--data-dir DIR" in out


@pytest.mark.usefixtures("room")
def test_a_command_that_cannot_load_is_listed_as_unavailable(
    capsys: pytest.CaptureFixture[str], room: Path
) -> None:
    entry_points = room / "steward_test_room-1.0.dist-info" / "entry_points.txt"
    kept = [line for line in entry_points.read_text().splitlines() if not line.startswith("odd")]
    entry_points.write_text("\n".join(kept))
    offers.cache_clear()
    _, out, _ = told(capsys, "--help")

    assert re.search(r"^More:$", out, re.MULTILINE)
    assert re.search(r"^  absent +\(unavailable: the Python module steward_test", out, re.MULTILINE)
    assert re.search(r"^  try +Try something$", out, re.MULTILINE)


def test_a_missing_extra_is_named() -> None:
    assert extras_by_package()["streamlit"] == "dashboard"
    error = missing_part(ModuleNotFoundError("no", name="streamlit.testing"))

    assert "'dashboard' is not installed" in error.message
    assert "pip install 'gpu-steward[dashboard]'" in error.hint


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )


def test_help_of_one_command_imports_no_other_room() -> None:
    done = run_python(
        "import sys; from steward.main import main; main(['settings', '--help'])\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = set(re.findall(r"'(\w+)'", done.stdout.splitlines()[-1]))

    assert loaded & (HEAVY | {"collector", "sql", "analytics", "enforcer", "dashboard"}) == set()


def test_a_reader_that_goes_away_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "steward", "settings", "schema"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a full disk to test on")
def test_a_full_disk_behind_standard_output_is_one_clear_error() -> None:
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "steward", "settings", "schema"],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        "error: cannot write standard output: No space left on device",
        "hint: free some space, or name another place with --output",
    ]
