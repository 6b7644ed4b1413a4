"""The quota file once it is read: who is promised what, may borrow what, and rank how high."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

ANY = "*"
"""Every team, or every class."""


class Scheduler(StrEnum):
    """What keeps the quotas of a cluster."""

    KUEUE = "kueue"
    KAI = "kai"
    VOLCANO = "volcano"
    RESOURCE_QUOTA = "resource_quota"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelName:
    """What the cluster calls one GPU model."""

    gpu_model: str
    resource: str
    """The extended resource that pods ask for, such as ``nvidia.com/gpu``."""
    flavor: str
    """Kueue's ResourceFlavor of it."""
    node_label_values: tuple[str, ...]
    """Values of the node label for GPU products, ascending."""
    capacity_gpu_count: int | None
    """GPUs of it in the cluster; None: not said, so that sums are not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one team has of one GPU model."""

    gpu_model: str
    guaranteed_gpu_count: int
    borrow_gpu_count: int | None
    """Most that it may use beyond the guarantee; None: as much as is free."""
    lend_gpu_count: int | None
    """Most of an unused guarantee that others may use; None: all of it."""

    @property
    def limit_gpu_count(self) -> int | None:
        """Return the most it may hold; None: no limit."""
        if self.borrow_gpu_count is None:
            return None
        return self.guaranteed_gpu_count + self.borrow_gpu_count


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamQuota:
    """What one team is promised, and where."""

    tenant_id: str
    queue: str
    """The scheduler's object: ClusterQueue, or Queue."""
    namespaces: tuple[str, ...]
    """Ascending."""
    shares: tuple[Share, ...]
    """Ascending by model; a model that is not named is not the team's to use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The highest priority class that one team's workloads of one class may carry."""

    tenant_id: str
    workload_class: str
    highest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingCap:
    """How much, and how long, one person may hold of one class in one queue."""

    workload_class: str
    per_owner_workload_count: int | None
    per_owner_gpu_count: int | None
    longest: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaFile:
    """The whole of one cluster."""

    cluster: str
    scheduler: Scheduler
    models: tuple[ModelName, ...]
    """Ascending."""
    teams: tuple[TeamQuota, ...]
    """Ascending."""
    priorities: tuple[str, ...]
    """Priority classes, lowest first."""
    ceilings: tuple[Ceiling, ...]
    """The most particular one counts: team and class, team, class, any."""
    caps: tuple[HoldingCap, ...]
    product_label: str
    """Node label that names the GPU product."""
    team_labels: tuple[str, ...]
    """Label keys of which one must name the team; empty: not asked for."""
    class_labels: tuple[str, ...]

    def model(self, gpu_model: str) -> ModelName | None:
        """Return what the cluster calls the model; None: the file does not name it."""
        return next((one for one in self.models if one.gpu_model == gpu_model), None)

    def ceiling(self, tenant_id: str | None, workload_class: str | None) -> str | None:
        """Return the highest priority class allowed; None: there is no ceiling."""
        by_key: Mapping[tuple[str, str], str] = {
            (one.tenant_id, one.workload_class): one.highest for one in self.ceilings
        }
        team, kind = tenant_id or ANY, workload_class or ANY
        for key in ((team, kind), (team, ANY), (ANY, kind), (ANY, ANY)):
            if key in by_key:
                return by_key[key]
        return None
