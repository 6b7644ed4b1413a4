"""What a decision has at stake: device-time in ticks and money in parts, both exact; and its rank.

What has no price has no money: it is null and told apart, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import polars as pl

from analytics.cost.rounding import Exact
from analytics.usage import allocated, gpu_hours, leaf
from steward.units import TICKS_PER_GPU_HOUR

WORTH_DECIDING_RATIO: Final = 0.001
"""Less of capacity than this is at stake in no decision: sampling errs by as much."""
NAMED_COUNT: Final = 3
"""Rows named in the evidence, those with most at stake; the report's tables hold the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """Device-time, and what it costs where it has a price."""

    ticks: int
    priced_ticks: int
    """Ticks of those that have a price in the currency."""
    parts: Exact | None
    """None: nothing of it has a price."""

    @property
    def priced_ratio(self) -> float | None:
        """Return the share of the device-time that the money speaks for."""
        return self.priced_ticks / self.ticks if self.ticks else None

    @property
    def hours(self) -> float:
        """Return the device-time in GPU-hours, for people."""
        return self.ticks / TICKS_PER_GPU_HOUR

    def portion(self, ticks: int) -> Stake:
        """Return the stake of some of this device-time, at its mean price."""
        if self.ticks == 0:
            return Stake(ticks=ticks, priced_ticks=0, parts=None)
        share = Fraction(ticks, self.ticks)
        parts = None if self.parts is None else Fraction(self.parts) * share
        return Stake(ticks=ticks, priced_ticks=round(self.priced_ticks * share), parts=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """The ledger with its prices, and what each of their currencies is worth in the told one."""

    rows: pl.DataFrame
    """Rows of ``ledger`` with rate_micros i64 | null, currency str | null, and job str | null (the
    name of the workload)."""
    factors: Mapping[str, Fraction]
    """By currency; one that is missing cannot be converted: its rows are without a price."""

    def part(self, *conditions: pl.Expr) -> Charged:
        """Return the rows that fulfil all conditions."""
        return replace(self, rows=self.rows.filter(*conditions))

    def stake(self, ticks: pl.Expr) -> Stake:
        """Return what is at stake in some of the ticks of each row."""
        counted = ticks.cast(pl.Int128)
        sums = (
            self.rows.group_by("currency")
            .agg(
                counted.sum().alias("ticks"),
                (counted * pl.col("rate_micros").cast(pl.Int128)).sum().alias("parts"),
            )
            .sort("currency", nulls_last=True)
            .rows()
        )
        priced = [row for row in sums if row[0] in self.factors]
        money = sum((row[2] * self.factors[row[0]] for row in priced), Fraction(0))
        priced_ticks = sum(row[1] for row in priced)
        return Stake(
            ticks=sum(row[1] for row in sums),
            priced_ticks=priced_ticks,
            parts=money if priced_ticks else None,
        )

    def most(self, ticks: pl.Expr, *, keys: Sequence[str], unknown: str) -> str:
        """Return the combinations of keys with most ticks, named with their GPU-hours."""
        name = pl.concat_str([pl.col(key) for key in keys], separator="/", ignore_nulls=True)
        found = (
            self.rows.with_columns(ticks=ticks.cast(pl.Int128))
            .group_by(keys)
            .agg(pl.col("ticks").sum())
            .filter(pl.col("ticks") > 0)
            .with_columns(name=name)
            .sort("ticks", *keys, descending=[True] + [False] * len(keys), nulls_last=True)
            .head(NAMED_COUNT)
            .select("name", hours=gpu_hours(pl.col("ticks")))
        )
        parts = [f"{name or unknown} {hours:,.1f} GPU-hours" for name, hours in found.rows()]
        return ", ".join(parts)

    @property
    def coverage_ratio(self) -> float | None:
        """Return the share of allocated device-time of known use."""
        held, unknown = self.rows.select(
            allocated().sum().alias("held"), leaf("unknown_use").sum().alias("unknown")
        ).row(0)
        return (held - unknown) / held if held else None

    @property
    def wall_ticks(self) -> int:
        """Return all device-time."""
        return int(self.rows.select(pl.col("wall_ticks").cast(pl.Int128).sum()).item())


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One thing that a person may decide."""

    key: str
    """Stable name of the kind of decision."""
    text: str
    """What to do, one clause."""
    stake: Stake
    evidence: str
    """What was seen, with the rows that have most at stake by name."""
    row_count: int
    """How many jobs, nodes, queues or attempts it was seen on."""
    coverage_ratio: float | None
    """Share of the device-time asked about that was observed; None: does not depend on readings."""
    rows: str
    """The input that the evidence comes from."""
    is_last: bool = False
    """Whether nothing is won by it but knowledge: it stands behind the others."""


def ranked(candidates: Sequence[Candidate], wall_ticks: int) -> tuple[Candidate, ...]:
    """Return the candidates worth deciding, most at stake first.

    By money where all of what is at stake has a price, else all by device-time: money of a part
    would rank what is cheap to know before what is large. Ties by key.
    """
    worth = [one for one in candidates if one.stake.ticks > wall_ticks * WORTH_DECIDING_RATIO]
    by_money = is_by_money(worth)

    def order(one: Candidate) -> tuple[bool, Exact, str]:
        size = (one.stake.parts or 0) if by_money else one.stake.ticks
        return (one.is_last, -size, one.key)

    return tuple(sorted(worth, key=order))


def is_by_money(candidates: Sequence[Candidate]) -> bool:
    """Tell whether all device-time at stake has a price."""
    at_stake = [one.stake for one in candidates if not one.is_last]
    return all(one.priced_ticks == one.ticks for one in at_stake)
