"""One device's or MIG instance's measures while a scrape is gathered."""

from __future__ import annotations

from typing import Final, TypeAlias

from collector.holdings import DeviceKey
from collector.normalize.absence import Absence, Doubt
from collector.normalize.metric import MEASURES
from collector.normalize.pods import Holder

Cell: TypeAlias = float | int | None
_MEASURE_COUNT: Final = len(MEASURES)
BUSY: Final = MEASURES.index("busy_ratio")
_USED, _FREE, _RESERVED, _TOTAL = (
    MEASURES.index(f"memory_{part}_bytes") for part in ("used", "free", "reserved", "total")
)


class DeviceRow:
    """One device's or instance's measures while they are gathered."""

    __slots__ = (
        "absences",
        "cells",
        "device_uuid",
        "doubts",
        "holders",
        "instance_id",
        "is_guest",
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
        self.doubts: dict[int, Doubt] | None = None
        """Of values that are kept; mostly there is none, so no dict either."""
        self.holders: set[Holder] = set()
        self.sampled_ms: int | None = None
        self.is_guest = False
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

    def doubt(self, index: int, reason: Doubt) -> None:
        """Mark a value that is kept; of two reasons the last by name stays."""
        if self.doubts is None:
            self.doubts = {}
        self.doubts[index] = max(reason, self.doubts.get(index, reason))

    def miss(self, index: int, reason: Absence) -> None:
        """Note why a measure has no value; of two reasons the last by name stays."""
        self.absences[index] = max(reason, self.absences.get(index, reason))

    def absence_text(self) -> str | None:
        """Return ``column=reason`` for each measure without a value or with a doubtful one."""
        told = {
            MEASURES[index]: reason
            for index, reason in self.absences.items()
            if self.cells[index] is None
        } | {
            MEASURES[index]: reason
            for index, reason in (self.doubts or {}).items()
            if self.cells[index] is not None
        }
        return ",".join(f"{column}={told[column]}" for column in sorted(told)) or None

    def finish(self) -> None:
        """Fill the memory's total from its parts where all were measured; mark a guest's 0."""
        if self.cells[_TOTAL] is None:
            parts = [self.cells[index] for index in (_USED, _FREE, _RESERVED)]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts):
                self.cells[_TOTAL] = sum(known)
        if self.is_guest and self.cells[BUSY] == 0:
            self.doubt(BUSY, Doubt.LOW_TRUST)
