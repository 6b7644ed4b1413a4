"""Days that cost unusually much or little, told by median and spread of the days before.

A robust score: one odd day moves neither the median nor the median of deviations, so it hides
neither itself nor the next. Source of score and threshold: Iglewicz and Hoaglin, How to Detect and
Handle Outliers (1993), as in the NIST handbook, section 1.3.5.17.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Final, TypeVar

_Number = TypeVar("_Number", int, Fraction)
TRAILING_DAYS: Final = 28
"""Days before a day that it is compared with: four of each weekday."""
DAYS_OF_WEEK: Final = 7
LEAST_DAYS: Final = DAYS_OF_WEEK
"""With fewer days before it a day is not judged."""
SCORE_THRESHOLD: Final = Fraction(7, 2)
"""A modified z-score beyond this is an outlier (Iglewicz and Hoaglin)."""
DEVIATIONS: Final = Fraction(6745, 10_000)
"""Median absolute deviation of a normal distribution, in standard deviations."""
LEAST_SPREAD_RATIO: Final = Fraction(5, 100)
"""The spread counts as at least this share of the median: on days that cost exactly the same any
difference would be infinitely unusual."""
LEAST_CHANGE_RATIO: Final = Fraction(25, 100)
"""A smaller change from the median needs nobody's attention, however regular the days were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One day that stands out; amounts in parts."""

    day: date
    cost: Fraction
    usual: Fraction
    """Median of the days before."""
    score: Fraction | None
    """Modified z-score, signed; None where the days before cost nothing at all."""


def anomalies(days: Sequence[tuple[date, int | Fraction]]) -> list[Anomaly]:
    """Return the days that stand out from those before them, ascending.

    Args:
        days: whole days without gaps, ascending, each with its cost; a day without cost is 0, a
            day that is not known is not there and ends what is compared.
    """
    costs, scale = _as_whole([cost for _, cost in days])
    found: list[Anomaly] = []
    start = 0
    for at, (day, _) in enumerate(days):
        if at and (day - days[at - 1][0]).days != 1:
            start = at
        before = costs[max(start, at - TRAILING_DAYS) : at]
        if len(before) >= LEAST_DAYS:
            found += _judge(day, costs[at], before, scale=scale)
    return found


def median(values: Sequence[Fraction]) -> Fraction:
    """Return the middle value, or the mean of the two in the middle.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values have no median")
    return Fraction(_twice_median(values)) / 2


def _as_whole(costs: Sequence[int | Fraction]) -> tuple[list[int], int]:
    """Return the costs times the least number that makes all of them whole, and that number."""
    whole = [cost for cost in costs if isinstance(cost, int)]
    if len(whole) == len(costs):
        return whole, 1
    scale = math.lcm(1, *(Fraction(cost).denominator for cost in costs))
    return [int(cost * scale) for cost in costs], scale


def _twice_median(values: Sequence[_Number]) -> _Number:
    """Return twice the median: whole for whole numbers."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] + ordered[middle if len(ordered) % 2 else middle - 1]


def _judge(day: date, cost: int, before: Sequence[int], *, scale: int) -> list[Anomaly]:
    """Return the day if it stands out. All amounts are whole; those of medians count twice."""
    usual = _twice_median(before)
    change = 2 * cost - usual
    if not _is_large(change, usual) or _is_its_weekday(cost, before, is_rise=change > 0):
        return []
    deviation = Fraction(_twice_median([abs(2 * value - usual) for value in before]), 2)
    spread = max(deviation, usual * LEAST_SPREAD_RATIO)
    score = DEVIATIONS * change / spread if spread else None
    if score is not None and abs(score) <= SCORE_THRESHOLD:
        return []
    told = (Fraction(cost, scale), Fraction(usual, 2 * scale))
    return [Anomaly(day=day, cost=told[0], usual=told[1], score=score)]


def _is_large(change: int, usual: int) -> bool:
    return change != 0 and abs(change) >= usual * LEAST_CHANGE_RATIO


def _is_its_weekday(cost: int, before: Sequence[int], *, is_rise: bool) -> bool:
    """Tell whether the same weekdays before explain the day: weekends are not odd."""
    usual = _twice_median(before[-DAYS_OF_WEEK::-DAYS_OF_WEEK])
    change = 2 * cost - usual
    return not _is_large(change, usual) or (change > 0) != is_rise
