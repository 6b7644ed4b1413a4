"""What one target's text means for as long as only its numbers change.

Between two scrapes of an exporter the names, labels and comments of its text stay the same, byte
for byte, until a pod or a device changes. A ``Plan`` remembers them: of a text that fits it, only
the numbers are read, straight into columns. A text that differs in anything else, or has a number
that the full way would treat in any special way, does not fit and is read in full.

``plan_build`` makes plans from what the full way did; ``plan_rows`` makes rows of many targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem, itemgetter
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from collector.holdings import Holding
from collector.normalize.families import family_unit
from collector.normalize.identity import Identity
from collector.normalize.metric import Metric
from collector.normalize.plan_lines import NUMBER_BYTES
from collector.normalize.plan_trace import Claim
from collector.normalize.told import Told
from collector.normalize.units import Unit

Reals: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]
Picker: TypeAlias = Callable[[Sequence[bytes]], tuple[bytes, ...]]
"""Picks some lines out of all."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Which measured columns a plan fills with numbers; one object for all plans alike."""

    columns: tuple[tuple[int, Unit], ...]
    """Place among ``MEASURES`` and the unit the numbers are in, ascending by place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRows:
    """The rows of a plan without their numbers: parallel lists, in stored order."""

    nodes: Sequence[str]
    device_uuids: Sequence[str]
    instance_ids: Sequence[int | None]
    namespaces: Sequence[str | None]
    pods: Sequence[str | None]
    containers: Sequence[str | None]
    absences: Sequence[str | None]
    constants: dict[int, Reals]
    """By place among ``MEASURES``: values that are not read anew, in base units; NaN is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """Numbers of which only the largest counts, group by group."""

    places: Places
    """All groups, one after the other."""
    starts: Places
    """Where each group begins among them."""

    def of(self, values: Reals) -> Reals:
        """Return the largest number of each group."""
        return np.maximum.reduceat(values[self.places], self.starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessNumber:
    """A number that is told of a process."""

    place: int | None
    """Among the numbers; None where its line has to stay as it is."""
    value: float
    metric: Metric
    identity: Identity
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What was counted in the text, the same for every text that fits."""

    sample_count: int
    duplicate_count: int
    unknown_metric_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Numbers whose unit depends on all of them together."""

    metric: Metric
    places: Places
    unit: Unit
    """What they were in when the plan was made; the text fits while they still are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A column that is the sum of three: stored as a constant, so the sums must stay."""

    places: Places
    """Three rows: the parts of each sum."""
    multipliers: Reals
    divisors: Reals
    sums: Reals

    def holds(self, values: Reals) -> bool:
        """Tell whether the parts still add up to the same."""
        parts = np.rint(values[self.places] * self.multipliers / self.divisors)
        return bool((parts.sum(axis=0) == self.sums).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What numbers must be like for the full way to treat them as it did."""

    lowest: Reals
    highest: Reals
    copies: Places
    """Numbers that repeat another one, and (second row) which."""
    families: tuple[Family, ...]
    names: frozenset[str]
    """All metric names of the text."""
    total: Total | None

    def admit(self, values: Reals) -> bool:
        """Tell whether the numbers are ordinary ones."""
        if not ((values >= self.lowest) & (values <= self.highest)).all():
            return False
        if self.copies.size and (values[self.copies[0]] != values[self.copies[1]]).any():
            return False
        if self.total is not None and not self.total.holds(values):
            return False
        return all(
            family_unit(family.metric, values=values[family.places].tolist(), names=self.names)
            is family.unit
            for family in self.families
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLines:
    """The text without its numbers."""

    count: int
    """Lines of the text."""
    pick_fixed: Picker
    fixed: tuple[bytes, ...]
    """Lines that must be the same as a whole."""
    pick_series: Picker
    heads: tuple[bytes, ...]
    """How the other lines begin."""
    tails: tuple[slice, ...]
    """Where their numbers stand."""

    def numbers(self, text: bytes) -> Reals | None:
        """Return the numbers of a text in order; None where the text differs elsewhere."""
        lines = text.split(b"\n")
        if len(lines) != self.count or self.pick_fixed(lines) != self.fixed:
            return None
        series = self.pick_series(lines)
        if not all(map(bytes.startswith, series, self.heads)):
            return None
        tails = cast("list[bytes]", list(map(getitem, series, self.tails)))
        if b"".join(tails).translate(None, NUMBER_BYTES):
            return None
        try:
            return np.fromiter(map(float, tails), dtype=np.float64, count=len(tails))
        except ValueError:
            return None


def picker(places: Sequence[int]) -> Picker:
    """Return what picks the lines at these places."""
    if len(places) > 1:
        return cast("Picker", itemgetter(*places))
    return lambda lines: tuple(lines[place] for place in places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to read a target's next text, if only its numbers changed."""

    lines: PlanLines
    guards: Guards
    layout: Layout
    picks: Places
    """Column by row: which number; beyond the last ones the largest of groups, then none."""
    has_gaps: bool
    """Some cells have none."""
    largest: Largest | None
    processes: Sequence[ProcessNumber]
    """In the order in which they are told."""
    rows: PlanRows
    claim: Claim
    counts: Counts
    holdings: tuple[Holding, ...]
    kubelet_speaks: bool | None

    def read(self, text: bytes) -> Reals | None:
        """Return the text's numbers, in the vendor's units; None where it must be read in full."""
        values = self.lines.numbers(text)
        return values if values is not None and self.guards.admit(values) else None

    def cells(self, values: Reals) -> Reals:
        """Return numbers by column of the layout and row; NaN where there is none."""
        return self.pickable(values)[self.picks]

    def pickable(self, values: Reals) -> Reals:
        """Return the numbers with what else ``picks`` may point to."""
        if self.largest is not None:
            values = np.concatenate([values, self.largest.of(values)])
        return np.append(values, np.nan) if self.has_gaps else values

    def told(self, values: Reals) -> Told:
        """Return what the numbers tell of processes, as reading in full tells it."""
        told = Told()
        for one in self.processes:
            value = one.value if one.place is None else float(values[one.place])
            told.take(one.metric, identity=one.identity, labels=one.labels, value=value)
        return told
