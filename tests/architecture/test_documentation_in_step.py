"""What the product offers appears in docs/, and the generated parts equal what is generated."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.reports.catalogue import REPORTS
from steward.errors import StewardError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MIGRATIONS = sorted((ROOT / "sql" / "migrations").rglob("*.sql"))


def page(name: str) -> str:
    """Return the text of one page of the documentation."""
    return (DOCS / name).read_text(encoding="utf-8")


def error_classes(root: type[StewardError] = StewardError) -> Iterator[type[StewardError]]:
    """Yield the whole error tree."""
    yield root
    for child in root.__subclasses__():
        yield from error_classes(child)


def tables() -> list[str]:
    """Return every table that a migration creates."""
    created = re.compile(r"^create table (\w+)", re.MULTILINE | re.IGNORECASE)
    return [name for path in MIGRATIONS for name in created.findall(path.read_text("utf-8"))]


@pytest.mark.parametrize("command", sorted(PROJECT["entry-points"]["steward.commands"]))
def test_command_is_documented(command: str) -> None:
    assert f"steward {command}" in page("cli.md")


@pytest.mark.parametrize("error", list(error_classes()), ids=lambda error: error.__name__)
def test_exit_code_is_documented(error: type[StewardError]) -> None:
    assert re.search(rf"^\| *{error.exit_code} *\|", page("cli.md"), re.MULTILINE)


def test_exit_codes_are_distinct() -> None:
    in_the_tree = [e for e in error_classes() if e.__module__ == StewardError.__module__]
    codes = [error.exit_code for error in in_the_tree]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("table", tables())
def test_table_is_documented(table: str) -> None:
    assert f"`{table}`" in page("warehouse.md")


@pytest.mark.parametrize("report", sorted(REPORTS))
def test_report_is_documented(report: str) -> None:
    assert f"`{report}`" in page("reports.md")


@pytest.mark.parametrize(
    "query", sorted(path.stem for path in (ROOT / "sql" / "queries").glob("*.sql"))
)
def test_query_is_documented(query: str) -> None:
    assert f"`{query}`" in page("warehouse.md") + page("measures.md")


def test_every_page_is_reached_from_the_index() -> None:
    pages = {path.name for path in DOCS.glob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\(([a-z-]+\.md)\)", page("index.md")))


def test_settings_schema_is_json() -> None:
    assert json.loads(page("settings.schema.json"))["type"] == "object"


@pytest.mark.parametrize("number", range(1, 12))
def test_decisions_are_numbered_without_gaps(number: int) -> None:
    assert len(list((DOCS / "adr").glob(f"{number:04d}-*.md"))) == 1
