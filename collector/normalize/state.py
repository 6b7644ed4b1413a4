"""What is remembered of one target between scrapes: who is who, and what was said last."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from collector.normalize.identity import DeviceKey, Facts, Identity, identify
from collector.sources.exposition_labels import Labels

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
    missed_scrapes: int = 0
    is_present: bool = True


@dataclass(slots=True)
class NormalizeState:
    """One target's memory; lost at a restart, which costs a repeated device row and XID event."""

    identities: dict[Labels, Identity | None] = field(default_factory=dict)
    nodes: dict[str, KnownNode] = field(default_factory=dict)
    devices: dict[DeviceKey, KnownDevice] = field(default_factory=dict)
    xids: dict[str, frozenset[int]] = field(default_factory=dict)
    """Codes shown last by device; no entry where none was ever shown, not even 0."""

    def identity(self, labels: Labels, *, target: str) -> Identity | None:
        """Return whom the labels speak of, looked up where they were seen before."""
        if labels in self.identities:
            return self.identities[labels]
        found = identify(labels.pairs, target=target, settle_node=self.settle_node)
        self.identities[labels] = found
        return found

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

    def keep_only(self, seen: Collection[Labels]) -> None:
        """Forget label sets that the target no longer shows."""
        if len(self.identities) > len(seen):
            self.identities = {labels: self.identities[labels] for labels in seen}

    def learn(self, key: DeviceKey, *, node: str, facts: Facts) -> KnownDevice | None:
        """Remember a device; return it where it is new, changed or back, else None.

        A fact that is not told this time keeps its last value.
        """
        known = self.devices.get(key)
        if known is None:
            self.devices[key] = known = KnownDevice(node=node, facts=facts)
            return known
        merged = merged_facts(facts, known.facts)
        is_news = known.node != node or known.facts != merged or not known.is_present
        known.node, known.facts, known.missed_scrapes, known.is_present = node, merged, 0, True
        return known if is_news else None


def merged_facts(first: Facts, second: Facts) -> Facts:
    """Return the first facts, completed from the second where the first are silent."""
    if first == second:
        return first
    missing = {name: getattr(second, name) for name in _FACT_NAMES if getattr(first, name) is None}
    return replace(first, **missing)
