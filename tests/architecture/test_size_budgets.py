"""Modules, functions and comments stay within the budgets that CONTRIBUTING.md states."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("steward", "collector", "sql", "analytics", "enforcer", "dashboard")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
MODULE_LINES, FUNCTION_LINES = 400, 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def lines_without_docstring(function: Function) -> int:
    """Return the lines of a function, its decorators and docstring not counted."""
    end = function.end_lineno or function.lineno
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or 0) - first.lineno + 1 if is_docstring else 0
    return end - function.lineno + 1 - docstring


def test_rooms_are_found() -> None:
    assert len(MODULES) > len(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module_is_short_and_says_what_lives_in_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    assert ast.get_docstring(ast.parse(text)), "a module opens with a docstring"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_functions_are_short(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    too_long = {f.name: n for f in functions if (n := lines_without_docstring(f)) > FUNCTION_LINES}
    assert too_long == {}
