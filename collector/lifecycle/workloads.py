"""Workloads: whose they are, what they ask for, where they queue; told when that changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from collector.lifecycle.chains import Chain, Link
from collector.lifecycle.claimed import is_open, with_claims
from collector.lifecycle.conditions import words_crc
from collector.lifecycle.declared import Wanted, declared_pods, queued_pods
from collector.lifecycle.memory import PodEntry, RootEntry
from collector.lifecycle.output import Ledger
from collector.lifecycle.ownership_rules import OwnershipRules, Subject
from collector.lifecycle.queues import (
    declared_queue,
    local_queue_name,
    pod_group_of,
    queue_in,
    queue_labels,
)
from collector.lifecycle.requests import Request, request_of
from collector.lifecycle.runs import Run, Runs
from collector.lifecycle.sharing import on_node
from collector.lifecycle.view import View
from collector.sources.kubernetes.objects import Metadata, Object, Pod
from collector.sources.kubernetes.objects_cluster import Node, PriorityClass
from collector.sources.kubernetes.objects_workloads import KueueWorkload, Maker
from collector.sources.kubernetes.resources import (
    KUEUE_WORKLOADS,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
)

CLASSES_KEPT: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What all pods of a workload ask for together."""

    cpu_milli: int | None
    memory_bytes: int | None
    gpu_count: int | None
    gpu_milli: int | None
    models: tuple[str, ...]


class Workloads:
    """Tells workloads, and finds whose they are."""

    def __init__(self, ledger: Ledger, *, view: View, runs: Runs, rules: OwnershipRules) -> None:
        """Know no queue entry yet."""
        self._ledger = ledger
        self._view = view
        self._runs = runs
        self._rules = rules
        self._queued: dict[str, str] = {}
        self._classes: dict[tuple[object, ...], str | None] = {}

    def exists(self, run: Run) -> bool:
        """Return whether the run's own object is still there."""
        return self._view.has(run.entry.resource, run.uid)

    def note_queued(self, root_uid: str, workload_uid: str) -> None:
        """Note which Kueue Workload stands for a workload as a whole."""
        self._queued[root_uid] = workload_uid

    def forget_queued(self, workload_uid: str) -> None:
        """Note that a Kueue Workload is gone."""
        gone = [root for root, uid in self._queued.items() if uid == workload_uid]
        for root in gone:
            del self._queued[root]

    def own(self, pod: Pod, entry: PodEntry, chain: Chain) -> None:
        """Fill in whose a pod is."""
        labels = pod.metadata.labels or {}
        above = [each.metadata for each in chain.links[1:]]
        queue, queued = self._queue(pod.metadata, chain), self._queue_entry(entry.root_uid)
        spec_class = pod.spec.priority_class_name
        entry.queue = queue
        entry.priority_class, entry.priority = _priority(queued, spec_class, pod.spec.priority)
        entry.tenant_id, level = self._tenant(labels, above, namespace=entry.namespace, queue=queue)
        entry.level = level
        entry.workload_class = self._class(
            chain.root,
            {**_labels(chain.root.metadata), **labels},
            queue=queue,
            priority_class=entry.priority_class,
        )

    def tell_for_pod(
        self,
        pod: Pod,
        entry: PodEntry,
        *,
        request: Request,
        chain: Chain,
        siblings: Iterable[Pod],
    ) -> None:
        """Add a pod to what its workload asks for, and tell what is new.

        Args:
            pod: the pod.
            entry: what is remembered of it.
            request: what it asks for.
            chain: its owners.
            siblings: all pods of its run that have not ended, itself included.
        """
        root = self._runs.root(entry.root_uid)
        asked = self._on_node(request, pod)
        is_new, is_asked = entry.attempt > root.asked_attempt, "asked" in entry.told
        if is_new:
            root.asked_attempt = entry.attempt
            root.labels = self._rules.read_labels(pod.metadata.labels)
            _take(root, self._added_up(siblings))
        elif entry.attempt == root.asked_attempt and pod.spec.resource_claims:
            _take_larger(root, self._added_up(siblings))
        elif entry.attempt == root.asked_attempt and not is_asked:
            _add(root, asked)
        if entry.attempt and "asked" not in entry.told:
            entry.told = (*entry.told, "asked")
        if asked.gpu_count and asked.gpu_milli is not None:
            root.gpu_milli = asked.gpu_milli
        root.queue, root.qos_class = entry.queue, pod.status.qos_class or root.qos_class
        root.priority_class, root.priority = entry.priority_class, entry.priority
        self._tell(chain.root, root)

    def tell_for_owner(self, chain: Chain) -> None:
        """Tell what is new about a workload that an object other than a pod is part of."""
        root = self._runs.root(chain.root.uid)
        queue = self._queue(None, chain)
        root.queue = queue if queue is not None else root.queue
        queued = self._queue_entry(chain.root.uid)
        if queued is not None:
            root.priority_class, root.priority = _priority(queued, None, None)
        wanted = self._wanted(chain.root.uid)
        if not root.asked_attempt and wanted:
            sample = wanted[0][1]
            root.labels = self._rules.read_labels(sample.metadata.labels)
            if queued is None and sample.spec.priority_class_name is not None:
                root.priority_class = sample.spec.priority_class_name
                root.priority = self._value_of(root.priority_class)
        self._tell(chain.root, root)

    def _added_up(self, pods: Iterable[Pod]) -> RootEntry:
        """Return what these pods ask for together."""
        total = RootEntry()
        for each in pods:
            request = request_of(each.spec, each.metadata.annotations)
            _add(total, self._on_node(with_claims(request, each, self._view), each))
        return total

    def _on_node(self, request: Request, pod: Pod) -> Request:
        name = pod.spec.node_name
        node = self._view.find(NODES, Node, name=name) if name else None
        return on_node(request, node)

    def _tell(self, link: Link, root: RootEntry) -> None:
        """Tell the workload if anything of it is new, and remember it."""
        row = self._row(link, root)
        crc = words_crc(*row.values())
        if crc != root.row_crc:
            root.row_crc = crc
            self._ledger.add_observed("workload", **row)
        self._runs.save_root(link.uid, root)

    def _row(self, link: Link, root: RootEntry) -> dict[str, object]:
        own_labels = _labels(link.metadata)
        tenant, _ = self._tenant(
            root.labels, [link.metadata], namespace=link.namespace, queue=root.queue
        )
        workload_class = self._class(
            link,
            {**own_labels, **root.labels},
            queue=root.queue,
            priority_class=root.priority_class,
        )
        ask = self._ask(link.uid, root)
        return {
            "workload_uid": link.uid,
            "kind": link.kind,
            "namespace": link.namespace,
            "name": link.name,
            "tenant_id": tenant,
            "owner": self._rules.owner((root.labels, own_labels)),
            "workload_class": workload_class,
            "queue": root.queue,
            "priority_class": root.priority_class,
            "priority": root.priority,
            "cpu_milli": ask.cpu_milli,
            "memory_bytes": ask.memory_bytes,
            "gpu_count": ask.gpu_count,
            "gpu_milli": ask.gpu_milli,
            "gpu_models": "|".join(ask.models),
            "qos_class": root.qos_class,
        }

    def _class(
        self,
        link: Link,
        labels: Mapping[str, str],
        *,
        queue: str | None,
        priority_class: str | None,
    ) -> str | None:
        """Return what the rules say a workload is for; they are asked once for equal subjects."""
        read = self._rules.read_labels(labels)
        key = (link.kind, link.namespace, queue, priority_class, tuple(sorted(read.items())))
        if key not in self._classes:
            if len(self._classes) >= CLASSES_KEPT:
                self._classes.clear()
            subject = Subject(
                kind=link.kind,
                namespace=link.namespace,
                queue=queue,
                priority_class=priority_class,
                labels=read,
            )
            self._classes[key] = self._rules.workload_class(subject)
        return self._classes[key]

    def _ask(self, uid: str, root: RootEntry) -> Ask:
        """Return what the workload asks for: as queued, as declared, or as its pods add up."""
        wanted = self._wanted(uid)
        seen = Ask(
            cpu_milli=root.cpu_milli,
            memory_bytes=root.memory_bytes,
            gpu_count=root.gpu_count,
            gpu_milli=root.gpu_milli,
            models=root.models,
        )
        if not wanted:
            return seen
        total = _sum(wanted)
        count = total.gpu_count or root.gpu_count
        if not count and any(is_open(template.spec) for _, template in wanted):
            count = None
        milli = total.gpu_milli if root.gpu_milli is None else root.gpu_milli
        return replace(total, gpu_count=count, gpu_milli=milli if count else None)

    def _wanted(self, uid: str) -> tuple[Wanted, ...]:
        queued = self._queue_entry(uid)
        if queued is not None:
            return queued_pods(queued)
        return declared_pods(self._maker(uid))

    def _queue_entry(self, uid: str) -> KueueWorkload | None:
        queued = self._queued.get(uid)
        return None if queued is None else self._view.get(KUEUE_WORKLOADS, queued, KueueWorkload)

    def _maker(self, uid: str) -> Maker | None:
        resource = self._view.kind_of(uid)
        return None if resource is None else self._view.get(resource, uid, Maker)

    def _queue(self, pod: Metadata | None, chain: Chain) -> str | None:
        """Return the queue: as Kueue has it, as labels name it, or as the gang's."""
        queued = self._queue_entry(chain.root.uid)
        if queued is not None and queued.spec.queue_name:
            return local_queue_name(queued.metadata.namespace, queued.spec.queue_name)
        named = queue_in([pod, *(each.metadata for each in chain.links)])
        if named is not None:
            return named
        group = None if pod is None else pod_group_of(self._view, pod)
        if group is not None and group.spec.queue:
            return group.spec.queue
        return declared_queue(self._maker(chain.root.uid))

    def _tenant(
        self,
        pod_labels: Mapping[str, str],
        above: Iterable[Metadata | None],
        *,
        namespace: str | None,
        queue: str | None,
    ) -> tuple[str | None, str]:
        found = self._view.find(NAMESPACES, Object, name=namespace) if namespace else None
        tenant, level = self._rules.tenant(
            pod=pod_labels,
            workload=[_labels(each) for each in above],
            namespace=namespace,
            namespace_labels=_labels(found.metadata if found is not None else None),
            queue=queue,
            queue_labels=queue_labels(self._view, queue),
        )
        return tenant, level.value

    def _value_of(self, priority_class: str) -> int | None:
        found = self._view.find(PRIORITY_CLASSES, PriorityClass, name=priority_class)
        return None if found is None else found.value


def _sum(wanted: Iterable[Wanted]) -> Ask:
    """Return what all pods ask for; the share of a GPU is that of the first that wants one."""
    total = RootEntry()
    for count, template in wanted:
        request = request_of(template.spec, template.metadata.annotations)
        _add(total, request, times=count)
    return Ask(
        cpu_milli=total.cpu_milli,
        memory_bytes=total.memory_bytes,
        gpu_count=total.gpu_count,
        gpu_milli=total.gpu_milli,
        models=total.models,
    )


def _take(root: RootEntry, total: RootEntry) -> None:
    """Let the workload ask for just this."""
    root.cpu_milli, root.memory_bytes = total.cpu_milli, total.memory_bytes
    root.gpu_count, root.gpu_milli = total.gpu_count, total.gpu_milli
    root.models = total.models


def _take_larger(root: RootEntry, total: RootEntry) -> None:
    """Let it ask for this where it is more: claims come after their pods, and pods end."""
    if total.gpu_count is not None and total.gpu_count > (root.gpu_count or 0):
        _take(root, total)


def _add(total: RootEntry, request: Request, *, times: int = 1) -> None:
    total.cpu_milli = _plus(total.cpu_milli, request.cpu_milli, times)
    total.memory_bytes = _plus(total.memory_bytes, request.memory_bytes, times)
    total.gpu_count = _plus(total.gpu_count, request.gpu_count, times)
    if request.gpu_count and total.gpu_milli is None:
        total.gpu_milli = request.gpu_milli
    if request.gpu_count:
        total.models = tuple(sorted({*total.models, *request.models}))


def _plus(total: int | None, more: int | None, times: int) -> int | None:
    if more is None:
        return total
    return more * times if total is None else total + more * times


def _priority(
    queued: KueueWorkload | None, name: str | None, priority: int | None
) -> tuple[str | None, int | None]:
    """Return class and value: Kueue's where it queues the workload, else the pod's."""
    if queued is None or queued.spec.priority is None:
        return name, priority
    reference = queued.spec.priority_class_ref
    named = reference.name if reference is not None else queued.spec.priority_class_name
    return named or name, queued.spec.priority


def _labels(metadata: Metadata | None) -> Mapping[str, str]:
    return (metadata.labels or {}) if metadata is not None else {}
