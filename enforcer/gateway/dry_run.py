"""The gateway that writes nothing: the server rehearses each write, and reads show what would be.

Controllers do not act on what was not written: pods of a suspended workload stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from enforcer.gateway.memory import MemoryGateway
from enforcer.gateway.places import Place, place, place_of
from enforcer.gateway.port import Gateway, KubernetesObject, Target, Write


class DryRunGateway:
    """Reads through another gateway, and lays over what it was asked to write.

    Args:
        inner: is read from and rehearses; it is never asked to write.
    """

    def __init__(self, inner: Gateway) -> None:
        """Keep the gateway."""
        self.inner = inner
        self.writes: list[Write] = []
        """What would have been written, in order."""
        self._laid_over = MemoryGateway()
        self._touched: set[Place] = set()

    def read(self, target: Target) -> KubernetesObject | None:
        """Return the object as it would be."""
        if place(target) in self._touched:
            return self._laid_over.read(target)
        return self.inner.read(target)

    def list(
        self, *, api_version: str, kind: str, namespace: str | None, labels: str = ""
    ) -> Sequence[KubernetesObject]:
        """Return the objects as they would be, ascending by namespace and name."""
        found, over = (
            gateway.list(api_version=api_version, kind=kind, namespace=namespace, labels=labels)
            for gateway in (self.inner, self._laid_over)
        )
        kept = [each for each in found if place_of(each) not in self._touched]
        return sorted([*kept, *over], key=place_of)

    def rehearse(self, write: Write) -> None:
        """Let the server check the write."""
        if place(write.target) in self._touched:
            self._laid_over.rehearse(write)
        else:
            self.inner.rehearse(write)

    def write(self, write: Write) -> KubernetesObject:
        """Rehearse the write; return the object as it would be afterwards."""
        self.rehearse(write)
        where = place(write.target)
        held = None if where in self._touched else self.inner.read(write.target)
        if held is not None:
            self._laid_over.put(held)
        self._touched.add(where)
        self.writes.append(write)
        own = replace(write, resource_version=None) if held is not None else write
        return self._laid_over.write(own)

    def may(self, *, verb: str, api_version: str, kind: str, namespace: str | None) -> bool:
        """Return whether the account may really do this."""
        return self.inner.may(verb=verb, api_version=api_version, kind=kind, namespace=namespace)
