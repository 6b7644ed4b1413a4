"""What a month will have cost at its end: two named methods, and a range.

Whole days only: the day in progress is no day yet. Everything is exact; the range alone needs a
root, which is cut to whole parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

RECENT_DAYS: Final = 7
"""Days of the run rate: one of each weekday."""
SPREAD_DAYS: Final = 28
"""Days whose spread makes the range: four of each weekday."""
LEAST_DAYS: Final = 7
"""With fewer whole days there is neither a run rate nor a range."""
RANGE_SHARE: Final = Fraction(8, 10)
"""Share of months whose end the range is meant to hold."""
RANGE_DEVIATIONS: Final = Fraction(12_816, 10_000)
"""Standard deviations on each side that hold ``RANGE_SHARE`` of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The month's end in parts of one currency; None where it cannot be said."""

    spent: Fraction | None
    """Cost of the month's whole days so far; None where its first days are not known."""
    days_done: int
    """Whole days of the month that are known."""
    days_in_month: int
    linear: Fraction | None
    """Month to date, carried on evenly."""
    run_rate: Fraction | None
    """Month to date, carried on at the mean of the last ``RECENT_DAYS`` whole days."""
    low: Fraction | None
    """Lower end of the range around the run rate; never below the cost of the known days."""
    high: Fraction | None


def linear_month_to_date(
    spent: int | Fraction, *, days_done: int, days_in_month: int
) -> Fraction | None:
    """Return the month's cost if its days go on costing what they did on average so far.

    Returns:
        None before the first day is over.
    """
    return Fraction(spent) * days_in_month / days_done if days_done else None


def run_rate(
    spent: int | Fraction, *, recent_daily_mean: int | Fraction, days_left: int
) -> Fraction:
    """Return the month's cost if the days left cost what recent days did on average."""
    return Fraction(spent) + Fraction(recent_daily_mean) * days_left


def half_range(daily: Sequence[int | Fraction], *, days_left: int) -> Fraction | None:
    """Return half the width of the range for the sum of the days left.

    Normal approximation from the spread of whole days: days differ independently, and the mean they
    differ around is itself known from ``m`` days only, so that the sum of ``n`` days has the
    variance ``s^2 (n + n^2 / m)``.

    Args:
        daily: cost of whole days, the latest last; the last ``SPREAD_DAYS`` are used.
        days_left: days that the range is for.

    Returns:
        None with fewer than ``LEAST_DAYS``; 0 where no day is left.
    """
    days = [Fraction(day) for day in daily[-SPREAD_DAYS:]]
    count = len(days)
    if count < LEAST_DAYS:
        return None
    mean = sum(days, Fraction(0)) / count
    variance = sum(((day - mean) ** 2 for day in days), Fraction(0)) / (count - 1)
    of_sum = variance * (days_left + Fraction(days_left**2, count))
    return Fraction(math.isqrt(math.floor(of_sum * RANGE_DEVIATIONS**2)))


def forecast(
    before: Sequence[int | Fraction],
    month: Sequence[int | Fraction],
    *,
    days_in_month: int,
    is_month_whole: bool = True,
) -> Forecast:
    """Return the forecast of a month from the cost of whole days.

    Args:
        before: whole days before the month, the latest last.
        month: whole days of the month that are known, up to the latest.
        days_in_month: 28 to 31.
        is_month_whole: whether ``month`` starts at the month's first day. Otherwise what was spent
            is not known, and days before the first known one are forecast as days to come are.
    """
    days_done, days = len(month), [*before, *month]
    days_left = days_in_month - days_done
    known = sum(map(Fraction, month), Fraction(0))
    end = _run_rate(known, days, days_left=days_left)
    half = half_range(days, days_left=days_left)
    return Forecast(
        spent=known if is_month_whole else None,
        days_done=days_done,
        days_in_month=days_in_month,
        linear=linear_month_to_date(known, days_done=days_done, days_in_month=days_in_month),
        run_rate=end,
        low=None if end is None or half is None else max(known, end - half),
        high=None if end is None or half is None else end + half,
    )


def recent_mean(daily: Sequence[int | Fraction]) -> Fraction | None:
    """Return the mean of the last ``RECENT_DAYS`` whole days, None with fewer."""
    days = [Fraction(day) for day in daily[-RECENT_DAYS:]]
    return sum(days, Fraction(0)) / RECENT_DAYS if len(days) == RECENT_DAYS else None


def _run_rate(
    spent: Fraction, days: Sequence[int | Fraction], *, days_left: int
) -> Fraction | None:
    if days_left == 0:
        return spent
    mean = recent_mean(days)
    return None if mean is None else run_rate(spent, recent_daily_mean=mean, days_left=days_left)
