"""Gathers a scrape's values into one row per device: one value per device and measure.

The exporter repeats values: per pod on a shared GPU, per MIG instance for what belongs to the
board, per exporter in a federated text. None of them may be summed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from collector.normalize.dictionary import MEASURES, METRICS, Metric
from collector.normalize.families import family_unit
from collector.normalize.identity import DeviceKey, Identity
from collector.normalize.pods import Holder
from collector.normalize.sentinels import Absence, absence_of
from collector.normalize.state import NormalizeState
from collector.normalize.units import UNSETTLED_RATIO, Unit
from collector.sources.exposition import Sample
from collector.sources.exposition_labels import Labels

Cell: TypeAlias = float | int | None
_Places: TypeAlias = dict[Labels, "DeviceRow | None"]
_MEASURE_COUNT: Final = len(MEASURES)
_INSTANCE_INDEXES: Final = tuple(
    sorted({m.index for m in METRICS.values() if m.index >= 0 and not m.is_board_wide})
)
_USED, _FREE, _RESERVED, _TOTAL = (
    MEASURES.index(f"memory_{part}_bytes") for part in ("used", "free", "reserved", "total")
)


class DeviceRow:
    """One device's or instance's measures while they are gathered."""

    __slots__ = (
        "absences",
        "cells",
        "device_uuid",
        "holders",
        "instance_id",
        "is_told_by_instances",
        "node",
        "sampled_ms",
    )

    def __init__(self, key: DeviceKey, *, node: str) -> None:
        """Start with nothing measured."""
        self.device_uuid, self.instance_id = key
        self.node = node
        self.cells: list[Cell] = [None] * _MEASURE_COUNT
        self.absences: dict[int, Absence] = {}
        self.holders: set[Holder] = set()
        self.sampled_ms: int | None = None
        self.is_told_by_instances = False

    @property
    def holder(self) -> Holder | None:
        """Return the one holder; None where there is none, or several share the device."""
        return next(iter(self.holders)) if len(self.holders) == 1 else None

    @property
    def memory_total_bytes(self) -> int | None:
        """Return the measured or completed total."""
        total = self.cells[_TOTAL]
        return None if total is None else int(total)

    def absence_text(self) -> str | None:
        """Return ``column=reason`` for each measure that was named but gave nothing."""
        silent = sorted(
            f"{MEASURES[index]}={reason}"
            for index, reason in self.absences.items()
            if self.cells[index] is None
        )
        return ",".join(silent) or None

    def complete_memory(self) -> None:
        """Fill the total from its three parts, only where all three were measured."""
        parts = [self.cells[index] for index in (_USED, _FREE, _RESERVED)]
        known = [part for part in parts if part is not None]
        if self.cells[_TOTAL] is None and len(known) == len(parts):
            self.cells[_TOTAL] = sum(known)


class Gathering:
    """One scrape's rows and counts."""

    def __init__(self, state: NormalizeState, *, target: str) -> None:
        """Start empty; the state knows label sets that were seen before."""
        self.rows: dict[DeviceKey, DeviceRow] = {}
        self.xids: dict[str, dict[int, str | None]] = {}
        """Codes with their message by device; no codes where the device shows none."""
        self.seen: set[Labels] = set()
        self.unknown_names: set[str] = set()
        self.duplicate_count = 0
        self.unidentified_count = 0
        self.conflict_count = 0
        self.clamped_count = 0
        self._state = state
        self._target = target
        self._places: tuple[_Places, _Places] = ({}, {})

    def take(self, samples: Iterable[Sample]) -> None:
        """Take all samples of a scrape."""
        families = _by_name(samples)
        names = families.keys()
        for name, readings in families.items():
            metric = METRICS.get(name)
            single = self._without_repeats(readings)
            if metric is None:
                self.unknown_names.add(name)
            elif metric.index < 0:
                self._take_xids(metric, single)
            else:
                values = [reading[2] for reading in single] if metric.may_be_percent else ()
                unit = family_unit(metric, values=values, names=names)
                self._take_family(metric, single, unit=unit)
        for row in self.rows.values():
            row.complete_memory()
        self._hide_parents()

    def identity(self, labels: Labels) -> Identity | None:
        """Return whom the labels speak of."""
        return self._state.identity(labels, target=self._target)

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
        index, places = metric.index, self._places[metric.is_board_wide]
        low, multiplier, divisor = unit.lowest, unit.multiplier, unit.divisor
        high = unit.highest if unit.clamp_at is None else unit.clamp_at
        is_integer = unit.is_integer
        for _, labels, value, own_ms in readings:
            row = places[labels] if labels in places else self._place(labels, metric)
            if row is None:
                continue
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
        """Return the clamped value, or None with the reason noted.

        Of several reasons the last by name stays, whatever the order of the lines.
        """
        reason = absence_of(value, unit=unit)
        if reason is None and unit is UNSETTLED_RATIO:
            reason = Absence.AMBIGUOUS_UNIT
        if reason is None and unit.clamp_at is not None:
            self.clamped_count += 1
            return unit.clamp_at * unit.multiplier / unit.divisor
        reason = reason or Absence.OUT_OF_RANGE
        row.absences[index] = max(reason, row.absences.get(index, reason))
        return None

    def _merge(self, row: DeviceRow, metric: Metric, *, labels: Labels, cell: Cell) -> None:
        """Settle a second value for one device and measure.

        Of a board's value repeated per MIG instance the largest is the latest reading. Otherwise
        the first value stays, unless only the second comes without a pod: that is the device's own.
        """
        index = metric.index
        kept, identity = row.cells[index], self.identity(labels)
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

    def _take_xids(self, metric: Metric, readings: list[Sample]) -> None:
        """Note the codes shown for each board; labels may spell the message out."""
        for _, labels, value, _own_ms in readings:
            row = self._place(labels, metric)
            if row is None or absence_of(value, unit=metric.unit) is not None:
                continue
            codes = self.xids.setdefault(row.device_uuid, {})
            if value > 0:
                codes.setdefault(round(value), labels.pairs.get("err_msg"))

    def _place(self, labels: Labels, metric: Metric) -> DeviceRow | None:
        """Return the row these labels belong to, new where needed; None where they name no GPU."""
        identity = self.identity(labels)
        self.seen.add(labels)
        if identity is None:
            self.unidentified_count += 1
            self._places[metric.is_board_wide][labels] = None
            return None
        key = (identity.device_uuid, None if metric.is_board_wide else identity.instance_id)
        row = self.rows.get(key)
        if row is None:
            self.rows[key] = row = DeviceRow(key, node=identity.node)
        if identity.instance_id != key[1]:
            row.is_told_by_instances = True
        elif identity.holder is not None:
            row.holders.add(identity.holder)
        self._places[metric.is_board_wide][labels] = row
        return row

    def _hide_parents(self) -> None:
        """Clear what a divided board says of itself: its instances hold the true values."""
        divided = {uuid for uuid, instance_id in self.rows if instance_id is not None}
        for uuid in divided:
            board = self.rows.get((uuid, None))
            if board is not None:
                board.holders.clear()
                for index in _INSTANCE_INDEXES:
                    board.cells[index] = None
                    board.absences.pop(index, None)


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
