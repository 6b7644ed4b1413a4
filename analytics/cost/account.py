"""What groups of device-time cost, leaf by leaf, in the currency that was asked for.

Currencies are never added without a rate that somebody recorded: device-time whose price cannot be
converted counts as without a price.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import polars as pl

from analytics.cost.charge import LEAF_PARTS
from analytics.cost.rounding import Exact
from analytics.usage import ALLOCATED, TREE, leaf

LEAVES: Final = tuple(TREE)
_TICKS: Final = tuple(f"{name}_sum_ticks" for name in LEAVES)
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Device-time and its cost; every leaf is in ``ticks``, in ``parts`` where it has a price."""

    ticks: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(LEAVES, 0))
    """All device-time by leaf."""
    priced: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(LEAVES, 0))
    """Of it the device-time with a price."""
    parts: Mapping[str, Exact] = field(default_factory=lambda: dict.fromkeys(LEAVES, 0))
    """Cost of the device-time with a price, in parts of the asked currency."""

    @property
    def wall_ticks(self) -> int:
        """Return all device-time."""
        return sum(self.ticks.values())

    @property
    def priced_ticks(self) -> int:
        """Return the device-time that has a price."""
        return sum(self.priced.values())

    @property
    def is_priced(self) -> bool:
        """Tell whether any of it has a price: without, its cost is unknown and not 0."""
        return self.priced_ticks > 0 or self.wall_ticks == 0

    def is_leaf_priced(self, name: str) -> bool:
        """Tell the same of one leaf."""
        return self.priced[name] > 0 or self.ticks[name] == 0

    @property
    def capacity(self) -> Fraction:
        """Return the cost of all leaves."""
        return _sum(self.parts.values())

    @property
    def allocated(self) -> Fraction:
        """Return the cost of what was held."""
        return _sum(self.parts[name] for name in ALLOCATED)

    @property
    def unallocated(self) -> Fraction:
        """Return the cost of what nobody held."""
        return self.capacity - self.allocated

    @property
    def allocated_ticks(self) -> int:
        """Return the device-time that was held."""
        return sum(self.ticks[name] for name in ALLOCATED)

    def only(self, leaves: Sequence[str]) -> Account:
        """Return what is in some of the leaves."""
        return Account(
            ticks={name: self.ticks[name] if name in leaves else 0 for name in LEAVES},
            priced={name: self.priced[name] if name in leaves else 0 for name in LEAVES},
            parts={name: self.parts[name] if name in leaves else 0 for name in LEAVES},
        )

    def __add__(self, other: Account) -> Account:
        """Return both together."""
        return Account(
            ticks={name: self.ticks[name] + other.ticks[name] for name in LEAVES},
            priced={name: self.priced[name] + other.priced[name] for name in LEAVES},
            parts={name: self.parts[name] + other.parts[name] for name in LEAVES},
        )


def accounts(
    priced: pl.DataFrame, keys: Sequence[str], *, factors: Mapping[str, Fraction]
) -> dict[Key, Account]:
    """Return the account of each combination of keys, ascending (nulls last).

    Args:
        priced: rows of the ledger with their cost.
        keys: columns to group by; none gives one account under the key ``()``, if there are rows.
        factors: what one unit of each currency is worth in the asked one; a currency that is not
            named cannot be converted.
    """
    found: dict[Key, Account] = {}
    for row in summed(priced, *keys).iter_rows(named=True):
        key = tuple(row[name] for name in keys)
        factor = factors.get(row["currency"])
        one = _account(row, factor)
        found[key] = found[key] + one if key in found else one
    return found


def summed(priced: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return leaves and their cost summed by keys and currency.

    Returns:
        one row per combination, ascending (nulls last): keys, currency str | null, each leaf's
        ticks i128 and parts i128 (0 without a price)
    """
    ticks = [leaf(name).sum().alias(f"{name}_sum_ticks") for name in LEAVES]
    parts = [pl.col(name).sum().alias(name) for name in LEAF_PARTS]
    by = [*keys, "currency"]
    return priced.group_by(by).agg(*ticks, *parts).sort(by, nulls_last=True)


def total(found: Iterable[Account]) -> Account:
    """Return all accounts together."""
    whole = Account()
    for one in found:
        whole = whole + one
    return whole


def _account(row: Mapping[str, object], factor: Fraction | None) -> Account:
    ticks = {name: _whole(row[f"{name}_sum_ticks"]) for name in LEAVES}
    if factor is None:
        return Account(ticks=ticks)
    parts: dict[str, Exact] = {name: _whole(row[f"{name}_parts"]) for name in LEAVES}
    if factor != 1:
        parts = {name: amount * factor for name, amount in parts.items()}
    return Account(ticks=ticks, priced=ticks, parts=parts)


def _whole(value: object) -> int:
    if isinstance(value, int):
        return value
    raise TypeError(f"{value!r} is no whole number")


def _sum(amounts: Iterable[Exact]) -> Fraction:
    return Fraction(sum(amounts))
