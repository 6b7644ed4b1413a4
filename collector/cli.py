"""``steward collect`` and ``steward import``: flags; the work is imported when it is called."""

from __future__ import annotations

import argparse

from collector.discovery import target_urls
from collector.import_cli import IMPORT
from steward.command import Command, Context
from steward.errors import UsageError

__all__ = ["COLLECT", "IMPORT"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``steward collect`` takes."""
    parser.add_argument(
        "--scrape",
        nargs="+",
        action="extend",
        default=[],
        metavar="URL",
        help="exporters to scrape: host:port or http://host:port/metrics; added to the settings'",
    )
    parser.add_argument(
        "--once", action="store_true", help="scrape each target one time, print a summary, end"
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve the collector's own metrics on this port of 127.0.0.1",
    )
    absent = argparse.SUPPRESS  # the settings know the default
    parser.add_argument(
        "--interval-s",
        dest="collect.interval_s",
        metavar="SECONDS",
        default=absent,
        help="from one scrape of a target to the next (default 15)",
    )
    parser.add_argument(
        "--timeout-s",
        dest="collect.timeout_s",
        metavar="SECONDS",
        default=absent,
        help="for connecting and the whole answer of one target (default 10)",
    )
    parser.add_argument(
        "--warehouse-url",
        dest="warehouse.url",
        metavar="URL",
        default=absent,
        help="the warehouse server (default: the owner of the data folder, or the file itself)",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Scrape until stopped, or once.

    Raises:
        UsageError: an address is wrong, or there is none.
    """
    urls = target_urls((*context.settings.collect.targets, *args.scrape))
    if not urls:
        raise UsageError(
            "there is nothing to scrape", hint="name a target: --scrape http://node1:9400/metrics"
        )
    from collector.collect import collect  # noqa: PLC0415 - heavy: loaded only when it is called

    return collect(urls, context=context, is_once=args.once, metrics_port=args.metrics_port)


COLLECT = Command(
    name="collect",
    summary="Scrape exporters and store what they say",
    add_arguments=add_arguments,
    run=run,
)
