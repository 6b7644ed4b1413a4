"""Each library that reaches outside has one door: no other module imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("steward", "collector", "sql", "analytics", "enforcer", "dashboard")
DOORS = {
    "duckdb": ("sql",),
    "h2": ("collector/sources/podresources",),
    "httptools": ("collector/exporter_answer.py",),
    "kubernetes": ("collector/sources/kubernetes", "enforcer/gateway"),
    "pynvml": ("collector/sources/nvml",),
    "sqlalchemy": ("sql",),
    "sqlite3": ("collector/spool.py", "collector/doctor/waiting.py", "sql"),
    "streamlit": ("dashboard",),
    "urllib3": ("collector/sources/kubernetes", "enforcer/gateway"),
}


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("library", DOORS)
def test_a_library_is_imported_behind_its_door_only(library: str) -> None:
    found = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if library in imported(path)
    }
    assert found, "the door is not used any more"
    assert {name for name in found if not name.startswith(DOORS[library])} == set()
