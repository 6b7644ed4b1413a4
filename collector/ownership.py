"""Whose a pod is: the words in which collectors speak of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class OwnershipLevel(StrEnum):
    """Where the tenant was found, from the nearest to the farthest."""

    POD = "pod"
    WORKLOAD = "workload"
    NAMESPACE = "namespace"
    QUEUE = "queue"
    UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """What is known of a pod's owner; None is not known."""

    pod_uid: str | None
    workload_uid: str | None
    tenant_id: str | None
    level: OwnershipLevel
    """How the tenant was found; ``UNATTRIBUTED`` where there is none."""
    queue: str | None
    workload_class: str | None
    """``training``, ``inference``, ``development`` or ``system``."""
    priority_class: str | None
    priority: int | None


class Owners(Protocol):
    """Answers whose a pod is."""

    def owner_of(self, namespace: str | None, pod: str) -> Owner | None:
        """Return the owner of a pod; None where the cluster does not know the pod."""
        ...
