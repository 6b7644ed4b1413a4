"""``steward close``: the statement of a period, stored once; later only corrections to it."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import polars as pl

from analytics.cost.costing import Costing, costing
from analytics.cost.statement import (
    Document,
    Heading,
    config_hash,
    correction,
    sha256_of,
    statement,
    text_of,
)
from analytics.inputs import empty
from analytics.reports.cost import DEFINITION
from analytics.reports.model import Question
from dashboard.prices import words
from dashboard.prices.store import StoredRow, rows
from dashboard.reports import load
from sql.access import open_warehouse
from sql.client import RemoteWarehouse
from sql.warehouse import EmbeddedWarehouse
from steward.calendar_period import period_from, zone_of
from steward.command import Context
from steward.errors import InputError, UsageError, WarehouseError
from steward.output import write_output
from steward.period import Period
from steward.units import TICKS_PER_GPU_HOUR

CLOSED: Final = "closed_period"
RULES: Final = {
    "idle": "to holders of the cluster and model, by direct cost",
    "shared": "by the rule of each cost, weighed by direct cost before idle",
    "rounding": "largest remainder, top down",
}
"""What a statement depends on beside prices and data."""
TICK: Final = timedelta(microseconds=1)
Store = EmbeddedWarehouse | RemoteWarehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closing:
    """One period that is closed, with what is known of it."""

    period: Period
    extent: Period
    stored: pl.DataFrame
    """Its statement and corrections, ascending; no rows while it is open."""
    costing: Costing
    args: argparse.Namespace


def run(args: argparse.Namespace, context: Context) -> int:
    """Close a period, show the statement of a closed one, or issue a correction."""
    with open_warehouse(context.settings) as warehouse:
        closing = _closing(warehouse, args)
        if closing.stored.is_empty():
            if args.correct:
                raise UsageError(
                    f"{args.period} is not closed", hint=f"close it: steward close {args.period}"
                )
            return _close(warehouse, closing)
        return _correct(warehouse, closing) if args.correct else _show(closing)


def _closing(warehouse: Store, args: argparse.Namespace) -> _Closing:
    extent = load.required_extent(warehouse)
    period = period_from(args.period, zone=args.zone, until_at=extent.until_at)
    closed = rows(warehouse, CLOSED).sort("closed_period_id")
    is_same = (pl.col("from_at") == period.from_at) & (pl.col("until_at") == period.until_at)
    stored = closed.filter(is_same)
    if stored.is_empty():
        _refuse_overlap(closed, period)
    code = _currency(args, stored)
    known = load.known_part(extent, period)
    told = Question(period=known, time_zone=args.zone, currency=code)
    frames = load.frames(warehouse, DEFINITION, told)
    # a correction is made of today's prices: nothing is frozen for it
    today = {**frames, "state.closed_period": empty("state.closed_period")}
    found = costing(today, period, currency=code)
    return _Closing(period=period, extent=extent, stored=stored, costing=found, args=args)


def _close(warehouse: Store, closing: _Closing) -> int:
    missing = _missing(closing)
    if closing.costing.currency is None:
        raise InputError(
            f"{closing.args.period} cannot be closed: no price is in force",
            hint="set prices first: steward price set, or steward price import FILE.csv",
        )
    if missing and not closing.args.reason:
        raise InputError(
            f"{closing.args.period} cannot be closed: {'; '.join(missing)}",
            hint="mend that, or close it all the same with --reason TEXT, which is recorded",
        )
    name = _statement_id(closing)
    document = statement(closing.costing, _heading(closing, name, missing=missing))
    _store(warehouse, closing, document)
    return _tell(closing, document, text=text_of(document), verb="closed")


def _show(closing: _Closing) -> int:
    """Print the stored statement; say whether a new one would differ."""
    row = closing.stored.filter(kind="statement").row(0, named=True)
    text = _verified(row["statement_json"], row["statement_sha256"])
    fresh = _fresh(closing, name=f"{row['statement_id']}-new")
    changed = correction(_documents(closing), fresh, statement_id=f"{row['statement_id']}-new")
    code = _tell(closing, json.loads(text), text=text, verb="is closed")
    for one in closing.stored.filter(kind="correction").iter_rows(named=True):
        told = json.loads(one["statement_json"])
        sys.stdout.write(f"corrected by {one['statement_id']}: {told['total']}\n")
    if changed is not None:
        sys.stdout.write(
            f"note: prices or data have changed since: the total would differ by "
            f"{changed['total']} {changed['currency']}; "
            f"issue it with: steward close {closing.args.period} --correct\n"
        )
    return code


def _correct(warehouse: Store, closing: _Closing) -> int:
    first = str(closing.stored["statement_id"][0])
    name = f"{first}-c{closing.stored.height}"
    missing = _missing(closing)
    if missing and not closing.args.reason:
        raise InputError(
            f"{closing.args.period} cannot be corrected: {'; '.join(missing)}",
            hint="mend that, or correct it all the same with --reason TEXT, which is recorded",
        )
    changed = correction(_documents(closing), _fresh(closing, name=name), statement_id=name)
    if changed is None:
        sys.stdout.write(f"{first} needs no correction: no amount has changed\n")
        return 0
    _store(warehouse, closing, changed)
    return _tell(closing, changed, text=text_of(changed), verb=f"corrects {first}")


def _fresh(closing: _Closing, *, name: str) -> Document:
    if closing.costing.currency is None:
        raise InputError("no price is in force any more", hint="see `steward price list --all`")
    return statement(closing.costing, _heading(closing, name, missing=[]))


def _heading(closing: _Closing, name: str, *, missing: list[str]) -> Heading:
    config = {**RULES, "currency": str(closing.costing.currency), "time_zone": closing.args.zone}
    said = closing.args.reason
    return Heading(
        statement_id=name,
        time_zone=closing.args.zone,
        watermark_at=closing.extent.until_at - TICK,
        config_hash=config_hash(config),
        reason=f"{said} ({'; '.join(missing)})" if said and missing else said,
    )


def _missing(closing: _Closing) -> list[str]:
    """Return what is not known of the period, in words."""
    whole, told = closing.costing.whole, []
    if closing.extent.until_at < closing.period.until_at:
        told.append(f"the newest row is of {words.iso(closing.extent.until_at)}")
    if closing.period.from_at < closing.extent.from_at:
        told.append(f"the oldest row is of {words.iso(closing.extent.from_at)}")
    unpriced = whole.wall_ticks - whole.priced_ticks
    if unpriced:
        told.append(f"{unpriced / TICKS_PER_GPU_HOUR:,.2f} GPU-hours have no price")
    if closing.costing.unconverted:
        told.append(f"no exchange rate for {', '.join(closing.costing.unconverted)}")
    return told


def _refuse_overlap(closed: pl.DataFrame, period: Period) -> None:
    overlap = closed.filter(
        (pl.col("from_at") < period.until_at) & (pl.col("until_at") > period.from_at)
    )
    if not overlap.is_empty():
        raise InputError(
            f"part of it is closed already by {overlap['statement_id'][0]}",
            hint="close whole periods beside each other; what is closed cannot be closed again",
        )


def _currency(args: argparse.Namespace, stored: pl.DataFrame) -> str | None:
    asked = None if args.currency is None else words.currency(args.currency)
    if stored.is_empty():
        return asked
    code = str(stored["currency"][0])
    if asked not in {None, code}:
        raise UsageError(
            f"{args.period} is closed in {code}", hint="leave --currency out: it stays as it is"
        )
    return code


def _statement_id(closing: _Closing) -> str:
    zone = zone_of(closing.args.zone)
    first = closing.period.from_at.astimezone(zone)
    last = (closing.period.until_at - TICK).astimezone(zone)
    after = closing.period.until_at.astimezone(zone)
    if first.day == 1 == after.day and (first.year, first.month) == (last.year, last.month):
        return f"CB-{first:%Y-%m}"
    days = sorted({f"{first:%Y-%m-%d}", f"{last:%Y-%m-%d}"})
    return f"CB-{'_'.join(days)}"


def _documents(closing: _Closing) -> list[Document]:
    pairs = closing.stored.select("statement_json", "statement_sha256").rows()
    return [json.loads(_verified(text, digest)) for text, digest in pairs]


def _verified(text: str, digest: str) -> str:
    """Return a stored statement whose bytes are those that were hashed."""
    if sha256_of(text) == digest:
        return text
    raise WarehouseError(
        "a stored statement is not what was closed: its hash differs",
        hint="restore a backup with: steward db restore SRC",
    )


def _store(warehouse: Store, closing: _Closing, document: Document) -> None:
    text = text_of(document)
    corrects = document.get("corrects_statement_id")
    row: StoredRow = {
        "statement_id": str(document["statement_id"]),
        "from_at": closing.period.from_at.isoformat(),
        "until_at": closing.period.until_at.isoformat(),
        "time_zone": closing.args.zone,
        "currency": str(document["currency"]),
        "kind": str(document["kind"]),
        "corrects_statement_id": None if corrects is None else str(corrects),
        "statement_json": text,
        "statement_sha256": sha256_of(text),
        "price_book_version": str(document["price_book_version"]),
        "watermark_at": str(document["watermark_at"]),
        "closed_by": words.person(closing.args.closed_by),
    }
    warehouse.state_insert(CLOSED, row)


def _tell(closing: _Closing, document: Document, *, text: str, verb: str) -> int:
    lines = document["lines"]
    count = len(lines) if isinstance(lines, list) else 0
    sys.stdout.write(
        f"{document['statement_id']} {verb}: total {document['total']} {document['currency']}, "
        f"{count} lines, price book {document['price_book_version']}, "
        f"data to {document['watermark_at']}\n"
        f"sha256 {sha256_of(text)}\n"
    )
    if document["reason"]:
        sys.stdout.write(f"reason: {document['reason']}\n")
    if closing.args.output is not None:
        write_output(closing.args.output, text)
    return 0
