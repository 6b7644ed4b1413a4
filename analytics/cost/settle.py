"""The order of a bill: price, allocate, idle, share, overhead, filter, round.

Each step adds a column of its own, so a bill always shows direct cost apart from shares of idle and
of what benefits all. A filter comes last and chooses rows; it never changes a kept number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from analytics.cost.rounding import Exact, apportioned, parts_per_minor
from analytics.cost.split import UNDISTRIBUTED, SplitRule, split, weights

IDLE: Final = "idle"
"""The row of idle cost that is not shared out."""
COLUMNS: Final = ("direct", "idle", "shared", "overhead")

PlaceResource = tuple[str, str]
"""Where idle arose (a cluster or a node) and of which resource (a GPU model, ``cpu``, ...)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Priced and allocated cost of one owner in one place."""

    owner: str
    """Who bears it, or what it is grouped by; a missing one is the group "unattributed"."""
    place: str
    costs: Mapping[str, Exact]
    """By resource."""
    is_shared: bool = False
    """Benefits all: it is shared out instead of borne by its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How the bill is made; none of it changes the total."""

    shares_idle: bool = False
    """Idle of each place and resource goes to its holders there, by their cost of it."""
    rule: SplitRule = SplitRule.PROPORTIONAL
    custom: Mapping[str, Exact] | None = None
    overhead: Exact = 0
    """A flat cost added to the bill and divided as shared cost is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What one owner bears, each part apart."""

    direct: Fraction = Fraction(0)
    idle: Fraction = Fraction(0)
    shared: Fraction = Fraction(0)
    overhead: Fraction = Fraction(0)

    @property
    def total(self) -> Fraction:
        """Return the sum of the parts."""
        return self.direct + self.idle + self.shared + self.overhead


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """All bills; they add up to the lines, the idle and the overhead."""

    bills: Mapping[str, Bill]
    """By owner, ascending; ``IDLE`` and ``UNDISTRIBUTED`` are rows where they hold anything."""
    warnings: tuple[str, ...]

    @property
    def total(self) -> Fraction:
        """Return the sum of all bills."""
        return sum((bill.total for bill in self.bills.values()), Fraction(0))

    def kept(self, keep: Callable[[str], bool]) -> Mapping[str, Bill]:
        """Return the bills of some owners, unchanged."""
        return {owner: bill for owner, bill in self.bills.items() if keep(owner)}


def settle(
    lines: Iterable[Line], *, idle: Mapping[PlaceResource, Exact], rules: Rules
) -> Settlement:
    """Return who bears what.

    Args:
        lines: priced, allocated cost, in any exact unit (parts, or currency units).
        idle: what nobody held, by place and resource, never negative.
        rules: what is shared out and how.

    Returns:
        direct cost by owner; idle as a row, or shared out by place and resource; shared lines
        (with their share of idle) and overhead divided by direct cost before idle

    Raises:
        ValueError: idle is negative somewhere: a price misses what is held there.
    """
    told = tuple(lines)
    for (place, resource), amount in sorted(idle.items()):
        if amount < 0:
            raise ValueError(f"idle {resource} of {place} is negative: {amount}")
    direct = _direct(line for line in told if not line.is_shared)
    idle_of, idle_left = _idle_shares(told, idle) if rules.shares_idle else ({}, _sum(idle))
    pool = _sum(_direct(line for line in told if line.is_shared)) + idle_of.pop(_POOL, Fraction(0))
    weighed = weights(rules.rule, direct, custom=rules.custom)
    shared = split(pool, weighed)
    overhead = split(rules.overhead, weighed, name="overhead")
    bills = {
        owner: Bill(
            direct=direct.get(owner, Fraction(0)),
            idle=idle_of.get(owner, Fraction(0)),
            shared=shared.shares.get(owner, Fraction(0)),
            overhead=overhead.shares.get(owner, Fraction(0)),
        )
        for owner in sorted({*direct, *weighed})
    }
    left = Bill(shared=shared.undistributed, overhead=overhead.undistributed)
    rest = {IDLE: Bill(idle=idle_left), UNDISTRIBUTED: left}
    return Settlement(
        bills=bills | {name: bill for name, bill in rest.items() if bill.total},
        warnings=tuple(note for note in (shared.warning, overhead.warning) if note is not None),
    )


def printed_bills(bills: Mapping[str, Bill], currency: str) -> dict[str, dict[str, int]]:
    """Return bills whose amounts are parts as minor units, by owner and column.

    Top down: the total is rounded once, owners sum to it, and the columns of each owner (with
    ``total``) sum to that owner.
    """
    unit = parts_per_minor(currency)
    owners = apportioned({owner: bill.total / unit for owner, bill in bills.items()})
    return {
        owner: apportioned({name: getattr(bill, name) / unit for name in COLUMNS}, owners[owner])
        | {"total": owners[owner]}
        for owner, bill in bills.items()
    }


_POOL: Final = ""
"""The holder that stands for all shared lines while idle is shared out."""


def _direct(lines: Iterable[Line]) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for line in lines:
        found[line.owner] = found.get(line.owner, Fraction(0)) + _sum(line.costs)
    return found


def _idle_shares(
    lines: tuple[Line, ...], idle: Mapping[PlaceResource, Exact]
) -> tuple[dict[str, Fraction], Fraction]:
    """Return idle by owner (shared lines under ``_POOL``) and what no holder could be given."""
    held: dict[PlaceResource, dict[str, Fraction]] = {}
    for line in lines:
        holder = _POOL if line.is_shared else line.owner
        for resource, cost in line.costs.items():
            there = held.setdefault((line.place, resource), {})
            there[holder] = there.get(holder, Fraction(0)) + Fraction(cost)
    shares: dict[str, Fraction] = {}
    left = Fraction(0)
    for where in sorted(idle):
        found = split(idle[where], held.get(where, {}))
        left += found.undistributed
        for holder, share in found.shares.items():
            shares[holder] = shares.get(holder, Fraction(0)) + share
    return shares, left


def _sum(amounts: Mapping[str, Exact] | Mapping[PlaceResource, Exact]) -> Fraction:
    return sum(map(Fraction, amounts.values()), Fraction(0))
