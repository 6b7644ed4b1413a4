"""``steward price tco``: the rate of owned hardware, exactly; and how any one price is stored."""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from typing import Final

from analytics.cost.statement import rate_text
from analytics.cost.tco import RateCard, per_capacity_hour, per_sold_hour, per_year, rate_micros
from dashboard.prices import words
from dashboard.prices.store import StoredRow, rows
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import UsageError
from steward.period import instant_from

_FIELDS: Final = {
    "server": "server",
    "residual_ratio": "residual",
    "life_years": "life_years",
    "network_and_storage": "network",
    "colocation_kw": "kw",
    "colocation_per_kw_month": "kw_month",
    "load_ratio": "load",
    "pue": "pue",
    "energy_per_kwh": "kwh",
    "support_per_year": "support",
    "staff_per_year": "staff",
}
"""Field of the rate card by flag (without hyphens)."""
PRINTED_DECIMALS: Final = 12


def run_tco(args: argparse.Namespace, context: Context) -> int:
    """Print the rate with its inputs; record it where a model is named."""
    card, code = rate_card(args), words.currency(args.currency)
    is_leap = args.leap_year
    rate = per_capacity_hour(card, is_leap=is_leap)
    lines = [
        ("per year", words.decimal_text(per_year(card, is_leap=is_leap), decimals=6)),
        ("per GPU-hour of capacity", words.decimal_text(rate, decimals=PRINTED_DECIMALS)),
        ("  exactly", f"{rate.numerator}/{rate.denominator}"),
        ("  in the price book", rate_text(rate_micros(rate))),
    ]
    if args.sold is not None:
        lines.append(("per sold GPU-hour", _sold(args, card)))
        lines.append(("  use it only where idle is charged to nobody", ""))
    width = max(len(name) for name, _ in lines)
    sys.stdout.write("".join(f"{f'{name:<{width}}  {value}'.rstrip()}\n" for name, value in lines))
    if args.store is None:
        return 0
    return store_price(context, _row(args, card, rate=rate, code=code))


def rate_card(args: argparse.Namespace) -> RateCard:
    """Return what the flags say of one server.

    Raises:
        UsageError: a value is no decimal or out of range.
    """
    values = {
        field: words.exact(getattr(args, flag), option=f"--{flag.replace('_', '-')}")
        for field, flag in _FIELDS.items()
    }
    life = args.network_life_years or args.life_years
    network = words.exact(life, option="--network-life-years")
    if not args.gpus.isdecimal() or min(values.values()) < 0:
        raise UsageError("a server has whole GPUs, and no amount is negative", hint="correct it")
    if max(values["residual_ratio"], values["load_ratio"]) > 1 or values["pue"] < 1:
        raise UsageError(
            "--residual and --load are shares of 1, and --pue is at least 1",
            hint="write 15 % as 0.15; a facility draws at least what its servers do",
        )
    try:
        return RateCard(gpus=int(args.gpus), network_life_years=network, **values)
    except ValueError as error:
        raise UsageError(str(error), hint="correct --gpus or the years of life") from error


def store_price(context: Context, row: StoredRow) -> int:
    """Record a price, say what holds now, and which closed periods it does not change."""
    with open_warehouse(context.settings) as warehouse:
        stored = warehouse.state_insert("price", row)
        touched = rows(warehouse, "closed_period").filter(kind="statement").sort("from_at")
    until = "" if row["valid_until_at"] is None else f" until {row['valid_until_at']}"
    rate = rate_text(int(str(row["amount_micros_per_gpu_hour"])))
    sys.stdout.write(
        f"price {stored['price_id']}: {row['gpu_model']} {rate} {row['currency']} per GPU-hour "
        f"({row['purchase_type']}) from {row['valid_from_at']}{until}\n"
    )
    start = instant_from(str(row["valid_from_at"]))
    end = row["valid_until_at"]
    for name, from_at, until_at in touched.select("statement_id", "from_at", "until_at").rows():
        if start < until_at and (end is None or from_at < instant_from(str(end))):
            sys.stdout.write(
                f"note: {name} is closed and keeps its prices; "
                "issue the difference with: steward close PERIOD --correct\n"
            )
    return 0


def _sold(args: argparse.Namespace, card: RateCard) -> str:
    ratio = words.exact(args.sold, option="--sold")
    try:
        rate = per_sold_hour(card, sold_ratio=ratio, is_idle_charged=False, is_leap=args.leap_year)
    except ValueError as error:
        raise UsageError(f"--sold {args.sold}: {error}", hint="for example --sold 0.7") from error
    return words.decimal_text(rate, decimals=PRINTED_DECIMALS)


def _row(args: argparse.Namespace, card: RateCard, *, rate: Fraction, code: str) -> StoredRow:
    if args.from_at is None:
        raise UsageError("--store needs --from", hint="say from when on the rate holds")
    from_at, until_at = words.span(args.from_at, args.until_at)
    inputs = {name: str(getattr(args, flag)) for name, flag in _FIELDS.items()}
    return {
        "gpu_model": args.store,
        "cluster": args.cluster,
        "amount_micros_per_gpu_hour": rate_micros(rate),
        "currency": code,
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "purchase_type": "tco",
        "source": args.source,
        "approver": words.person(args.approver),
        "includes_energy": int(card.energy_per_kwh > 0),
        "calculator_json": json.dumps(
            {"gpus": args.gpus, **inputs, "exact": f"{rate.numerator}/{rate.denominator}"}
        ),
    }
