"""``steward collect`` and ``steward import``: flags; the work is imported when it is called."""

from __future__ import annotations

import argparse
from typing import Final

from collector.discovery import target_urls
from collector.import_cli import IMPORT
from steward.command import Command, Context
from steward.errors import UsageError

__all__ = ["COLLECT", "IMPORT"]

DOCTOR: Final = "doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``steward collect`` takes."""
    _add_doctor(parser)
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
    _add_pace(parser)
    _add_discovery(parser)


def _add_pace(parser: argparse.ArgumentParser) -> None:
    """Declare how often and how patiently, and where to."""
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


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    """Declare the one action there is, and how it tells what it found."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=(DOCTOR,),
        help="look at everything once, store nothing, and tell what cannot be seen and how to mend "
        "it",
    )
    parser.add_argument(
        "--format", choices=("table", "json"), help="of what the doctor tells (default table)"
    )
    parser.add_argument(
        "--patient",
        action="store_true",
        help="the doctor asks each target again one interval later, to see whether values move",
    )


def _add_discovery(parser: argparse.ArgumentParser) -> None:
    """Declare where targets come from beside the named ones, and which cluster is watched."""
    absent = argparse.SUPPRESS  # the settings know the default
    for flag, setting, metavar, meaning in _LISTS:
        parser.add_argument(
            flag,
            dest=setting,
            nargs="+",
            action="extend",
            default=absent,
            metavar=metavar,
            help=meaning,
        )
    parser.add_argument(
        "--kubernetes",
        dest="kubernetes.access",
        action="store_const",
        const="auto",
        default=absent,
        help="watch the cluster of this pod, or of the kubeconfig",
    )
    parser.add_argument(
        "--kubeconfig",
        dest="kubernetes.kubeconfig",
        metavar="FILE",
        default=absent,
        help="with --kubernetes: the file that describes the cluster",
    )
    parser.add_argument(
        "--context",
        dest="kubernetes.context",
        metavar="NAME",
        default=absent,
        help="with --kubernetes: the context of that file",
    )


_LISTS: Final = (
    (
        "--file-sd",
        "collect.file_sd",
        "FILE",
        "targets from files in Prometheus's file_sd format; patterns allowed",
    ),
    (
        "--http-sd",
        "collect.http_sd",
        "URL",
        "targets from addresses in Prometheus's http_sd format",
    ),
    (
        "--exporters",
        "kubernetes.exporters",
        "SELECTOR",
        "with --kubernetes: scrape the exporters with these labels: app=nvidia-dcgm-exporter",
    ),
)


def run(args: argparse.Namespace, context: Context) -> int:
    """Scrape until stopped, or once; or examine.

    Raises:
        UsageError: an address is wrong, or there is none; or flags do not go together.
    """
    _check_action(args)
    urls = target_urls((*context.settings.collect.targets, *args.scrape))
    if args.action == DOCTOR:
        from collector.doctor.run import run_doctor  # noqa: PLC0415 - heavy: only when called

        form = args.format or "table"
        return run_doctor(urls, context=context, form=form, is_patient=args.patient)
    from collector.collect import collect  # noqa: PLC0415 - heavy: loaded only when it is called

    return collect(urls, context=context, is_once=args.once, metrics_port=args.metrics_port)


def _check_action(args: argparse.Namespace) -> None:
    """Refuse flags that do not go with the action.

    Raises:
        UsageError: names the flag and the right order of words.
    """
    if args.action is None and DOCTOR in args.scrape:
        raise UsageError(
            f"{DOCTOR} stands among the addresses of --scrape",
            hint=f"write `steward collect {DOCTOR} --scrape URL...`; a host of that name is "
            f"{DOCTOR}:80",
        )
    with_doctor = {"--format": args.format is not None, "--patient": args.patient}
    without = {"--once": args.once, "--metrics-port": args.metrics_port is not None}
    strange = without if args.action == DOCTOR else with_doctor
    for flag, is_given in strange.items():
        if is_given:
            word = "does not go" if args.action == DOCTOR else "only goes"
            raise UsageError(f"{flag} {word} with {DOCTOR}", hint="see `steward collect --help`")


COLLECT = Command(
    name="collect",
    summary="Scrape exporters, watch a cluster, and store what they say",
    add_arguments=add_arguments,
    run=run,
)
