"""The port to a cluster: what the enforcer may read and write, whichever gateway is behind it.

``live`` speaks to an API server, ``memory`` keeps objects in a dictionary, ``dry_run`` reads from
another gateway and writes nothing. All three pass one contract suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
KubernetesObject = Mapping[str, JsonValue]
"""An object as the API server tells it: plain JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One object, by name; ``uid`` tells it from a later one of the same name."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    uid: str | None


class Verb(StrEnum):
    """How an object is written; there is no delete."""

    PATCH = "patch"
    """JSON merge patch."""
    SCALE = "scale"
    """JSON merge patch of the ``scale`` subresource."""
    EVICT = "evict"
    """POST to a pod's ``eviction`` subresource."""
    CREATE = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write, as data; refused if the object is no longer the one that was read."""

    verb: Verb
    target: Target
    body: KubernetesObject
    resource_version: str | None
    """Precondition; None: only the uid is held to."""


class Gateway(Protocol):
    """Reads and writes one cluster.

    Every method raises ``ClusterError`` (steward.errors) where the API server cannot be reached or
    throttles, and ``DeniedError`` where the account may not.
    """

    def read(self, target: Target) -> KubernetesObject | None:
        """Return the object, or None if there is none of that name (or the uid is another)."""
        ...

    def list(
        self, *, api_version: str, kind: str, namespace: str | None, labels: str = ""
    ) -> Sequence[KubernetesObject]:
        """Return objects by a label selector, ascending by namespace and name.

        A kind that the cluster does not serve has no objects.
        """
        ...

    def rehearse(self, write: Write) -> None:
        """Let the server check the write without storing it.

        Raises:
            ConflictError: the object is gone, another, or changed since it was read.
            RefusedError: the server would refuse it (validation, admission, a budget).
        """
        ...

    def write(self, write: Write) -> KubernetesObject:
        """Carry out the write; return the object afterwards.

        Raises:
            ConflictError, RefusedError: as ``rehearse``.
            FencedError: this replica no longer leads; nothing was written.
        """
        ...

    def may(self, *, verb: str, api_version: str, kind: str, namespace: str | None) -> bool:
        """Return whether the account may do this, by a SelfSubjectAccessReview.

        A verb on a subresource names it behind a slash: ``patch/scale``, ``create/eviction``.
        """
        ...
