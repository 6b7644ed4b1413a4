"""What a live round sees: policies and facts from the warehouse, the rest from the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from enforcer.actuators.fields import target_of, texts_at
from enforcer.calls import CountedGateway
from enforcer.facts import Snapshot
from enforcer.gateway.port import Gateway
from enforcer.history import look_back, whole
from enforcer.policies.model import Policy
from enforcer.policies.store import Policies
from enforcer.sliding import SlidingHistory
from enforcer.snapshot import Live, build
from steward.errors import ClusterError
from steward.ports import Reader, StateReader


class Stored(Reader, StateReader, Protocol):
    """A warehouse with its state."""


class WarehouseSight:
    """Sees one cluster through the warehouse.

    Args:
        stored: where readings and state are.
        gateway: for the labels of namespaces and the share of calls that fail; None: neither is
            known, as in a look at the past.
        cluster: its name in the warehouse.
    """

    def __init__(self, stored: Stored, *, gateway: Gateway | None, cluster: str) -> None:
        """Read nothing yet."""
        self._gateway = gateway
        self._cluster = cluster
        self._policies = Policies(stored)
        self._history = SlidingHistory(stored, stored, cluster=cluster)

    def policies(self, now: datetime) -> tuple[Policy, ...]:
        """Return the policies in force, read anew."""
        return self._policies.current(now)

    def snapshot(self, policies: tuple[Policy, ...], now: datetime) -> Snapshot:
        """Return the facts of the newest whole cell of readings."""
        at = whole(now)
        told = self._history.until(at, back=look_back(policies))
        return build(told, policies, now=at, live=self._live())

    def _live(self) -> Live:
        gateway = self._gateway
        ratio = gateway.error_ratio() if isinstance(gateway, CountedGateway) else 0.0
        return Live(namespace_labels=_namespace_labels(gateway), api_error_ratio=ratio)


def _namespace_labels(gateway: Gateway | None) -> Mapping[str, Mapping[str, str]] | None:
    """Return the labels of every namespace; None where they cannot be read.

    Then nobody is judged: a namespace that asks to be left alone could not be told from others.
    """
    if gateway is None:
        return {}
    try:
        found = gateway.list(api_version="v1", kind="Namespace", namespace=None)
    except ClusterError:
        return None
    return {target_of(one).name: texts_at(one, "metadata", "labels") for one in found}
