"""What the cluster knows of pods: whose they are, and which of them are over."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from collector.allocation.polls import PodKey
from collector.holdings import Holding
from collector.ownership import Owner, Owners
from steward.units import MICROS_PER_SECOND

FORGET_AFTER_US: Final = 3_600 * MICROS_PER_SECOND
"""So long after a pod's end was told it is kept, and as long as any source lists the pod."""
RESERVATION_NAMESPACES: Final = frozenset({"runai-reservation", "kai-resource-reservation"})
"""Pods here hold a GPU for others that share it."""


@dataclass(slots=True, kw_only=True)
class Finished:
    """A pod that is over."""

    pod_uid: str | None
    finished_us: int
    told_us: int


class Pods:
    """Answers about pods, from the owners and from the ends that were told."""

    def __init__(self, owners: Owners) -> None:
        """Start without any end."""
        self._owners = owners
        self.finished: dict[PodKey, Finished] = {}
        self.now_us = 0
        """The latest instant heard of."""

    def owner(self, namespace: str | None, pod: str) -> Owner | None:
        """Return the pod's owner; None where the cluster does not know the pod."""
        return self._owners.owner_of(namespace, pod)

    def uid(self, holding: Holding) -> str | None:
        """Return the uid of the pod that holds."""
        if holding.pod_uid is not None:
            return holding.pod_uid
        owner = self.owner(holding.namespace, holding.pod)
        return None if owner is None else owner.pod_uid

    def is_alive(self, holding: Holding) -> bool:
        """Return whether the cluster knows the pod, and no end of it."""
        known = self.owner(holding.namespace, holding.pod) is not None
        return known and not self.is_over(holding)

    def is_over(self, holding: Holding) -> bool:
        """Return whether the pod that a source still lists is over.

        A pod of the same name with another uid is another pod; without a uid it is taken for the
        one that ended.
        """
        end = self.finished.get((holding.namespace, holding.pod))
        if end is None:
            return False
        uid = self.uid(holding)
        return uid is None or end.pod_uid is None or uid == end.pod_uid

    def expire(self, *, listed: Container[PodKey]) -> list[PodKey]:
        """Forget ends that were told an hour ago of pods that are not listed, and return them."""
        gone = [
            key
            for key, end in self.finished.items()
            if self.now_us - end.told_us > FORGET_AFTER_US and key not in listed
        ]
        for key in gone:
            del self.finished[key]
        return gone


def is_reservation(holding: Holding) -> bool:
    """Return whether the pod holds its GPU for other pods."""
    return holding.namespace in RESERVATION_NAMESPACES
