"""``steward price``: list, set, withdraw, and the rows beside prices."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import Final

import polars as pl

from analytics.cost import dated
from analytics.cost.book import resolved
from analytics.cost.statement import rate_text
from dashboard.prices import importing, tco, words
from dashboard.prices.listing import listing
from dashboard.prices.store import StoredRow, records, rows
from sql.access import open_warehouse
from steward.calendar_period import zone_of
from steward.command import Context
from steward.errors import InputError, UsageError
from steward.period import instant_from
from steward.units import CURRENCY_MICROS

LISTED: Final = (
    "price_id",
    "gpu_model",
    "rate",
    "currency",
    "purchase_type",
    "cluster",
    "tenant_id",
    "valid_from_at",
    "valid_until_at",
    "source",
    "approver",
)
HOURS_OF_DAY: Final = 24


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print the prices that hold at some time, or all rows."""
    with open_warehouse(context.settings) as warehouse:
        prices = rows(warehouse, "price")
    found = prices.sort("price_id") if args.all else resolved(prices)
    if args.model is not None:
        found = found.filter(pl.col("gpu_model") == args.model)
    shown = [
        {**row, "rate": rate_text(int(str(row["amount_micros_per_gpu_hour"])))}
        for row in records(found)
    ]
    columns = (*LISTED, "recorded_at", "is_withdrawn") if args.all else LISTED
    empty = "no price is recorded; start with: steward price import --example"
    sys.stdout.write(listing(shown, columns, form=args.format, empty=empty))
    return 0


def run_set(args: argparse.Namespace, context: Context) -> int:
    """Record one price."""
    from_at, until_at = words.span(args.from_at, args.until_at)
    row: StoredRow = {
        "gpu_model": named(args.model, option="--model"),
        "tenant_id": args.team,
        "cluster": args.cluster,
        "amount_micros_per_gpu_hour": words.micros(args.rate, option="--rate"),
        "currency": words.currency(args.currency),
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "purchase_type": args.type,
        "sku": args.sku,
        "source": args.source,
        "approver": words.person(args.approver),
        "includes_energy": int(not args.without_energy),
        "list_amount_micros_per_gpu_hour": None
        if args.list_rate is None
        else words.micros(args.list_rate, option="--list-rate"),
    }
    return tco.store_price(context, row)


def run_withdraw(args: argparse.Namespace, context: Context) -> int:
    """Record that a price does not hold, from its start or from an instant on."""
    with open_warehouse(context.settings) as warehouse:
        prices = rows(warehouse, "price")
        found = prices.filter(pl.col("price_id") == args.price_id)
        if found.is_empty():
            raise InputError(
                f"there is no price {args.price_id}", hint="see `steward price list --all`"
            )
        kept = {name: value for name, value in records(found)[0].items() if name != "recorded_at"}
        row = {**kept, **_withdrawn(args, kept)}
        row.pop("price_id")
        stored = warehouse.state_insert("price", {name: _plain(one) for name, one in row.items()})
    sys.stdout.write(
        f"price {args.price_id} of {kept['gpu_model']} does not hold from "
        f"{row['valid_from_at']} on (recorded as {stored['price_id']}): its device-time has no "
        "price there until one is set\n"
    )
    return 0


def run_rate(args: argparse.Namespace, context: Context) -> int:
    """Record one exchange rate."""
    from_at, until_at = words.span(args.from_at, args.until_at)
    pair = (
        words.currency(args.from_currency, option="FROM"),
        words.currency(args.to_currency, option="TO"),
    )
    if pair[0] == pair[1]:
        raise UsageError(f"{pair[0]} is worth one {pair[1]}", hint="name two currencies")
    row: StoredRow = {
        "from_currency": pair[0],
        "to_currency": pair[1],
        "rate_micros": words.micros(args.rate, option="RATE", least=1),
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "source": args.source,
    }
    return stored_row(context, "exchange_rate", row)


def run_energy(args: argparse.Namespace, context: Context) -> int:
    """Record one energy tariff."""
    from_at, until_at = words.span(args.from_at, args.until_at)
    zone_of(args.zone)
    first, last = _hours(args.hours)
    row: StoredRow = {
        "cluster": args.cluster,
        "currency": words.currency(args.currency),
        "amount_micros_per_kwh": words.micros(args.kwh, option="--kwh"),
        "pue_micros": words.micros(args.pue, option="--pue", least=CURRENCY_MICROS),
        "host_factor_micros": words.micros(
            args.host_factor, option="--host-factor", least=CURRENCY_MICROS
        ),
        "kgco2e_micros_per_kwh": None
        if args.carbon is None
        else words.micros(args.carbon, option="--carbon"),
        "time_zone": args.zone,
        "from_hour": first,
        "until_hour": last,
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "source": args.source,
    }
    return stored_row(context, "energy_tariff", row)


def run_shared(args: argparse.Namespace, context: Context) -> int:
    """Record one shared cost."""
    from_at, until_at = words.span(args.from_at, args.until_at)
    if (args.split == "custom") != (args.weights is not None):
        raise UsageError(
            "--weights and --split custom belong together",
            hint="for example --split custom --weights vision=5,speech=3",
        )
    row: StoredRow = {
        "name": named(args.name, option="NAME"),
        "cluster": args.cluster,
        "currency": words.currency(args.currency),
        "amount_micros": words.micros(args.amount, option="--amount", least=-words.LARGEST_MICROS),
        "split_rule": args.split,
        "weights_json": None if args.weights is None else json.dumps(words.weights(args.weights)),
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "approver": words.person(args.approver),
    }
    return stored_row(context, "shared_cost", row)


def stored_row(context: Context, table: str, row: StoredRow) -> int:
    """Store a row and say so with its number."""
    with open_warehouse(context.settings) as warehouse:
        stored = warehouse.state_insert(table, row)
    sys.stdout.write(f"recorded as {table} {stored[f'{table}_id']}\n")
    return 0


def named(text: str, *, option: str) -> str:
    """Return a name without blanks around it.

    Raises:
        UsageError: nothing is left.
    """
    if text.strip():
        return text.strip()
    raise UsageError(f"{option} is empty", hint=f"write a name behind {option}")


def _withdrawn(args: argparse.Namespace, kept: Mapping[str, object]) -> dict[str, object]:
    changed: dict[str, object] = {
        "is_withdrawn": 1,
        "source": f"withdrawn {args.price_id}: {args.reason}",
        "approver": words.person(args.approver),
    }
    if args.from_at is None:
        return changed
    start, end = instant_from(args.from_at, option="--from"), kept[dated.UNTIL]
    text = words.iso(start)
    if end is not None and text >= str(end):
        raise UsageError(
            f"--from {args.from_at} is not before the price's end {end}",
            hint="it does not hold there anyway",
        )
    return {**changed, dated.FROM: max(text, str(kept[dated.FROM]))}


def _hours(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if first.isdecimal() and last.isdecimal() and int(first) < int(last) <= HOURS_OF_DAY:
        return int(first), int(last)
    raise UsageError(
        f"--hours {text!r} is no span of a day", hint="for example --hours 8-22, or 22-24 and 0-8"
    )


def _plain(value: object) -> str | int | None:
    return value if value is None or isinstance(value, int) else str(value)


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "list": run_list,
    "set": run_set,
    "withdraw": run_withdraw,
    "import": importing.run_import,
    "tco": tco.run_tco,
    "rate": run_rate,
    "energy": run_energy,
    "shared": run_shared,
}
"""By the word after ``steward price``."""
