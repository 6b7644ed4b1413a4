"""``steward report`` and ``steward dashboard``: cheap to import, heavy only once they run."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steward.command import Command, Context
from steward.errors import UsageError
from steward.output import write_output

if TYPE_CHECKING:
    from analytics.reports.model import Report, ReportDefinition
    from dashboard.reports.render import Rendering

FORMATS: Final = ("table", "json", "csv", "parquet", "html")
NARROWEST: Final = 60
"""Below this many columns a table is unreadable however it folds."""
PIPED_WIDTH: Final = 100


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="which report; see --list")
    parser.add_argument("--list", action="store_true", help="list the reports and stop")
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to FILE instead of the terminal"
    )
    _period_arguments(parser)
    parser.add_argument(
        "--by", metavar="WORD", help="group by this: cluster, model, team, user, queue, ..."
    )
    parser.add_argument("--cluster", metavar="NAME", help="only this cluster")
    parser.add_argument(
        "--currency",
        metavar="ISO",
        help="tell money in this currency, as EUR (default: the prices')",
    )
    parser.add_argument(
        "--fits", metavar="REQUEST", help="what of this would fit now, as gpus=4,cpu=32,model=H100"
    )
    parser.add_argument(
        "--table", metavar="KEY", help="only this table of the report; `figures` for the figures"
    )


def _period_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--period",
        metavar="TEXT",
        help="such as last-month, 2026-05, 'may 2026', 2026-W19, 2026-05-01/2026-06-01, last-7d",
    )
    parser.add_argument(
        "--zone",
        default="UTC",
        metavar="IANA",
        help="whose days and months are meant, as Asia/Shanghai (default UTC)",
    )
    parser.add_argument(
        "--last", metavar="LENGTH", help="the last 30m, 12h, 7d or 2w before the newest row"
    )
    parser.add_argument(
        "--from", dest="from_at", metavar="TIME", help="start, ISO 8601 with a zone"
    )
    parser.add_argument(
        "--until", dest="until_at", metavar="TIME", help="end (exclusive), ISO 8601 with a zone"
    )


def _run_report(args: argparse.Namespace, context: Context) -> int:
    from dashboard.reports.render import render  # noqa: PLC0415  # loads Polars

    if args.list:
        write_output(None, _listing())
        return 0
    definition = _definition(args.name)
    rendering = _rendering(args, context.settings.dashboard.language)
    write_output(args.output, render(_loaded(definition, args, context), rendering))
    return 0


def _loaded(definition: ReportDefinition, args: argparse.Namespace, context: Context) -> Report:
    from dashboard.reports import load  # noqa: PLC0415  # loads Polars
    from sql.access import open_warehouse  # noqa: PLC0415  # loads DuckDB

    given = {each.name: getattr(args, each.name) for each in fields(load.Asked)}
    with open_warehouse(context.settings) as warehouse:
        rows, question = load.prepared(warehouse, definition, load.Asked(**given))
    return definition.build(rows, question)


def _listing() -> str:
    from analytics.reports.catalogue import REPORTS  # noqa: PLC0415  # loads Polars

    width = max(map(len, REPORTS))
    return "".join(f"{name:<{width}}  {one.summary}\n" for name, one in REPORTS.items())


def _definition(name: str | None) -> ReportDefinition:
    import difflib  # noqa: PLC0415  # only for a person's slip

    from analytics.reports.catalogue import REPORTS  # noqa: PLC0415  # loads Polars

    if name is not None and name in REPORTS:
        return REPORTS[name]
    names = ", ".join(REPORTS)
    if name is None:
        raise UsageError("which report?", hint=f"name one of {names}")
    nearest = difflib.get_close_matches(name, REPORTS, n=1, cutoff=0.5)
    meant = f"did you mean {nearest[0]!r}? " if nearest else ""
    raise UsageError(f"there is no report {name!r}", hint=f"{meant}The reports are {names}")


def _rendering(args: argparse.Namespace, language: str) -> Rendering:
    from dashboard.reports.render import BINARY_FORMATS, Rendering  # noqa: PLC0415  # loads Polars

    is_terminal = args.output is None and sys.stdout.isatty()
    if is_terminal and args.format in BINARY_FORMATS:
        raise UsageError(
            f"{args.format} is not for a terminal", hint="add --output FILE, or pipe it on"
        )
    width = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if is_terminal else PIPED_WIDTH
    return Rendering(
        format=args.format,
        table_key=args.table,
        language=language,
        width=max(width, NARROWEST),
        is_colored=is_terminal and not os.environ.get("NO_COLOR"),
    )


def _dashboard_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--host", dest="dashboard.host", metavar="ADDRESS", help="loopback address to listen on"
    )
    parser.add_argument(
        "--port",
        dest="dashboard.port",
        metavar="PORT",
        help="port to listen on; 0 takes a free one",
    )


def _run_dashboard(_args: argparse.Namespace, context: Context) -> int:
    from dashboard.serve import serve  # noqa: PLC0415  # only when it is asked for

    serve(context.settings)


REPORT = Command(
    name="report",
    summary="Answer one question over one period, for the terminal or as a file",
    add_arguments=_report_arguments,
    run=_run_report,
)
DASHBOARD = Command(
    name="dashboard",
    summary="Serve the screens in the browser",
    add_arguments=_dashboard_arguments,
    run=_run_dashboard,
)
