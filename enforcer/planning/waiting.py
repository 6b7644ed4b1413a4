"""What waiting workloads need, in the order in which they are served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from enforcer.facts import NodeRoom, Snapshot, Workload

UNKNOWN_PRIORITY: Final = 0
"""What Kubernetes gives a pod without a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one waiting workload needs before it can start: all of its pods at once."""

    workload: Workload
    pod_count: int
    gpu_count: int
    """Whole GPUs, or instances, of each pod; where they differ, of the largest."""
    cpu_milli: int | None
    """Of each pod; None: nothing is asked for."""
    memory_bytes: int | None

    @property
    def shape(self) -> tuple[object, ...]:
        """Return all that decides whether it fits: of two alike, both do or neither."""
        one = self.workload
        asked = (self.pod_count, self.gpu_count, self.cpu_milli, self.memory_bytes)
        return (*asked, one.gpu_models, one.mig_profile, one.queue, one.stays_within)

    def acceptance(self) -> Callable[[NodeRoom], bool]:
        """Return what tells whether a pod may run on a node; labels write models without spaces."""
        profile = self.workload.mig_profile
        models = {name.replace(" ", "-") for name in self.workload.gpu_models}

        def accepts(room: NodeRoom) -> bool:
            has_kind = room.is_schedulable and room.mig_profile == profile
            return has_kind and (not models or (room.gpu_model or "").replace(" ", "-") in models)

        return accepts


def priority_of(workload: Workload) -> int:
    """Return the workload's priority; ``UNKNOWN_PRIORITY`` where it is not told."""
    return UNKNOWN_PRIORITY if workload.priority is None else workload.priority


def waiting(snapshot: Snapshot, cluster: str) -> list[Workload]:
    """Return the cluster's waiting workloads: by priority, then oldest first, ties by uid."""
    found = [one for one in snapshot.workloads if one.is_pending and one.cluster == cluster]
    return sorted(found, key=lambda one: (-priority_of(one), one.created_at, one.uid))


def need_of(workload: Workload, rooms: Sequence[NodeRoom]) -> Need | None:
    """Return what a waiting workload needs.

    None: it asks for a part of a GPU (whether a freed one would be offered in parts is not known),
    or how it is divided into pods is not known.
    """
    total = workload.gpu_count
    if total < 1 or not float(total).is_integer():
        return None
    per_pod = _pod_gpus(workload, rooms)
    if per_pod is None or per_pod < 1:
        return None
    with_gpus = sum(pod.gpu_count > 0 for pod in workload.pods)
    pod_count = max(with_gpus, ceil(total / per_pod))
    return Need(
        workload=workload,
        pod_count=pod_count,
        gpu_count=per_pod,
        cpu_milli=_part(workload.cpu_milli, pod_count),
        memory_bytes=_part(workload.memory_bytes, pod_count),
    )


def _pod_gpus(workload: Workload, rooms: Sequence[NodeRoom]) -> int | None:
    """Return the GPUs of one pod; one that no node is too small for may be in a single pod."""
    told = [pod.gpu_count for pod in workload.pods if pod.gpu_count > 0]
    if told:
        return max(told)
    if workload.pod_gpu_count is not None:
        return workload.pod_gpu_count
    largest = max((room.total_count for room in rooms), default=0)
    return int(workload.gpu_count) if workload.gpu_count <= largest else None


def _part(total: int | None, count: int) -> int | None:
    return None if total is None else ceil(total / count)
