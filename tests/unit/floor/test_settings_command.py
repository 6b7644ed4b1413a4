"""``steward settings``: what people see, and never a secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steward.main import main
from steward.settings.schema import markdown_text, schema_text

WRONG_LEVEL = "error: --log-level must be one of debug, info, warning, error, not 'loud'\n"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def shown(capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, dict[str, object]]:
    """Return what ``settings show --format json`` says, by setting."""
    assert main(["settings", "show", "--format", "json", *flags]) == 0
    entries: dict[str, dict[str, object]] = json.loads(capsys.readouterr().out)["settings"]
    return entries


def test_show_names_value_and_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_CLUSTER", "blue")
    entries = shown(capsys, "--data-dir", "/srv")

    assert entries["cluster"] == {"value": "blue", "from": "$STEWARD_CLUSTER"}
    assert entries["data_dir"] == {"value": "/srv", "from": "--data-dir"}
    assert entries["warehouse.port"] == {"value": 8420, "from": "default"}
    assert entries["warehouse.url"] == {"value": None, "from": "default"}


def test_shared_flags_stand_before_or_after_the_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "--data-dir", "/srv", "show"]) == 0
    before = capsys.readouterr().out
    assert main(["settings", "show", "--data-dir", "/srv"]) == 0

    assert capsys.readouterr().out == before


@pytest.mark.parametrize("form", ["table", "json"])
def test_secrets_are_never_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("STEWARD_WAREHOUSE_TOKEN", "hush-1")
    monkeypatch.setenv("STEWARD_WAREHOUSE_READER_TOKENS", "hush-2,hush-3")
    monkeypatch.setenv("STEWARD_WAREHOUSE_URL", "https://ada:hush-4@warehouse:8420")
    assert main(["settings", "show", "--format", form]) == 0
    out = capsys.readouterr().out

    assert "hush" not in out
    assert out.count("(hidden)") == 3
    assert "https://ada:***@warehouse:8420" in out


def test_the_table_lines_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "show"]) == 0
    first, blank, *rows = capsys.readouterr().out.splitlines()

    assert (first, blank) == ("file: none", "")
    column = rows[0].index("from")
    assert {row[column - 2 : column] for row in rows} == {"  "}
    assert all(row[column] != " " for row in rows)


def test_schema_prints_or_writes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    assert main(["settings", "schema"]) == 0
    assert capsys.readouterr().out == schema_text()
    assert main(["settings", "schema", "--output", str(file)]) == 0
    assert file.read_text(encoding="utf-8") == schema_text()
    assert main(["settings", "schema", "--format", "markdown"]) == 0
    assert capsys.readouterr().out == markdown_text()


def test_faults_end_with_their_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["settings", "show", "--log-level", "loud"]) == 3
    assert capsys.readouterr().err.startswith(WRONG_LEVEL)


def test_the_schema_is_printed_even_with_faulty_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEWARD_LOG_LEVEL", "loud")

    assert main(["settings", "schema"]) == 0
    assert capsys.readouterr().out == schema_text()
