"""Columns that several names or several series of one device make up.

A name of a higher rank is asked only where those before it have no value; parts are added, copies
of a part are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum
from typing import TypeAlias

from collector.normalize.absence import Absence, Doubt
from collector.normalize.conversion import Converted
from collector.normalize.device_row import Cell, DeviceRow
from collector.normalize.metric import Combine, Metric

_Part: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class _Told:
    """All that names of one rank said of one cell."""

    metric: Metric
    parts: dict[_Part, list[Converted]] = field(default_factory=dict)


class Alternatives:
    """Values that wait until all names are read."""

    def __init__(self) -> None:
        """Start with none."""
        self._told: dict[tuple[DeviceRow, int], dict[int, _Told]] = {}
        self.duplicate_count = 0
        self.clamped_count = 0
        self.conflict_count = 0

    def add(self, row: DeviceRow, metric: Metric, *, part: _Part, value: Converted) -> None:
        """Take one series' value."""
        ranks = self._told.setdefault((row, metric.index), {})
        told = ranks.setdefault(metric.rank, _Told(metric))
        told.parts.setdefault(part, []).append(value)

    def settle(self) -> None:
        """Fill the cells that are still empty, from the best rank that has a value."""
        for (row, index), ranks in self._told.items():
            for rank in sorted(ranks):
                self._count(row, ranks[rank])
                if row.cells[index] is None:
                    self._fill(row, index, told=ranks[rank])

    def _count(self, row: DeviceRow, told: _Told) -> None:
        values = [value for copies in told.parts.values() for value in copies]
        self.clamped_count += sum(value.is_clamped for value in values)
        if told.metric.combine is Combine.MAX or row.is_told_by_instances:
            return
        self.duplicate_count += len(values) - len(told.parts)
        for copies in told.parts.values():
            kept = _best(copies).cell
            self.conflict_count += sum(copy.cell not in (None, kept) for copy in copies)

    def _fill(self, row: DeviceRow, index: int, *, told: _Told) -> None:
        parts = [_best(copies) for copies in told.parts.values()]
        failed = [part.absence for part in parts if part.absence is not None]
        row.cells[index] = _combined(parts, combine=told.metric.combine)
        if row.cells[index] is None:
            for reason in failed:
                row.miss(index, reason)
            return
        if any(part.is_clamped for part in parts):
            row.doubt(index, Doubt.CLAMPED)
        if told.metric.is_doubtful:
            row.doubt(index, Doubt.LOW_TRUST)


def _best(copies: list[Converted]) -> Converted:
    """Return one of the copies of a value: the largest that is one, whatever their order."""
    known = [copy for copy in copies if copy.cell is not None]
    if known:
        return max(known, key=lambda copy: copy.cell or 0)
    return max(copies, key=lambda copy: copy.absence or "")


def _combined(parts: Iterable[Converted], *, combine: Combine) -> Cell:
    """Return the whole of the parts; None where none has a value, or a part of a sum failed.

    A part that the device does not have adds nothing to a sum.
    """
    parts = list(parts)
    known = [part.cell for part in parts if part.cell is not None]
    if not known:
        return None
    if combine is not Combine.SUM:
        return max(known)
    is_whole = all(part.absence in (None, Absence.NOT_SUPPORTED) for part in parts)
    return _sum(known) if is_whole else None


def _sum(numbers: Iterable[float]) -> Cell:
    """Return the same sum in whatever order the lines came."""
    numbers = list(numbers)
    return sum(numbers) if all(isinstance(one, int) for one in numbers) else fsum(numbers)
