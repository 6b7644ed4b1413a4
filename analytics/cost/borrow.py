"""Borrowed capacity: who pays for use beyond one's own guarantee, by one of three policies.

Under every policy the charges and what stays with the pool add up to the capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from analytics.cost.rounding import Exact


class BorrowPolicy(StrEnum):
    """Who pays for guaranteed capacity that another one uses."""

    CONSUMPTION = "consumption"
    """The user pays what it used; what nobody used stays with the pool."""
    RESERVATION_FULL = "reservation_full"
    """The owner pays its whole guarantee, lent or not."""
    RESERVATION_WITH_BORROW_CREDIT = "reservation_with_borrow_credit"
    """The owner pays its guarantee; the borrower pays a fee that the lender is credited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What one team was promised and what it used, in cost (device-time at its price)."""

    guaranteed: Exact
    used: Exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrowing:
    """Who pays what; ``charges`` and ``pool`` add up to the capacity."""

    charges: Mapping[str, Fraction]
    """By team, ascending, with fees and credits."""
    fees: Mapping[str, Fraction]
    """Included in charges: what borrowers pay lenders."""
    credits: Mapping[str, Fraction]
    """Included in charges, as positive amounts: what lenders are paid. Equal to all fees."""
    pool: Fraction
    """Capacity that nobody is charged for."""


def borrowing(
    teams: Mapping[str, Quota],
    *,
    capacity: Exact,
    policy: BorrowPolicy,
    borrow_rate: Exact = 1,
) -> Borrowing:
    """Return who pays for a stretch in which guarantees and capacity stay the same.

    Args:
        teams: what each was promised and used.
        capacity: what there is; guarantees beyond it are promises that cannot be kept, and count
            in proportion to what can.
        policy: who pays.
        borrow_rate: fee for borrowed capacity as a share of its price, 0 to 1.

    Use beyond a guarantee takes capacity that nobody was promised first, and then what others were
    promised and did not use: lenders in proportion to that. The former is paid by its user.

    Raises:
        ValueError: more was used than there is.
    """
    whole = Fraction(capacity)
    used = {team: Fraction(teams[team].used) for team in sorted(teams)}
    if _sum(used) > whole:
        raise ValueError(f"teams used {_sum(used)} of a capacity of {whole}")
    if policy is BorrowPolicy.CONSUMPTION:
        none = dict.fromkeys(used, Fraction(0))
        return Borrowing(charges=used, fees=none, credits=none, pool=whole - _sum(used))
    owned = _guarantees(teams, whole)
    over = {team: max(used[team] - owned[team], Fraction(0)) for team in used}
    spare = {team: max(owned[team] - used[team], Fraction(0)) for team in used}
    open_taken = min(_sum(over), whole - _sum(owned))
    from_open = _scaled(over, open_taken)
    lent = _scaled(spare, _sum(over) - open_taken)
    is_paid = policy is BorrowPolicy.RESERVATION_WITH_BORROW_CREDIT
    rate = Fraction(borrow_rate) if is_paid else Fraction(0)
    fees = {team: (over[team] - from_open[team]) * rate for team in used}
    credit = {team: lent[team] * rate for team in used}
    charges = {t: owned[t] + from_open[t] + fees[t] - credit[t] for t in used}
    return Borrowing(charges=charges, fees=fees, credits=credit, pool=whole - _sum(charges))


def _guarantees(teams: Mapping[str, Quota], capacity: Fraction) -> dict[str, Fraction]:
    promised = {team: Fraction(teams[team].guaranteed) for team in sorted(teams)}
    return _scaled(promised, min(_sum(promised), capacity))


def _scaled(amounts: Mapping[str, Fraction], total: Fraction) -> dict[str, Fraction]:
    """Return amounts in the same proportions that sum to a total; none where they are all 0."""
    whole = _sum(amounts)
    factor = total / whole if whole else Fraction(0)
    return {team: amount * factor for team, amount in amounts.items()}


def _sum(amounts: Mapping[str, Fraction]) -> Fraction:
    return sum(amounts.values(), Fraction(0))
