"""Data-quality checks: each a question whose answer should have no rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

import pyarrow as pa

from sql.assets import SqlFile, sql_files
from steward.ports import Reader

PURPOSE: Final = re.compile(r"^--\s*purpose\s+(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """How many rows break one rule."""

    name: str
    purpose: str
    """The rule."""
    row_count: int


@cache
def checks() -> tuple[SqlFile, ...]:
    """Return the shipped checks, ascending by name."""
    return sql_files("checks")


def purpose_of(check: SqlFile) -> str:
    """Return the rule that a check states in its first lines; empty where it states none."""
    found = PURPOSE.search(check.text)
    return found.group(1).strip() if found else ""


def violations(reader: Reader) -> tuple[Violation, ...]:
    """Return the outcome of every check, kept rules with 0 rows, ascending by name."""
    return tuple(
        Violation(
            name=check.name, purpose=purpose_of(check), row_count=_violation_count(reader, check)
        )
        for check in checks()
    )


def _violation_count(reader: Reader, check: SqlFile) -> int:
    rows = pa.RecordBatchReader.from_stream(reader.sql(check.text)).read_all()
    return int(rows.column("violation_count")[0].as_py())
