"""``steward warehouse``, ``steward sql`` and ``steward db``: flags only; work is imported late."""

from __future__ import annotations

import argparse
from pathlib import Path

from steward.command import Command, Context


def _add_warehouse(parser: argparse.ArgumentParser) -> None:
    absent = argparse.SUPPRESS  # the settings know the default
    parser.add_argument(
        "--host", dest="warehouse.host", default=absent, help="address to listen on (127.0.0.1)"
    )
    parser.add_argument(
        "--port", dest="warehouse.port", default=absent, help="port to listen on (8420); 0: any"
    )


def _run_warehouse(_args: argparse.Namespace, context: Context) -> int:
    from sql.serve import serve  # noqa: PLC0415  # heavy: loaded only when it is called

    return serve(context.settings, clock=context.clock)


def _add_sql(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("statement", help="one SELECT or EXPLAIN")
    parser.add_argument(
        "--format", choices=("table", "csv", "json", "parquet"), default="table", help="(table)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to a file")
    parser.add_argument(
        "--limit", type=_row_count, metavar="N", help="at most N rows; more are left out"
    )
    _add_url(parser)


def _run_sql(args: argparse.Namespace, context: Context) -> int:
    from sql.ask import ask  # noqa: PLC0415  # heavy: loaded only when it is called

    return ask(
        args.statement,
        settings=context.settings,
        row_limit=args.limit,
        form=args.format,
        output=args.output,
    )


def _add_db(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    parts.add_parser("migrate", help="create or upgrade the databases")
    parts.add_parser("check", help="look for rows that cannot be right; exit 1 when there are any")
    parts.add_parser("info", help="files, schema, tables and their rows")
    backup = parts.add_parser("backup", help="write a consistent copy, also while the owner runs")
    backup.add_argument("destination", type=Path, metavar="DEST", help="a folder that is not there")
    restore = parts.add_parser("restore", help="put a backup in place; the owner must be stopped")
    restore.add_argument("source", type=Path, metavar="SRC", help="a folder written by backup")
    restore.add_argument("--force", action="store_true", help="replace the warehouse that is there")


def _run_db(args: argparse.Namespace, context: Context) -> int:
    from sql import admin  # noqa: PLC0415  # heavy: loaded only when it is called

    match args.part:
        case "migrate":
            return admin.migrate_all(context.settings)
        case "check":
            return admin.check(context.settings)
        case "info":
            return admin.info(context.settings)
        case "backup":
            return admin.backup(context.settings, args.destination, clock=context.clock)
        case _:
            return admin.restore(context.settings, args.source, is_forced=args.force)


def _add_url(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--warehouse-url",
        dest="warehouse.url",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="the warehouse server (default: the owner of the data folder, or the file itself)",
    )


def _row_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no count of rows")
    return int(text)


WAREHOUSE = Command(
    name="warehouse",
    summary="Own the warehouse and serve it over HTTP",
    add_arguments=_add_warehouse,
    run=_run_warehouse,
)
SQL = Command(
    name="sql",
    summary="Ask the warehouse one read-only statement",
    add_arguments=_add_sql,
    run=_run_sql,
)
DB = Command(
    name="db",
    summary="Migrate, check, describe, back up or restore the warehouse",
    add_arguments=_add_db,
    run=_run_db,
)
