"""Quota files and live queues with harmless defaults; a test shows only what it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from enforcer.facts import Workload
from enforcer.gateway.port import JsonValue, KubernetesObject
from enforcer.quota.model import (
    Ceiling,
    HoldingCap,
    ModelName,
    QuotaFile,
    Scheduler,
    Share,
    TeamQuota,
)

GPU = "nvidia.com/gpu"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
H100 = "H100-SXM-80GB"


def model(name: str = H100, *, resource: str = GPU, flavor: str = "h100") -> ModelName:
    return ModelName(
        gpu_model=name,
        resource=resource,
        flavor=flavor,
        node_label_values=(f"NVIDIA-{name}",),
        capacity_gpu_count=None,
    )


def share(
    guaranteed: int = 8, *, borrow: int | None = 4, lend: int | None = None, of: str = H100
) -> Share:
    return Share(
        gpu_model=of,
        guaranteed_gpu_count=guaranteed,
        borrow_gpu_count=borrow,
        lend_gpu_count=lend,
    )


def team(
    name: str = "vision", *shares: Share, namespaces: tuple[str, ...] = ("vision",)
) -> TeamQuota:
    return TeamQuota(tenant_id=name, queue=name, namespaces=namespaces, shares=shares or (share(),))


def quota_file(
    *teams: TeamQuota,
    scheduler: Scheduler = Scheduler.KUEUE,
    models: tuple[ModelName, ...] = (model(),),
    ceilings: tuple[Ceiling, ...] = (),
    caps: tuple[HoldingCap, ...] = (),
) -> QuotaFile:
    return QuotaFile(
        cluster="prod",
        scheduler=scheduler,
        models=models,
        teams=teams or (team(),),
        priorities=("low", "normal", "high"),
        ceilings=ceilings,
        caps=caps,
        product_label="nvidia.com/gpu.product",
        team_labels=("team",),
        class_labels=("workload-class",),
    )


def cluster_queue(
    name: str = "vision",
    *,
    cohort: str | None = "company",
    flavor: str = "h100",
    **limits: str,
) -> KubernetesObject:
    """Return a ClusterQueue whose GPU quota has these limits."""
    gpu: dict[str, JsonValue] = {"name": GPU, **limits}
    spec: dict[str, JsonValue] = {
        "resourceGroups": [
            {
                "coveredResources": ["cpu", GPU],
                "flavors": [
                    {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "64"}, gpu]}
                ],
            }
        ],
    }
    if cohort is not None:
        spec["cohortName"] = cohort
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"},
        "spec": spec,
    }


def holder(  # noqa: PLR0913 - a builder: each fact has its harmless default
    uid: str = "w-1",
    *,
    gpu_count: float = 1.0,
    tenant: str | None = "vision",
    owner: str | None = "ada",
    workload_class: str | None = "development",
    queue: str | None = "vision",
    priority_class: str | None = None,
    held_for: timedelta = timedelta(hours=1),
    is_pending: bool = False,
    gpu_models: tuple[str, ...] = (H100,),
) -> Workload:
    return Workload(
        cluster="prod",
        uid=uid,
        api_version="batch/v1",
        kind="Job",
        namespace="vision",
        name=uid,
        object_uid=uid,
        resource_version="1",
        tenant_id=tenant,
        owner=owner,
        workload_class=workload_class,
        queue=queue,
        priority_class=priority_class,
        priority=None,
        labels={},
        annotations={},
        namespace_labels={},
        gpu_models=gpu_models,
        mig_profile=None,
        gpu_count=gpu_count,
        pods=(),
        is_gang=False,
        is_pending=is_pending,
        created_at=NOON - held_for,
        admitted_at=None if is_pending else NOON - held_for,
        managers=frozenset(),
        checkpoint_at=None,
        restored_at=None,
        evidence=None,
    )
