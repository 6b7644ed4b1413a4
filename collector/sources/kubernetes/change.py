"""One observed difference between what was known of the cluster and what it is now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from collector.sources.kubernetes.resource import KubernetesObject, Resource


class ChangeType(StrEnum):
    """What happened to an object, or to the view of all of them."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    """A list is complete: everything the server has was told before this change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKey:
    """Which object it is; a new object of an old name has another uid."""

    namespace: str | None
    """None for objects of the whole cluster."""
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A real difference: no object comes twice with the same version."""

    resource: Resource
    type: ChangeType
    key: ObjectKey
    """All its parts are empty for ``SYNCED``."""
    object: KubernetesObject | None
    """The new state, the last known one where it was deleted, None for ``SYNCED``."""
    observed_at: datetime
    """When the collector learned of it."""
