"""The page about actuators names every kind and every reason, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from enforcer.actuators import RefusalReason
from enforcer.actuators.kinds import CATALOGUE

PAGE = (Path(__file__).parents[3] / "docs" / "actuators.md").read_text(encoding="utf-8")


def first_cells(heading: str) -> list[str]:
    """Return the first words in code of the rows of the table below a heading."""
    section = PAGE.split(heading, maxsplit=1)[1].split("\n## ", maxsplit=1)[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def test_every_kind_is_on_the_page() -> None:
    assert sorted(first_cells("# How GPUs")) == sorted(each.resource for each in CATALOGUE)


def test_every_reason_is_on_the_page() -> None:
    assert first_cells("## Why an act is not done") == [each.value for each in RefusalReason]
