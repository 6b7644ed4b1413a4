"""A report as CSV for spreadsheets: UTF-8 with a byte order mark, safe to open, decimal points.

Without a table's key the file holds every section: a row that names it, its header, its rows and
an empty line. With one it is a single plain table. Values are in machine units; an empty cell is
a value that is not known.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Final

from analytics.reports.model import Report
from dashboard.format import Printable
from dashboard.reports.render_json import plain
from dashboard.reports.sections import Section, section, sections

BYTE_ORDER_MARK: Final = "\ufeff"
"""Without it, Excel and WPS read the file in the machine's legacy encoding."""
PLAIN_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
"""An amount of money: exact as text, and no formula even where it is negative."""
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet run a text as a formula."""


def render(report: Report, *, table_key: str | None = None) -> str:
    """Return every section, or the one named, as comma separated values."""
    out = io.StringIO(newline="")
    out.write(BYTE_ORDER_MARK)
    writer = csv.writer(out, lineterminator="\r\n")
    if table_key is not None:
        writer.writerows(_lines(section(report, table_key)))
        return out.getvalue()
    writer.writerows(
        [
            ["report", safe(report.name), safe(report.title)],
            ["from_at", plain(report.period.from_at)],
            ["until_at", plain(report.period.until_at)],
        ]
    )
    for one in sections(report):
        writer.writerows([[], [safe(one.key), safe(one.title)], *_lines(one)])
    if report.findings:
        writer.writerows([[], ["findings"], *([safe(finding)] for finding in report.findings)])
    return out.getvalue()


def safe(value: Printable) -> object:
    """Return the value as a cell that no spreadsheet runs: risky texts start with an apostrophe."""
    shown = plain(value)
    is_risky = isinstance(shown, str) and shown.startswith(FORMULA_STARTS)
    if is_risky and not PLAIN_NUMBER.fullmatch(str(shown)):
        return f"'{shown}"
    return shown


def _lines(one: Section) -> list[list[object]]:
    header: list[object] = [column.name for column in one.columns]
    return [header, *([safe(value) for value in row] for row in one.frame.iter_rows())]
