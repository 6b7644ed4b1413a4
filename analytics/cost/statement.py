"""The statement of a closed period, and the corrections that follow it.

A statement is a text that never changes: the same bytes whenever it is read again. When late data
or a changed price would make another one, the difference is a correction of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from analytics.cost.account import Account, Key
from analytics.cost.bills import bills
from analytics.cost.costing import Costing
from analytics.cost.printing import printed_groups, printed_series
from analytics.cost.rounding import Exact, minor_text, minor_units
from steward.units import CURRENCY_MICROS

SCHEMA: Final = "steward.statement/1"
"""Names the shape; it changes only together with the shape."""
SHARED_LEAF: Final = "shared"
LINE_KEYS: Final = ("team", "cluster", "model", "leaf")
BILL_AMOUNTS: Final = ("direct", "idle_share", "shared", "total")

Json: TypeAlias = "str | int | bool | list[Json] | dict[str, Json] | None"
Document: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a statement says of itself."""

    statement_id: str
    time_zone: str
    """Whose days and months the period is told in."""
    watermark_at: datetime
    """The newest stored row when it was made."""
    config_hash: str
    """Names the settings that it depends on."""
    reason: str | None
    """Why it was closed although data or prices were missing; None: nothing was missing."""


def statement(costing: Costing, heading: Heading) -> Document:
    """Return the statement of a period.

    Lines are device-time by team, cluster, model and leaf, and shared costs by name (in the place
    of the team); they sum to the total. An amount without a price is null. Bills say who bears it;
    they sum to the same total.

    Raises:
        ValueError: there is no price at all, so that no currency is known.
    """
    if costing.currency is None:
        raise ValueError("a statement needs a currency")
    currency, period = costing.currency, costing.period
    return {
        "schema": SCHEMA,
        "kind": "statement",
        "statement_id": heading.statement_id,
        "period": {
            "from_at": instant(period.from_at),
            "until_at": instant(period.until_at),
            "time_zone": heading.time_zone,
        },
        "currency": currency,
        "watermark_at": instant(heading.watermark_at),
        "price_book_version": costing.book_version or "",
        "config_hash": heading.config_hash,
        "reason": heading.reason,
        "unpriced_ticks": str(costing.whole.wall_ticks - costing.whole.priced_ticks),
        "prices": _prices(costing),
        "lines": _lines(costing, currency),
        "bills": _bills(costing, currency),
        "total": minor_text(_total(costing, currency), currency),
    }


def correction(
    stored: Sequence[Document], fresh: Document, *, statement_id: str
) -> Document | None:
    """Return what turns the stored statement, with its corrections, into the fresh one.

    Args:
        stored: the statement and the corrections that were issued since, in their order.
        fresh: a new statement of the same period in the same currency.
        statement_id: of the correction.

    Returns:
        a document whose lines, bills and total are differences; None where no amount differs

    Raises:
        ValueError: the currencies differ.
    """
    first = stored[0]
    currency = str(first["currency"])
    if fresh["currency"] != currency:
        raise ValueError(f"a statement in {currency} cannot be corrected in {fresh['currency']}")
    lines = _difference(stored, fresh, part="lines", keys=LINE_KEYS, amounts=("amount",))
    borne = _difference(stored, fresh, part="bills", keys=("team",), amounts=BILL_AMOUNTS)
    if not lines and not borne:
        return None
    before = sum(_minor(one["total"]) for one in stored)
    return {
        **fresh,
        "kind": "correction",
        "statement_id": statement_id,
        "corrects_statement_id": first["statement_id"],
        "corrects_price_book_version": stored[-1]["price_book_version"],
        "lines": lines,
        "bills": borne,
        "total": minor_text(_minor(fresh["total"]) - before, currency),
    }


def text_of(document: Document) -> str:
    """Return the document as the one text that is stored and hashed: sorted, without blanks."""
    return json.dumps(
        document, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def sha256_of(text: str) -> str:
    """Return the hash that names a statement's bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def config_hash(config: Mapping[str, str]) -> str:
    """Return a name for settings: equal settings, equal name."""
    return sha256_of(json.dumps(dict(config), sort_keys=True, ensure_ascii=False))


def instant(at: datetime) -> str:
    """Return an instant in the one spelling that statements use."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def rate_text(rate_micros: int) -> str:
    """Return a rate as decimal text without loss: ``2.50``, ``1.688422``."""
    whole, rest = divmod(rate_micros, CURRENCY_MICROS)
    decimals = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{decimals}"


def _lines(costing: Costing, currency: str) -> list[Json]:
    places = _by_place(costing)
    kept = [(place, account, leaf) for place, account in places for leaf in _kept(account)]
    amounts: list[Exact] = [account.parts[leaf] for _, account, leaf in kept]
    minors = printed_series([*amounts, *(one.parts for one in costing.shared)], currency)
    found: list[Json] = []
    for (place, account, leaf), minor in zip(kept, minors, strict=False):
        key = (*map(_text, place), leaf)
        is_unpriced = account.priced[leaf] == 0
        found.append(
            {
                **dict(zip(LINE_KEYS, key, strict=True)),
                "ticks": str(account.ticks[leaf]),
                "amount": None if is_unpriced else minor_text(minor, currency),
            }
        )
    for one, minor in zip(costing.shared, minors[len(kept) :], strict=True):
        key = (one.name, one.cluster, None, SHARED_LEAF)
        line = dict(zip(LINE_KEYS, key, strict=True))
        found.append({**line, "ticks": "0", "amount": minor_text(minor, currency)})
    return found


def _by_place(costing: Costing) -> list[tuple[Key, Account]]:
    return list(costing.accounts("tenant_id", "cluster", "model").items())


def _kept(account: Account) -> list[str]:
    return [name for name, ticks in account.ticks.items() if ticks]


def _bills(costing: Costing, currency: str) -> list[Json]:
    borne = bills(costing, ("tenant_id",), is_of_holder=True)
    printed, left = printed_groups(borne, currency)
    found: list[Json] = []
    for one, minor in zip(borne.groups, printed, strict=True):
        found.append(_bill(_text(one.key[0]), minor, currency))
    if any(left.values()):
        rest = {"direct": 0, "full": sum(left.values()), **left}
        found.append(_bill("not distributed", rest, currency))
    return found


def _bill(team: str | None, minor: Mapping[str, int], currency: str) -> dict[str, Json]:
    names = ("direct", "idle", "shared", "full")
    texts = (minor_text(minor[name], currency) for name in names)
    return {"team": team, **dict(zip(BILL_AMOUNTS, texts, strict=True))}


def _prices(costing: Costing) -> list[Json]:
    return [
        {
            "price_id": row["price_id"],
            "gpu_model": row["gpu_model"],
            "cluster": row["cluster"],
            "team": row["tenant_id"],
            "purchase_type": row["purchase_type"],
            "currency": row["currency"],
            "rate": rate_text(row["rate_micros"]),
            "valid_from_at": instant(row["valid_from_at"]),
            "valid_until_at": instant(row["valid_until_at"]),
        }
        for row in costing.book.iter_rows(named=True)
    ]


def _total(costing: Costing, currency: str) -> int:
    return minor_units(costing.whole.capacity + costing.shared_total, currency)


def _difference(
    stored: Iterable[Document],
    fresh: Document,
    *,
    part: str,
    keys: Sequence[str],
    amounts: Sequence[str],
) -> list[Json]:
    """Return rows with the amounts by which the fresh document exceeds the stored ones."""
    currency = str(fresh["currency"])
    sums: dict[tuple[str | None, ...], dict[str, int]] = {}
    for sign, document in [*((-1, one) for one in stored), (1, fresh)]:
        for row in _rows(document[part]):
            key = tuple(_text(row[name]) for name in keys)
            at = sums.setdefault(key, dict.fromkeys(amounts, 0))
            for name in amounts:
                at[name] += sign * _minor(row[name])
    return [
        {
            **dict(zip(keys, key, strict=True)),
            **{name: minor_text(minor, currency) for name, minor in changed.items()},
        }
        for key, changed in sorted(sums.items(), key=lambda item: _order(item[0]))
        if any(changed.values())
    ]


def _rows(part: Json) -> list[dict[str, Json]]:
    found = part if isinstance(part, list) else []
    return [row for row in found if isinstance(row, dict)]


def _minor(text: Json) -> int:
    """Return the minor units of what ``minor_text`` wrote; what is unknown adds nothing."""
    return 0 if text is None else int(str(text).replace(".", ""))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _order(key: Sequence[str | None]) -> list[tuple[bool, str]]:
    return [(value is None, value or "") for value in key]
