"""Schemas of who holds, who waits and what the cluster says of it."""

from __future__ import annotations

from typing import Final

from collector.tables.schema import BIG, FLAG, INSTANT, INTEGER, RATIO, REAL, TEXT, schema

ALLOCATION: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "node": TEXT,
        "device_uuid": TEXT,
        "instance_id": INTEGER,
        "replica": INTEGER,
        "started_at": INSTANT,
        "ended_at": INSTANT,
        "gpu_share_ratio": RATIO,
        "sharing_mode": TEXT,
        "namespace": TEXT,
        "pod": TEXT,
        "pod_uid": TEXT,
        "container": TEXT,
        "workload_uid": TEXT,
        "tenant_id": TEXT,
        "attribution_source": TEXT,
        "claim": TEXT,
        "resource": TEXT,
        "ownership_level": TEXT,
        "queue": TEXT,
        "workload_class": TEXT,
        "priority_class": TEXT,
        "priority": INTEGER,
        "conflict": TEXT,
    },
    required=(
        "observed_at cluster node device_uuid started_at gpu_share_ratio sharing_mode "
        "attribution_source"
    ),
)

WORKLOAD: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "workload_uid": TEXT,
        "kind": TEXT,
        "namespace": TEXT,
        "name": TEXT,
        "tenant_id": TEXT,
        "owner": TEXT,
        "workload_class": TEXT,
        "queue": TEXT,
        "priority_class": TEXT,
        "priority": INTEGER,
        "cpu_milli": BIG,
        "memory_bytes": BIG,
        "gpu_count": INTEGER,
        "gpu_milli": INTEGER,
        "gpu_models": TEXT,
        "qos_class": TEXT,
        "source": TEXT,
    },
    required="observed_at cluster workload_uid kind name source",
)

WORKLOAD_TRANSITION: Final = schema(
    {
        "occurred_at": INSTANT,
        "observed_at": INSTANT,
        "cluster": TEXT,
        "workload_uid": TEXT,
        "pod_uid": TEXT,
        "attempt": INTEGER,
        "transition": TEXT,
        "reason": TEXT,
        "message": TEXT,
        "source": TEXT,
    },
    required="occurred_at observed_at cluster workload_uid attempt transition source",
)

KUBERNETES_EVENT: Final = schema(
    {
        "occurred_at": INSTANT,
        "cluster": TEXT,
        "event_uid": TEXT,
        "namespace": TEXT,
        "kind": TEXT,
        "name": TEXT,
        "object_uid": TEXT,
        "type": TEXT,
        "reason": TEXT,
        "message": TEXT,
        "occurrence_count": INTEGER,
    },
    required="occurred_at cluster event_uid kind name",
)

QUOTA_SNAPSHOT: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "queue": TEXT,
        "tenant_id": TEXT,
        "cohort": TEXT,
        "gpu_model": TEXT,
        "guaranteed_gpu_count": REAL,
        "limit_gpu_count": REAL,
        "used_gpu_count": REAL,
        "borrowed_gpu_count": REAL,
        "pending_workload_count": INTEGER,
        "source": TEXT,
    },
    required="observed_at cluster queue source",
)

POD: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "pod_uid": TEXT,
        "namespace": TEXT,
        "pod": TEXT,
        "node": TEXT,
        "workload_uid": TEXT,
        "phase": TEXT,
        "reason": TEXT,
        "created_at": INSTANT,
        "scheduled_at": INSTANT,
        "started_at": INSTANT,
        "ready_at": INSTANT,
        "finished_at": INSTANT,
        "deleted_at": INSTANT,
        "gpu_count": INTEGER,
        "gpu_resource": TEXT,
        "restart_count": INTEGER,
        "scheduler": TEXT,
        "labels_json": TEXT,
        "source": TEXT,
    },
    required=("observed_at cluster pod_uid namespace pod phase created_at source"),
)

CONDITION_CHANGE: Final = schema(
    {
        "occurred_at": INSTANT,
        "observed_at": INSTANT,
        "cluster": TEXT,
        "kind": TEXT,
        "namespace": TEXT,
        "name": TEXT,
        "object_uid": TEXT,
        "condition": TEXT,
        "status": TEXT,
        "reason": TEXT,
        "message": TEXT,
        "source": TEXT,
    },
    required=("occurred_at observed_at cluster kind name object_uid condition status source"),
)

PRIORITY_CLASS: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "priority_class": TEXT,
        "priority": INTEGER,
        "preemption_policy": TEXT,
        "is_default": FLAG,
        "is_present": FLAG,
        "source": TEXT,
    },
    required=("observed_at cluster priority_class is_present source"),
)

DEVICE_CLAIM: Final = schema(
    {
        "observed_at": INSTANT,
        "cluster": TEXT,
        "claim_uid": TEXT,
        "namespace": TEXT,
        "claim": TEXT,
        "driver": TEXT,
        "pool": TEXT,
        "device": TEXT,
        "request": TEXT,
        "device_uuid": TEXT,
        "parent_uuid": TEXT,
        "mig_profile": TEXT,
        "is_admin_access": FLAG,
        "pod": TEXT,
        "pod_uid": TEXT,
        "state": TEXT,
        "reason": TEXT,
        "source": TEXT,
    },
    required=("observed_at cluster claim_uid namespace claim state source"),
)
