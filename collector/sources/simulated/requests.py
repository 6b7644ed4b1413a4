"""What tenants ask for: the record of one request, and the teams and classes it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import uuid5

from collector.sources.simulated.fleet import (
    NAMESPACE,
    NO_GPU,
    REPLICA_COUNT,
    SHARED_GPU,
    WHOLE_GPU,
)
from steward.units import GPU_MILLI

TRAINING: Final = "training"
INFERENCE: Final = "inference"
DEVELOPMENT: Final = "development"
SYSTEM: Final = "system"

TENANT_WEIGHTS: Final = {
    "search": 0.28,
    "ads": 0.24,
    "vision": 0.20,
    "speech": 0.13,
    "research": 0.15,
}
"""Teams, and the part of each GPU model that is guaranteed to them."""
PRIORITIES: Final = {"production": 1_000, "standard": 100, "best-effort": 10}
KINDS: Final = {
    TRAINING: "PyTorchJob",
    INFERENCE: "Deployment",
    DEVELOPMENT: "Notebook",
    SYSTEM: "DaemonJob",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One workload as it is submitted; times are seconds from the start of the simulation."""

    index: int
    uid: str
    name: str
    tenant: str
    owner: str
    workload_class: str
    priority_class: str
    created_s: int
    runtime_s: int
    """Work to do once started; a preempted attempt repeats a part of it."""
    patience_s: int
    """Waiting longer than this, the owner deletes it; it was then never scheduled."""
    pod_count: int
    resource: str
    slots_per_pod: int
    cpu_milli: int
    """Per pod, like the memory."""
    memory_bytes: int
    models: tuple[str, ...]
    """Acceptable GPU models, preferred first."""
    behaviour: str
    outcome: str
    """Reason of the last transition when it ends by itself."""

    @property
    def priority(self) -> int:
        """Return the number the scheduler sorts by."""
        return PRIORITIES[self.priority_class]

    @property
    def slot_count(self) -> int:
        """Return the slots of the whole gang."""
        return self.pod_count * self.slots_per_pod

    @property
    def gpu_milli(self) -> int:
        """Return the share of a physical GPU in each slot, in milli-GPU."""
        if self.resource == WHOLE_GPU:
            return GPU_MILLI
        if self.resource == SHARED_GPU:
            return GPU_MILLI // REPLICA_COUNT
        if self.resource == NO_GPU:
            return 0
        slice_count = int(self.resource.removeprefix("nvidia.com/mig-").partition("g")[0])
        return round(GPU_MILLI * slice_count / 7)

    @property
    def quota_gpu_count(self) -> float:
        """Return the physical GPUs that the whole gang counts for in quota."""
        return self.slot_count * self.gpu_milli / GPU_MILLI

    def pod_name(self, ordinal: int, attempt: int) -> str:
        """Return the name of one pod of one attempt."""
        return f"{self.name}-{attempt}-{ordinal}"

    def pod_uid(self, ordinal: int, attempt: int) -> str:
        """Return the identity of one pod of one attempt."""
        return str(uuid5(NAMESPACE, f"{self.uid}/{attempt}/{ordinal}"))


def request_uid(*, seed: int, index: int) -> str:
    """Return the identity of the request with this index."""
    return str(uuid5(NAMESPACE, f"{seed}/workload/{index}"))
