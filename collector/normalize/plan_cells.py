"""Which cells follow their numbers and nothing else, according to a trace."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from collector.normalize.device_row import BUSY, DeviceRow
from collector.normalize.metric import MEASURES, Combine
from collector.normalize.plan_lines import Series
from collector.normalize.plan_trace import Part, Taken, Trace
from collector.normalize.units import Unit
from collector.sources.exposition import Sample

Cell: TypeAlias = tuple[DeviceRow, int]
"""A row and the place of a measure in it."""
TOTAL: Final = MEASURES.index("memory_total_bytes")
PARTS: Final = tuple(
    MEASURES.index(f"memory_{part}_bytes") for part in ("used", "free", "reserved")
)


@dataclass(slots=True)
class FreeCells:
    """Cells whose numbers may change within their unit's span."""

    first: dict[Cell, Taken] = field(default_factory=dict)
    """The number that a cell was filled with."""
    copies: dict[Cell, list[Taken]] = field(default_factory=dict)
    """Numbers that repeat it, where there are any: as long as they do, they change nothing."""
    largest: dict[Cell, Sequence[Part]] = field(default_factory=dict)
    """Cells that are filled with the largest of several numbers."""
    ignored: set[Series] = field(default_factory=set)
    """Second choices that are not asked, since the first one has a value."""
    units: dict[int, Unit] = field(default_factory=dict)
    """The one unit of each measure's numbers, by its place."""

    def take(self, cell: Cell, one: Taken) -> None:
        """Add one number."""
        if cell in self.first:
            self.copies.setdefault(cell, []).append(one)
        else:
            self.first[cell] = one

    def drop(self, cells: Iterable[Cell]) -> None:
        """Leave these out: their lines have to stay as they are."""
        for cell in cells:
            self.first.pop(cell, None)
            self.copies.pop(cell, None)

    def taken_series(self) -> set[Series]:
        """Return all series that are read as they are."""
        series = {(one.name, one.labels) for one in self.first.values()}
        for copies in self.copies.values():
            series.update((one.name, one.labels) for one in copies)
        return series

    def series(self) -> set[Series]:
        """Return all series whose numbers may change."""
        series = self.taken_series() | self.ignored
        for parts in self.largest.values():
            series.update((one.name, one.labels) for one in parts)
        return series


def free_cells(trace: Trace, *, known: Collection[Series], samples: Iterable[Sample]) -> FreeCells:
    """Return the cells whose values may change without anything else changing.

    Args:
        trace: what became of each number.
        known: series whose lines end in a plain number.
        samples: everything that the text said.
    """
    cells, bad = FreeCells(), set[Cell]()
    for one in trace.taken:
        name, labels, metric, unit, row, is_ordinary = one
        cell = (row, metric.index)
        cells.take(cell, one)
        is_free = is_ordinary and (name, labels) in known
        if not is_free or not _fits(cells, cell, unit):
            bad.add(cell)
    plain = set(cells.first)
    summed = [row for row in trace.rows if (row, TOTAL) not in plain and _may_be_sum(row)]
    cells.drop(bad)
    for row in summed:
        if not all((row, index) in cells.first for index in PARTS):
            cells.drop((row, index) for index in PARTS)
    _drop_broken_families(cells, samples=samples)
    watched = {(row, index) for row in summed for index in PARTS}
    _take_parts(cells, trace.parts, known=known, settled=plain | watched)
    return cells


def summed_rows(cells: FreeCells, *, rows: Iterable[DeviceRow]) -> list[DeviceRow]:
    """Return the rows whose total is the sum of numbers that may change."""
    return [
        row
        for row in rows
        if row.cells[TOTAL] is not None and all((row, index) in cells.first for index in PARTS)
    ]


def family_members(cells: FreeCells) -> Mapping[str, Sequence[Taken]]:
    """Return the numbers of each family whose unit depends on all of them."""
    members: dict[str, list[Taken]] = {}
    for _, one in _unsettled(cells):
        members.setdefault(one.name, []).append(one)
    return members


def _fits(cells: FreeCells, cell: Cell, unit: Unit) -> bool:
    """Tell whether nothing but the cell depends on it, and the column is in this unit elsewhere.

    A total is a fact of the device; a guest's busy ratio is doubted where it is 0.
    """
    row, index = cell
    if index == TOTAL or (index == BUSY and row.is_guest):
        return False
    return cells.units.setdefault(index, unit) is unit


def _may_be_sum(row: DeviceRow) -> bool:
    return row.cells[TOTAL] is not None and all(row.cells[index] is not None for index in PARTS)


def _drop_broken_families(cells: FreeCells, *, samples: Iterable[Sample]) -> None:
    """Leave out families whose unit also depends on numbers that may not change."""
    names = {one.name for _, one in _unsettled(cells)}
    series = {(name, labels) for name, labels, _, _ in samples if name in names}
    while broken := {name for name, _ in series - cells.taken_series()}:
        cells.drop([cell for cell, one in _unsettled(cells) if one.name in broken])
        series = {one for one in series if one[0] not in broken}


def _unsettled(cells: FreeCells) -> list[tuple[Cell, Taken]]:
    """Return the cells with a number whose unit depends on its whole family."""
    found = [(cell, one) for cell, one in cells.first.items() if one.metric.may_be_percent]
    for cell, copies in cells.copies.items():
        found += [(cell, one) for one in copies if one.metric.may_be_percent]
    return found


def _take_parts(
    cells: FreeCells,
    parts: Iterable[Part],
    *,
    known: Collection[Series],
    settled: Collection[Cell],
) -> None:
    """Add what waited for others.

    Args:
        cells: have all other numbers.
        parts: in order.
        known: series whose lines end in a plain number.
        settled: cells that were filled otherwise, or must not change.
    """
    told: dict[Cell, dict[int, list[Part]]] = {}
    for one in parts:
        ranks = told.setdefault((one.row, one.metric.index), {})
        ranks.setdefault(one.metric.rank, []).append(one)
    for cell, ranks in told.items():
        later = sorted(ranks)
        if cell not in cells.first:
            if cell in settled:
                continue
            filling = next((rank for rank in later if _has_value(ranks[rank])), None)
            if filling is None or not _is_largest(cells, cell, ranks[filling], known=known):
                continue
            cells.largest[cell] = ranks[filling]
            later = [rank for rank in later if rank > filling]
        cells.ignored.update((one.name, one.labels) for rank in later for one in ranks[rank])


def _has_value(parts: Iterable[Part]) -> bool:
    return any(one.told.cell is not None for one in parts)


def _is_largest(
    cells: FreeCells, cell: Cell, parts: Sequence[Part], *, known: Collection[Series]
) -> bool:
    """Tell whether the cell is the largest of ordinary numbers."""
    is_sum = parts[0].metric.combine is Combine.SUM
    if is_sum and len({one.part for one in parts}) > 1:
        return False
    return all(
        one.told.cell is not None
        and not one.told.is_clamped
        and (one.name, one.labels) in known
        and _fits(cells, cell, one.metric.unit)
        for one in parts
    )
