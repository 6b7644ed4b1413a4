"""What the full way did with each number of a text, noted so that a plan can be made of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from collector.normalize.claims import DeviceClaims
from collector.normalize.conversion import Converted
from collector.normalize.device_row import DeviceRow
from collector.normalize.identity import Identity
from collector.normalize.metric import Metric
from collector.normalize.units import Unit
from collector.sources.exposition_labels import Labels


class Taken(NamedTuple):
    """One number that was taken as one device's value for one measure."""

    name: str
    labels: Labels
    metric: Metric
    unit: Unit
    row: DeviceRow
    is_ordinary: bool
    """It was within its span: no sentinel, nothing to clamp."""


class Part(NamedTuple):
    """One number that waited for others: a part of a whole, or a second choice."""

    name: str
    labels: Labels
    metric: Metric
    row: DeviceRow
    part: tuple[str, ...]
    told: Converted


class OfProcess(NamedTuple):
    """One number that was told of a process."""

    name: str
    labels: Labels
    metric: Metric
    identity: Identity
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Which devices a text shows, and which of them belonged to other targets."""

    devices: frozenset[str] = frozenset()
    precedence: int = 0
    """Of the exporter, see ``DeviceClaims``."""
    foreign: frozenset[str] = frozenset()

    def holds(self, claims: DeviceClaims | None, *, target: str, at: datetime) -> bool:
        """Claim the devices again; tell whether the same ones belong to others."""
        if claims is None:
            return True
        foreign = claims.foreign(self.devices, target=target, precedence=self.precedence, at=at)
        return foreign == self.foreign


@dataclass(slots=True)
class Trace:
    """The notes of one text."""

    taken: list[Taken] = field(default_factory=list)
    """In the order in which the numbers met their cells."""
    parts: list[Part] = field(default_factory=list)
    processes: list[OfProcess] = field(default_factory=list)
    ignored: set[tuple[str, Labels]] = field(default_factory=set)
    """Series of known names of which the number means nothing."""
    ignored_names: frozenset[str] = frozenset()
    """Metric names of which no number means anything."""
    rows: Sequence[DeviceRow] = ()
    """All rows that are stored, in their order."""
    claim: Claim = Claim()
    is_steady: bool = True
    """The same text once more would mean the same: it has no counters, whose growth is told."""

    def free_series(self) -> set[tuple[str, Labels]]:
        """Return the series whose numbers fill no cell and watch over nothing."""
        return self.ignored | {(one.name, one.labels) for one in self.processes}

    def end(
        self,
        ignored_names: Collection[str],
        *,
        rows: Sequence[DeviceRow],
        claim: Claim,
        is_steady: bool,
    ) -> None:
        """Note what is known once all numbers are taken."""
        self.ignored_names = frozenset(ignored_names)
        self.rows = rows
        self.claim = claim
        self.is_steady = is_steady
