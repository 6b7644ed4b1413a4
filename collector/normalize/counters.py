"""Rates and ratios from counters: what grew between two scrapes of one device.

Exporters of gauges show an average of their own interval; counters give the exact one of ours. They
fill a column only where no gauge has a value. A first sight, a restart and a long gap give nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from collector.holdings import DeviceKey
from collector.normalize.conversion import converted
from collector.normalize.device_row import DeviceRow
from collector.normalize.metric import Metric

LONGEST_GAP: Final = timedelta(minutes=10)
"""After this long a device may have been another in all but name."""
REPEATED_FOR: Final = timedelta(seconds=60)
"""For this long equal counts are the exporter's last reading shown again, not a standstill."""

_NO_COUNT: Final = 2.0**63 - 4096
"""From here on numbers mean that there is none."""

_Count: TypeAlias = tuple[str, tuple[str, ...]]
"""A counter's name, and the labels that tell parts such as links apart."""


@dataclass(slots=True)
class KnownCounts:
    """What a device's counters showed when they last moved."""

    at: datetime
    counts: Mapping[_Count, float]
    cells: Mapping[int, float] = field(default_factory=dict)
    """What was made of them, by place among the measures."""


@dataclass(slots=True)
class Counters:
    """One scrape's counters, device by device."""

    counts: dict[DeviceKey, dict[_Count, float]] = field(default_factory=dict)
    metrics: dict[str, Metric] = field(default_factory=dict)

    def take(self, key: DeviceKey, metric: Metric, *, part: tuple[str, ...], value: float) -> None:
        """Take one series; of copies of a part the highest count is the latest."""
        if not 0 <= value < _NO_COUNT:
            return
        counts = self.counts.setdefault(key, {})
        count = (metric.name, part)
        counts[count] = max(value, counts.get(count, value))
        self.metrics[metric.name] = metric

    def keep_board_wide(self, devices: AbstractSet[str]) -> None:
        """Drop what boards say of themselves that their instances know better."""
        for device in devices:
            counts = self.counts.get((device, None), {})
            for count in [count for count in counts if not self.metrics[count[0]].is_board_wide]:
                del counts[count]

    def fill(
        self,
        rows: Mapping[DeviceKey, DeviceRow],
        known: dict[DeviceKey, KnownCounts],
        *,
        at: datetime,
    ) -> None:
        """Fill empty cells of the rows, and remember the counts for the next scrape."""
        for key, counts in self.counts.items():
            before = known.get(key)
            if before is None or not timedelta(0) < at - before.at <= LONGEST_GAP:
                known[key] = KnownCounts(at, counts)
                continue
            if counts != before.counts or at - before.at >= REPEATED_FOR:
                known[key] = KnownCounts(at, counts, self._cells(counts, before, at=at))
            row = rows.get(key)
            for index, cell in known[key].cells.items():
                if row is not None and row.cells[index] is None:
                    row.cells[index] = cell

    def _cells(
        self, counts: Mapping[_Count, float], before: KnownCounts, *, at: datetime
    ) -> dict[int, float]:
        """Return what grew, by place among the measures; parts of one measure are added."""
        grown = _grown(counts, before.counts)
        broken = {self.metrics[name].index for name, _ in counts if name not in grown}
        elapsed_s = (at - before.at).total_seconds()
        cells: dict[int, float] = {}
        for name, growth in grown.items():
            metric = self.metrics[name]
            over = elapsed_s if metric.reference is None else grown.get(metric.reference)
            if metric.index in broken or metric.index < 0 or not over:
                continue
            cell = converted(growth / over, unit=metric.unit).cell
            if cell is not None:
                cells[metric.index] = cells.get(metric.index, 0) + cell
        return cells


def _grown(counts: Mapping[_Count, float], before: Mapping[_Count, float]) -> dict[str, float]:
    """Return by name how much all parts together grew; a name of which a part fell is left out."""
    grown: dict[str, float] = {}
    fallen: set[str] = set()
    for (name, part), count in counts.items():
        earlier = before.get((name, part))
        if earlier is None or count < earlier:
            fallen.add(name)
        else:
            grown[name] = grown.get(name, 0.0) + count - earlier
    return {name: growth for name, growth in grown.items() if name not in fallen}
