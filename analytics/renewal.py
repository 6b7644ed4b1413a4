"""Which GPU models to buy more of, keep or retire, each with its reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.capability import TIERS
from analytics.demand import ALL
from analytics.planning import LEAST_DAYS, Outlook, outlook
from analytics.usage import allocated, leaf, share
from steward.units import TICKS_PER_SECOND

BUY, KEEP, RETIRE, NOT_JUDGED = "buy", "keep", "retire", "not judged"
BUY_WITHIN_DAYS: Final = 90
"""Hardware takes about a quarter from order to first job."""
WAITING_RATIO: Final = 0.1
"""Waiting GPUs of a tier, against usable ones, from which it counts as short."""
BUSY_RATIO: Final = 0.85
"""Held share of usable time from which waiting is for want of GPUs, not of fit."""
LOW_USE_RATIO: Final = 0.4
"""Below it, what is held should be taken back before more is bought."""
RETIRE_RATIO: Final = 0.25
"""Held share of usable time below which a model may go."""
DOWN_RATIO: Final = 0.2
"""Share of time down from which repair comes first."""
RECENT_DAYS: Final = 7
"""Whole days that make "now": one of each weekday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierDemand:
    """Demand of one tier (or ``ALL``) against what it has."""

    capability: str
    day_count: int
    """Whole days observed."""
    usable: float | None
    """Mean usable GPUs of the last whole week; None: no whole day."""
    demand: float | None
    waiting: float | None
    held_ratio: float | None
    outlook: Outlook | None

    @property
    def days_left(self) -> float | None:
        """Return the days until demand is expected to meet what is usable; None: not foreseen."""
        if self.outlook is None or self.usable is None:
            return None
        return self.outlook.days_until(self.usable).middle

    @property
    def is_short(self) -> bool:
        """Tell whether work waits for want of GPUs, or soon will."""
        left = self.days_left
        if left is not None and left <= BUY_WITHIN_DAYS:
            return True
        if not self.usable or self.waiting is None or self.held_ratio is None:
            return False
        return self.waiting >= WAITING_RATIO * self.usable and self.held_ratio >= BUSY_RATIO


def tier_demand(daily: pl.DataFrame) -> dict[str, TierDemand]:
    """Return the demand of each tier, ``ALL`` first, then strongest first.

    Args:
        daily: rows of ``demand.daily``.
    """
    whole = daily.filter("is_whole")
    order = (ALL, *TIERS)
    names = sorted(
        daily["capability"].unique(),
        key=lambda name: order.index(name) if name in order else len(order),
    )
    return {name: _of_tier(name, whole.filter(pl.col("capability") == name)) for name in names}


def _of_tier(name: str, days: pl.DataFrame) -> TierDemand:
    recent = days.tail(RECENT_DAYS)
    means = {column: _mean(recent[column]) for column in recent.columns[3:]}
    usable, held = means["usable_gpu_count"], means["allocated_gpu_count"]
    return TierDemand(
        capability=name,
        day_count=days.height,
        usable=usable,
        demand=means["demand_gpu_count"],
        waiting=means["waiting_gpu_count"],
        held_ratio=held / usable if usable and held is not None else None,
        outlook=outlook(days["demand_gpu_count"].to_list()),
    )


def _mean(values: pl.Series) -> float | None:
    return None if values.is_empty() else float(values.to_frame().mean().item())


def models(rows: pl.DataFrame, *, length_s: float) -> pl.DataFrame:
    """Return what each model was used for.

    Args:
        rows: the ledger with its cost (``cost.costing``) and capability.
        length_s: of the period.

    Returns:
        one row per cluster and model, ascending (nulls last): cluster, model, capability,
        gpu_count, held_gpu_count, free_gpu_count f64 (means), held_ratio (of usable), used_ratio
        (of known use), coverage_ratio (known use / held), down_ratio f64 | null, used_ticks,
        cost_parts i128 | null, currency str | null (null: no price, or several currencies)
    """
    wall = pl.col("wall_ticks").cast(pl.Int128).sum()
    held, down, used = allocated().sum(), leaf("down").sum(), leaf("used").sum()
    known = (leaf("used") + leaf("allocated_idle")).sum()

    def count(ticks: pl.Expr) -> pl.Expr:
        return ticks.cast(pl.Float64) / TICKS_PER_SECOND / length_s

    is_one = (pl.col("currency").n_unique() == 1) & pl.col("currency").is_not_null().all()
    return (
        rows.group_by("cluster", "model", "capability")
        .agg(
            gpu_count=count(wall),
            held_gpu_count=count(held),
            free_gpu_count=count(leaf("free_idle").sum()),
            held_ratio=share(held, wall - down),
            used_ratio=share(used, known),
            coverage_ratio=share(known, held),
            down_ratio=share(down, wall),
            used_ticks=used,
            cost_parts=pl.when(is_one).then(pl.col("capacity_parts").sum()),
            currency=pl.when(is_one).then(pl.col("currency").first()),
        )
        .sort("cluster", "model", nulls_last=True)
    )


def verdicts(models: pl.DataFrame, tiers: Mapping[str, TierDemand]) -> pl.DataFrame:
    """Return each model with verdict and reason str, in the order of ``models``.

    Args:
        models: rows of ``models``.
        tiers: what ``tier_demand`` returns, over all clusters.

    What is held least is judged first (ties by name); where it may go, its GPUs are no room for the
    next, and what it held needs room too: two models never stand in for each other.
    """
    said: dict[int, tuple[str, str]] = {}
    going: list[dict[str, object]] = []
    rows = list(enumerate(models.iter_rows(named=True)))
    for number, row in sorted(rows, key=lambda each: _least_held(each[1])):
        others = _elsewhere(models, row, going=going)
        said[number] = _verdict(row, tiers.get(str(row["capability"])), others=others)
        if said[number][0] == RETIRE:
            going.append(row)
    return models.with_columns(
        pl.Series("verdict", [said[number][0] for number, _ in rows], dtype=pl.String),
        pl.Series("reason", [said[number][1] for number, _ in rows], dtype=pl.String),
    )


def _least_held(row: Mapping[str, object]) -> tuple[float, str, str]:
    held = _number(row["held_ratio"])
    return (math.inf if held is None else held, str(row["cluster"]), str(row["model"]))


def _verdict(
    row: Mapping[str, object], tier: TierDemand | None, *, others: float
) -> tuple[str, str]:
    if row["capability"] is None:
        return NOT_JUDGED, "its tier is not known"
    if tier is None or tier.outlook is None:
        count = 0 if tier is None else tier.day_count
        return NOT_JUDGED, f"needs {LEAST_DAYS} whole days, has {count}"
    if tier.is_short:
        return _of_short(row, tier)
    return _of_roomy(row, others=others)


def _of_roomy(row: Mapping[str, object], *, others: float) -> tuple[str, str]:
    """Return the verdict on a model whose tier has enough room."""
    down, held = _number(row["down_ratio"]), _number(row["held_ratio"])
    if down is not None and down >= DOWN_RATIO:
        return KEEP, f"down {down:.0%} of the time: repair before judging it"
    mean_held = _number(row["held_gpu_count"]) or 0.0
    if held is not None and held < RETIRE_RATIO and others >= mean_held:
        return RETIRE, (
            f"held {held:.0%} of usable time; {others:,.1f} free GPUs of its tier or a stronger "
            f"one would take its {mean_held:,.1f}"
        )
    return KEEP, "nothing usable to judge by" if held is None else f"held {held:.0%}, enough room"


def _of_short(row: Mapping[str, object], tier: TierDemand) -> tuple[str, str]:
    left, used = tier.days_left, _number(row["used_ratio"])
    if left is None:
        why = f"{tier.waiting or 0.0:,.1f} GPUs wait for tier {tier.capability}"
    elif left == 0:
        why = f"demand of tier {tier.capability} already exceeds what is usable"
    else:
        why = f"demand of tier {tier.capability} meets what is usable in {left:,.0f} days"
    if used is not None and used < LOW_USE_RATIO:
        return KEEP, f"{why}, but held ones work {used:.0%} of the time: reclaim before buying"
    return BUY, why


def _elsewhere(
    models: pl.DataFrame, row: Mapping[str, object], *, going: Sequence[Mapping[str, object]]
) -> float:
    """Return free GPUs of other models of the same cluster, of the row's tier or stronger.

    Those that are going do not count, and room for what they hold is taken off.
    """
    if row["capability"] is None:
        return 0.0
    strong = TIERS[: TIERS.index(str(row["capability"])) + 1]
    gone = [each for each in going if each["cluster"] == row["cluster"]]
    others = models.filter(
        pl.col("cluster") == row["cluster"],
        ~pl.col("model").is_in([row["model"], *(each["model"] for each in gone)]),
        pl.col("capability").is_in(strong),
    )
    moved = sum(_number(each["held_gpu_count"]) or 0.0 for each in gone)
    return max(float(others["free_gpu_count"].sum()) - moved, 0.0)


def _number(value: object) -> float | None:
    return None if value is None else float(str(value))
