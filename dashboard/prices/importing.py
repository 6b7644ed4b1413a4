"""``steward price import``: prices of a CSV file; of a faulty one none is recorded."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from analytics.cost.book import PURCHASE_ORDER, resolved
from dashboard.prices import words
from dashboard.prices.demo import EXAMPLE_CSV
from dashboard.prices.store import StoredRow, records, rows
from sql.access import open_warehouse
from steward.command import Context
from steward.errors import InputError, StewardError, UsageError

REQUIRED: Final = ("model", "rate", "currency", "from")
OPTIONAL: Final = (
    "until",
    "cluster",
    "team",
    "type",
    "sku",
    "source",
    "approver",
    "list_rate",
    "includes_energy",
)
TRUTHS: Final = {"": 1, "yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0}
MOST_TOLD: Final = 10
"""Faults told at once: a wrong file has one in each row."""
_SAME: Final = (
    "gpu_model",
    "tenant_id",
    "cluster",
    "purchase_type",
    "currency",
    "amount_micros_per_gpu_hour",
    "list_amount_micros_per_gpu_hour",
    "sku",
    "includes_energy",
    "valid_from_at",
    "valid_until_at",
)
"""What makes two prices the same; recording it again would say nothing new."""


def run_import(args: argparse.Namespace, context: Context) -> int:
    """Record the prices of a file; those that hold already are left out."""
    name = "the example prices" if args.example else str(args.file)
    text = EXAMPLE_CSV if args.example else _text(args.file)
    stated = parsed(text, name=name, approver=words.person(args.approver))
    with open_warehouse(context.settings) as warehouse:
        current = records(resolved(rows(warehouse, "price")))
        known = {tuple(row[one] for one in _SAME) for row in current}
        fresh = [row for row in stated if tuple(row.get(one) for one in _SAME) not in known]
        for row in fresh:
            warehouse.state_insert("price", row)
    held = len(stated) - len(fresh)
    sys.stdout.write(f"recorded {len(fresh)} prices of {name}; {held} hold already\n")
    return 0


def parsed(text: str, *, name: str, approver: str) -> list[StoredRow]:
    """Return the rows of a CSV text with the columns ``REQUIRED`` and any of ``OPTIONAL``.

    Raises:
        InputError: a column is missing or unknown, or rows are faulty: each is told with its line.
    """
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    _refuse_header(reader.fieldnames or [], name)
    found: list[StoredRow] = []
    faults: list[str] = []
    try:
        for row in reader:
            try:
                found.append(_row(row, approver=approver))
            except StewardError as error:
                faults.append(f"line {reader.line_num}: {error.message}")
    except csv.Error as error:
        faults.append(f"line {reader.line_num}: {error}")
    _refuse_faults(faults, name)
    if not found:
        raise InputError(f"{name} has no rows", hint="write one price a line below the header")
    return found


def _refuse_header(names: Sequence[str], name: str) -> None:
    missing = [one for one in REQUIRED if one not in names]
    unknown = [one for one in names if one not in {*REQUIRED, *OPTIONAL}]
    if missing or unknown or len(set(names)) < len(names):
        told = [*(f"lacks {one}" for one in missing), *(f"has {one!r}" for one in unknown)]
        raise InputError(
            f"the header of {name} is not right: {', '.join(told) or 'a column comes twice'}",
            hint=f"columns: {', '.join(REQUIRED)}; optional: {', '.join(OPTIONAL)}",
        )


def _refuse_faults(faults: Iterable[str], name: str) -> None:
    told = list(faults)
    if not told:
        return
    rest = f"\n  and {len(told) - MOST_TOLD} more" if len(told) > MOST_TOLD else ""
    listed = "".join(f"\n  {fault}" for fault in told[:MOST_TOLD])
    raise InputError(
        f"{name} has {len(told)} faulty row(s):{listed}{rest}",
        hint="correct them and import the file again; nothing was recorded",
    )


def _row(row: Mapping[str | None, object], *, approver: str) -> StoredRow:
    if None in row or None in row.values():
        raise InputError("it has not as many cells as the header", hint="quote commas")
    cells = {str(name): str(value).strip() for name, value in row.items()}
    kind = cells.get("type") or "on_demand"
    truth = cells.get("includes_energy", "").lower()
    if kind not in PURCHASE_ORDER or truth not in TRUTHS or not cells["model"]:
        raise UsageError(
            f"model {cells['model']!r}, type {kind!r} or includes_energy {truth!r} is not right",
            hint=f"types: {', '.join(PURCHASE_ORDER)}; includes_energy: yes or no",
        )
    from_at, until_at = words.span(cells["from"], cells.get("until") or None, options=_ENDS)
    listed = cells.get("list_rate")
    return {
        "gpu_model": cells["model"],
        "tenant_id": cells.get("team") or None,
        "cluster": cells.get("cluster") or None,
        "amount_micros_per_gpu_hour": words.micros(cells["rate"], option="rate"),
        "currency": words.currency(cells["currency"], option="currency"),
        "valid_from_at": from_at,
        "valid_until_at": until_at,
        "purchase_type": kind,
        "sku": cells.get("sku") or None,
        "source": cells.get("source") or "imported from a file",
        "approver": cells.get("approver") or approver,
        "includes_energy": TRUTHS[truth],
        "list_amount_micros_per_gpu_hour": words.micros(listed, option="list_rate")
        if listed
        else None,
    }


_ENDS: Final = ("from", "until")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", hint="name a CSV file in UTF-8") from error
