"""A report as one self-contained HTML page that prints on A4: no script, no outside resource."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from analytics.reports.model import Column, Figure, Report, Table
from dashboard import format as fmt
from dashboard.i18n import Translate, english
from steward.output import visible


def render(report: Report, *, translate: Translate = english, language: str = "en") -> str:
    """Return the whole document; every value is escaped, the style sheet is inside."""
    title = escape(translate(f"report.{report.name}", report.title))
    style = files("dashboard.reports").joinpath("print.css").read_text(encoding="utf-8")
    span = escape(f"{translate('report.period')}: {fmt.period(report.period)}")
    body = "\n".join(
        [
            f"<header><h1>{title}</h1><p>{span}</p></header>",
            _figures(report.figures, translate),
            _findings(report.findings, translate),
            *(_table(table, translate) for table in report.tables),
            f'<footer class="quiet">{escape(translate("report.footer"))}</footer>',
        ]
    )
    return (
        f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _figures(figures: tuple[Figure, ...], translate: Translate) -> str:
    if not figures:
        return ""
    cards = "\n".join(_figure(figure, translate) for figure in figures)
    return f'<dl class="figures">\n{cards}\n</dl>'


def _figure(figure: Figure, translate: Translate) -> str:
    value = escape(fmt.figure(figure.value, figure.unit, key=figure.key))
    title = escape(translate(f"figure.{figure.key}", figure.title))
    known = ""
    if figure.coverage_ratio is not None:
        words = f"{translate('report.coverage')} {fmt.coverage(figure.coverage_ratio)}"
        known = f'<dd class="quiet">{escape(words)}</dd>'
    return (
        f'<div class="figure" title="{escape(figure.definition)}"><dt>{title}</dt>'
        f'<dd class="value">{value}</dd>{known}</div>'
    )


def _findings(findings: tuple[str, ...], translate: Translate) -> str:
    if not findings:
        return ""
    items = "".join(f"<li>{escape(visible(finding))}</li>" for finding in findings)
    return f"<section><h2>{escape(translate('report.findings'))}</h2><ol>{items}</ol></section>"


def _table(table: Table, translate: Translate) -> str:
    if table.frame.is_empty():
        body = f"<p>{escape(translate('report.no_rows'))}</p>"
    else:
        head = "".join(_header(column) for column in table.columns)
        rows = "\n".join(_row(row, table.columns) for row in fmt.table_cells(table))
        body = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"
    source = escape(f"{translate('report.rows')}: {table.rows}")
    note = f"{escape(table.note)} " if table.note else ""
    return (
        f"<section><h2>{escape(visible(table.title))}</h2>\n{body}\n"
        f'<p class="quiet">{note}{source}</p></section>'
    )


def _header(column: Column) -> str:
    title = escape(fmt.header(column.title, column.unit))
    return f'<th{_class(column)} title="{escape(column.definition)}">{title}</th>'


def _row(row: Iterable[str], columns: tuple[Column, ...]) -> str:
    cells = (
        f"<td{_class(column)}>{escape(shown)}</td>"
        for shown, column in zip(row, columns, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _class(column: Column) -> str:
    return "" if column.unit == "text" else ' class="number"'
