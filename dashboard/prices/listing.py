"""Rows of the state for people and programs: a plain table, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Final

FORMATS: Final = ("table", "json", "csv")
DASH: Final = "\u2013"
_BLANKS: Final = 2


def listing(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], *, form: str, empty: str
) -> str:
    """Return the rows as text with a final newline.

    Args:
        rows: in their final order; values that are missing are None.
        columns: names, in order.
        form: one of ``FORMATS``.
        empty: the sentence of a table without rows.
    """
    kept = [{name: row.get(name) for name in columns} for row in rows]
    if form == "json":
        return json.dumps(kept, ensure_ascii=False, indent=2, default=str) + "\n"
    if form == "csv":
        return _csv(kept, columns)
    return _table(kept, columns) if kept else f"{empty}\n"


def _csv(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    shown = [[DASH if row[name] is None else str(row[name]) for name in columns] for row in rows]
    lines = [list(columns), *shown]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    blank = " " * _BLANKS
    texts = (
        blank.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "".join(f"{text}\n" for text in texts)
