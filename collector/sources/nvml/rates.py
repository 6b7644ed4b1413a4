"""Rates from counters: the difference of two readings of one device over the time between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from collector.sources.nvml.records import Measure

LONGEST_GAP_S: Final = 600.0
"""A rate over a longer time says nothing of now."""


@dataclass(slots=True)
class RateMeter:
    """The last reading of each counter of one device."""

    _last: dict[Measure, tuple[float, float]] = field(default_factory=dict)

    def rate(self, measure: Measure, count: float, *, now_s: float) -> float | None:
        """Return the increase per second since the last reading.

        None at first sight, after a reset (the counter is lower than before) and after a gap.
        """
        before = self._last.get(measure)
        self._last[measure] = (count, now_s)
        if before is None:
            return None
        elapsed_s, increase = now_s - before[1], count - before[0]
        if increase < 0 or not 0 < elapsed_s <= LONGEST_GAP_S:
            return None
        return increase / elapsed_s
