"""What a scrape tells beside measures: codes of events, processes, and devices that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from collector.holdings import DeviceKey
from collector.normalize.absence import Absence
from collector.normalize.conversion import converted
from collector.normalize.device_row import DeviceRow
from collector.normalize.identity import Identity
from collector.normalize.metric import MEASURES, Metric, Role
from collector.normalize.sentinels import absence_of, meaning

_HIGHEST_PID: Final = 2**22
"""The kernel's largest ``pid_max``; a larger number was read from the wrong place."""
PROCESS_ROLES: Final = frozenset({Role.PROCESS, Role.PROCESS_MEMORY, Role.PROCESS_RATIO})
_PROCESS_LABELS: Final = ("process", "process_name")

EventKey: TypeAlias = tuple[str, str]
"""Device UUID and kind of event."""


@dataclass(slots=True, kw_only=True)
class ToldProcess:
    """One process of one device; None is not told."""

    process: str | None
    pod_uid: str | None
    container_id: str | None
    memory_used_bytes: int | None = None
    sm_ratio: float | None = None


@dataclass(slots=True)
class Told:
    """All of it, gathered series by series."""

    codes: dict[EventKey, dict[int, str | None]] = field(default_factory=dict)
    """Codes shown as the last, with their message; no codes where the device shows none."""
    counts: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """How often each code happened, by device, kind and code."""
    processes: dict[tuple[DeviceKey, int], ToldProcess] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    """Node by device UUID, of all devices with an event or a process."""
    gone: dict[str, str] = field(default_factory=dict)
    """Why a device does not answer, by device UUID."""

    def take(
        self, metric: Metric, *, identity: Identity, labels: Mapping[str, str], value: float
    ) -> None:
        """Take one series whose role is an event's or a process's, or the device's presence."""
        uuid = identity.device_uuid
        self.nodes[uuid] = identity.node
        if metric.role is Role.PRESENCE:
            if value == 0:
                self.gone[uuid] = meaning(labels.get("reason")) or Absence.LOST
        elif metric.role is Role.EVENT_COUNT:
            self._count_event(metric, uuid=uuid, labels=labels, value=value)
        elif metric.role is Role.LAST_EVENT:
            self._note_code(metric, uuid=uuid, labels=labels, value=value)
        else:
            self._note_process(metric, identity=identity, labels=labels, value=value)

    def forget(self, uuids: Iterable[str]) -> None:
        """Drop what was told of these devices, processes excepted."""
        gone = set(uuids)
        self.codes = {key: codes for key, codes in self.codes.items() if key[0] not in gone}
        self.counts = {key: count for key, count in self.counts.items() if key[0] not in gone}
        self.gone = {uuid: why for uuid, why in self.gone.items() if uuid not in gone}

    def _note_code(
        self, metric: Metric, *, uuid: str, labels: Mapping[str, str], value: float
    ) -> None:
        if absence_of(value, unit=metric.unit) is not None:
            return
        codes = self.codes.setdefault((uuid, metric.column), {})
        if value > 0:
            codes.setdefault(round(value), meaning(labels.get("err_msg")))

    def _count_event(
        self, metric: Metric, *, uuid: str, labels: Mapping[str, str], value: float
    ) -> None:
        code = _number(labels.get(metric.label or ""))
        if code is None or absence_of(value, unit=metric.unit) is not None:
            return
        key = (uuid, metric.column, code)
        self.counts[key] = max(value, self.counts.get(key, value))

    def _note_process(
        self, metric: Metric, *, identity: Identity, labels: Mapping[str, str], value: float
    ) -> None:
        pid = _number(labels.get(metric.label or ""))
        if pid is None or not 0 < pid <= _HIGHEST_PID:
            return
        key = ((identity.device_uuid, identity.instance_id), pid)
        known = self.processes.get(key)
        if known is None:
            self.processes[key] = known = ToldProcess(
                process=next(filter(None, (meaning(labels.get(n)) for n in _PROCESS_LABELS)), None),
                pod_uid=meaning(labels.get("pod_uid")),
                container_id=meaning(labels.get("container_id")),
            )
        cell = converted(value, unit=metric.unit).cell
        if metric.role is Role.PROCESS_MEMORY and cell is not None:
            known.memory_used_bytes = int(cell)
        elif metric.role is Role.PROCESS_RATIO:
            known.sm_ratio = cell


def note_absence(row: DeviceRow, labels: Mapping[str, str]) -> None:
    """Note on the row the measure and reason that the labels name; others are passed over."""
    measure, reason = labels.get("measure"), labels.get("reason")
    if measure in MEASURES and reason in set(Absence):
        row.miss(MEASURES.index(measure), Absence(reason))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 10 else None
