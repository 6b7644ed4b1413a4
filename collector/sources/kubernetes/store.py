"""The objects of one kind as they were last seen: what makes a difference a difference.

A server tells the same state more than once: after a restart, a relist, a resumed watch. Here each
identity and version counts one time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from collector.sources.kubernetes.change import ChangeType
from collector.sources.kubernetes.resource import KubernetesObject, ObjectMetadata
from collector.sources.kubernetes.sharing import share_texts

Place: TypeAlias = tuple[str | None, str]
"""Namespace and name; at any moment one object has it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What is new about one object."""

    type: ChangeType
    object: KubernetesObject
    """The last known state where the object is gone."""


class ObjectStore:
    """All objects of one kind that are known."""

    def __init__(self) -> None:
        """Know none."""
        self._objects: dict[Place, KubernetesObject] = {}
        self._unseen: set[Place] = set()

    def __len__(self) -> int:
        """Return how many are known."""
        return len(self._objects)

    def begin_list(self) -> None:
        """Expect every object to be told again; also where a list before was given up."""
        self._unseen = set(self._objects)

    def end_list(self) -> Iterator[Difference]:
        """Yield what a complete list did not tell: those objects are gone."""
        for place in sorted(self._unseen, key=_by_text):
            yield Difference(ChangeType.DELETED, self._objects.pop(place))
        self._unseen = set()

    def put(self, found: KubernetesObject) -> Iterator[Difference]:
        """Yield what the state of an object changes: nothing where it is known.

        A new object in the place of an old one first ends the old one.
        """
        place = place_of(found.metadata)
        self._unseen.discard(place)
        known = self._objects.get(place)
        if known is not None and known.metadata.uid != found.metadata.uid:
            del self._objects[place]
            yield Difference(ChangeType.DELETED, known)
            known = None
        if known is None:
            self._remember(place, found)
            yield Difference(ChangeType.ADDED, found)
        elif known.metadata.resource_version != found.metadata.resource_version:
            self._remember(place, found)
            yield Difference(ChangeType.MODIFIED, found)

    def _remember(self, place: Place, found: KubernetesObject) -> None:
        share_texts(found)
        self._objects[place] = found

    def keep(self, strange: Iterable[ObjectMetadata]) -> None:
        """Note that these objects are still there, though their state could not be read."""
        for metadata in strange:
            place = place_of(metadata)
            known = self._objects.get(place)
            if known is not None and known.metadata.uid == metadata.uid:
                self._unseen.discard(place)

    def remove(
        self, metadata: ObjectMetadata, last: KubernetesObject | None
    ) -> Iterator[Difference]:
        """Yield the end of an object, if it was known.

        Args:
            metadata: of the object that is gone.
            last: its state at the end; None where that could not be read.
        """
        place = place_of(metadata)
        known = self._objects.get(place)
        if known is None or known.metadata.uid != metadata.uid:
            return
        del self._objects[place]
        self._unseen.discard(place)
        yield Difference(ChangeType.DELETED, known if last is None else last)

    def clear(self) -> Iterator[Difference]:
        """Yield the end of every object: the server no longer has their kind."""
        self.begin_list()
        yield from self.end_list()


def place_of(metadata: ObjectMetadata) -> Place:
    """Return where an object stands among those of its kind."""
    return (metadata.namespace or None, metadata.name)


def _by_text(place: Place) -> tuple[str, str]:
    namespace, name = place
    return (namespace or "", name)
