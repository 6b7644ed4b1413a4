"""A report as one Parquet file: a table as it is, or the whole report in long form."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import chain
from typing import Final

import polars as pl

from analytics.reports.model import Figure, Report, Table
from dashboard.format import Printable
from dashboard.reports.render_json import plain
from dashboard.reports.sections import FIGURES_KEY, section

LONG_SCHEMA: Final = pl.Schema(
    {
        "report": pl.String(),
        "from_at": pl.Datetime("us", "UTC"),
        "until_at": pl.Datetime("us", "UTC"),
        "section": pl.String(),
        "row_index": pl.Int64(),
        "column": pl.String(),
        "unit": pl.String(),
        "value_number": pl.Float64(),
        "value_text": pl.String(),
    }
)
"""Long form: one row per figure or table cell; both values are null where nothing is known."""
Cell = tuple[str, int, str, str, float | None, str | None]


def render(report: Report, *, table_key: str | None = None) -> bytes:
    """Return the named section with its own columns, or the whole report in long form."""
    frame = _long(report) if table_key is None else section(report, table_key).frame
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def _long(report: Report) -> pl.DataFrame:
    cells = chain(_figure_cells(report.figures), *(_table_cells(one) for one in report.tables))
    rows = [(report.name, report.period.from_at, report.period.until_at, *cell) for cell in cells]
    return pl.DataFrame(rows, schema=LONG_SCHEMA, orient="row")


def _figure_cells(figures: tuple[Figure, ...]) -> Iterator[Cell]:
    for index, figure in enumerate(figures):
        yield FIGURES_KEY, index, figure.key, figure.unit, *_number_or_text(figure.value)


def _table_cells(table: Table) -> Iterator[Cell]:
    for index, row in enumerate(table.frame.iter_rows()):
        for column, value in zip(table.columns, row, strict=True):
            yield table.key, index, column.name, column.unit, *_number_or_text(value)


def _number_or_text(value: Printable) -> tuple[float | None, str | None]:
    shown = plain(value)
    if isinstance(shown, int | float):
        return float(shown), None
    return None, None if shown is None else str(shown)
