"""The cluster as it was last told: every followed object by kind and identity.

The objects are those that the transport holds anyway; here they cost one entry each.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Protocol, TypeVar

from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.objects import Metadata, OwnerReference
from collector.sources.kubernetes.resource import Resource

T = TypeVar("T")


class MetadataSource(Protocol):
    """Answers what an object of a kind that is not followed says of itself."""

    def get_metadata(
        self, *, api_version: str, kind: str, namespace: str | None, name: str
    ) -> Metadata | None:
        """Return the object's metadata; None where there is no answer.

        Args:
            api_version: group and version as an owner reference has them: ``example.org/v1``.
            kind: such as ``Experiment``.
            namespace: of the object that names it; owners of the whole cluster have none.
            name: the object's.
        """
        ...


class NoMetadata:
    """Knows no object: chains end at the first kind that is not followed."""

    def get_metadata(
        self, *, api_version: str, kind: str, namespace: str | None, name: str
    ) -> Metadata | None:
        """Return None."""
        del api_version, kind, namespace, name
        return None


class View:
    """All objects that exist, by kind and identity."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._objects: dict[str, dict[str, object]] = {}
        self._uids: dict[tuple[str, str | None, str], str] = {}
        self._kinds: dict[str, Resource] = {}
        self._named: frozenset[str] = frozenset()

    def name_also(self, *resources: Resource) -> None:
        """Let objects of these kinds be found by namespace and name too."""
        self._named = frozenset(each.name for each in resources)

    def take(self, change: Change) -> None:
        """Make the change part of the view."""
        if change.type is ChangeType.SYNCED:
            return
        name, key = change.resource.name, change.key
        objects = self._objects.setdefault(name, {})
        place = (name, key.namespace, key.name)
        if change.type is ChangeType.DELETED:
            objects.pop(key.uid, None)
            self._kinds.pop(key.uid, None)
            if self._uids.get(place) == key.uid:
                del self._uids[place]
            return
        objects[key.uid] = change.object
        if name != "pods":
            self._kinds[key.uid] = change.resource
        if name in self._named:
            self._uids[place] = key.uid

    def get(self, resource: Resource, uid: str, kind: type[T]) -> T | None:
        """Return an object by its identity."""
        found = self._objects.get(resource.name, {}).get(uid)
        return found if isinstance(found, kind) else None

    def find(
        self, resource: Resource, kind: type[T], *, name: str, namespace: str | None = None
    ) -> T | None:
        """Return an object of a kind given to ``name_also`` by its name."""
        uid = self._uids.get((resource.name, namespace, name))
        return None if uid is None else self.get(resource, uid, kind)

    def is_replaced(
        self, resource_name: str, *, uid: str, name: str, namespace: str | None
    ) -> bool:
        """Return whether another object has the name of one that is gone."""
        found = self._uids.get((resource_name, namespace, name))
        return found is not None and found != uid

    def kind_of(self, uid: str) -> Resource | None:
        """Return the kind of a followed object; pods are not asked for."""
        return self._kinds.get(uid)

    def has(self, resource_name: str, uid: str) -> bool:
        """Return whether the object exists."""
        return uid in self._objects.get(resource_name, {})

    def all(self, resource: Resource, kind: type[T]) -> Iterator[T]:
        """Yield all objects of a kind."""
        for found in self._objects.get(resource.name, {}).values():
            if isinstance(found, kind):
                yield found

    def metadata_of(self, uid: str) -> Metadata | None:
        """Return the metadata of a followed object; pods are not asked for."""
        resource = self._kinds.get(uid)
        if resource is None:
            return None
        metadata = getattr(self._objects[resource.name][uid], "metadata", None)
        return metadata if isinstance(metadata, Metadata) else None


def controller_of(metadata: Metadata) -> OwnerReference | None:
    """Return who makes the object: the controller, or the only owner where none is called so."""
    owners = metadata.owner_references or ()
    for owner in owners:
        if owner.controller:
            return owner
    return owners[0] if len(owners) == 1 else None


def created_at(metadata: Metadata | None) -> datetime | None:
    """Return when the server stored the object first."""
    return None if metadata is None else metadata.creation_timestamp
