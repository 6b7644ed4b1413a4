"""Nodes: what they offer, where they stand, who may use them; told when that changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from collector.lifecycle.conditions import Bearer, tell_changes
from collector.lifecycle.output import Ledger
from collector.lifecycle.quantities import milli, whole
from collector.lifecycle.requests import PRODUCT_LABELS, is_gpu_resource, model_name
from collector.lifecycle.things import Things
from collector.sources.kubernetes.objects import Amounts
from collector.sources.kubernetes.objects_cluster import Node, Taint
from collector.sources.kubernetes.resources import NODES

COUNT_LABEL: Final = "nvidia.com/gpu.count"
CLIQUE_LABEL: Final = "nvidia.com/gpu.clique"
RACK_LABELS: Final = (
    "topology.kubernetes.io/rack",
    "network.topology.nvidia.com/leaf",
    "cloud.google.com/gce-topology-subblock",
    "topology.k8s.aws/network-node-layer-3",
    "rack",
)
KEPT_PREFIXES: Final = (
    "nvidia.com/",
    "amd.com/",
    "huawei.com/",
    "topology.",
    "network.topology.",
    "node.kubernetes.io/instance-type",
    "node-role.kubernetes.io/",
    "kubernetes.io/arch",
    "cloud.google.com/",
)
"""Labels that are stored: those of GPUs and of the place; others are many and say little."""
BLOCKING_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "ToBeDeletedByClusterAutoscaler",
    }
)
"""Taints that close a node to new work, whoever it is for."""


class Nodes:
    """Tells nodes."""

    def __init__(self, ledger: Ledger, things: Things) -> None:
        """Begin with what is remembered."""
        self._ledger = ledger
        self._things = things

    def see(self, node: Node) -> None:
        """Tell what is new about a node; its heartbeats are not."""
        metadata = node.metadata
        entry = self._things.entry(NODES, metadata)
        bearer = Bearer(kind=NODES.kind, namespace=None, name=metadata.name, uid=metadata.uid)
        entry.marks = tell_changes(
            self._ledger, bearer, conditions=node.status.conditions, marks=entry.marks
        )
        self._things.tell_parts("node", entry, {"": _row(node)})
        self._things.save(metadata.uid, entry)

    def end(self, uid: str) -> None:
        """Tell that a node is gone: it offers nothing, and its GPUs leave capacity with it."""
        entry = self._things.remembered(uid)
        if entry is None:
            return
        self._ledger.add_observed(
            "node",
            node=entry.name,
            gpu_count=0,
            allocatable_gpu_count=0,
            cpu_milli=0,
            memory_bytes=0,
            is_schedulable=False,
            is_present=False,
        )
        self._things.forget(uid)


def _row(node: Node) -> dict[str, object]:
    labels, offered = node.metadata.labels or {}, node.status.allocatable or {}
    product = next((labels[name] for name in PRODUCT_LABELS if name in labels), None)
    return {
        "node": node.metadata.name,
        "gpu_model": None if product is None else model_name(product),
        "gpu_count": _gpu_count(node, labels),
        "allocatable_gpu_count": _pieces(offered),
        "cpu_milli": milli(offered.get("cpu")),
        "memory_bytes": whole(offered.get("memory")),
        "is_schedulable": is_schedulable(node),
        "rack": next((labels[name] for name in RACK_LABELS if labels.get(name)), None),
        "nvlink_domain": labels.get(CLIQUE_LABEL) or None,
        "labels_json": _kept(labels),
        "taints_json": _taints(node.spec.taints or ()),
        "is_present": True,
    }


def is_schedulable(node: Node) -> bool:
    """Return whether the scheduler may put new work on the node: no cordon, ready, reachable."""
    closed = any(
        taint.key in BLOCKING_TAINTS and taint.effect != "PreferNoSchedule"
        for taint in node.spec.taints or ()
    )
    return not node.spec.unschedulable and not closed


def _gpu_count(node: Node, labels: Mapping[str, str]) -> int | None:
    """Return how many physical GPUs it has: as discovery counted, else as the plugin offers."""
    counted = whole(labels.get(COUNT_LABEL))
    return _pieces(node.status.capacity) if counted is None else counted


def _pieces(amounts: Amounts | None) -> int | None:
    """Return how many devices, instances or shares are offered; None before that is told."""
    if not amounts:
        return None
    counts = [whole(each) for name, each in amounts.items() if is_gpu_resource(name)]
    return sum(count for count in counts if count is not None)


def _kept(labels: Mapping[str, str]) -> str | None:
    kept = {name: text for name, text in labels.items() if name.startswith(KEPT_PREFIXES)}
    return json.dumps(kept, sort_keys=True) if kept else None


def _taints(taints: Iterable[Taint]) -> str | None:
    listed = [
        {"key": taint.key, "value": taint.value or "", "effect": taint.effect}
        for taint in sorted(taints, key=lambda taint: (taint.key, taint.effect))
    ]
    return json.dumps(listed) if listed else None
