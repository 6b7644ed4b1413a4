"""Shared cost: who bears what benefits all, by one of four rules, exactly.

Weights are direct cost before idle is added, so that showing or sharing idle never moves shared
cost. What cannot be shared out, because every weight is zero, stays a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

from analytics.cost.rounding import Exact

UNDISTRIBUTED: Final = "shared-undistributed"
"""The row of shared cost that nobody could be given."""


class SplitRule(StrEnum):
    """How shared cost is divided."""

    PROPORTIONAL = "proportional"
    """By direct cost."""
    EVEN_ALL = "even_all"
    """The same for every owner."""
    EVEN_ACTIVE = "even_active"
    """The same for every owner with direct cost."""
    CUSTOM = "custom"
    """By weights that somebody set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Shared cost divided: shares and what is left add up to the amount."""

    shares: Mapping[str, Fraction]
    """By owner, ascending; 0 where an owner bears none."""
    undistributed: Fraction
    """The whole amount where every weight is 0, else 0."""
    warning: str | None
    """A sentence where something could not be shared out."""


def weights(
    rule: SplitRule, direct: Mapping[str, Exact], *, custom: Mapping[str, Exact] | None = None
) -> dict[str, Fraction]:
    """Return each owner's weight, ascending by owner, never negative.

    Args:
        rule: how to weigh.
        direct: direct cost by owner, before idle. A negative one (more credit than cost) weighs 0.
        custom: weights by owner for ``CUSTOM``; an owner it does not name weighs 0, one without
            direct cost counts too.

    Raises:
        ValueError: a custom weight is negative.
    """
    cost = {owner: max(Fraction(direct[owner]), Fraction(0)) for owner in sorted(direct)}
    match rule:
        case SplitRule.PROPORTIONAL:
            return cost
        case SplitRule.EVEN_ALL:
            return dict.fromkeys(cost, Fraction(1))
        case SplitRule.EVEN_ACTIVE:
            return {owner: Fraction(int(amount > 0)) for owner, amount in cost.items()}
        case SplitRule.CUSTOM:
            return _custom(cost, custom or {})


def split(amount: Exact, weighed: Mapping[str, Exact], *, name: str = "shared cost") -> Split:
    """Return an amount divided by weights, exactly.

    Args:
        amount: what to divide, of either sign, in any unit.
        weighed: weight by owner.
        name: what the amount is, for the warning.
    """
    whole, total = Fraction(amount), sum(map(Fraction, weighed.values()), Fraction(0))
    owners = sorted(weighed)
    if total == 0:
        return Split(
            shares=dict.fromkeys(owners, Fraction(0)),
            undistributed=whole,
            warning=f"{name} has no owner to bear it: every weight is 0" if whole else None,
        )
    shares = {owner: whole * Fraction(weighed[owner]) / total for owner in owners}
    return Split(shares=shares, undistributed=Fraction(0), warning=None)


def _custom(cost: Mapping[str, Fraction], custom: Mapping[str, Exact]) -> dict[str, Fraction]:
    negative = sorted(owner for owner, weight in custom.items() if weight < 0)
    if negative:
        raise ValueError(f"the weight of {negative[0]} is negative")
    return {owner: Fraction(custom.get(owner, 0)) for owner in sorted({*cost, *custom})}
