"""Where demand is heading, how sure that is, and when it meets what there is.

Method: the seasonal Theil-Sen estimator (Sen 1968; Hirsch and Slack 1984): the trend is the median
of all slopes between equal weekdays, so that weeks do not look like trends and outliers weigh
little; its interval is that of Kendall's rank statistic. Around the trend each weekday has its
median level. The range of a forecast adds the interval of the slope, over the distance from the
middle of what was observed, and the empirical quantiles of what the model did not explain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

METHOD: Final = "seasonal Theil-Sen trend by weekday, 80 % range"
LEAST_DAYS: Final = 14
"""Whole days needed: each weekday twice."""
WEEK: Final = 7
LOW, HIGH = 0.1, 0.9
"""Quantiles between which eight of ten values are expected."""
RANGE_DEVIATIONS: Final = 1.2816
"""Standard deviations on each side that hold 80 % of a normal distribution."""
REACH: Final = 4
"""A forecast is told up to this many times as far ahead as was looked back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A value with the range it is expected in; None: not within reach."""

    low: float | None
    middle: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The trend of one daily series."""

    levels: tuple[float, ...]
    """By weekday position (day number modulo 7), at the middle of what was observed."""
    slope: Range
    """Change per day."""
    residual_low: float
    residual_high: float
    day_count: int

    def ahead(self, day_count: int) -> Range:
        """Return what is expected so many days after the last observed one, never below 0."""
        number = self.day_count - 1 + day_count
        distance = number - self._middle
        level = self.levels[number % WEEK]
        low, middle, high = (_known(slope) for slope in _ends(self.slope))
        return Range(
            low=max(level + low * distance + self.residual_low, 0.0),
            middle=max(level + middle * distance, 0.0),
            high=max(level + high * distance + self.residual_high, 0.0),
        )

    def days_until(self, limit: float) -> Range:
        """Return in how many days the weekly mean reaches a limit: soonest, expected, latest.

        0: it is there already. None: not foreseen, since the trend (or its end of the range) is
        flat or falling, or farther away than ``REACH`` times the days observed.
        """
        low, middle, high = (_known(slope) for slope in _ends(self.slope))
        return Range(
            low=self._reached(limit, high, self.residual_high),
            middle=self._reached(limit, middle, 0.0),
            high=self._reached(limit, low, self.residual_low),
        )

    @property
    def _middle(self) -> float:
        return (self.day_count - 1) / 2

    def _reached(self, limit: float, slope: float, offset: float) -> float | None:
        distance = self.day_count - 1 - self._middle
        now = fmean(self.levels) + slope * distance + offset
        if now >= limit:
            return 0.0
        if slope <= 0:
            return None
        ahead = (limit - now) / slope
        return ahead if ahead <= REACH * self.day_count else None


def outlook(daily: Sequence[float]) -> Outlook | None:
    """Return the trend of a series of whole days without gaps, or None with fewer than 14.

    Args:
        daily: one value per day, the latest last.
    """
    count = len(daily)
    if count < LEAST_DAYS:
        return None
    slopes = sorted(
        (daily[later] - daily[earlier]) / (later - earlier)
        for earlier in range(count)
        for later in range(earlier + WEEK, count, WEEK)
    )
    slope = median(slopes)
    middle = (count - 1) / 2
    flat = [value - slope * (number - middle) for number, value in enumerate(daily)]
    levels = tuple(median(flat[weekday::WEEK]) for weekday in range(WEEK))
    rest = sorted(value - levels[number % WEEK] for number, value in enumerate(flat))
    return Outlook(
        levels=levels,
        slope=_slope_range(slopes, slope, count=count),
        residual_low=min(quantile(rest, LOW), 0.0),
        residual_high=max(quantile(rest, HIGH), 0.0),
        day_count=count,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of ascending values, linearly interpolated."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _slope_range(slopes: Sequence[float], slope: float, *, count: int) -> Range:
    """Return the slope with the order statistics that Kendall's statistic gives it."""
    sizes = [len(range(weekday, count, WEEK)) for weekday in range(WEEK)]
    variance = sum(size * (size - 1) * (2 * size + 5) / 18 for size in sizes)
    half = RANGE_DEVIATIONS * math.sqrt(variance)
    last = len(slopes) - 1
    low = max(math.floor((len(slopes) - half) / 2) - 1, 0)
    high = min(math.ceil((len(slopes) + half) / 2), last)
    return Range(low=slopes[low], middle=slope, high=slopes[high])


def _ends(found: Range) -> tuple[float | None, ...]:
    return found.low, found.middle, found.high


def _known(value: float | None) -> float:
    return 0.0 if value is None else value
