"""One door to all meanings: which part tells what of which kind of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from collector.lifecycle.chains import Chains
from collector.lifecycle.claims import Claims, Instances
from collector.lifecycle.events import Events
from collector.lifecycle.kinds import OWNER_NAMES
from collector.lifecycle.makers import Makers
from collector.lifecycle.nodes import Nodes
from collector.lifecycle.output import Ledger
from collector.lifecycle.ownership_rules import OwnershipRules
from collector.lifecycle.pods import Pods
from collector.lifecycle.priorities import Priorities
from collector.lifecycle.queues import queue_labels
from collector.lifecycle.quotas import Quotas
from collector.lifecycle.runs import Runs
from collector.lifecycle.things import Things
from collector.lifecycle.view import MetadataSource, View
from collector.lifecycle.workloads import Workloads
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.objects import Object, Pod
from collector.sources.kubernetes.objects_cluster import (
    Event,
    KueueQueue,
    Node,
    PriorityClass,
    Queue,
    ResourceClaim,
    ResourceQuota,
    ResourceSlice,
)
from collector.sources.kubernetes.objects_workloads import KueueWorkload, Maker, PodGroup
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    CLUSTER_QUEUES,
    KAI_POD_GROUPS,
    KAI_QUEUES,
    KUEUE_WORKLOADS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_FLAVORS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    WORKLOAD_PRIORITY_CLASSES,
)

DELETED: Final = "Deleted"
QUOTA_NAMES: Final = frozenset(
    each.name
    for each in (RESOURCE_QUOTAS, CLUSTER_QUEUES, LOCAL_QUEUES, VOLCANO_QUEUES, KAI_QUEUES)
)
PRIORITY_NAMES: Final = frozenset(
    each.name for each in (PRIORITY_CLASSES, WORKLOAD_PRIORITY_CLASSES)
)
NAMED: Final = (
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    WORKLOAD_PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    RESOURCE_FLAVORS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    VOLCANO_QUEUES,
    KAI_QUEUES,
    VOLCANO_POD_GROUPS,
    KAI_POD_GROUPS,
    RESOURCE_CLAIMS,
)
"""Kinds whose objects are referred to by name."""


class Meanings:
    """Tells what a change means, and what the absence of an object does."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        view: View,
        rules: OwnershipRules,
        source: MetadataSource,
        instances: Instances,
    ) -> None:
        """Put the parts together."""
        view.name_also(*NAMED)
        self._view = view
        self._rules = rules
        self.things = Things(ledger)
        self.runs = Runs(ledger)
        self.chains = Chains(view, source)
        self._workloads = Workloads(ledger, view=view, runs=self.runs, rules=rules)
        self.pods = Pods(
            ledger, view=view, chains=self.chains, runs=self.runs, workloads=self._workloads
        )
        self._makers = Makers(
            ledger,
            things=self.things,
            chains=self.chains,
            runs=self.runs,
            workloads=self._workloads,
        )
        self._nodes = Nodes(ledger, self.things)
        self._quotas = Quotas(ledger, things=self.things, view=view, tenant=self._queue_tenant)
        self.claims = Claims(ledger, things=self.things, view=view, instances=instances)
        self._events = Events(ledger, self.things)
        self._priorities = Priorities(ledger, self.things)

    def tell(self, change: Change) -> None:
        """Tell what a change means; the view has it already."""
        if change.type is ChangeType.DELETED:
            self._end(change)
        else:
            self._see(change.resource, change.object)

    def end_unseen(self, resource: Resource, uid: str, *, reason: str) -> None:
        """Tell that an object other than a pod is gone, of which only the memory knows."""
        self._end_by_uid(resource.name, uid, reason=reason, last=None)

    def _see(self, resource: Resource, found: object) -> None:
        match found:
            case Pod():
                self.pods.see(found)
            case Maker():
                self._makers.see(resource, found)
            case KueueWorkload():
                self._makers.see_queued(found)
            case PodGroup():
                self._makers.see_gang(resource, found)
            case Event():
                self._events.see(found)
            case _:
                self._see_rest(resource, found)

    def _see_rest(self, resource: Resource, found: object) -> None:
        match found:
            case Node():
                self._nodes.see(found)
            case ResourceQuota() | KueueQueue() | Queue():
                self._quotas.see(resource, found)
            case PriorityClass():
                self._priorities.see(resource, found)
            case ResourceSlice():
                self.claims.see_slices()
            case ResourceClaim():
                self.claims.see(found)
            case _:
                return

    def _end(self, change: Change) -> None:
        if isinstance(change.object, Pod):
            self.pods.end(change.object)
        else:
            self._end_by_uid(
                change.resource.name, change.key.uid, reason=DELETED, last=change.object
            )

    def _end_by_uid(self, name: str, uid: str, *, reason: str, last: object) -> None:
        if name in OWNER_NAMES:
            metadata = last.metadata if isinstance(last, Maker | Object) else None
            self._makers.end(uid, reason=reason, metadata=metadata, is_free=self._is_free)
            return
        if name == RESOURCE_SLICES.name:
            self.claims.see_slices()
            return
        if name == KUEUE_WORKLOADS.name:
            self._workloads.forget_queued(uid)
        if self._is_replaced(uid):
            self.things.forget(uid)
            return
        ends = {
            NODES.name: self._nodes.end,
            RESOURCE_CLAIMS.name: self.claims.end,
            **dict.fromkeys(QUOTA_NAMES, self._quotas.end),
            **dict.fromkeys(PRIORITY_NAMES, self._priorities.end),
        }
        ends.get(name, self.things.forget)(uid)

    def _is_replaced(self, uid: str) -> bool:
        """Return whether another object stands where this one was: then nothing is missing."""
        entry = self.things.remembered(uid)
        return entry is not None and self._view.is_replaced(
            entry.resource, uid=uid, name=entry.name, namespace=entry.namespace
        )

    def _is_free(self, run_uid: str) -> bool:
        return self.pods.alive_count(run_uid) == 0

    def _queue_tenant(self, namespace: str | None, queue: str) -> str | None:
        """Return whose a queue is: by its namespace's labels, its own, or its name."""
        found = self._view.find(NAMESPACES, Object, name=namespace) if namespace else None
        labels: Mapping[str, str] = (found.metadata.labels or {}) if found is not None else {}
        tenant, _ = self._rules.tenant(
            pod={},
            workload=(),
            namespace=namespace,
            namespace_labels=labels,
            queue=queue,
            queue_labels=queue_labels(self._view, queue),
        )
        return tenant
