"""What a person meets at ``steward import prometheus``: one clear error, its code, a next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from steward.main import main
from tests.support.backfill_answers import Said, answering_server, fault, success, vector
from tests.support.exporter_server import closed_port

PERIOD = ("--from", "2026-05-01T00:00:00Z", "--until", "2026-05-02T00:00:00Z")
GOOD = vector(({}, 1.0, "1"))


def run(url: str, *arguments: str, folder: Path) -> int:
    """Run the command as a person would."""
    command = ["import", "prometheus", "--url", url, *(arguments or PERIOD)]
    return main([*command, "--data-dir", str(folder)])


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([Said(body=b"<html>")], "answers with HTML, not with the HTTP API of Prometheus"),
        ([Said(status=401)], "refuses access (HTTP 401)"),
        ([fault(503, "unavailable", "starting up")], "answered HTTP 503: starting up"),
        (
            [GOOD, success([])],
            "holds no GPU metrics in [2026-05-01T00:00:00Z, 2026-05-02T00:00:00Z)",
        ),
        ([GOOD, success(["up", "node_load1"])], "2 other metric names"),
    ],
)
def test_a_server_that_cannot_help(
    answers: list[Said], told: str, *, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering_server(answers) as server:
        assert run(server.url, folder=tmp_path / "w") == 5
    said = capsys.readouterr().err
    assert told in said
    assert "hint:" in said
    assert not (tmp_path / "w").exists()


def test_nobody_listening(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closed_port() as port:
        assert run(f"http://127.0.0.1:{port}", folder=tmp_path / "w") == 5
    assert "cannot be reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--from"),
        (("--from", "yesterday"), "--from 'yesterday' is not an ISO 8601 instant"),
        (("--from", "2026-05-01T00:00:00"), "has no time zone"),
        (("--from", "9999-05-01T00:00:00Z"), "is not a year from 1970 to 2200"),
        ((*PERIOD, "--until", "2026-04-01T00:00:00Z"), "ends before it starts"),
        ((*PERIOD, "--to", "2026-05-01T00:00:00Z"), "is empty"),
        (("--from", "2199-05-01T00:00:00Z", "--to", "2199-06-01T00:00:00Z"), "no whole hour"),
        ((*PERIOD, "--window", "0"), "--window 0 is outside 1..60"),
        ((*PERIOD, "--window", "61"), "--window 61 is outside 1..60"),
        ((*PERIOD, "--match", "job"), "is no selector of labels"),
    ],
)
def test_a_wrong_command_line(
    arguments: tuple[str, ...], told: str, *, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", "prometheus", "--url", "http://127.0.0.1:9", *arguments]
    assert main([*command, "--data-dir", str(tmp_path / "w")]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "w").exists()


def test_credentials_do_not_belong_into_the_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("http://ann:s3cret@prometheus", folder=tmp_path / "w") == 2
    said = capsys.readouterr().err
    assert "--headers-file" in said
    assert "s3cret" not in said


def test_a_file_of_headers_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "headers"
    file.write_text("Bearer s3cret\n")
    arguments = (*PERIOD, "--headers-file", str(file))
    assert run("http://127.0.0.1:9", *arguments, folder=tmp_path / "w") == 4
    said = capsys.readouterr().err
    assert f"{file}:1: not a header" in said
    assert "s3cret" not in said
