"""Taking GPUs of real objects and giving them back, as the enforcer does, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from enforcer.actuators import (
    Act,
    BeforeImage,
    Order,
    is_effective,
    is_restored,
    reclaim,
    restore,
    tidied,
)
from enforcer.decisions import Step
from enforcer.enrich import surroundings
from enforcer.gateway.live import LiveGateway
from enforcer.gateway.live_access import LiveAccess, Origin
from enforcer.gateway.port import KubernetesObject, Target, Write
from steward.errors import ConflictError
from tests.support.cluster import Cluster
from tests.support.cluster_client import Manifest
from tests.support.cluster_namespace import Namespace

ORDER = Order(action_id="act-1", at=datetime(2026, 6, 1, 12, tzinfo=UTC), low_priority_class="low")
Result = TypeVar("Result")
ATTEMPTS = 5
"""A controller may write the object's status in between; then it is read anew."""


@contextmanager
def live_gateway(cluster: Cluster) -> Iterator[LiveGateway]:
    """Give the gateway of the cluster's administrator, who always leads."""
    access = LiveAccess(Origin(kubeconfig=cluster.kubeconfig))
    try:
        yield LiveGateway(access, is_leading=lambda: True)
    finally:
        access.close()


@dataclass(frozen=True, slots=True)
class Actor:
    """Acts in one namespace."""

    own: Namespace
    gateway: LiveGateway

    def subject(self, manifest: Manifest) -> KubernetesObject:
        """Return the object of a manifest as it is now."""
        target = Target(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            namespace=self.own.name,
            name=manifest["metadata"]["name"],
            uid=None,
        )
        found = self.gateway.read(target)
        assert found is not None, target
        return found

    def taken(self, manifest: Manifest, step: Step = Step.SUSPEND) -> BeforeImage:
        """Rehearse and write a step on an object; return the before-image."""
        return self._attempted(lambda: self._take(manifest, step))

    def _take(self, manifest: Manifest, step: Step) -> BeforeImage:
        around = surroundings(self.gateway, self.own.name)
        subject = self.subject(manifest)
        act = reclaim(step, subject, around, order=ORDER)
        assert isinstance(act, Act), act
        self.gateway.rehearse(act.write)
        assert self.subject(manifest)["spec"] == subject["spec"], "stored by a rehearsal"
        self.gateway.write(act.write)
        return act.before

    def _undo(self, before: BeforeImage) -> KubernetesObject:
        write = restore(before, self.gateway.read(before.holder), order=ORDER)
        assert isinstance(write, Write), write
        self.gateway.rehearse(write)
        return self.gateway.write(write)

    def _tidy(self, before: BeforeImage) -> bool:
        current = self.gateway.read(before.holder)
        assert current is not None
        write = tidied(before, current)
        if write is not None:
            self.gateway.write(write)
        return write is not None

    @staticmethod
    def _attempted(attempt: Callable[[], Result]) -> Result:
        for _ in range(ATTEMPTS - 1):
            try:
                return attempt()
            except ConflictError:
                continue
        return attempt()

    def is_effective(self, before: BeforeImage) -> bool:
        """Return whether the act freed its GPUs."""
        pods = self.gateway.list(
            api_version="v1", kind="Pod", namespace=self.own.name, labels=before.pod_labels
        )
        return is_effective(before, self.gateway.read(before.holder), pods)

    def wait_until_effective(self, before: BeforeImage) -> None:
        """Return once the act freed its GPUs."""
        what = f"{before.subject.kind} {before.subject.name} to be without pods"
        self.own.wait_until(lambda: self.is_effective(before), what=what)

    def undone(self, before: BeforeImage, *, is_seen: bool = True) -> None:
        """Take an act back; ``is_seen``: the write itself shows it, no controller need act."""
        restored = self._attempted(lambda: self._undo(before))
        assert is_restored(before, restored) or not is_seen

    def tidied(self, before: BeforeImage) -> bool:
        """Make the spec what it was to the byte, once its pods are back; return whether need be."""
        return self._attempted(lambda: self._tidy(before))

    def there_and_back(self, manifest: Manifest, *, pod_count: int) -> BeforeImage:
        """Take an object's GPUs, see its pods go, undo that, see them come; compare its spec."""
        self.own.wait_for_pods(pod_count, phase="Running")
        spec = as_text(self.subject(manifest)["spec"])
        before = self.taken(manifest)
        self.wait_until_effective(before)
        left = self.own.list("v1/Pod", labelSelector=before.pod_labels)
        assert {pod["status"]["phase"] for pod in left} <= {"Failed", "Succeeded"}
        self.own.wait_for_pods(0, phase="Running")
        self.undone(before)
        self.own.wait_for_pods(pod_count, phase="Running")
        self.tidied(before)
        assert as_text(self.subject(manifest)["spec"]) == spec
        return before


def as_text(spec: object) -> str:
    """Return a spec as bytes would have it."""
    return json.dumps(spec, sort_keys=True)
