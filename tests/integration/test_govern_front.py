"""``steward policy``, ``quota``, ``request`` by the front door: hostile words, one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from sql.access import open_warehouse
from steward.main import main
from steward.output import visible
from steward.settings import Settings

RULE = "policy: x\nrules: [{name: r, effect: exempt}]\n"
HALF = "\udcff"
USAGE, INPUT = 2, 4
PUT = ("policy", "put", "{file}", "--note", "why")
QUOTA = ("request", "quota", "--team", "v", "--model", "H", "--gpus", "1", "--reason", "why")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("policy", "check", "{folder}"), INPUT, "Is a directory"),
        (("policy", "show", "x@" + "9" * 5_000), INPUT, "names no version"),
        (("policy", "show", "x@²"), INPUT, "names no version"),
        (("policy", "show", "\x1b[31mx\u202e"), INPUT, "is not stored"),
        (("policy", "show", HALF), INPUT, "is not stored"),
        ((*PUT[:3], "--note", ""), USAGE, "--note"),
        ((*PUT[:3], "--note", HALF), USAGE, "--note"),
        ((*PUT, "--author", " "), USAGE, "--author"),
        ((*PUT, "--from", "0001-01-01T00:00:00+14:00"), USAGE, "years 1 to 9999"),
        ((*PUT, "--from", "9999-12-31T23:59:59-12:00"), USAGE, "years 1 to 9999"),
        ((*QUOTA, "--for", "2h", "--from", "9999-12-31T23:00:00Z"), USAGE, "calendar"),
        ((*QUOTA, "--for", "2h", "--from", "9999-12-31T23:59:59-12:00"), USAGE, "years 1 to"),
        ((*QUOTA, "--for", "2h", "--requester", HALF), USAGE, "--requester"),
        ((*QUOTA, "--for", "2h", "--requester", ""), USAGE, "--requester"),
        ((*QUOTA[:-1], HALF, "--for", "2h"), USAGE, "--reason"),
        (("request", "approve", "1", "--as", "a "), USAGE, "there is no request"),
        (("quota", "check", "\x1b[31m\u202e"), INPUT, "No such file"),
    ],
)
def test_hostile_words_meet_one_clear_error(
    words: tuple[str, ...], code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(RULE, encoding="utf-8")
    data = tmp_path / "data"
    data.mkdir()
    said = [word.format(file=file, folder=tmp_path) for word in words]
    assert main([*said, "--data-dir", str(data)]) == code
    out, err = capsys.readouterr()
    lines = err.removesuffix("\n").split("\n")
    assert out == ""
    assert told in err
    assert (lines[0].startswith("error: "), lines[-1].startswith("hint: ")) == (True, True)
    assert [visible(line) for line in lines] == lines
    with open_warehouse(Settings(data_dir=data)) as warehouse:
        for table in ("audit", "policy_version", "request"):
            assert list(warehouse.state_rows(table)) == []


def test_stored_words_act_on_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acts, file, data = "\x1b[31m\u202eb\x9b", tmp_path / "p.yaml", str(tmp_path)
    file.write_text(f'policy: x\nlabels: {{a: "{acts[5:]}"}}\n{RULE[10:]}'.replace("\x9b", ""))
    assert main(["policy", "put", str(file), "--note", acts, "--data-dir", data]) == 0
    capsys.readouterr()
    for words in (
        ("policy", "list"),
        ("policy", "list", "--format", "json"),
        ("policy", "show", "x"),
        ("policy", "show", "x", "--format", "json"),
        ("policy", "diff", "default", "x"),
        ("audit", "list"),
    ):
        assert main([*words, "--data-dir", data]) == 0
        lines = capsys.readouterr().out.split("\n")
        assert [visible(line) for line in lines] == lines, words
