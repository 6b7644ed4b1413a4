"""Objects of which the state matters, not a life: one row when the state is another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from collector.lifecycle.conditions import words_crc
from collector.lifecycle.memory import ThingEntry
from collector.lifecycle.output import Ledger
from collector.sources.kubernetes.objects import Metadata
from collector.sources.kubernetes.resource import Resource

Parts = Mapping[str, Mapping[str, object]]
"""Rows by the name of the part they describe; the empty name is the object as a whole."""


class Things:
    """Remembers what was last told of each object."""

    def __init__(self, ledger: Ledger) -> None:
        """Begin with what the ledger's memory has."""
        self._ledger = ledger
        self._memory = ledger.memory

    def entry(self, resource: Resource, metadata: Metadata) -> ThingEntry:
        """Return what is remembered of an object, which may be nothing."""
        known = self._memory.get(_key(metadata.uid), ThingEntry)
        return known or ThingEntry(
            resource=resource.name, name=metadata.name, namespace=metadata.namespace
        )

    def remembered(self, uid: str) -> ThingEntry | None:
        """Return what is remembered of an object by its identity."""
        return self._memory.get(_key(uid), ThingEntry)

    def uids(self) -> Iterable[str]:
        """Return the identities of all that is remembered."""
        return self._memory.keys("thing")

    def save(self, uid: str, entry: ThingEntry) -> None:
        """Remember an object."""
        self._memory.put(_key(uid), entry)

    def forget(self, uid: str) -> None:
        """Forget an object."""
        self._memory.drop(_key(uid))

    def is_news(self, entry: ThingEntry, *words: object) -> bool:
        """Return whether these words differ from those last told, and note them."""
        crc = words_crc(*words)
        if crc == entry.row_crc:
            return False
        entry.row_crc = crc
        return True

    def tell_parts(self, table: str, entry: ThingEntry, parts: Parts) -> None:
        """Add the rows of all parts if any of them is new; parts are named in the entry."""
        words = [word for name in sorted(parts) for word in (name, *parts[name].values())]
        if not self.is_news(entry, *words):
            return
        entry.parts = tuple(sorted(parts))
        for name in sorted(parts):
            self._ledger.add_observed(table, **parts[name])


def _key(uid: str) -> str:
    return f"thing/{uid}"
