"""The formats a report comes in, by the name that ``--format`` takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from analytics.reports.model import Report
from dashboard.i18n import translator
from dashboard.reports import (
    render_csv,
    render_html,
    render_json,
    render_parquet,
    render_terminal,
)
from dashboard.reports.sections import FIGURES_KEY, section

BINARY_FORMATS: Final = frozenset({"parquet"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """How a report is to look."""

    format: str = "table"
    """One of table, json, csv, parquet, html."""
    table_key: str | None = None
    """Only this table (``figures`` for the figures); None: the whole report."""
    language: str = "en"
    width: int = render_terminal.WIDTH
    """Columns of the terminal."""
    is_colored: bool = False


def render(report: Report, rendering: Rendering) -> str | bytes:
    """Return the report in the format asked for.

    Raises:
        UsageError: the report has no table of that key.
    """
    key = rendering.table_key
    if rendering.format == "csv":
        return render_csv.render(report, table_key=key)
    if rendering.format == "parquet":
        return render_parquet.render(report, table_key=key)
    narrowed = report if key is None else _only(report, key)
    if rendering.format == "json":
        return render_json.render(narrowed)
    translate = translator(rendering.language)
    if rendering.format == "html":
        return render_html.render(narrowed, translate=translate, language=rendering.language)
    return render_terminal.render(
        narrowed,
        width=rendering.width,
        is_colored=rendering.is_colored,
        row_limit=render_terminal.ROWS_SHOWN if key is None else None,
        translate=translate,
    )


def _only(report: Report, key: str) -> Report:
    section(report, key)
    figures = report.figures if key == FIGURES_KEY else ()
    tables = tuple(table for table in report.tables if table.key == key)
    return replace(report, figures=figures, tables=tables, findings=())
