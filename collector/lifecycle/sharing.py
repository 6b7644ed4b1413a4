"""How large a share of a GPU is: what a request leaves open, the node's labels tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from collector.lifecycle.quantities import whole
from collector.lifecycle.requests import SHARED_GPUS, Request
from collector.sources.kubernetes.objects_cluster import Node
from steward.units import GPU_MILLI

REPLICAS_LABEL: Final = "nvidia.com/gpu.replicas"
STRATEGY_LABEL: Final = "nvidia.com/gpu.sharing-strategy"
MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
SHARED_STRATEGIES: Final = frozenset({"time-slicing", "mps"})
_PLAIN: Final = "nvidia.com/gpu"


def on_node(request: Request, node: Node | None) -> Request:
    """Return the request with the size of a share as the node has it; unchanged without one."""
    if node is None or not request.gpu_count:
        return request
    share = _share_milli(request, node.metadata.labels or {})
    return request if share is None else replace(request, gpu_milli=share)


def _share_milli(request: Request, labels: Mapping[str, str]) -> int | None:
    if request.gpu_memory_mib is not None and request.gpu_milli is None:
        memory = whole(labels.get(MEMORY_LABEL))
        if not memory:
            return None
        return min(GPU_MILLI, round(request.gpu_memory_mib / memory * GPU_MILLI))
    is_slice = request.resource in SHARED_GPUS or (
        request.resource == _PLAIN
        and request.gpu_milli == GPU_MILLI
        and labels.get(STRATEGY_LABEL) in SHARED_STRATEGIES
    )
    replicas = whole(labels.get(REPLICAS_LABEL)) if is_slice else None
    return round(GPU_MILLI / replicas) if replicas else None
