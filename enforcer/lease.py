"""One leader among replicas, by a Kubernetes Lease, and the fence that its acts carry.

Whether a lease has run out is told by one's own steady clock since its holder last moved it: clocks
of other machines are not believed. A leader stops believing in itself well before others may take
over, and its number grows with every leader, so that an act of an earlier one is recognised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Final

from enforcer.actuators.fields import mapping_at, text_at, whole_at
from enforcer.gateway.port import Gateway, KubernetesObject, Target, Verb, Write
from steward.clock import Clock
from steward.errors import ClusterError, ConflictError, StewardError

API: Final = "coordination.k8s.io/v1"
RENEW_SHARE: Final = 5
"""A lease is renewed so often within its length."""
TRUST_SHARE: Final = 2 / 3
"""For this share of a lease since its last renewal began its holder acts; then it must be new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """Which lease, and who asks for it."""

    namespace: str
    name: str
    identity: str
    """Of this process, and of no other."""
    length: timedelta


@dataclass(frozen=True, slots=True)
class _Record:
    """What a lease says."""

    holder: str
    renewed: str
    number: int
    length_s: int


def _none() -> int:
    return 0


class Elector:
    """One replica's view of the lease; safe for several threads.

    Args:
        gateway: unfenced, since it is what fences the others.
        terms: which lease.
        clock: of the times that the lease shows to people.
        monotonic: seconds that only grow.
        above: the largest number of a leadership that is known elsewhere, such as in the ledger:
            a lease that was deleted does not start from one again.
    """

    def __init__(
        self,
        gateway: Gateway,
        terms: LeaseTerms,
        *,
        clock: Clock,
        monotonic: Callable[[], float],
        above: Callable[[], int] = _none,
    ) -> None:
        """Lead nothing yet."""
        self._above = above
        self._gateway = gateway
        self._terms = terms
        self._clock = clock
        self._monotonic = monotonic
        self._seen: _Record | None = None
        self._seen_s = 0.0
        self._until_s: float | None = None
        self._number = 0
        self._lock = threading.Lock()

    def is_leading(self) -> bool:
        """Tell whether this replica may act now."""
        until_s = self._until_s
        return until_s is not None and self._monotonic() < until_s

    def fence(self) -> str | None:
        """Return the leadership under which acts are done, ``NUMBER:HOLDER``."""
        return f"{self._number}:{self._terms.identity}" if self.is_leading() else None

    def step(self) -> bool:
        """Take or renew the lease if that is possible; return whether this replica leads.

        A cluster that gives no answer changes nothing: leading ends by itself.
        """
        with self._lock:
            try:
                self._step()
            except ConflictError:
                self._seen = None  # another was quicker: look again before the next try
            except StewardError:
                pass  # the lease runs on, and with it the time for which it may be believed
            return self.is_leading()

    def release(self) -> None:
        """Let the lease go, so that another need not wait for its end."""
        with self._lock:
            is_leading, self._until_s = self.is_leading(), None
            if not is_leading:
                return
            try:
                found = self._gateway.read(self._target())
                if found is not None and _record(found).number == self._number:
                    self._patch(found, holder="", number=self._number)
            except ClusterError:
                return  # it runs out by itself

    def _step(self) -> None:
        began_s = self._monotonic()
        found = self._gateway.read(self._target())
        if found is None:
            number = self._above() + 1
            self._create(number)
            self._lead(began_s, number=number)
            return
        record = _record(found)
        is_own = record.holder == self._terms.identity and record.number == self._number
        if is_own and self._until_s is not None:
            self._patch(found, holder=record.holder, number=record.number)
            self._lead(began_s, number=record.number)
        elif self._may_take(record):
            number = max(record.number, self._above()) + 1
            self._patch(found, holder=self._terms.identity, number=number)
            self._lead(began_s, number=number)
        else:
            self._until_s = None

    def _may_take(self, record: _Record) -> bool:
        """Tell whether its holder let it go, or has not moved it for its whole length."""
        if record != self._seen:
            self._seen, self._seen_s = record, self._monotonic()
        return not record.holder or self._monotonic() - self._seen_s > record.length_s

    def _lead(self, began_s: float, *, number: int) -> None:
        self._number = number
        self._until_s = began_s + self._terms.length.total_seconds() * TRUST_SHARE

    def _create(self, number: int) -> None:
        body: KubernetesObject = {
            "apiVersion": API,
            "kind": "Lease",
            "metadata": {"name": self._terms.name, "namespace": self._terms.namespace},
            "spec": self._spec(self._terms.identity, number=number),
        }
        target = self._target()
        self._gateway.write(
            Write(verb=Verb.CREATE, target=target, body=body, resource_version=None)
        )

    def _patch(self, found: KubernetesObject, *, holder: str, number: int) -> None:
        body: KubernetesObject = {"spec": self._spec(holder, number=number)}
        version = text_at(found, "metadata", "resourceVersion")
        target = self._target()
        self._gateway.write(
            Write(verb=Verb.PATCH, target=target, body=body, resource_version=version)
        )

    def _spec(self, holder: str, *, number: int) -> KubernetesObject:
        now = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: dict[str, str | int] = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._terms.length.total_seconds())),
            "renewTime": now,
            "leaseTransitions": number,
        }
        if number != self._number:
            spec["acquireTime"] = now
        return spec

    def _target(self) -> Target:
        return Target(
            api_version=API,
            kind="Lease",
            namespace=self._terms.namespace,
            name=self._terms.name,
            uid=None,
        )


class Keeper:
    """Keeps an elector going in a thread for the length of a ``with`` block, then lets go."""

    def __init__(self, elector: Elector, *, length: timedelta) -> None:
        """Start nothing yet."""
        self._elector = elector
        self._every_s = length.total_seconds() / RENEW_SHARE
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> Elector:
        """Take the lease if it is free, and go on trying."""
        self._elector.step()
        self._thread.start()
        return self._elector

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop trying and let the lease go."""
        self._stop.set()
        self._thread.join()
        self._elector.release()

    def _keep(self) -> None:
        while not self._stop.wait(self._every_s):
            self._elector.step()


def _record(found: KubernetesObject) -> _Record:
    spec = mapping_at(found, "spec")
    return _Record(
        holder=text_at(spec, "holderIdentity") or "",
        renewed=text_at(spec, "renewTime") or "",
        number=whole_at(spec, "leaseTransitions") or 0,
        length_s=whole_at(spec, "leaseDurationSeconds") or 0,
    )
