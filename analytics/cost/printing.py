"""Bills and accounts as printed minor units: top down, so that rows and columns add up.

The total is rounded once; groups sum to it; within a group direct cost, idle and shared cost sum to
the group, and its leaves to its direct cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from analytics.cost.account import LEAVES, Account
from analytics.cost.bills import Bills, GroupBill
from analytics.cost.rounding import Exact, apportioned, parts_per_minor
from analytics.usage import ALLOCATED

BILL_COLUMNS: Final = ("direct", "idle", "shared")
LEFT_IDLE: Final = "idle"
LEFT_SHARED: Final = "shared"


def printed_leaves(account: Account, currency: str) -> dict[str, int]:
    """Return the seven leaves in minor units; they sum to the rounded capacity cost."""
    unit = parts_per_minor(currency)
    return apportioned({name: account.parts[name] / Fraction(unit) for name in LEAVES})


def printed_groups(bills: Bills, currency: str) -> tuple[list[dict[str, int]], dict[str, int]]:
    """Return all groups in minor units, and what none of them can be given.

    Returns:
        one dict per group, in their order: ``full`` and ``BILL_COLUMNS``, and the leaves of
        ``ALLOCATED``; and what is left by ``LEFT_IDLE`` and ``LEFT_SHARED``. All ``full`` and what
        is left sum to the rounded total.
    """
    sums: dict[str, Exact] = {_key(at): one.full for at, one in enumerate(bills.groups)}
    rest: dict[str, Exact] = {LEFT_IDLE: bills.idle_left, LEFT_SHARED: bills.shared_left}
    whole = _apportioned({**sums, **rest}, currency)
    groups = [
        _printed_group(one, currency, full=whole[_key(at)]) for at, one in enumerate(bills.groups)
    ]
    return groups, {name: whole[name] for name in rest}


def printed_series(amounts: Sequence[Exact], currency: str) -> list[int]:
    """Return amounts in minor units that sum to their rounded sum, in their order."""
    found = _apportioned({_key(at): amount for at, amount in enumerate(amounts)}, currency)
    return list(found.values())


def _printed_group(one: GroupBill, currency: str, *, full: int) -> dict[str, int]:
    told = {"direct": one.direct, "idle": one.idle, "shared": one.shared}
    columns = _apportioned(told, currency, total=full)
    leaves = _apportioned(
        {name: one.account.parts[name] for name in ALLOCATED}, currency, total=columns["direct"]
    )
    return {"full": full, **columns, **leaves}


def _apportioned(
    amounts: Mapping[str, Exact], currency: str, *, total: int | None = None
) -> dict[str, int]:
    unit = parts_per_minor(currency)
    return apportioned({key: Fraction(amount) / unit for key, amount in amounts.items()}, total)


def _key(at: int) -> str:
    """Return a row's name such that ties go to the first row."""
    return f"{at:09d}"
