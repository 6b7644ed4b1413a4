"""Who holds GPUs and who waits for them at one instant, and what each node has left.

Rows of later than the instant are not looked at, so that history can be asked as if it were now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from analytics.evidence.holds import WORKLOAD
from analytics.waits import asked_gpus

INPUTS: Final = (
    "allocation_history",
    "device_history",
    "workload_current",
    "transition_history",
    "evidence_pod",
)
WAITING: Final = ("created", "quota_reserved", "admitted", "requeued", "evicted", "preempted")
"""A workload that asks for GPUs, holds none and last did one of these waits for them."""
OVER: Final = "finished"
_POD: Final = ("cluster", "pod_uid")
_PROFILE: Final = r"/mig-(.+)$"
"""In the name of a resource, such as nvidia.com/mig-1g.10gb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Workloads and their pods at one instant."""

    workloads: pl.DataFrame
    """One row per workload that holds GPUs or wants some, ascending: cluster, workload_uid, kind,
    namespace, name, tenant_id, owner, workload_class, queue, priority_class, priority, cpu_milli,
    memory_bytes, asked_models (joined by "|"), gpu_count f64, held_models list[str] (ascending),
    mig_profile str | null (where all it holds, or all its pods ask for, are instances of one),
    is_holding, is_waiting bool, created_at, held_at | null (when it last took a device), nodes
    list[str]."""
    pods: pl.DataFrame
    """One row per pod of these that is not over, ascending: cluster, workload_uid, kind (of the
    workload), pod_uid, pod, node, phase, gpu_count, labels_json; pods never told are made up from
    what they hold."""


def holdings(allocations: pl.DataFrame, devices: pl.DataFrame, at: datetime) -> pl.DataFrame:
    """Return what is held at an instant, by whom; model and mig_profile as last told.

    Args:
        allocations: rows of ``allocation_history``.
        devices: rows of ``device_history``.
        at: the instant.
    """
    known = devices.filter(pl.col("observed_at") <= at).sort("observed_at")
    models = known.group_by("cluster", "device_uuid").agg(pl.col("model").drop_nulls().last())
    profiles = (
        known.filter(pl.col("instance_id").is_not_null())
        .group_by("cluster", "device_uuid", "instance_id")
        .agg(pl.col("mig_profile").last())
    )
    return (
        allocations.filter(
            pl.col("started_at") <= at, pl.col("ended_at").is_null() | (pl.col("ended_at") > at)
        )
        .join(models, on=["cluster", "device_uuid"], how="left")
        .join(profiles, on=["cluster", "device_uuid", "instance_id"], how="left", nulls_equal=True)
    )


def standing(frames: Mapping[str, pl.DataFrame], held: pl.DataFrame, *, at: datetime) -> Standing:
    """Return the workloads that hold GPUs or wait for some, and their pods.

    Args:
        frames: rows of ``INPUTS``.
        held: rows of ``holdings`` at the same instant.
        at: the instant.
    """
    named = held.filter(pl.col("workload_uid").is_not_null())
    pods = _pods(frames["evidence_pod"], named, at)
    told = (
        _told(frames["workload_current"], named)
        .join(_last_steps(frames["transition_history"], at), on=WORKLOAD, how="left")
        .join(_takes(named), on=WORKLOAD, how="left")
        .join(_made(pods), on=WORKLOAD, how="left")
    )
    workloads = _standing_now(told, at).sort(WORKLOAD)
    kinds = workloads.select(*WORKLOAD, "kind")
    return Standing(
        workloads=workloads,
        pods=pods.join(kinds, on=WORKLOAD, how="inner", maintain_order="left"),
    )


def _standing_now(told: pl.DataFrame, at: datetime) -> pl.DataFrame:
    """Return those that hold GPUs, or want some and are not over."""
    transition, wants = pl.col("transition"), pl.col("asked_count") > 0
    return (
        told.with_columns(
            is_holding=pl.col("held_count").is_not_null(),
            asked_count=asked_gpus.fill_null(0.0),
            created_at=pl.coalesce("created_at", "made_at", "first_held_at", pl.lit(at)),
        )
        .filter(
            pl.col("is_holding") | (wants & transition.is_not_null() & transition.ne_missing(OVER))
        )
        .with_columns(
            gpu_count=pl.coalesce("held_count", "asked_count"),
            mig_profile=pl.when("is_holding").then("mig_profile").otherwise("asked_profile"),
            is_waiting=~pl.col("is_holding")
            & wants
            & transition.is_in(WAITING).fill_null(value=False),
        )
        .drop(
            "held_count", "asked_count", "asked_profile", "made_at", "first_held_at", "transition"
        )
    )


def _told(current: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return workloads as told, and those known only as holders."""
    told = current.rename({"gpu_models": "asked_models"}).drop("qos_class")
    unknown = (
        held.join(current, on=WORKLOAD, how="anti")
        .unique(list(WORKLOAD), keep="last", maintain_order=True)
        .select(
            *WORKLOAD,
            "namespace",
            "tenant_id",
            "owner",
            "workload_class",
            "queue",
            "priority_class",
            kind=pl.lit(""),
            name=pl.col("workload_uid"),
        )
    )
    return pl.concat([told, unknown], how="diagonal")


def _last_steps(transitions: pl.DataFrame, at: datetime) -> pl.DataFrame:
    """Return what each workload last did, and when it was first created."""
    known = transitions.filter(pl.col("occurred_at") <= at)
    order = ["attempt", "occurred_at", "is_over"]
    return (
        known.with_columns(is_over=pl.col("transition") == OVER)
        .sort(*WORKLOAD, *order, "transition")
        .group_by(WORKLOAD, maintain_order=True)
        .agg(
            pl.col("transition").last(),
            created_at=pl.col("occurred_at").min(),
        )
    )


def _takes(held: pl.DataFrame) -> pl.DataFrame:
    profile = pl.col("mig_profile")
    return held.group_by(WORKLOAD).agg(
        held_count=pl.col("gpu_share_ratio").sum(),
        held_models=pl.col("model").drop_nulls().unique().sort(),
        mig_profile=pl.when(profile.is_not_null().all() & (profile.n_unique() == 1)).then(
            profile.first()
        ),
        held_at=pl.col("started_at").max(),
        first_held_at=pl.col("started_at").min(),
        nodes=pl.col("node").unique().sort(),
    )


def _pods(told: pl.DataFrame, held: pl.DataFrame, at: datetime) -> pl.DataFrame:
    newest = (
        told.filter(pl.col("observed_at") <= at)
        .sort(*_POD, "observed_at")
        .unique(list(_POD), keep="last", maintain_order=True)
        .filter(pl.col("over_at").is_null() | (pl.col("over_at") > at))
    )
    columns = ["cluster", "workload_uid", "pod_uid", "namespace", "pod", "node", "phase"]
    made_up = (
        held.filter(pl.col("pod").is_not_null())
        .join(newest, on=["cluster", "namespace", "pod"], how="anti")
        .group_by("cluster", "workload_uid", "namespace", "pod")
        .agg(pl.col("node").first(), gpu_count=pl.len().cast(pl.Int64))
        .with_columns(pod_uid=pl.lit(""), phase=pl.lit("Running"))
    )
    kept = newest.select(*columns, "gpu_count", "gpu_resource", "labels_json", "created_at")
    return pl.concat([kept, made_up], how="diagonal").sort(*WORKLOAD, "pod_uid", "namespace", "pod")


def _made(pods: pl.DataFrame) -> pl.DataFrame:
    """Return when pods were made, and the MIG profile that all of them ask for."""
    profile = pl.col("gpu_resource").str.extract(_PROFILE)
    return pods.group_by(WORKLOAD).agg(
        made_at=pl.col("created_at").min(),
        asked_profile=pl.when((profile.n_unique() == 1) & profile.is_not_null().all()).then(
            profile.first()
        ),
    )
