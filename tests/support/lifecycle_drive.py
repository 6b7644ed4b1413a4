"""Drives a lifecycle as the transport would: lists, changes, deletions, restarts, relists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from collector.lifecycle import Lifecycle, Output, OwnershipRules, PodEnd
from collector.lifecycle.claims import Instances
from collector.lifecycle.view import MetadataSource
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.resources import RESOURCES
from tests.support.kubernetes_objects import Body, at, decoded

NO_KEY = ObjectKey(namespace=None, name="", uid="")


@dataclass(slots=True)
class Drive:
    """A lifecycle, all rows it told, and the objects that exist; a server in small."""

    rules: OwnershipRules | None = None
    source: MetadataSource | None = None
    instances: Instances | None = None
    rows: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    memory: dict[str, bytes] = field(default_factory=dict)
    ends: list[PodEnd] = field(default_factory=list)
    objects: dict[tuple[str, str], tuple[Resource, KubernetesObject]] = field(default_factory=dict)
    lifecycle: Lifecycle = field(init=False)

    def __post_init__(self) -> None:
        """Start."""
        self.lifecycle = self._new()

    def _new(self) -> Lifecycle:
        return Lifecycle(
            cluster="c1",
            rules=self.rules,
            memory=self.memory,
            source=self.source,
            instances=self.instances,
        )

    def put(self, resource: Resource, body: Body, *, seen_s: float = 0) -> None:
        """Let an object be as it now is; told at once, or with the first list."""
        found = decoded(resource, body)
        key = (resource.name, found.metadata.uid)
        kind = ChangeType.MODIFIED if key in self.objects else ChangeType.ADDED
        self.objects[key] = (resource, found)
        self._apply(resource, kind, found, seen_s)

    def delete(self, resource: Resource, uid: str, *, seen_s: float = 0) -> None:
        """Let an object be gone."""
        _, found = self.objects.pop((resource.name, uid))
        self._apply(resource, ChangeType.DELETED, found, seen_s)

    def change_unseen(self, resource: Resource, body: Body) -> None:
        """Change an object while nobody watches."""
        found = decoded(resource, body)
        self.objects[resource.name, found.metadata.uid] = (resource, found)

    def delete_unseen(self, resource: Resource, uid: str) -> None:
        """Delete an object while nobody watches."""
        del self.objects[resource.name, uid]

    def sync(self, resources: Iterable[Resource] = RESOURCES, *, seen_s: float = 0) -> None:
        """Complete the first lists."""
        for resource in resources:
            self._apply(resource, ChangeType.SYNCED, None, seen_s)

    def restart(self, *, seen_s: float = 0, resources: Iterable[Resource] = RESOURCES) -> None:
        """Stop, start with what was remembered, and list everything again."""
        self.lifecycle = self._new()
        for resource in resources:
            for known, found in list(self.objects.values()):
                if known.name == resource.name:
                    self._apply(resource, ChangeType.ADDED, found, seen_s)
            self._apply(resource, ChangeType.SYNCED, None, seen_s)

    def advance(self, seen_s: float) -> None:
        """Let time go by."""
        self._keep(self.lifecycle.advance(at(seen_s)))
        while self.lifecycle.has_more:
            self._keep(self.lifecycle.advance(at(seen_s)))

    def _apply(
        self,
        resource: Resource,
        kind: ChangeType,
        found: KubernetesObject | None,
        seen_s: float,
    ) -> None:
        key = NO_KEY
        if found is not None:
            meta = found.metadata
            key = ObjectKey(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        change = Change(resource=resource, type=kind, key=key, object=found, observed_at=at(seen_s))
        self._keep(self.lifecycle.apply(change))
        while self.lifecycle.has_more:
            self._keep(self.lifecycle.advance(at(seen_s)))

    def _keep(self, output: Output) -> None:
        self.rows.extend(output.rows)
        self.ends.extend(output.ended_pods)
        for key, entry in output.remember.items():
            if entry is None:
                self.memory.pop(key, None)
            else:
                self.memory[key] = entry

    def table(self, name: str, *columns: str) -> list[tuple[object, ...]]:
        """Return the rows of a table told so far, as tuples of these columns."""
        return [
            tuple(row.get(column) for column in columns)
            for table, row in self.rows
            if table == name
        ]

    def transitions(self) -> list[tuple[object, ...]]:
        """Return ``(attempt, transition, seconds after noon, reason)`` in the order told."""
        return [
            (attempt, transition, _seconds(occurred), reason)
            for attempt, transition, occurred, reason in self.table(
                "workload_transition", "attempt", "transition", "occurred_at", "reason"
            )
        ]


def settled(
    *,
    rules: OwnershipRules | None = None,
    source: MetadataSource | None = None,
    instances: Instances | None = None,
) -> Drive:
    """Return a drive whose first lists were empty."""
    drive = Drive(rules=rules, source=source, instances=instances)
    drive.sync()
    return drive


def _seconds(instant: object) -> float:
    assert isinstance(instant, datetime)
    return (instant - at(0)).total_seconds()
