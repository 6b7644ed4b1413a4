"""The flags of ``steward import prometheus`` and ``steward import sacct``; cheap to load."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path

from steward.errors import UsageError
from steward.period import instant_from

LONGEST_WINDOW_MINUTES = 60
_EARLIEST_YEAR, _LATEST_YEAR = 1970, 2200


def add_prometheus(parser: argparse.ArgumentParser) -> None:
    """Declare what ``steward import prometheus`` takes."""
    parser.description = (
        "Read the past of GPU exporters and of kube-state-metrics from a Prometheus server (or "
        "Thanos, Mimir, VictoriaMetrics) and store the rows that scraping them directly would "
        "have given. May be stopped and repeated: nothing is stored twice."
    )
    parser.add_argument(
        "--url",
        required=True,
        metavar="URL",
        help="the server: http://prometheus:9090, the address below which /api/v1/query answers",
    )
    parser.add_argument(
        "--from",
        dest="from_at",
        required=True,
        type=_since,
        metavar="INSTANT",
        help="begin of the period, ISO 8601; widened to whole hours of UTC",
    )
    parser.add_argument(
        "--until",
        "--to",
        dest="until_at",
        type=_until,
        metavar="INSTANT",
        help="end of the period, ISO 8601 (default: the start of the current hour)",
    )
    _add_reading(parser)
    _add_cluster(parser)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--match",
        default="",
        metavar="SELECTOR",
        help="""read only series with these labels: '{cluster="a",job=~"dcgm.*"}'""",
    )
    parser.add_argument(
        "--window",
        type=int,
        default=LONGEST_WINDOW_MINUTES,
        metavar="MINUTES",
        help="ask for at most so much at once, 1 to 60 (default 60); halved where it is too much",
    )
    parser.add_argument(
        "--headers-file",
        type=Path,
        metavar="FILE",
        help="headers for each question, one a line: 'Authorization: Bearer …'",
    )


def add_sacct(parser: argparse.ArgumentParser) -> None:
    """Declare what ``steward import sacct`` takes."""
    parser.description = (
        "Import jobs from the text that Slurm's sacct prints with --parsable2 or --parsable, "
        "header line included, into the tables of workloads. All lines are checked before "
        "anything is stored; a job that is stored already is not stored again."
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="plain or .gz; - reads standard input"
    )
    parser.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="the zone of sacct's times, such as Europe/Berlin (default: UTC)",
    )
    _add_cluster(parser)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        default=argparse.SUPPRESS,  # the settings know the default
        help="the cluster that the rows belong to (default: the setting cluster)",
    )


def _since(text: str) -> datetime:
    return _instant(text, option="--from")


def _until(text: str) -> datetime:
    return _instant(text, option="--until")


def _instant(text: str, *, option: str) -> datetime:
    """Return the aware instant that the ISO 8601 text names.

    Raises:
        UsageError: the text is not ISO 8601, has no time zone, or lies centuries away.
    """
    at = instant_from(text, option=option)
    if not _EARLIEST_YEAR <= at.year <= _LATEST_YEAR:
        raise UsageError(
            f"{option} {text!r} is not a year from 1970 to 2200",
            hint="give one such as 2026-05-01T00:00:00Z",
        )
    return at
