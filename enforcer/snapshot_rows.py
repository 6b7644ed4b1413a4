"""Workloads, rooms and quotas as facts: from frames of one instant to values."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from analytics.evidence.standing import Standing
from enforcer.facts import NodeRoom, PodFact, QuotaUse, Workload
from enforcer.kinds import API_VERSIONS, BARE_POD, GANG_KINDS

if TYPE_CHECKING:
    import polars as pl

Labels = Mapping[str, str]
NO_LABELS: Final[Labels] = {}
_AS_TOLD: Final = (
    "cluster",
    "kind",
    "name",
    "tenant_id",
    "owner",
    "workload_class",
    "queue",
    "priority_class",
    "priority",
    "mig_profile",
    "gpu_count",
    "cpu_milli",
    "memory_bytes",
    "created_at",
)
_QUOTA: Final = (
    "cluster",
    "tenant_id",
    "queue",
    "gpu_model",
    "guaranteed_gpu_count",
    "limit_gpu_count",
    "used_gpu_count",
)
_ROOM: Final = (
    "cluster",
    "node",
    "mig_profile",
    "free_count",
    "total_count",
    "is_schedulable",
    "nvlink_domain",
    "rack",
    "free_cpu_milli",
    "free_memory_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What is known of workloads beside the warehouse."""

    namespace_labels: Mapping[str, Labels]
    """By namespace."""
    restored: Mapping[str, datetime]
    """By workload, when an act on it was last undone."""
    taken: frozenset[str]
    """Workloads whose GPUs an act has taken: they hold none, and wait for none."""


def workloads_of(standing: Standing, beside: Beside) -> tuple[Workload, ...]:
    """Return workloads without evidence, ascending by uid.

    Their labels are those that all of their pods have; annotations, managers and versions are for
    the live objects to say.
    """
    pods = _pods(standing.pods)
    rows = standing.workloads.sort("workload_uid")
    told = rows.select(_AS_TOLD).iter_rows(named=True)
    others = rows.select(
        "workload_uid", "namespace", "held_models", "asked_models", "is_waiting", "held_at"
    ).iter_rows(named=True)
    found = []
    for plain, row in zip(told, others, strict=True):
        uid, kind, namespace = row["workload_uid"], plain["kind"], row["namespace"] or ""
        own = tuple(pods.get(uid, ()))
        workload = Workload(
            **plain,
            uid=uid,
            api_version=API_VERSIONS.get(kind, ""),
            namespace=namespace,
            object_uid=uid,
            resource_version="",
            labels=_common([pod.labels for pod in own]),
            annotations=NO_LABELS,
            namespace_labels=beside.namespace_labels.get(namespace, NO_LABELS),
            gpu_models=_models(row["held_models"], row["asked_models"]),
            pods=own,
            is_gang=kind in GANG_KINDS,
            is_pending=row["is_waiting"] and uid not in beside.taken,
            admitted_at=row["held_at"],
            managers=frozenset(),
            checkpoint_at=None,
            restored_at=beside.restored.get(uid),
            evidence=None,
        )
        found.append(workload)
    return tuple(found)


def _pods(frame: pl.DataFrame) -> Mapping[str, list[PodFact]]:
    by_workload: defaultdict[str, list[PodFact]] = defaultdict(list)
    columns = ["workload_uid", "kind", "pod_uid", "pod", "node", "phase", "gpu_count"]
    rows = frame.select(*columns, "labels_json").iter_rows()
    for workload_uid, kind, uid, name, node, phase, gpu_count, labels in rows:
        by_workload[workload_uid].append(
            PodFact(
                uid=uid,
                name=name,
                node=node,
                phase=phase,
                gpu_count=gpu_count or 0,  # a pod that asks for none tells none
                labels=_labels(labels),
                has_controller=kind != BARE_POD,
            )
        )
    return by_workload


def _labels(text: str | None) -> Labels:
    """Return labels from JSON; what is no object of texts is no labels."""
    try:
        told = json.loads(text or "{}")
    except ValueError:
        return NO_LABELS
    if not isinstance(told, dict):
        return NO_LABELS
    return {key: value for key, value in told.items() if isinstance(value, str)}


def _common(every: Sequence[Labels]) -> Labels:
    if not every:
        return NO_LABELS
    first, *others = every
    return {
        key: value
        for key, value in sorted(first.items())
        if all(each.get(key) == value for each in others)
    }


def _models(held: Sequence[str] | None, asked: str | None) -> tuple[str, ...]:
    if held:
        return tuple(held)
    return tuple(sorted({name for name in (asked or "").split("|") if name}))


def rooms_of(frame: pl.DataFrame) -> tuple[NodeRoom, ...]:
    """Return rooms, ascending by node, model and profile."""
    named = frame.select(*_ROOM, gpu_model="model")
    return tuple(NodeRoom(**row) for row in named.iter_rows(named=True))


def quotas_of(frame: pl.DataFrame, at: datetime) -> tuple[QuotaUse, ...]:
    """Return what each queue is promised and uses, as last told, ascending by queue and model.

    Args:
        frame: rows of ``quota_use``.
        at: what is told later does not count.
    """
    return tuple(_quotas(frame, at))


def _quotas(frame: pl.DataFrame, at: datetime) -> Iterator[QuotaUse]:
    key = ["cluster", "queue", "gpu_model"]
    newest = (
        frame.filter(frame["observed_at"] <= at)
        .sort("observed_at")
        .unique(key, keep="last", maintain_order=True)
        .sort(key, nulls_last=False)
    )
    for row in newest.select(_QUOTA).iter_rows(named=True):
        yield QuotaUse(**row)
