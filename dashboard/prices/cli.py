"""``steward price``, ``steward budget``, ``steward close``: flags only; work is imported late."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from dashboard.prices.listing import FORMATS
from steward.command import Command, Context

PURCHASE_TYPES: Final = ("on_demand", "reserved", "spot", "tco")
SPLIT_RULES: Final = ("proportional", "even_all", "even_active", "custom")
TIME: Final = "TIME"
_TCO_FLAGS: Final = (
    ("--gpus", "N", "GPUs of the server"),
    ("--server", "AMOUNT", "purchase price of the server"),
    ("--residual", "RATIO", "share of it left at the end of its life (default 0)"),
    ("--life-years", "YEARS", "its life"),
    ("--network", "AMOUNT", "purchase price of its share of network and storage (default 0)"),
    ("--network-life-years", "YEARS", "their life (default: the server's)"),
    ("--kw", "KW", "power reserved for the server"),
    ("--kw-month", "AMOUNT", "colocation fee per kW and month (default 0)"),
    ("--load", "RATIO", "power drawn / power reserved, mean over a year"),
    ("--pue", "RATIO", "power of the building / power of the machines"),
    ("--kwh", "AMOUNT", "energy price per kWh"),
    ("--support", "AMOUNT", "support per year (default 0)"),
    ("--staff", "AMOUNT", "staff per year (default 0)"),
)
_TCO_DEFAULTS: Final = {
    "--residual": "0",
    "--network": "0",
    "--network-life-years": None,
    "--kw-month": "0",
    "--support": "0",
    "--staff": "0",
}


def _add_price(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    listed = parts.add_parser("list", help="prices that hold, or all that was ever recorded")
    listed.add_argument("--model", help="only this GPU model")
    listed.add_argument("--all", action="store_true", help="superseded and withdrawn ones too")
    listed.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    _add_set(parts.add_parser("set", help="record a price from an instant on"))
    withdraw = parts.add_parser("withdraw", help="let a price end, or never have held")
    withdraw.add_argument("price_id", type=int, metavar="ID", help="as `steward price list` shows")
    withdraw.add_argument(
        "--from", dest="from_at", metavar=TIME, help="from when on (default: from its start)"
    )
    withdraw.add_argument("--reason", required=True, help="why")
    withdraw.add_argument("--approver", help="who agreed (default: who runs the command)")
    imported = parts.add_parser("import", help="record the prices of a CSV file")
    which = imported.add_mutually_exclusive_group(required=True)
    which.add_argument("file", nargs="?", type=Path, metavar="FILE.csv", help="see docs/cost.md")
    which.add_argument("--example", action="store_true", help="example prices of common models")
    imported.add_argument("--approver", help="who agreed, where a row names nobody")
    _add_tco(parts.add_parser("tco", help="compute a rate from what owned hardware costs"))
    _add_rate(parts.add_parser("rate", help="record an exchange rate"))
    _add_energy(parts.add_parser("energy", help="record an energy tariff"))
    _add_shared(parts.add_parser("shared", help="record a cost that benefits all"))


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, help="GPU model as the reports name it")
    parser.add_argument("--rate", required=True, metavar="AMOUNT", help="per GPU-hour, as 2.50")
    parser.add_argument("--type", choices=PURCHASE_TYPES, default="on_demand", help="(on_demand)")
    parser.add_argument("--list-rate", metavar="AMOUNT", help="public rate per GPU-hour")
    parser.add_argument("--sku", help="the provider's name for what is bought")
    parser.add_argument(
        "--without-energy", action="store_true", help="the rate does not contain energy"
    )
    _add_where(parser)
    _add_span(parser)
    _add_source(parser)


def _add_where(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--currency", required=True, metavar="ISO", help="as USD")
    parser.add_argument("--cluster", help="only there (default: everywhere)")
    parser.add_argument("--team", help="only for this team (default: for everybody)")


def _add_span(parser: argparse.ArgumentParser, *, needs_end: bool = False) -> None:
    parser.add_argument(
        "--from", dest="from_at", required=True, metavar=TIME, help="start, ISO 8601 with a zone"
    )
    parser.add_argument(
        "--until", dest="until_at", required=needs_end, metavar=TIME, help="end (exclusive)"
    )


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", default="stated by hand", help="where it comes from")
    parser.add_argument("--approver", help="who agreed (default: who runs the command)")


def _add_tco(parser: argparse.ArgumentParser) -> None:
    for flag, metavar, text in _TCO_FLAGS:
        parser.add_argument(
            flag,
            metavar=metavar,
            help=text,
            required=flag not in _TCO_DEFAULTS,
            default=_TCO_DEFAULTS.get(flag),
        )
    parser.add_argument("--sold", metavar="RATIO", help="also the rate per sold hour at this share")
    parser.add_argument("--leap-year", action="store_true", help="of 8,784 hours")
    parser.add_argument("--currency", metavar="ISO", default="USD", help="(USD)")
    parser.add_argument("--store", metavar="MODEL", help="record the rate for this GPU model")
    parser.add_argument("--from", dest="from_at", metavar=TIME, help="start, with --store")
    parser.add_argument("--until", dest="until_at", metavar=TIME, help="end, with --store")
    parser.add_argument("--cluster", help="only there, with --store")
    _add_source(parser)


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("from_currency", metavar="FROM", help="as USD")
    parser.add_argument("to_currency", metavar="TO", help="as CNY")
    parser.add_argument("rate", metavar="RATE", help="what one FROM is worth in TO, as 7.10")
    _add_span(parser)
    parser.add_argument("--source", default="stated by hand", help="where it comes from")


def _add_energy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kwh", required=True, metavar="AMOUNT", help="price of a kWh")
    parser.add_argument("--currency", required=True, metavar="ISO", help="as USD")
    parser.add_argument("--pue", required=True, metavar="RATIO", help="building / machines, as 1.3")
    parser.add_argument("--host-factor", default="1", metavar="RATIO", help="machine / GPUs (1)")
    parser.add_argument("--carbon", metavar="KG", help="kg CO2e per kWh of the grid")
    parser.add_argument("--hours", default="0-24", metavar="A-B", help="local hours (0-24)")
    parser.add_argument("--zone", default="UTC", metavar="IANA", help="of the hours (UTC)")
    parser.add_argument("--cluster", help="only there (default: everywhere)")
    _add_span(parser)
    parser.add_argument("--source", default="stated by hand", help="where it comes from")


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what it is, as platform")
    parser.add_argument("--amount", required=True, help="for the whole time; negative: a credit")
    parser.add_argument("--currency", required=True, metavar="ISO", help="as USD")
    parser.add_argument("--split", choices=SPLIT_RULES, default="proportional", help="who bears it")
    parser.add_argument("--weights", metavar="TEAM=N,...", help="with --split custom")
    parser.add_argument("--cluster", help="borne by its teams only (default: by all)")
    _add_span(parser, needs_end=True)
    parser.add_argument("--approver", help="who agreed (default: who runs the command)")


def _run_price(args: argparse.Namespace, context: Context) -> int:
    from dashboard.prices import parts  # noqa: PLC0415  # heavy: loaded only when it is called

    return parts.PARTS[args.part](args, context)


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
    listed = parts.add_parser("list", help="budgets that hold, or all that was ever recorded")
    listed.add_argument("--all", action="store_true", help="superseded ones too")
    listed.add_argument("--format", choices=FORMATS, default="table", help="default: table")
    stated = parts.add_parser("set", help="record what may be spent in a period")
    stated.add_argument("--amount", required=True, help="as 12000.00")
    stated.add_argument("--currency", required=True, metavar="ISO", help="as USD")
    stated.add_argument("--team", help="whose direct cost (default: everybody's capacity cost)")
    stated.add_argument(
        "--period", required=True, help="as 2026-05, 2026-Q2, 2026-05-01/2026-06-01"
    )
    stated.add_argument("--zone", default="UTC", metavar="IANA", help="whose months (UTC)")
    stated.add_argument("--thresholds", default="50,80,100", help="percentages (50,80,100)")
    stated.add_argument("--approver", help="who agreed (default: who runs the command)")


def _run_budget(args: argparse.Namespace, context: Context) -> int:
    from dashboard.prices import budgets  # noqa: PLC0415  # heavy: loaded only when it is called

    return budgets.PARTS[args.part](args, context)


def _add_close(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("period", metavar="PERIOD", help="as 2026-05, 2026-W22, last-month")
    parser.add_argument("--zone", default="UTC", metavar="IANA", help="whose months (UTC)")
    parser.add_argument("--currency", metavar="ISO", help="(default: the prices')")
    parser.add_argument(
        "--reason", help="close although prices or data are missing; or why correct"
    )
    parser.add_argument(
        "--correct", action="store_true", help="issue what has changed since it was closed"
    )
    parser.add_argument("--by", dest="closed_by", metavar="NAME", help="who closes it")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the statement to a file")


def _run_close(args: argparse.Namespace, context: Context) -> int:
    from dashboard.prices.close import run  # noqa: PLC0415  # heavy: loaded only when it is called

    return run(args, context)


PRICE = Command(
    name="price",
    summary="Keep the price book: prices, exchange rates, energy and shared costs",
    add_arguments=_add_price,
    run=_run_price,
)
BUDGET = Command(
    name="budget",
    summary="Say what may be spent, and list what was said",
    add_arguments=_add_budget,
    run=_run_budget,
)
CLOSE = Command(
    name="close",
    summary="Close a period with a statement that never changes, or correct it",
    add_arguments=_add_close,
    run=_run_close,
)
