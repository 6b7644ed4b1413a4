"""Rows for people: a plain table in which stored names can neither act nor hide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from steward.output import visible

DASH: Final = "\u2013"
BLANKS: Final = "  "


def table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> str:
    """Return a header and one line a row; values that are missing are a dash."""
    shown = [[_cell(row.get(name)) for name in columns] for row in rows]
    lines = [list(columns), *shown]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    texts = (
        BLANKS.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "".join(f"{text}\n" for text in texts)


def json_line(value: object) -> str:
    """Return one line of JSON that a terminal may show: where a name could act, it is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return f"{text if visible(text) == text else json.dumps(value)}\n"


def _cell(value: object) -> str:
    return DASH if value is None else visible(str(value))
