"""Makes a plan from what the full way did with a text.

A number may change freely where the full way took it as an ordinary value of one cell, or ignored
it. Every other line has to stay as it is: events, processes, sentinels, parts of sums, facts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain

import numpy as np

from collector.normalize.device_row import DeviceRow
from collector.normalize.plan import (
    Counts,
    Family,
    Guards,
    Largest,
    Layout,
    Places,
    Plan,
    PlanLines,
    PlanRows,
    ProcessNumber,
    Reals,
    Total,
    picker,
)
from collector.normalize.plan_cells import (
    PARTS,
    TOTAL,
    Cell,
    FreeCells,
    family_members,
    free_cells,
    summed_rows,
)
from collector.normalize.plan_lines import Line, Series, numbered_lines
from collector.normalize.plan_trace import OfProcess, Part, Taken, Trace
from collector.normalize.scrape_rows import NormalizedScrape
from collector.normalize.units import Unit
from collector.sources.exposition import Exposition, Sample
from collector.sources.exposition_labels import Labels


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers that may change, and where each stands among them."""

    lines: Sequence[Line]
    place_of: Mapping[Series, int]

    def places(self, taken: Iterable[Taken | Part]) -> list[int]:
        """Return where these stand."""
        return [self.place_of[one.name, one.labels] for one in taken]


def build_plan(
    text: bytes,
    exposition: Exposition,
    *,
    blocks: Mapping[str, Labels],
    trace: Trace,
    scrape: NormalizedScrape,
) -> Plan | None:
    """Return the plan that a text makes; None where it always has to be read in full.

    Args:
        text: as it came.
        exposition: what the parser read in it.
        blocks: label blocks that the parser remembers.
        trace: what became of its numbers.
        scrape: what came out.
    """
    lines = numbered_lines(text, exposition, blocks=blocks) if trace.is_steady else None
    if lines is None:
        return None
    cells = free_cells(trace, known=lines.keys(), samples=exposition.samples)
    numbers = _numbers(lines, free=cells.series() | trace.free_series(), trace=trace)
    if not numbers.lines:
        return None
    shown = _shown(cells, numbers=numbers)
    layout, picks = _picks(cells.units, shown, rows=trace.rows)
    return Plan(
        lines=_plan_lines(text, numbers.lines),
        guards=_guards(cells, rows=trace.rows, numbers=numbers, samples=exposition.samples),
        layout=layout,
        picks=picks,
        has_gaps=bool((picks < 0).any()),
        largest=_largest(cells, numbers=numbers),
        processes=_processes(trace.processes, numbers=numbers),
        rows=_plan_rows(trace.rows, shown=shown),
        claim=trace.claim,
        counts=Counts(
            sample_count=scrape.sample_count,
            duplicate_count=scrape.duplicate_count,
            unknown_metric_count=scrape.unknown_metric_count,
        ),
        holdings=scrape.holdings,
        kubelet_speaks=scrape.kubelet_speaks,
    )


def _numbers(lines: Mapping[Series, Line], *, free: Collection[Series], trace: Trace) -> _Numbers:
    ignored = trace.ignored_names
    chosen = [series for series in lines if series in free or series[0] in ignored]
    return _Numbers(
        [lines[series] for series in chosen],
        {series: place for place, series in enumerate(chosen)},
    )


def _plan_lines(text: bytes, chosen: Sequence[Line]) -> PlanLines:
    """Return the text without these lines' numbers."""
    lines = text.split(b"\n")
    places = [line.place for line in chosen]
    fixed = sorted(set(range(len(lines))).difference(places))
    return PlanLines(
        count=len(lines),
        pick_fixed=picker(fixed),
        fixed=tuple(lines[place] for place in fixed),
        pick_series=picker(places),
        heads=tuple(line.head for line in chosen),
        tails=tuple(_from(len(line.head)) for line in chosen),
    )


@lru_cache(maxsize=4_096)
def _from(start: int) -> slice:
    """Return the one slice from here to the end."""
    return slice(start, None)


def _shown(cells: FreeCells, *, numbers: _Numbers) -> dict[Cell, int]:
    """Return which number each cell shows; a divided board's cells show none."""
    shown = {cell: numbers.place_of[one.name, one.labels] for cell, one in cells.first.items()}
    first = len(numbers.lines)
    shown |= {cell: place for place, cell in enumerate(cells.largest, first)}
    return {cell: place for cell, place in shown.items() if cell[0].cells[cell[1]] is not None}


def _largest(cells: FreeCells, *, numbers: _Numbers) -> Largest | None:
    if not cells.largest:
        return None
    groups = [numbers.places(parts) for parts in cells.largest.values()]
    starts = accumulate((len(group) for group in groups[:-1]), initial=0)
    return Largest(
        places=np.array(list(chain.from_iterable(groups)), dtype=np.intp),
        starts=np.array(list(starts), dtype=np.intp),
    )


def _processes(told: Iterable[OfProcess], *, numbers: _Numbers) -> list[ProcessNumber]:
    return [
        ProcessNumber(
            place=numbers.place_of.get((one.name, one.labels)),
            value=one.value,
            metric=one.metric,
            identity=one.identity,
            labels=one.labels.pairs,
        )
        for one in told
    ]


def _picks(
    units: Mapping[int, Unit], shown: Mapping[Cell, int], *, rows: Sequence[DeviceRow]
) -> tuple[Layout, Places]:
    """Return the columns, and which number stands in each of their cells; -1 is none."""
    row_of = {row: place for place, row in enumerate(rows)}
    indexes = sorted({index for row, index in shown if row in row_of})
    column_of = {index: column for column, index in enumerate(indexes)}
    picks = [[-1] * len(rows) for _ in indexes]
    for (row, index), place in shown.items():
        if row in row_of:
            picks[column_of[index]][row_of[row]] = place
    layout = _layout(tuple((index, units[index]) for index in indexes))
    return layout, np.array(picks, dtype=np.intp).reshape(len(indexes), len(rows))


@lru_cache(maxsize=1_024)
def _layout(columns: tuple[tuple[int, Unit], ...]) -> Layout:
    """Return the one layout of these columns."""
    return Layout(columns)


def _guards(
    cells: FreeCells,
    *,
    rows: Sequence[DeviceRow],
    numbers: _Numbers,
    samples: Iterable[Sample],
) -> Guards:
    lowest = [-np.inf] * len(numbers.lines)
    highest = [np.inf] * len(numbers.lines)
    spans: list[tuple[Taken | Part, Unit]] = [(one, one.unit) for one in cells.first.values()]
    spans += [(one, one.metric.unit) for parts in cells.largest.values() for one in parts]
    for told, unit in spans:
        place = numbers.place_of[told.name, told.labels]
        lowest[place] = unit.lowest
        highest[place] = unit.highest if unit.clamp_at is None else unit.clamp_at
    copies = [
        (copy, numbers.place_of[cells.first[cell].name, cells.first[cell].labels])
        for cell, repeated in cells.copies.items()
        for copy in numbers.places(repeated)
    ]
    return Guards(
        lowest=np.array(lowest),
        highest=np.array(highest),
        copies=np.array(copies, dtype=np.intp).reshape(-1, 2).T,
        families=tuple(
            Family(
                metric=members[0].metric,
                unit=members[0].unit,
                places=np.array(numbers.places(members)),
            )
            for members in family_members(cells).values()
        ),
        names=frozenset(sample[0] for sample in samples),
        total=_total_guard(cells, rows=rows, numbers=numbers),
    )


def _total_guard(cells: FreeCells, *, rows: Sequence[DeviceRow], numbers: _Numbers) -> Total | None:
    """Return the guard over all totals that are sums of numbers that may change."""
    summed = summed_rows(cells, rows=rows)
    if not summed:
        return None
    parts = [[cells.first[row, index] for row in summed] for index in PARTS]
    units = [[one.unit for one in part] for part in parts]
    return Total(
        places=np.array([numbers.places(part) for part in parts]),
        multipliers=np.array([[unit.multiplier for unit in part] for part in units], np.float64),
        divisors=np.array([[unit.divisor for unit in part] for part in units], np.float64),
        sums=np.array([row.cells[TOTAL] for row in summed], np.float64),
    )


def _plan_rows(rows: Sequence[DeviceRow], *, shown: Collection[Cell]) -> PlanRows:
    holders = [row.holder for row in rows]
    return PlanRows(
        nodes=[row.node for row in rows],
        device_uuids=[row.device_uuid for row in rows],
        instance_ids=[row.instance_id for row in rows],
        namespaces=[None if holder is None else holder.namespace for holder in holders],
        pods=[None if holder is None else holder.pod for holder in holders],
        containers=[None if holder is None else holder.container for holder in holders],
        absences=[row.absence_text() if row.absences or row.doubts else None for row in rows],
        constants=_constants(rows, shown=shown),
    )


def _constants(rows: Sequence[DeviceRow], *, shown: Collection[Cell]) -> dict[int, Reals]:
    """Return the values of all cells that no number fills, by column."""
    constants: dict[int, Reals] = {}
    for place, row in enumerate(rows):
        for index, cell in enumerate(row.cells):
            if cell is not None and (row, index) not in shown:
                column = constants.setdefault(index, np.full(len(rows), np.nan))
                column[place] = cell
    return constants
