"""Costs that benefit all, and how much of each falls into a period."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction

import polars as pl

from analytics.cost import dated
from analytics.cost.rounding import parts_of
from analytics.cost.split import Split, SplitRule, split, weights
from steward.period import Period
from steward.units import CURRENCY_MICROS

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCost:
    """The part of one shared cost that falls into a period."""

    name: str
    cluster: str | None
    """Whose teams bear it; None: everybody."""
    currency: str
    parts: Fraction
    """In parts of the currency; negative for a credit."""
    rule: SplitRule
    custom: Mapping[str, Fraction]
    """Weights by team for the rule ``custom``."""

    def converted(self, factors: Mapping[str, Fraction]) -> SharedCost:
        """Return the same cost in another currency."""
        return replace(self, parts=self.parts * factors[self.currency])

    def split(self, direct: Mapping[str, Fraction]) -> Split:
        """Return who bears it.

        Args:
            direct: direct cost by team, before idle, in the cost's cluster or everywhere.
        """
        weighed = weights(self.rule, direct, custom=self.custom)
        return split(self.parts, weighed, name=f"shared cost {self.name!r}")


def shared_costs(rows: pl.DataFrame, period: Period) -> tuple[SharedCost, ...]:
    """Return the shared costs of a period, by name, cluster and start.

    Args:
        rows: rows of ``state.shared_cost``, any order. Each amount is spread evenly over the time
            it is valid for; of rows of one name and cluster that overlap, the last recorded counts.
        period: what falls into it.
    """
    whole = rows.with_columns(whole_from_at=dated.FROM, whole_until_at=dated.UNTIL)
    current = dated.latest(whole, key=("name", "cluster"), identity="shared_cost_id")
    return tuple(_cost(row) for row in dated.clipped(current, period).iter_rows(named=True))


def _cost(row: Mapping[str, object]) -> SharedCost:
    share = Fraction(
        _ticks(row[dated.FROM], row[dated.UNTIL]),
        _ticks(row["whole_from_at"], row["whole_until_at"]),
    )
    cluster = row["cluster"]
    return SharedCost(
        name=str(row["name"]),
        cluster=None if cluster is None else str(cluster),
        currency=str(row["currency"]),
        parts=parts_of(Fraction(int(str(row["amount_micros"])), CURRENCY_MICROS)) * share,
        rule=SplitRule(str(row["split_rule"])),
        custom=custom_weights(row["weights_json"]),
    )


def custom_weights(text: object) -> dict[str, Fraction]:
    """Return the weights of a JSON object, each read as the decimal it is written as.

    Raises:
        ValueError: it is no object of numbers.
    """
    if text is None:
        return {}
    found = json.loads(str(text), parse_float=str, parse_int=str)
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError(f"{text!r} is no JSON object of weights by team")
    return {str(team): Fraction(weight) for team, weight in found.items()}


def _ticks(from_at: object, until_at: object) -> int:
    if not isinstance(from_at, datetime) or not isinstance(until_at, datetime):
        raise TypeError("a shared cost has two ends")
    return (until_at - from_at) // _TICK
