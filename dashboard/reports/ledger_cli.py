"""``steward ledger``: cheap to import, heavy only once it runs."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from steward.calendar_period import length
from steward.command import Command, Context
from steward.errors import StewardError
from steward.period import instant_from

if TYPE_CHECKING:
    from dashboard.reports.ledger_build import Order

LOOKS_BACK: Final = timedelta(days=31)
"""How far back a follower looks for late rows, once it has looked at everything."""
logger = logging.getLogger(__name__)


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = actions.add_parser("build", help="sum closed hours and days, so that reports are quick")
    build.add_argument(
        "--from", dest="from_at", metavar="TIME", help="only hours from here on, ISO 8601"
    )
    build.add_argument(
        "--until", dest="until_at", metavar="TIME", help="only hours up to here, ISO 8601"
    )
    build.add_argument(
        "--again", action="store_true", help="also hours that are built; unchanged ones stay"
    )
    build.add_argument("--quiet", action="store_true", help="say nothing about what was built")
    build.add_argument("--follow", action="store_true", help="go on as hours close, until stopped")
    build.add_argument(
        "--every", default="5m", metavar="LENGTH", help="how often --follow looks (default 5m)"
    )


def _run(args: argparse.Namespace, context: Context) -> int:
    from dashboard.reports.ledger_build import Order  # noqa: PLC0415  # loads Polars

    every_s = length(args.every, option="--every").total_seconds()
    order = Order(
        from_at=_instant(args.from_at, option="--from"),
        until_at=_instant(args.until_at, option="--until"),
        is_again=args.again,
    )
    if not args.follow:
        _build(order, context, is_quiet=args.quiet)
        return 0
    while True:
        try:
            _build(order, context, is_quiet=True)
            order = replace(order, looks_back=LOOKS_BACK)
        except StewardError as error:
            logger.warning("the ledger is built later: %s", error.message)
        except Exception:  # a fault here must not stop collecting beside it
            logger.exception("the ledger is built later")
        time.sleep(every_s)


def _instant(text: str | None, *, option: str) -> datetime | None:
    return None if text is None else instant_from(text, option=option)


def _build(order: Order, context: Context, *, is_quiet: bool = False) -> None:
    """Build once and say what came of it; a quiet build logs it, where there was anything to do."""
    from dashboard.reports.ledger_build import Built, build  # noqa: PLC0415  # loads Polars
    from sql.access import open_warehouse  # noqa: PLC0415  # loads DuckDB

    tell = logger.debug if is_quiet else logger.info
    with open_warehouse(context.settings) as warehouse:
        built = build(warehouse, order, clock=context.clock, tell=tell)
    told = (
        f"built {built.hour_count:,} hours and {built.day_count:,} days of the ledger, "
        f"{built.row_count:,} rows"
    )
    if not is_quiet:
        sys.stdout.write(f"{told}\n")
    elif built != Built():
        logger.info(told)


LEDGER = Command(
    name="ledger",
    summary="Build the ledger of device-time that reports read",
    add_arguments=_arguments,
    run=_run,
)
