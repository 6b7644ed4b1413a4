"""Results: a file appears whole or not at all, and standard output takes bytes too."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from steward.errors import InputError, UsageError
from steward.output import visible, write_output

FULL = Path("/dev/full")
"""The kernel's own full disk."""


@pytest.mark.parametrize(
    ("content", "stored"), [("größe\n", "größe\n".encode()), (b"\0\1", b"\0\1")]
)
def test_a_file_is_written(tmp_path: Path, content: str | bytes, stored: bytes) -> None:
    file = tmp_path / "out"
    write_output(file, content)

    assert file.read_bytes() == stored
    assert list(tmp_path.iterdir()) == [file]


def test_a_new_file_has_the_usual_rights_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    usual, new, old = tmp_path / "usual", tmp_path / "new", tmp_path / "old"
    usual.touch()
    old.touch(mode=0o600)
    write_output(new, "x")
    write_output(old, "x")

    assert new.stat().st_mode == usual.stat().st_mode
    assert old.stat().st_mode & 0o777 == 0o600


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target, link = tmp_path / "store" / "target", tmp_path / "link"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    write_output(link, "new")

    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "new"


def test_a_device_is_written_in_place() -> None:
    write_output(Path(os.devnull), "gone")

    assert not Path(os.devnull).is_file()


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a full disk to test on")
def test_a_full_disk_is_one_clear_error() -> None:
    with pytest.raises(InputError, match="cannot write /dev/full: No space left on device"):
        write_output(FULL, "x")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out"
    file.write_text("old", encoding="utf-8")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_output(file, "new")

    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text(encoding="utf-8") == "old"


def test_a_missing_folder_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist") as caught:
        write_output(tmp_path / "no" / "out", "x")
    assert f"mkdir -p {tmp_path}/no" in caught.value.hint


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        write_output(tmp_path, "x")


def test_standard_output_takes_text_and_bytes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_output(None, "a\n")
    write_output(None, b"\xff\n")

    assert capfdbinary.readouterr().out == b"a\n\xff\n"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        pytest.param("team-a", "team-a", id="plain"),
        pytest.param("研究组 é", "研究组 é", id="any script"),
        pytest.param("\x1b[2Jgone", "\ufffd[2Jgone", id="an escape"),
        pytest.param("a\nb\tc", "a\ufffdb\ufffdc", id="line and column breaks"),
        pytest.param("\u202egnp", "\ufffdgnp", id="a turn of direction"),
        pytest.param("\x9b31m", "\ufffd31m", id="an escape of eight bits"),
    ],
)
def test_stored_names_can_neither_act_nor_hide(stored: str, shown: str) -> None:
    assert visible(stored) == shown
