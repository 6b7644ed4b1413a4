"""What is remembered of one target between scrapes: who is who, and what was said last."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from collector.holdings import DeviceKey
from collector.normalize.claims import DeviceClaims
from collector.normalize.counters import KnownCounts
from collector.normalize.device_row import DeviceRow
from collector.normalize.dialects import Dialect
from collector.normalize.identity import Facts, Identity, Place, identify, told_as, uuid_and_index
from collector.normalize.told import EventKey
from collector.sources.exposition import Sample
from collector.sources.exposition_labels import Labels

SeriesKey: TypeAlias = tuple[Labels, str]
"""A label set and the name of the dialect it was read in."""
_FACT_NAMES = tuple(Facts.__dataclass_fields__)


@dataclass(slots=True)
class KnownNode:
    """The node a device was said to be on."""

    name: str
    is_named: bool
    """The exporter named it; otherwise the target's address did."""


@dataclass(slots=True)
class KnownDevice:
    """What was last stored of a device."""

    node: str
    facts: Facts
    """Completed by what earlier scrapes told."""
    told: Facts
    """As the last scrape told them."""
    missed_scrapes: int = 0
    is_present: bool = True
    profiled: frozenset[int] = frozenset()
    """Profiling measures that had a value since the device was last without them."""
    unprofiled_scrapes: int = 0
    """Scrapes in a row in which some of them had none."""

    def is_same(self, node: str, *, facts: Facts, total: int | None) -> bool:
        """Tell whether a scrape says nothing new; quick, since mostly that is so."""
        return (
            self.told is facts
            and self.is_present
            and self.node == node
            and total in (None, self.facts.memory_total_bytes)
        )


@dataclass(slots=True)
class NormalizeState:
    """One target's memory; lost at a restart, which costs a repeated device row and XID event.

    ``node`` and ``own_pod`` are what discovery knows of the target; they stay for its life.
    """

    node: str | None = None
    """The target's node, which wins over labels."""
    own_pod: str | None = None
    """The exporter's own pod, which never holds a device."""
    claims: DeviceClaims | None = None
    """Shared with the other targets: whose rows of a device are kept. None keeps all."""
    identities: dict[SeriesKey, Identity | None] = field(default_factory=dict)
    nodes: dict[str, KnownNode] = field(default_factory=dict)
    devices: dict[DeviceKey, KnownDevice] = field(default_factory=dict)
    codes: dict[EventKey, frozenset[int]] = field(default_factory=dict)
    """Codes shown last by device and kind; no entry where none was ever shown, not even 0."""
    counts: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """How often each code had happened, by device, kind and code."""
    counters: dict[DeviceKey, KnownCounts] = field(default_factory=dict)
    """Counts of the scrapes before, of exporters whose counters make up for missing gauges."""
    sampled_ms: dict[str, int] = field(default_factory=dict)
    """The newest own timestamp by board, of exporters that stamp their lines."""
    aliases: dict[str, str] = field(default_factory=dict)
    """UUIDs by index, for exporters whose series name devices now by one, now by the other."""

    def identity(self, labels: Labels, *, dialect: Dialect, place: Place) -> Identity | None:
        """Return whom the labels speak of, looked up where they were seen before."""
        key = (labels, dialect.name)
        if key in self.identities:
            return self.identities[key]
        found = identify(
            labels.pairs,
            dialect=dialect,
            place=place,
            settle_node=self.settle_node,
            aliases=self.aliases,
        )
        self.identities[key] = found
        return found

    def learn_aliases(self, readings: Iterable[Sample], *, dialect: Dialect) -> None:
        """Learn from series that name a device by UUID and index, for those that name only one.

        Two devices that are known by one word make the word worthless.
        """
        for _, labels, _, _ in readings:
            if (labels, dialect.name) in self.identities:
                continue
            word = told_as(labels.pairs, dialect=dialect)
            if word is None:
                continue
            uuid, index = uuid_and_index(labels.pairs, dialect=dialect)
            device = uuid or str(index)
            if self.aliases.setdefault(word, device) != device:
                self.aliases[word] = device if uuid is not None else ""

    def settle_node(self, device: str, named: str | None, suggested: str) -> str:
        """Return the one node of a device.

        A node that the target's address suggested stays, also when the exporter later learns its
        name: one machine must not become two. A node that was named changes with its name.
        """
        known = self.nodes.get(device)
        if known is None:
            known = KnownNode(name=named or suggested, is_named=named is not None)
            self.nodes[device] = known
        elif named is not None and known.is_named:
            known.name = named
        return known.name

    def keep_only(self, seen: Collection[SeriesKey]) -> None:
        """Forget label sets that the target no longer shows."""
        if len(self.identities) > len(seen):
            self.identities = {key: self.identities[key] for key in seen}

    def fresh(self, rows: Iterable[DeviceRow]) -> list[DeviceRow]:
        """Return the rows without those of boards whose own timestamp has not moved.

        An exporter that stamps its lines shows its last reading until it has another: that is the
        same sample, not a new one.
        """
        told = list(rows)
        newest: dict[str, int] = {}
        for row in told:
            if row.sampled_ms is not None:
                newest[row.device_uuid] = max(row.sampled_ms, newest.get(row.device_uuid, 0))
        repeated = {uuid for uuid, ms in newest.items() if self.sampled_ms.get(uuid) == ms}
        self.sampled_ms.update(newest)
        return [row for row in told if row.device_uuid not in repeated] if repeated else told

    def forget_devices(self, devices: Collection[str]) -> None:
        """Forget devices that another target has taken over: they are not lost."""
        for known in (self.devices, self.counters):
            for key in [key for key in known if key[0] in devices]:
                del known[key]

    def learn(
        self, key: DeviceKey, *, node: str, facts: Facts, memory_total_bytes: int | None
    ) -> KnownDevice | None:
        """Remember a device; return it where it is new, changed or back, else None.

        A fact that is not told this time keeps its last value.
        """
        known = self.devices.get(key)
        if known is not None and known.is_same(node, facts=facts, total=memory_total_bytes):
            known.missed_scrapes = 0
            return None
        told = facts
        if memory_total_bytes is not None:
            facts = replace(facts, memory_total_bytes=memory_total_bytes)
        if known is None:
            self.devices[key] = known = KnownDevice(node=node, facts=facts, told=told)
            return known
        merged = merged_facts(facts, known.facts)
        is_news = known.node != node or known.facts != merged or not known.is_present
        known.node, known.facts, known.told = node, merged, told
        known.missed_scrapes, known.is_present = 0, True
        return known if is_news else None


def merged_facts(first: Facts, second: Facts) -> Facts:
    """Return the first facts, completed from the second where the first are silent."""
    if first == second:
        return first
    missing = {name: getattr(second, name) for name in _FACT_NAMES if getattr(first, name) is None}
    return replace(first, **missing)
