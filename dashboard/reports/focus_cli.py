"""``steward focus``: cost and usage rows of the FinOps specification, as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steward.command import Command, Context
from steward.errors import UsageError
from steward.output import visible, write_output

if TYPE_CHECKING:
    from analytics.focus.terms import Terms
    from dashboard.reports.focus import Made

SPLIT_VERSION: Final = "1.3"
"""The first version with columns for a split charge."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    _period_arguments(parser)
    parser.add_argument(
        "--mode",
        choices=("internal", "split"),
        default="internal",
        help="internal: teams are sub accounts; split: nodes' time is split (default: internal)",
    )
    parser.add_argument("--version", choices=("1.2", "1.3"), help="default: 1.2, of split 1.3")
    parser.add_argument(
        "--grain", choices=("hour", "day"), default="hour", help="rows per hour or day"
    )
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv", help="default: csv")
    parser.add_argument(
        "--decimals",
        choices=("decimal", "double"),
        default="decimal",
        help="type of amounts in Parquet (default: decimal, exact)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to FILE")
    parser.add_argument("--provider", metavar="NAME", help="who provides and issues statements")
    parser.add_argument("--host", metavar="NAME", help="whose cloud or data centre it runs in")
    parser.add_argument("--account", metavar="ID", help="billing account: cost pool or company")
    parser.add_argument("--invoice", metavar="ID", help="statement that the rows belong to")


def _period_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--period", metavar="TEXT", help="such as last-month, 2026-05, 2026-05-01/2026-06-01"
    )
    parser.add_argument(
        "--zone", default="UTC", metavar="IANA", help="whose days and months are meant"
    )
    parser.add_argument("--last", metavar="LENGTH", help="the last 12h, 7d or 2w")
    parser.add_argument("--from", dest="from_at", metavar="TIME", help="start, ISO 8601")
    parser.add_argument("--until", dest="until_at", metavar="TIME", help="end (exclusive)")
    parser.add_argument("--cluster", metavar="NAME", help="only this cluster")


def _run(args: argparse.Namespace, context: Context) -> int:
    version = args.version or (SPLIT_VERSION if args.mode == "split" else "1.2")
    if args.mode == "split" and version < SPLIT_VERSION:
        raise UsageError(
            f"version {version} has no columns for a split charge",
            hint="use --version 1.3 with --mode split, or --mode internal",
        )
    if args.format == "parquet" and args.output is None and sys.stdout.isatty():
        raise UsageError("parquet is not for a terminal", hint="add --output FILE, or pipe it on")
    made = _made(args, context, version)
    write_output(args.output, _content(args, made))
    for note in made.notes:
        sys.stderr.write(f"{visible(note)}\n")
    return 0


def _made(args: argparse.Namespace, context: Context, version: str) -> Made:
    from dashboard.reports.focus import Wish, asked_rows, made  # noqa: PLC0415  # loads Polars
    from dashboard.reports.load import Asked  # noqa: PLC0415  # loads Polars
    from sql.access import open_warehouse  # noqa: PLC0415  # loads DuckDB

    asked = Asked(
        period=args.period,
        last=args.last,
        from_at=args.from_at,
        until_at=args.until_at,
        cluster=args.cluster,
        zone=args.zone,
    )
    with open_warehouse(context.settings) as warehouse:
        frames, question = asked_rows(warehouse, asked, grain=args.grain)
    wish = Wish(mode=args.mode, version=version, grain=args.grain, terms=_terms(args))  # type: ignore[arg-type]  # argparse allows only these versions
    return made(frames, question, wish)


def _terms(args: argparse.Namespace) -> Terms:
    from dataclasses import replace  # noqa: PLC0415  # with the next

    from analytics.focus.terms import Terms  # noqa: PLC0415  # loads Polars

    terms = Terms(invoice_id=args.invoice, host=args.host, time_zone=args.zone)
    if args.provider:
        terms = replace(terms, provider=args.provider, service=args.provider)
    if args.account:
        terms = replace(terms, billing_account_id=args.account, billing_account_name=args.account)
    return terms


def _content(args: argparse.Namespace, made: Made) -> str | bytes:
    from dashboard.reports.focus_files import as_csv, as_parquet  # noqa: PLC0415  # loads Polars

    if args.format == "csv":
        return as_csv(made.export.frame)
    return as_parquet(made.export.frame, decimals=args.decimals)


FOCUS = Command(
    name="focus",
    summary="Export cost and usage as FOCUS rows, CSV or Parquet",
    add_arguments=_arguments,
    run=_run,
)
