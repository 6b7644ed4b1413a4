"""A report for the terminal: figures first, then what needs attention, then the tables."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from analytics.reports.model import Figure, Report, Table
from dashboard import format as fmt
from dashboard.i18n import Translate, english
from dashboard.reports.grid import Lane, grids
from steward.output import visible

WIDTH: Final = 100
ROWS_SHOWN: Final = 20
"""Rows of one table in a whole report: more push the figures off the screen."""


def render(
    report: Report,
    *,
    width: int = WIDTH,
    is_colored: bool = False,
    row_limit: int | None = ROWS_SHOWN,
    translate: Translate = english,
) -> str:
    """Return the report as text of this width; wider only where numbers would be cut.

    A table longer than the limit says how many rows are left out.
    """
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=is_colored,
        no_color=not is_colored,
        color_system="standard" if is_colored else None,
        highlight=False,
        emoji=False,
        markup=False,
    )
    blocks = [*_head(report, width, translate), *_findings(report, translate)]
    for table in report.tables:
        blocks += [
            Text(),
            Text(visible(table.title), style="bold"),
            *_rows(table, row_limit, width),
        ]
        blocks += _foot(table, row_limit, translate)
    for block in blocks:
        console.print(block, overflow="ignore", crop=False)
    return _tidy(out.getvalue())


def _tidy(text: str) -> str:
    """Return the text without trailing spaces and with single empty lines."""
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for before, line in pairwise(["", *lines]) if line or before]
    return "\n".join(kept).rstrip() + "\n"


def _head(report: Report, width: int, translate: Translate) -> list[RenderableType]:
    title = translate(f"report.{report.name}", report.title)
    blocks: list[RenderableType] = [
        Text(title, style="bold"),
        Text(f"{translate('report.period')}: {fmt.period(report.period)}"),
    ]
    if report.figures:
        blocks += [Text(), *_figures(report.figures, width, translate)]
    return blocks


def _figures(
    figures: tuple[Figure, ...], width: int, translate: Translate
) -> Iterator[RenderableType]:
    titles = (translate(f"figure.{figure.key}", figure.title) for figure in figures)
    values = (fmt.figure(figure.value, figure.unit, key=figure.key) for figure in figures)
    lanes = [
        Lane(title=translate("report.figure"), cells=tuple(titles), is_text=True),
        Lane(title=translate("report.value"), cells=tuple(values), is_text=False),
    ]
    if any(figure.coverage_ratio is not None for figure in figures):
        known = tuple(fmt.coverage(figure.coverage_ratio) for figure in figures)
        lanes.append(Lane(title=translate("report.coverage"), cells=known, is_text=False))
    return grids(lanes, width=width)


def _findings(report: Report, translate: Translate) -> list[RenderableType]:
    if not report.findings:
        return []
    grid = Grid.grid(padding=(0, 1))
    grid.add_column(justify="right")
    grid.add_column(overflow="fold")
    for index, finding in enumerate(report.findings, start=1):
        grid.add_row(f"{index}.", visible(finding))
    return [Text(), Text(translate("report.findings"), style="bold"), Padding(grid, (0, 0, 0, 1))]


def _rows(table: Table, row_limit: int | None, width: int) -> Iterator[RenderableType]:
    rows = fmt.table_cells(table)[:row_limit]
    if not rows:
        return iter(())
    lanes = [
        Lane(
            title=fmt.header(column.title, column.unit),
            cells=tuple(row[index] for row in rows),
            is_text=column.unit == "text",
        )
        for index, column in enumerate(table.columns)
    ]
    return grids(lanes, width=width)


def _foot(table: Table, row_limit: int | None, translate: Translate) -> Iterator[RenderableType]:
    left_out = table.frame.height - (row_limit or table.frame.height)
    if table.frame.is_empty():
        yield _line(translate("report.no_rows"))
    elif left_out > 0:
        rest = translate("report.more_rows")
        yield _line(rest.format(count=fmt.number(left_out), table=table.key))
    if table.note:
        yield _line(table.note)


def _line(text: str) -> RenderableType:
    return Padding(Text(visible(text), style="dim"), (0, 0, 0, 1))
