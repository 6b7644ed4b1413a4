"""The reference of commands is what the parsers say, and the committed copy is up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from steward.catalogue import load_command, offers
from steward.manual import error_classes, markdown
from steward.parser import actions, command_parser, is_shown, nested_parsers

ROOT = Path(__file__).parents[3]


def test_the_committed_copy_is_up_to_date() -> None:
    """`python -m steward.manual > docs/cli.md` writes it."""
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == markdown()


@pytest.mark.parametrize("name", sorted(offers()))
def test_every_flag_of_every_command_is_there(name: str) -> None:
    text = markdown()
    parser = command_parser(load_command(name))
    parsers = [parser, *nested_parsers(parser).values()]
    flags = {
        flag
        for each in parsers
        for action in actions(each)
        if is_shown(action)
        for flag in action.option_strings
    }

    assert f"### `steward {name}`" in text
    assert [flag for flag in flags if flag not in text] == []


def test_every_exit_code_is_there() -> None:
    text = markdown()

    assert [each for each in error_classes() if f"\n| {each.exit_code} | " not in text] == []


def test_it_is_printed_by_running_the_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "steward.manual"], capture_output=True, text=True, check=True
    )

    assert done.stdout == markdown()
