"""A report as sections: its figures and each of its tables as one frame with titled columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.reports.model import Column, Figure, Report
from steward.errors import UsageError

FIGURES_KEY: Final = "figures"
FIGURE_COLUMNS: Final = (
    Column(name="key", title="Key", unit="text"),
    Column(name="title", title="Figure", unit="text"),
    Column(name="value", title="Value", unit="text"),
    Column(name="text", title="Text", unit="text"),
    Column(name="unit", title="Unit", unit="text"),
    Column(name="coverage_ratio", title="Coverage", unit="ratio"),
    Column(name="definition", title="Definition", unit="text"),
    Column(name="rows", title="Rows", unit="text"),
)
FIGURE_SCHEMA: Final = pl.Schema(
    {
        column.name: pl.Float64() if column.name in {"value", "coverage_ratio"} else pl.String()
        for column in FIGURE_COLUMNS
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table of a report, its figures included."""

    key: str
    title: str
    frame: pl.DataFrame
    """Has exactly the columns named in ``columns``, in that order."""
    columns: tuple[Column, ...]


def sections(report: Report) -> tuple[Section, ...]:
    """Return the figures' section, then one per table in the report's order."""
    tables = (
        Section(key=table.key, title=table.title, frame=table.frame, columns=table.columns)
        for table in report.tables
    )
    return (_figures(report.figures), *tables)


def section(report: Report, key: str) -> Section:
    """Return the section of this key; ``figures`` names the figures.

    Raises:
        UsageError: the report has no such table.
    """
    by_key = {one.key: one for one in sections(report)}
    if key not in by_key:
        raise UsageError(
            f"report {report.name!r} has no table {key!r}",
            hint=f"its tables are {', '.join(by_key)}",
        )
    return by_key[key]


def _figures(figures: tuple[Figure, ...]) -> Section:
    """Return one row per figure.

    Columns: key, title, value f64 | null, text str | null (for figures that are words), unit,
    coverage_ratio f64 | null, definition, rows.
    """
    rows = [
        {
            "key": one.key,
            "title": one.title,
            "value": None if one.value is None or isinstance(one.value, str) else float(one.value),
            "text": one.value if isinstance(one.value, str) else None,
            "unit": one.unit,
            "coverage_ratio": one.coverage_ratio,
            "definition": one.definition,
            "rows": one.rows,
        }
        for one in figures
    ]
    frame = pl.DataFrame(rows, schema=FIGURE_SCHEMA)
    return Section(key=FIGURES_KEY, title="Figures", frame=frame, columns=FIGURE_COLUMNS)
