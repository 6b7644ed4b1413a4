"""A report as JSON: stable keys, machine units, full precision, null where nothing is known."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from typing import Final

from analytics.reports.model import Figure, Report, Table
from dashboard.format import Printable

SCHEMA: Final = "steward.report/1"
"""Names the shape; it changes only together with the shape."""


def render(report: Report) -> str:
    """Return the report as indented JSON with a final newline; instants are UTC."""
    document = {
        "schema": SCHEMA,
        "report": report.name,
        "title": report.title,
        "period": {
            "from_at": plain(report.period.from_at),
            "until_at": plain(report.period.until_at),
            "length_s": report.period.length_s,
        },
        "figures": [_figure(figure) for figure in report.figures],
        "tables": [_table(table) for table in report.tables],
        "findings": list(report.findings),
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def plain(value: Printable) -> object:
    """Return the value as JSON knows it: instants as ISO 8601 in UTC, durations in seconds."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, datetime):
        utc = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return utc.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value


def _figure(figure: Figure) -> dict[str, object]:
    return {
        "key": figure.key,
        "title": figure.title,
        "value": plain(figure.value),
        "unit": figure.unit,
        "coverage_ratio": plain(figure.coverage_ratio),
        "definition": figure.definition,
        "rows": figure.rows,
    }


def _table(table: Table) -> dict[str, object]:
    return {
        "key": table.key,
        "title": table.title,
        "note": table.note,
        "rows": table.rows,
        "columns": [
            {
                "name": column.name,
                "title": column.title,
                "unit": column.unit,
                "definition": column.definition,
            }
            for column in table.columns
        ],
        "records": [
            {name: plain(value) for name, value in record.items()}
            for record in table.frame.iter_rows(named=True)
        ],
    }
