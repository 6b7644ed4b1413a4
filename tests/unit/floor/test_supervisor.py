"""``demo`` and ``up``: the right children in the right order, with real processes.

The commands themselves are replaced by one small program, since they are tested in their rooms;
what starts them is a constant of the module, hence the patch.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steward import supervisor
from steward.children import answers
from steward.main import main
from steward.settings import Settings, WarehouseSettings, resolve
from steward.supervisor import builder_environ, child_environ, client_environ, demo_data_dir
from tests.support.floor_children import wait_until, write_commands

URL = "http://127.0.0.1:9400/metrics"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty place where the commands are small programs and ports are free ones."""
    program = write_commands(tmp_path)
    monkeypatch.setattr(supervisor, "STEWARD", (sys.executable, str(program)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("STEWARD_WAREHOUSE_PORT", "0")
    monkeypatch.setenv("STEWARD_DASHBOARD_PORT", "0")
    return tmp_path


def started(place: Path) -> list[dict[str, object]]:
    """Return the children in the order they were started."""
    log = place / "started.jsonl"
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def names(place: Path) -> list[object]:
    """Return the names of the children in the order they were started."""
    return [each["name"] for each in started(place)] if (place / "started.jsonl").exists() else []


def test_demo_exit_builds_and_reports(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--exit", "--days", "2", "--seed", "3"]) == 0
    captured = capfd.readouterr()

    first, second, third, fourth = started(place)
    assert (first["name"], first["arguments"]) == (
        "import",
        ["simulated", "--days", "2", "--seed", "3"],
    )
    assert (second["name"], second["arguments"]) == ("ledger", ["build", "--quiet"])
    assert (third["name"], third["arguments"]) == ("price", ["import", "--example"])
    assert (fourth["name"], fourth["arguments"]) == ("report", ["health"])
    assert first["STEWARD_DATA_DIR"] == str(place / "steward" / "demo")
    assert captured.out == "health of built\n"
    assert "run `steward demo` to see the same fleet in the browser" in captured.err


def test_a_finished_demo_is_used_again_until_fresh(place: Path) -> None:
    for arguments in ([], [], ["--fresh"], ["--days", "3"]):
        assert main(["demo", "--exit", *arguments]) == 0

    built = ["import", "ledger", "price", "report"]
    assert names(place) == [*built, "report", *built, *built]


@pytest.mark.parametrize(
    ("failing", "begun"),
    [
        ("import", ["import"]),
        ("ledger", ["import", "ledger"]),
        ("price", ["import", "ledger", "price"]),
    ],
)
def test_a_demo_that_failed_is_built_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, failing: str, begun: list[str]
) -> None:
    monkeypatch.setenv("TEST_FAILING", failing)
    assert main(["demo", "--exit"]) == 7
    monkeypatch.delenv("TEST_FAILING")
    assert main(["demo", "--exit"]) == 0

    assert names(place) == [*begun, "import", "ledger", "price", "report"]


def test_a_failing_report_is_the_demos_failure(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_FAILING", "report")

    assert main(["demo"]) == 7
    assert names(place) == ["import", "ledger", "price", "report"]


def test_demo_never_builds_over_other_rows(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = place / "mine"
    folder.mkdir()
    (folder / "warehouse.duckdb").touch()

    assert main(["demo", "--exit", "--data-dir", str(folder)]) == 2
    assert "no demonstration built it" in capsys.readouterr().err
    assert names(place) == []


@pytest.mark.parametrize(
    ("flags", "environ", "folder"),
    [
        pytest.param({}, {}, "/xdg/steward/demo", id="beneath the default"),
        pytest.param({"data_dir": "/a"}, {}, "/a", id="named by flag"),
        pytest.param({}, {"STEWARD_DATA_DIR": "/b"}, "/b", id="named by variable"),
    ],
)
def test_where_the_demo_is_built(
    flags: dict[str, str], environ: dict[str, str], folder: str
) -> None:
    around = {"XDG_DATA_HOME": "/xdg", "XDG_CONFIG_HOME": "/nowhere"}

    assert demo_data_dir(resolve(environ={**around, **environ}, flags=flags)) == Path(folder)


def test_up_needs_something_to_scrape(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up"]) == 2
    assert "there is nothing to scrape" in capsys.readouterr().err
    assert names(place) == []


def test_up_takes_targets_from_the_settings_too(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_COLLECT_TARGETS", "node1:9400")
    monkeypatch.setenv("TEST_FAILING", "collect")

    assert main(["up", "--no-dashboard"]) == 7
    by_name = {each["name"]: each["arguments"] for each in started(place)}
    assert by_name["collect"] == []


def test_up_checks_its_targets_first(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--scrape", URL, "node1:9400", "ftp://node2"]) == 2
    assert "error: --scrape: 'ftp://node2' must be host:port or" in capsys.readouterr().err
    assert names(place) == []


def test_up_starts_no_second_warehouse(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_WAREHOUSE_URL", "http://warehouse:8420")

    assert main(["up", "--scrape", URL]) == 2
    assert "a warehouse runs at http://warehouse:8420 already" in capsys.readouterr().err
    assert names(place) == []


@pytest.mark.parametrize("arguments", [["up", "--scrape", URL], ["demo"]])
@pytest.mark.parametrize("setting", ["STEWARD_WAREHOUSE_PORT", "STEWARD_DASHBOARD_PORT"])
def test_a_taken_port_is_told_before_anything_starts(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, arguments: list[str], setting: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv(setting, str(server.getsockname()[1]))
        assert main(arguments) == 12

    assert names(place) == []


@pytest.mark.parametrize(
    ("failing", "begun"),
    [
        ("warehouse", ["warehouse"]),
        ("dashboard", ["warehouse", "collect", "ledger", "dashboard"]),
        ("collect", ["warehouse", "collect", "ledger", "dashboard"]),
        ("ledger", ["warehouse", "collect", "ledger", "dashboard"]),
    ],
)
def test_one_child_that_ends_stops_all(
    place: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    failing: str,
    begun: list[str],
) -> None:
    monkeypatch.setenv("TEST_FAILING", failing)

    assert main(["up", "--scrape", URL]) == 7
    assert f"error: {failing} ended with exit code 7" in capfd.readouterr().err
    assert failing in names(place)
    assert set(names(place)) <= set(begun)
    for each in started(place):
        with pytest.raises(ProcessLookupError):
            os.kill(int(str(each["pid"])), 0)


def supervised(place: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the front door in a process of its own, with the small programs as commands."""
    program = (
        "import sys\n"
        "from steward import supervisor\n"
        "from steward.main import main\n"
        f"supervisor.STEWARD = (sys.executable, {str(place / 'commands.py')!r})\n"
        f"sys.exit(main({list(arguments)!r}))\n"
    )
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_up_serves_until_told_to_stop(place: Path, number: signal.Signals, code: int) -> None:
    with supervised(place, "up", "--scrape", URL, URL) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(4)]
        addresses = {line[0]: line[1] for line in lines}
        assert answers(addresses["warehouse"])
        assert answers(addresses["dashboard"])
        wait_until(lambda: {"collect", "ledger"} <= set(names(place)))
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)

    assert (process.returncode, errors) == (code, "stopped\n")
    assert list(addresses) == ["warehouse", "collect", "dashboard", "press"]
    assert not answers(addresses["warehouse"])
    assert not answers(addresses["dashboard"])
    by_name = {each["name"]: each for each in started(place)}
    assert by_name["collect"]["arguments"] == ["--scrape", URL, URL]
    assert by_name["ledger"]["arguments"] == ["build", "--follow"]
    assert by_name["ledger"]["STEWARD_WAREHOUSE_URL"] == addresses["warehouse"]
    assert by_name["warehouse"]["STEWARD_WAREHOUSE_URL"] == ""
    assert by_name["dashboard"]["STEWARD_WAREHOUSE_URL"] == addresses["warehouse"]


def test_no_dashboard_when_not_wanted(place: Path) -> None:
    with supervised(place, "up", "--no-dashboard", "--scrape", URL) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().split()[0] for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)

    assert said == ["warehouse", "collect", "press"]


@pytest.mark.parametrize(
    ("own", "writer", "reader"),
    [
        pytest.param({}, None, None, id="none is known"),
        pytest.param({"token": "mine", "admin_tokens": ("a",)}, "mine", "mine", id="its own"),
        pytest.param(
            {"writer_tokens": ("w",), "reader_tokens": ("r",)}, "w", "r", id="one for each role"
        ),
        pytest.param({"admin_tokens": ("a", "b")}, "a", "a", id="an administrator's"),
    ],
)
def test_children_get_a_token_that_their_role_needs(
    *, own: dict[str, object], writer: str | None, reader: str | None
) -> None:
    settings = with_tokens(own)
    told = [client_environ(settings, "http://a", is_writer=each) for each in (True, False)]

    assert [each.get("STEWARD_WAREHOUSE_TOKEN") for each in told] == [writer, reader]
    assert {each["STEWARD_WAREHOUSE_URL"] for each in told} == {"http://a"}


@pytest.mark.parametrize(
    ("own", "token"),
    [
        pytest.param({}, None, id="an open warehouse needs none"),
        pytest.param({"token": "mine"}, None, id="an open warehouse is not told one"),
        pytest.param({"admin_tokens": ("a", "b")}, "a", id="an administrator's"),
        pytest.param(
            {"writer_tokens": ("w", "x"), "reader_tokens": ("r", "x")},
            "x",
            id="one with both roles",
        ),
    ],
)
def test_the_ledger_is_built_with_a_token_that_reads_and_appends(
    *, own: dict[str, object], token: str | None
) -> None:
    told = builder_environ(with_tokens(own), "http://a")

    assert told is not None
    assert told.get("STEWARD_WAREHOUSE_TOKEN") == token
    assert told["STEWARD_WAREHOUSE_URL"] == "http://a"


def test_no_ledger_is_built_where_no_token_does_both() -> None:
    own: dict[str, object] = {"writer_tokens": ("w",), "reader_tokens": ("r",)}
    assert builder_environ(with_tokens(own), "http://a") is None


def with_tokens(own: dict[str, object]) -> Settings:
    return Settings(
        data_dir=Path("/x"),
        warehouse=replace(WarehouseSettings(), **own),  # type: ignore[arg-type]  # fields by name
    )


def test_children_are_told_place_and_file(tmp_path: Path) -> None:
    environ = child_environ(
        Settings(data_dir=tmp_path), data_dir=tmp_path / "demo", config=tmp_path / "c.toml"
    )

    assert environ["STEWARD_DATA_DIR"] == str(tmp_path / "demo")
    assert environ["STEWARD_CONFIG"] == str(tmp_path / "c.toml")
    assert environ["STEWARD_WAREHOUSE_URL"] == ""
    assert environ["PATH"] == os.environ["PATH"]
