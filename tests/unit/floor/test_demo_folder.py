"""The demonstration's folder: only what a demonstration built is ever removed."""

from __future__ import annotations

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest

from steward.demo_folder import DemoCard, clear, is_open, read_card, write_card
from steward.errors import OwnedElsewhereError, UsageError

CARD = DemoCard(version="1.0", day_count=14, seed=7, is_complete=True)


def test_a_card_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_card(tmp_path, replace(CARD, is_complete=False))
    write_card(tmp_path, CARD)

    assert read_card(tmp_path) == CARD
    assert [entry.name for entry in tmp_path.iterdir()] == ["demo.json"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": "1"}', '{"colour": 1}'])
def test_a_damaged_card_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "demo.json").write_text(text, encoding="utf-8")

    assert read_card(tmp_path) is None


def test_a_folder_is_created(tmp_path: Path) -> None:
    clear(tmp_path / "a" / "b")

    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_an_earlier_demonstration_is_removed_but_not_what_it_links_to(tmp_path: Path) -> None:
    demo, elsewhere = tmp_path / "demo", tmp_path / "elsewhere"
    (demo / "spool").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (demo / "link").symlink_to(elsewhere)
    (demo / "owner.lock").touch()
    write_card(demo, replace(CARD, is_complete=False))
    clear(demo)

    assert list(demo.iterdir()) == []
    assert (elsewhere / "kept").exists()


def test_what_no_demonstration_built_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "warehouse.duckdb").touch()

    with pytest.raises(UsageError, match="not empty, and no demonstration built it"):
        clear(tmp_path)
    assert (tmp_path / "warehouse.duckdb").exists()


def test_an_open_demonstration_is_left_alone(tmp_path: Path) -> None:
    write_card(tmp_path, CARD)
    lock = tmp_path / "owner.lock"
    lock.touch()
    assert not is_open(tmp_path)
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OwnedElsewhereError):
            clear(tmp_path)

    assert lock.exists()
    assert not is_open(tmp_path)
