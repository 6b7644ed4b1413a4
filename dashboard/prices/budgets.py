"""``steward budget``: what may be spent in a period, and by whom."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Final

from analytics.cost import dated
from analytics.cost.statement import rate_text
from dashboard.prices import words
from dashboard.prices.listing import listing
from dashboard.prices.store import StoredRow, records, rows
from sql.access import open_warehouse
from steward.calendar_period import period_from
from steward.command import Context
from steward.errors import UsageError

LISTED: Final = (
    "budget_id",
    "tenant_id",
    "amount",
    "currency",
    "valid_from_at",
    "valid_until_at",
    "time_zone",
    "thresholds_json",
    "approver",
)


def run_list(args: argparse.Namespace, context: Context) -> int:
    """Print the budgets that hold at some time, or all rows."""
    with open_warehouse(context.settings) as warehouse:
        found = rows(warehouse, "budget")
    current = dated.latest(found, key=("tenant_id",), identity="budget_id")
    shown = [
        {**row, "amount": rate_text(int(str(row["amount_micros"])))}
        for row in records(found.sort("budget_id") if args.all else current)
    ]
    empty = "no budget is recorded; start with: steward budget set --help"
    sys.stdout.write(listing(shown, LISTED, form=args.format, empty=empty))
    return 0


def run_set(args: argparse.Namespace, context: Context) -> int:
    """Record one budget."""
    now = context.clock.now()
    period = period_from(args.period, zone=args.zone, until_at=now)
    if period.until_at == now:
        raise UsageError(
            f"--period {args.period} ends now, and a budget is for a whole period",
            hint="name it, for example --period 2026-05",
        )
    row: StoredRow = {
        "tenant_id": args.team,
        "currency": words.currency(args.currency),
        "amount_micros": words.micros(args.amount, option="--amount"),
        "time_zone": args.zone,
        "valid_from_at": words.iso(period.from_at),
        "valid_until_at": words.iso(period.until_at),
        "thresholds_json": words.thresholds(args.thresholds),
        "approver": words.person(args.approver),
    }
    with open_warehouse(context.settings) as warehouse:
        stored = warehouse.state_insert("budget", row)
    whose = "everybody" if args.team is None else args.team
    sys.stdout.write(
        f"budget {stored['budget_id']}: {whose} may spend {args.amount} {row['currency']} "
        f"from {row['valid_from_at']} until {row['valid_until_at']}\n"
    )
    return 0


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, Context], int]]] = {
    "list": run_list,
    "set": run_set,
}
"""By the word after ``steward budget``."""
