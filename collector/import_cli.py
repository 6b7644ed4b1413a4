"""``steward import``: its flags; the work is imported when it is called."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from collector.backfill.flags import add_prometheus, add_sacct
from steward.command import Command, Context
from steward.errors import UsageError
from steward.period import instant_from

_EARLIEST_YEAR, _LATEST_YEAR = 1970, 2200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``steward import`` takes."""
    sources = parser.add_subparsers(dest="import_source", required=True, metavar="SOURCE")
    _add_simulated(sources.add_parser("simulated", help="a made-up fleet with every pathology"))
    _add_openb(sources.add_parser("openb", help="a public trace: a node list and a pod list"))
    _add_exposition(sources.add_parser("exposition", help="saved texts of GPU exporters"))
    add_prometheus(sources.add_parser("prometheus", help="the past that a Prometheus server keeps"))
    add_sacct(sources.add_parser("sacct", help="jobs from Slurm's accounting text"))


def _add_simulated(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Import a simulated fleet: four GPU models, five teams, queues, faults. "
        "The same flags make the same rows."
    )
    parser.add_argument("--days", type=int, default=14, help="length of the period (default 14)")
    parser.add_argument("--seed", type=int, default=7, help="another seed, another fleet")
    parser.add_argument(
        "--nodes", type=int, default=24, metavar="N", help="machines, 4 or more (default 24)"
    )
    parser.add_argument(
        "--cadence",
        type=int,
        default=120,
        metavar="SECONDS",
        help="from one scrape to the next (default 120)",
    )
    parser.add_argument(
        "--until",
        type=_instant,
        metavar="INSTANT",
        help="end of the period, ISO 8601 (default: the start of the current day, UTC)",
    )


def _add_openb(parser: argparse.ArgumentParser) -> None:
    parser.description = "Import the openb trace (Alibaba, 2023); files plain or .gz."
    parser.add_argument("--nodes", type=Path, required=True, metavar="FILE", help="the node list")
    parser.add_argument("--pods", type=Path, required=True, metavar="FILE", help="a pod list")
    parser.add_argument(
        "--starts-at",
        type=_instant,
        metavar="INSTANT",
        help="what second 0 of the trace becomes (default 2023-01-01T00:00:00Z)",
    )


def _add_exposition(parser: argparse.ArgumentParser) -> None:
    parser.description = "Import saved Prometheus texts of GPU exporters; files plain or .gz."
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="one scrape each")
    parser.add_argument(
        "--at",
        type=_instant,
        metavar="INSTANT",
        help="when they were scraped, ISO 8601 (default: when each file was last changed)",
    )
    parser.add_argument(
        "--target",
        metavar="NAME",
        help="the exporter they all come from, oldest first (default: each file its own)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Import what the flags name; tell how many rows each table received."""
    if args.import_source in {"prometheus", "sacct"}:
        return _backfill(args, context)
    from collector import import_run  # noqa: PLC0415 - heavy: loaded only when it is called

    match args.import_source:
        case "simulated":
            return import_run.import_simulated(
                context,
                until_at=args.until,
                days=args.days,
                seed=args.seed,
                node_count=args.nodes,
                cadence_s=args.cadence,
            )
        case "openb":
            return import_run.import_openb(
                context, nodes=args.nodes, pods=args.pods, starts_at=args.starts_at
            )
        case _:
            return import_run.import_exposition(
                context, files=args.files, at=args.at, target=args.target
            )


def _backfill(args: argparse.Namespace, context: Context) -> int:
    if args.import_source == "sacct":
        from collector.backfill import sacct_run  # noqa: PLC0415 - heavy, as above

        return sacct_run.import_sacct(context, file=args.file, time_zone=args.time_zone)
    from collector.backfill import prometheus_run  # noqa: PLC0415 - heavy, as above

    asked = prometheus_run.Asked(
        url=args.url,
        from_at=args.from_at,
        until_at=args.until_at,
        match=args.match,
        window_minutes=args.window,
        headers_file=args.headers_file,
    )
    return prometheus_run.import_prometheus(context, asked)


def _instant(text: str) -> datetime:
    """Return the aware instant that the ISO 8601 text names.

    Raises:
        UsageError: the text is not ISO 8601, has no time zone, or lies centuries away.
    """
    at = instant_from(text)
    if not _EARLIEST_YEAR <= at.year <= _LATEST_YEAR:
        raise UsageError(
            f"{text!r} is not a year from 1970 to 2200",
            hint="give one such as 2026-05-01T00:00:00Z",
        )
    return at


IMPORT = Command(
    name="import",
    summary="Store the past of a Prometheus server or of Slurm, saved texts, or a simulated fleet",
    add_arguments=add_arguments,
    run=run,
)
