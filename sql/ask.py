"""``steward sql``: one statement in, a table or a file out."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sql import wire
from sql.access import open_warehouse
from sql.sandbox import is_truncated
from steward.errors import UsageError
from steward.output import write_output
from steward.settings import Settings

PIPE_WIDTH_COLUMNS = 240


def ask(
    statement: str, *, settings: Settings, row_limit: int | None, form: str, output: Path | None
) -> int:
    """Answer one statement; return the exit code 0.

    Raises:
        UsageError: Parquet was asked for without a file.
        QueryError: as ``Reader.sql``.
    """
    if form == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("Parquet is no text", hint="name a file with --output")
    with open_warehouse(settings) as warehouse:
        rows = warehouse.sql(statement, row_limit=row_limit)
    write_output(output, render(rows, form=form, is_file=output is not None))
    if is_truncated(rows) and form != "table":
        sys.stderr.write(f"note: only the first {rows.num_rows} rows; raise --limit for more\n")
    return 0


def render(rows: pa.Table, *, form: str, is_file: bool = False) -> bytes | str:
    """Return the rows as ``table``, ``csv``, ``json`` or ``parquet``."""
    match form:
        case "csv":
            return wire.to_csv(rows)
        case "json":
            return wire.to_json(rows) + b"\n"
        case "parquet":
            sink = pa.BufferOutputStream()
            parquet.write_table(rows, sink, compression="zstd")
            return sink.getvalue().to_pybytes()
        case _:
            return _terminal(rows, is_plain=is_file or not sys.stdout.isatty())


def _terminal(rows: pa.Table, *, is_plain: bool) -> str:
    console = Console(width=PIPE_WIDTH_COLUMNS) if is_plain else Console()
    table = Table(show_edge=False)
    for field in rows.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(Text(field.name), justify="right" if is_number else "left")
    for row in wire.rows_of(rows):
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    more = ", more were left out" if is_truncated(rows) else ""
    with console.capture() as captured:
        console.print(table)
        console.print(f"{rows.num_rows} row{'' if rows.num_rows == 1 else 's'}{more}")
    return captured.get()


def _cell(value: object) -> str:
    shown = wire.plain(value)
    return "–" if shown is None else str(shown)  # noqa: RUF001  # the dash for what is missing
