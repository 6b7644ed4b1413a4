"""Gathers a scrape's values into one row per device: one value per device and measure.

The exporter repeats values: per pod on a shared GPU, per MIG instance for what belongs to the
board, per exporter in a federated text. None of them may be summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from collector.holdings import DeviceKey, Holding
from collector.normalize.absence import Doubt
from collector.normalize.alternatives import Alternatives
from collector.normalize.conversion import converted
from collector.normalize.counters import Counters
from collector.normalize.device_row import Cell, DeviceRow
from collector.normalize.dialects import Dialect
from collector.normalize.dictionary import METRICS, SPLIT_BY, Metric, known_metric, without_prefix
from collector.normalize.families import family_unit
from collector.normalize.identity import Identity, Place
from collector.normalize.metric import Role
from collector.normalize.plan_trace import OfProcess, Part, Taken, Trace
from collector.normalize.state import NormalizeState, SeriesKey
from collector.normalize.told import PROCESS_ROLES, Told, note_absence
from collector.normalize.units import Unit
from collector.normalize.vendors.agent import POD_RESOURCES_UP
from collector.sources.exposition import Sample
from collector.sources.exposition_labels import Labels

__all__ = ["Cell", "DeviceRow", "Gathering"]

_LABELS_ONLY: Final = frozenset({Role.IDENTITY, Role.ABSENCE})
"""Roles whose numbers mean nothing."""
_Places: TypeAlias = dict[Labels, "DeviceRow | None"]
_Family: TypeAlias = tuple[Metric, list[Sample]]
_INSTANCE_INDEXES: Final = tuple(
    {
        metric.index
        for metric in METRICS.values()
        if metric.index >= 0 and not metric.is_board_wide and metric.dialect.hides_divided_board
    }
)
"""Measures that a divided board does not have itself."""


class Gathering:
    """One scrape's rows and counts."""

    def __init__(self, state: NormalizeState, *, place: Place, trace: Trace | None = None) -> None:
        """Start empty; the state knows label sets that were seen before."""
        self.rows: dict[DeviceKey, DeviceRow] = {}
        self.told = Told()
        self.counters = Counters()
        self.seen: dict[SeriesKey, Identity | None] = {}
        """Whom each label set of a known name speaks of."""
        self.unknown_names: set[str] = set()
        self.duplicate_count = 0
        self.unidentified_count = 0
        self.conflict_count = 0
        self.clamped_count = 0
        self.kubelet_speaks: bool | None = None
        """Whether the node agent hears from its kubelet who holds what; None: it is no agent."""
        self.precedence = 0
        """Of the exporter whose names these are; of several the highest."""
        self._state = state
        self._trace = trace
        self._place_of_target = place
        self._places: dict[tuple[str, bool], _Places] = {}
        self._alternatives = Alternatives()
        self._undivided: set[str] = set()
        self._holdings: dict[Holding, None] = {}

    def take(self, samples: Iterable[Sample]) -> None:
        """Take all samples of a scrape."""
        families = _by_name(samples)
        known = list(self._known(families))
        for metric, readings in known:
            if metric.dialect.has_partial_rows:
                self._state.learn_aliases(readings, dialect=metric.dialect)
        self._take_measures(known, names=families.keys())
        for metric, readings in known:
            if metric.role is not Role.MEASURE:
                self._take_told(metric, readings)
        self._finish()

    def _take_measures(self, known: list[_Family], *, names: AbstractSet[str]) -> None:
        for metric, readings in known:
            if metric.is_plain:
                values = [reading[2] for reading in readings] if metric.may_be_percent else ()
                unit = family_unit(metric, values=values, names=names)
                self._take_family(metric, readings, unit=unit)
            elif metric.role is Role.MEASURE:
                self._take_parts(metric, readings)

    def holdings(self) -> tuple[Holding, ...]:
        """Return who holds what according to the labels, each once, in order of appearance."""
        return tuple(self._holdings)

    def leave_out(self, devices: AbstractSet[str]) -> None:
        """Drop what was read of these devices: another target tells it.

        Their processes and holders stay: the other target may not know them.
        """
        self.rows = {key: row for key, row in self.rows.items() if key[0] not in devices}
        self.seen = {
            key: identity
            for key, identity in self.seen.items()
            if identity is None or identity.device_uuid not in devices
        }
        self.told.forget(devices)

    def identity(self, labels: Labels, *, dialect: Dialect) -> Identity | None:
        """Return whom the labels speak of."""
        key = (labels, dialect.name)
        if key not in self.seen:
            self.seen[key] = self._state.identity(
                labels, dialect=dialect, place=self._place_of_target
            )
            self._note(self.seen[key], dialect=dialect)
        return self.seen[key]

    def _note(self, identity: Identity | None, *, dialect: Dialect) -> None:
        """Count or remember what a label set says that was not met before in this scrape."""
        if identity is None:
            self.unidentified_count += 1
            return
        self.precedence = max(self.precedence, dialect.precedence)
        if identity.holding is not None:
            self._holdings[identity.holding] = None

    def _known(self, families: dict[str, list[Sample]]) -> Iterator[_Family]:
        """Yield each known family without repeats; count the rest."""
        for name, readings in families.items():
            single = self._without_repeats(readings)
            metric = METRICS.get(name)
            if name == POD_RESOURCES_UP:
                self.kubelet_speaks = all(value > 0 for _, _, value, _ in single)
                continue
            if metric is not None:
                yield metric, single
                continue
            found = list(_odd_families(name, single))
            yield from found
            if not found:
                self.unknown_names.add(name)

    def _without_repeats(self, readings: list[Sample]) -> list[Sample]:
        """Return the first reading of each series, counting the rest."""
        if len({reading[1] for reading in readings}) == len(readings):
            return readings
        first: dict[Labels, Sample] = {}
        for reading in readings:
            first.setdefault(reading[1], reading)
        self.duplicate_count += len(readings) - len(first)
        return list(first.values())

    def _take_family(self, metric: Metric, readings: list[Sample], *, unit: Unit) -> None:
        """Put one family's values into their rows."""
        index, places = metric.index, self._places_of(metric)
        low, multiplier, divisor = unit.lowest, unit.multiplier, unit.divisor
        high = unit.highest if unit.clamp_at is None else unit.clamp_at
        is_integer, trace = unit.is_integer, self._trace
        for name, labels, value, own_ms in readings:
            row = places[labels] if labels in places else self._place(labels, metric, places=places)
            if row is None:
                self._ignore(metric, name, labels)
                continue
            if trace is not None:
                trace.taken.append(Taken(name, labels, metric, unit, row, low <= value <= high))
            if own_ms is not None:
                row.sampled_ms = max(own_ms, row.sampled_ms or own_ms)
            is_taken = row.cells[index] is not None or index in row.absences
            if low <= value <= high:
                cell: Cell = value * multiplier / divisor
                cell = round(cell) if is_integer and cell is not None else cell
            else:
                cell = self._odd(row, index, value=value, unit=unit)
            if is_taken:
                self._merge(row, metric, labels=labels, cell=cell)
            else:
                row.cells[index] = cell

    def _odd(self, row: DeviceRow, index: int, *, value: float, unit: Unit) -> Cell:
        """Return the clamped value with its doubt noted, or None with the reason noted."""
        found = converted(value, unit=unit)
        if found.absence is not None:
            row.miss(index, found.absence)
        elif found.is_clamped:
            self.clamped_count += 1
            row.doubt(index, Doubt.CLAMPED)
        return found.cell

    def _merge(self, row: DeviceRow, metric: Metric, *, labels: Labels, cell: Cell) -> None:
        """Settle a second value for one device and measure.

        Of a board's value repeated per MIG instance the largest is the latest reading. Otherwise
        the first value stays, unless only the second comes without a pod: that is the device's own.
        """
        index = metric.index
        kept, identity = row.cells[index], self.identity(labels, dialect=metric.dialect)
        is_repeat = metric.is_board_wide and row.is_told_by_instances
        if not is_repeat:
            self.duplicate_count += 1
        if kept is None or cell is None:
            row.cells[index] = cell if kept is None else kept
        elif is_repeat:
            row.cells[index] = max(kept, cell)
        elif kept != cell:
            self.conflict_count += 1
            is_own = identity is not None and identity.holder is None and row.holders
            row.cells[index] = cell if is_own else kept

    def _take_parts(self, metric: Metric, readings: list[Sample]) -> None:
        """Keep values that wait for others: parts of a whole, or second choices."""
        places, dialect = self._places_of(metric), metric.dialect
        for name, labels, value, own_ms in readings:
            row = places[labels] if labels in places else self._place(labels, metric, places=places)
            if row is None:
                self._ignore(metric, name, labels)
                continue
            if own_ms is not None:
                row.sampled_ms = max(own_ms, row.sampled_ms or own_ms)
            part = (name, *(labels.pairs.get(label, "") for label in dialect.parts))
            told = converted(value, unit=metric.unit)
            self._alternatives.add(row, metric, part=part, value=told)
            if self._trace is not None:
                self._trace.parts.append(Part(name, labels, metric, row, part, told))

    def _take_told(self, metric: Metric, readings: list[Sample]) -> None:
        """Take what is no measure."""
        for name, labels, value, _own_ms in readings:
            identity = self.identity(labels, dialect=metric.dialect)
            if identity is None or metric.role in _LABELS_ONLY:
                self._ignore(metric, name, labels)
            if identity is None:
                continue
            row = self.rows.get((identity.device_uuid, identity.instance_id))
            if metric.role is Role.IDENTITY:
                if row is not None and identity.holder is not None:
                    row.holders.add(identity.holder)
            elif metric.role is Role.COUNTER:
                self._take_count(metric, identity=identity, labels=labels, value=value)
            elif metric.role is Role.ABSENCE:
                note_absence(row or self._row(identity), labels.pairs)
            else:
                self._take_event(metric, identity, reading=(name, labels, value))

    def _take_event(
        self, metric: Metric, identity: Identity, *, reading: tuple[str, Labels, float]
    ) -> None:
        name, labels, value = reading
        self.told.take(metric, identity=identity, labels=labels.pairs, value=value)
        if self._trace is not None and metric.role in PROCESS_ROLES:
            self._trace.processes.append(OfProcess(name, labels, metric, identity, value))

    def _ignore(self, metric: Metric, name: str, labels: Labels) -> None:
        """Note that the number of a series means nothing, if notes are taken."""
        if self._trace is not None and not metric.may_be_percent:
            self._trace.ignored.add((name, labels))

    def _take_count(
        self, metric: Metric, *, identity: Identity, labels: Labels, value: float
    ) -> None:
        if identity.is_shadow:
            return
        row = self._row(identity, is_board_wide=metric.is_board_wide)
        part = tuple(labels.pairs.get(label, "") for label in metric.dialect.parts)
        self.counters.take((row.device_uuid, row.instance_id), metric, part=part, value=value)

    def _places_of(self, metric: Metric) -> _Places:
        return self._places.setdefault((metric.dialect.name, metric.is_board_wide), {})

    def _place(self, labels: Labels, metric: Metric, *, places: _Places) -> DeviceRow | None:
        """Return the row these labels belong to, new where needed; None where they have none."""
        identity = self.identity(labels, dialect=metric.dialect)
        if identity is None or identity.is_shadow:
            places[labels] = None
            return None
        row = self._row(identity, is_board_wide=metric.is_board_wide)
        if identity.instance_id != row.instance_id:
            row.is_told_by_instances = True
        elif identity.holder is not None:
            row.holders.add(identity.holder)
        places[labels] = row
        return row

    def _row(self, identity: Identity, *, is_board_wide: bool = False) -> DeviceRow:
        key = (identity.device_uuid, None if is_board_wide else identity.instance_id)
        row = self.rows.get(key)
        if row is None:
            self.rows[key] = row = DeviceRow(key, node=identity.node)
            row.is_guest = identity.is_guest
            if not identity.dialect.hides_divided_board:
                self._undivided.add(identity.device_uuid)
        return row

    def _finish(self) -> None:
        """Settle what waited; clear what a divided board says of itself: its instances know."""
        self._alternatives.settle()
        self.duplicate_count += self._alternatives.duplicate_count
        self.clamped_count += self._alternatives.clamped_count
        self.conflict_count += self._alternatives.conflict_count
        for row in self.rows.values():
            row.finish()
        divided = {uuid for uuid, instance_id in self.rows if instance_id is not None}
        divided -= self._undivided
        self.counters.keep_board_wide(divided)
        for uuid in divided:
            board = self.rows.get((uuid, None))
            if board is not None:
                board.holders.clear()
                for index in _INSTANCE_INDEXES:
                    board.cells[index] = None
                    board.absences.pop(index, None)


def _odd_families(name: str, readings: list[Sample]) -> Iterator[_Family]:
    """Yield the families behind a name that stands for several, or has AMD's prefix."""
    base = name if name in SPLIT_BY else without_prefix(name)
    label = SPLIT_BY.get(base)
    if label is None:
        metric = known_metric(name, readings[0][1].pairs)
        if metric is not None:
            yield metric, readings
        return
    groups: dict[str, list[Sample]] = {}
    for reading in readings:
        groups.setdefault(reading[1].pairs.get(label, ""), []).append(reading)
    for value, group in groups.items():
        metric = METRICS.get(f"{base}{{{label}={value}}}")
        if metric is not None:
            yield metric, group


def _by_name(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return the samples grouped by name, in order."""
    groups: dict[str, list[Sample]] = {}
    last: str | None = None
    group: list[Sample] = []
    for sample in samples:
        if sample[0] is not last:
            last = sample[0]
            group = groups.setdefault(last, [])
        group.append(sample)
    return groups
