"""Quotas of GPUs as ResourceQuota, Kueue, Volcano and KAI keep them; told when they change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from collector.lifecycle.output import Ledger
from collector.lifecycle.quantities import amount
from collector.lifecycle.queues import local_queue_name
from collector.lifecycle.requests import PRODUCT_LABELS, is_gpu_resource, model_name
from collector.lifecycle.things import Parts, Things
from collector.lifecycle.view import View
from collector.sources.kubernetes.objects import Amounts, Metadata, Quantity
from collector.sources.kubernetes.objects_cluster import (
    Flavor,
    FlavorResource,
    KueueQueue,
    Queue,
    ResourceFlavor,
    ResourceQuota,
)
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    KAI_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
)

REQUESTS_PREFIX: Final = "requests."
_COUNTED: Final = ("guaranteed_gpu_count", "limit_gpu_count", "used_gpu_count")
_PLAIN_GPU: Final = "nvidia.com/gpu"
Tenant = Callable[[str | None, str], str | None]
"""Returns whose a queue is, given its namespace and its stored name."""


class Quotas:
    """Tells quotas."""

    def __init__(self, ledger: Ledger, *, things: Things, view: View, tenant: Tenant) -> None:
        """Begin with what is remembered."""
        self._ledger = ledger
        self._things = things
        self._view = view
        self._tenant = tenant

    def see(self, resource: Resource, found: object) -> None:
        """Tell what is new about a quota or a queue; those without GPUs are not told."""
        if isinstance(found, ResourceQuota):
            self._tell(resource, found.metadata, self._resource_quota(found))
        elif isinstance(found, KueueQueue):
            is_local = resource is LOCAL_QUEUES
            parts = self._local_queue(found) if is_local else self._cluster_queue(found)
            self._tell(resource, found.metadata, parts)
        elif isinstance(found, Queue):
            is_kai = resource is KAI_QUEUES
            parts = self._kai_queue(found) if is_kai else self._volcano_queue(found)
            self._tell(resource, found.metadata, parts)

    def end(self, uid: str) -> None:
        """Tell that a quota is gone: nothing is guaranteed and nothing allowed."""
        entry = self._things.remembered(uid)
        if entry is None:
            return
        for model in entry.parts:
            self._ledger.add_observed(
                "quota_snapshot",
                queue=_stored_name(entry.namespace, entry.name),
                gpu_model=model or None,
                **dict.fromkeys(_COUNTED, 0.0),
                pending_workload_count=0,
            )
        self._things.forget(uid)

    def _tell(self, resource: Resource, metadata: Metadata, parts: Parts) -> None:
        entry = self._things.entry(resource, metadata)
        if parts or entry.parts:
            self._things.tell_parts("quota_snapshot", entry, parts)
            self._things.save(metadata.uid, entry)

    def _row(self, metadata: Metadata, model: str, **columns: object) -> Mapping[str, object]:
        queue = _stored_name(metadata.namespace, metadata.name)
        return {
            "queue": queue,
            "tenant_id": self._tenant(metadata.namespace, queue),
            "gpu_model": model or None,
            **columns,
        }

    def _resource_quota(self, quota: ResourceQuota) -> Parts:
        hard = quota.status.hard if quota.status.hard is not None else quota.spec.hard
        used = quota.status.used or {}
        rows: dict[str, Mapping[str, object]] = {}
        for name, limit in (hard or {}).items():
            resource = name.removeprefix(REQUESTS_PREFIX)
            if name != resource and is_gpu_resource(resource):
                model = "" if resource == _PLAIN_GPU else resource
                rows[model] = self._row(
                    quota.metadata,
                    model,
                    guaranteed_gpu_count=_number(limit),
                    limit_gpu_count=_number(limit),
                    used_gpu_count=_number(used.get(name)),
                )
        return rows

    def _cluster_queue(self, queue: KueueQueue) -> Parts:
        usage = _by_flavor(queue.status.flavors_usage if queue.status is not None else None)
        cohort = queue.spec.cohort_name or queue.spec.cohort or None
        rows: dict[str, Mapping[str, object]] = {}
        for group in queue.spec.resource_groups or ():
            for key, quota in _by_flavor(group.flavors).items():
                model, used = self._model(*key), usage.get(key)
                rows[model] = self._row(
                    queue.metadata,
                    model,
                    cohort=cohort,
                    guaranteed_gpu_count=_number(quota.nominal_quota),
                    limit_gpu_count=_limit(quota, is_in_cohort=cohort is not None),
                    used_gpu_count=None if used is None else _number(used.total),
                    borrowed_gpu_count=_borrowed(used),
                    pending_workload_count=_pending(queue),
                )
        return rows

    def _local_queue(self, queue: KueueQueue) -> Parts:
        """Return what a LocalQueue uses; its quota is its ClusterQueue's, named as cohort."""
        status = queue.status
        flavors = (status.flavors_usage or status.flavor_usage) if status is not None else None
        return {
            model: self._row(
                queue.metadata,
                model,
                cohort=queue.spec.cluster_queue,
                used_gpu_count=_number(used.total),
                pending_workload_count=_pending(queue),
            )
            for model, used in (
                (self._model(*key), used) for key, used in _by_flavor(flavors).items()
            )
        }

    def _volcano_queue(self, queue: Queue) -> Parts:
        spec, status = queue.spec, queue.status
        guaranteed = spec.deserved or (spec.guarantee.resource if spec.guarantee else None)
        allocated = status.allocated if status is not None else None
        names = {
            name
            for amounts in (guaranteed, spec.capability, allocated)
            for name in amounts or {}
            if is_gpu_resource(name)
        }
        return {
            model: self._row(
                queue.metadata,
                model,
                cohort=spec.parent or None,
                guaranteed_gpu_count=_of(guaranteed, name),
                limit_gpu_count=_of(spec.capability, name),
                used_gpu_count=_of(allocated, name),
                pending_workload_count=status.pending if status is not None else None,
            )
            for model, name in (("" if name == _PLAIN_GPU else name, name) for name in names)
        }

    def _kai_queue(self, queue: Queue) -> Parts:
        gpu = queue.spec.resources.gpu if queue.spec.resources is not None else None
        if gpu is None:
            return {}
        allocated = queue.status.allocated if queue.status is not None else None
        row = self._row(
            queue.metadata,
            "",
            cohort=queue.spec.parent_queue or None,
            guaranteed_gpu_count=_kai_number(gpu.quota),
            limit_gpu_count=_kai_number(gpu.limit),
            used_gpu_count=_of(allocated, _PLAIN_GPU),
        )
        return {"": row}

    def _model(self, flavor: str, resource: str) -> str:
        """Return the model a flavor stands for, or its name; slices keep their resource name."""
        found = self._view.find(RESOURCE_FLAVORS, ResourceFlavor, name=flavor)
        labels = (found.spec.node_labels or {}) if found is not None else {}
        product = next((labels[name] for name in PRODUCT_LABELS if labels.get(name)), None)
        model = flavor if product is None else model_name(product)
        return model if resource == _PLAIN_GPU else f"{model} {resource}"


def _by_flavor(flavors: tuple[Flavor, ...] | None) -> dict[tuple[str, str], FlavorResource]:
    """Return what is said of GPUs by flavor and resource name."""
    return {
        (flavor.name, each.name): each
        for flavor in flavors or ()
        for each in flavor.resources or ()
        if is_gpu_resource(each.name)
    }


def _limit(quota: FlavorResource, *, is_in_cohort: bool) -> float | None:
    """Return nominal plus what may be borrowed; None without end."""
    nominal = amount(quota.nominal_quota)
    if nominal is None:
        return None
    if not is_in_cohort:
        return _finite(nominal)
    borrowing = amount(quota.borrowing_limit)
    return None if borrowing is None else _finite(nominal + borrowing)


def _borrowed(used: FlavorResource | None) -> float | None:
    """Return what is borrowed; the server leaves nothing out but zero."""
    if used is None:
        return None
    borrowed = amount(used.borrowed)
    return _finite(Decimal(0) if borrowed is None else borrowed)


def _pending(queue: KueueQueue) -> int | None:
    return None if queue.status is None else queue.status.pending_workloads


def _number(quantity: Quantity | None) -> float | None:
    found = amount(quantity)
    return None if found is None else _finite(found)


def _finite(number: Decimal) -> float | None:
    """Return the number; None for one beyond all floats."""
    found = float(number)
    return found if math.isfinite(found) else None


def _of(amounts: Amounts | None, name: str) -> float | None:
    return None if amounts is None else _number(amounts.get(name))


def _kai_number(count: float | None) -> float | None:
    """Return the count; -1 is without end."""
    return None if count is None or count < 0 else count


def _stored_name(namespace: str | None, name: str) -> str:
    """Return a queue's name in the rows: with its namespace where it has one."""
    return name if namespace is None else local_queue_name(namespace, name)
