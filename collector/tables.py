"""Arrow schemas of the rows that collectors hand to the warehouse: one per table, same columns.

The warehouse's migrations are the contract; this is its shape on the collector's side, so that
every source builds whole columns with the right types and a forgotten column is null, not wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

_INSTANT = pa.timestamp("us", tz="UTC")
_TEXT = pa.string()
_RATIO = pa.float64()
_INTEGER = pa.int32()
_BIG = pa.int64()
_REAL = pa.float64()
_FLAG = pa.bool_()


def _schema(columns: Mapping[str, pa.DataType], *, required: str) -> pa.Schema:
    """Return a schema in which the named (space separated) columns refuse null."""
    names = set(required.split())
    return pa.schema(
        [pa.field(name, kind, nullable=name not in names) for name, kind in columns.items()]
    )


NODE: Final = _schema(
    {
        "observed_at": _INSTANT,
        "cluster": _TEXT,
        "node": _TEXT,
        "gpu_model": _TEXT,
        "gpu_count": _INTEGER,
        "cpu_milli": _BIG,
        "memory_bytes": _BIG,
        "is_schedulable": _FLAG,
        "rack": _TEXT,
        "nvlink_domain": _TEXT,
        "labels_json": _TEXT,
        "source": _TEXT,
    },
    required="observed_at cluster node source",
)

DEVICE: Final = _schema(
    {
        "observed_at": _INSTANT,
        "cluster": _TEXT,
        "node": _TEXT,
        "device_uuid": _TEXT,
        "instance_id": _INTEGER,
        "vendor": _TEXT,
        "model": _TEXT,
        "device_index": _INTEGER,
        "memory_total_bytes": _BIG,
        "mig_profile": _TEXT,
        "sm_share_ratio": _RATIO,
        "memory_share_ratio": _RATIO,
        "is_present": _FLAG,
        "driver_version": _TEXT,
        "labels_json": _TEXT,
        "source": _TEXT,
    },
    required="observed_at cluster node device_uuid is_present source",
)

DEVICE_SAMPLE: Final = _schema(
    {
        "sampled_at": _INSTANT,
        "cluster": _TEXT,
        "node": _TEXT,
        "device_uuid": _TEXT,
        "instance_id": _INTEGER,
        "source": _TEXT,
        "busy_ratio": _RATIO,
        "memory_busy_ratio": _RATIO,
        "graphics_active_ratio": _RATIO,
        "sm_active_ratio": _RATIO,
        "sm_occupancy_ratio": _RATIO,
        "tensor_active_ratio": _RATIO,
        "dram_active_ratio": _RATIO,
        "fp64_active_ratio": _RATIO,
        "fp32_active_ratio": _RATIO,
        "fp16_active_ratio": _RATIO,
        "encoder_ratio": _RATIO,
        "decoder_ratio": _RATIO,
        "memory_used_bytes": _BIG,
        "memory_free_bytes": _BIG,
        "memory_reserved_bytes": _BIG,
        "memory_total_bytes": _BIG,
        "power_w": _REAL,
        "energy_j": _REAL,
        "temperature_celsius": _REAL,
        "memory_temperature_celsius": _REAL,
        "sm_clock_hz": _BIG,
        "memory_clock_hz": _BIG,
        "pcie_transmit_bytes_per_s": _REAL,
        "pcie_receive_bytes_per_s": _REAL,
        "pcie_replay_count": _BIG,
        "nvlink_bytes_per_s": _REAL,
        "namespace": _TEXT,
        "pod": _TEXT,
        "container": _TEXT,
        "absences": _TEXT,
    },
    required="sampled_at cluster node device_uuid source",
)

DEVICE_EVENT: Final = _schema(
    {
        "occurred_at": _INSTANT,
        "cluster": _TEXT,
        "node": _TEXT,
        "device_uuid": _TEXT,
        "instance_id": _INTEGER,
        "kind": _TEXT,
        "code": _INTEGER,
        "detail": _TEXT,
        "source": _TEXT,
    },
    required="occurred_at cluster node device_uuid kind source",
)

SCRAPE: Final = _schema(
    {
        "scraped_at": _INSTANT,
        "cluster": _TEXT,
        "target": _TEXT,
        "is_ok": _FLAG,
        "reason": _TEXT,
        "duration_s": _REAL,
        "body_bytes": _BIG,
        "sample_count": _INTEGER,
        "dropped_line_count": _INTEGER,
        "duplicate_count": _INTEGER,
        "unknown_metric_count": _INTEGER,
    },
    required=(
        "scraped_at cluster target is_ok duration_s body_bytes sample_count dropped_line_count "
        "duplicate_count unknown_metric_count"
    ),
)

ALLOCATION: Final = _schema(
    {
        "observed_at": _INSTANT,
        "cluster": _TEXT,
        "node": _TEXT,
        "device_uuid": _TEXT,
        "instance_id": _INTEGER,
        "replica": _INTEGER,
        "started_at": _INSTANT,
        "ended_at": _INSTANT,
        "gpu_share_ratio": _RATIO,
        "sharing_mode": _TEXT,
        "namespace": _TEXT,
        "pod": _TEXT,
        "pod_uid": _TEXT,
        "container": _TEXT,
        "workload_uid": _TEXT,
        "tenant_id": _TEXT,
        "attribution_source": _TEXT,
    },
    required=(
        "observed_at cluster node device_uuid started_at gpu_share_ratio sharing_mode "
        "attribution_source"
    ),
)

WORKLOAD: Final = _schema(
    {
        "observed_at": _INSTANT,
        "cluster": _TEXT,
        "workload_uid": _TEXT,
        "kind": _TEXT,
        "namespace": _TEXT,
        "name": _TEXT,
        "tenant_id": _TEXT,
        "owner": _TEXT,
        "workload_class": _TEXT,
        "queue": _TEXT,
        "priority_class": _TEXT,
        "priority": _INTEGER,
        "cpu_milli": _BIG,
        "memory_bytes": _BIG,
        "gpu_count": _INTEGER,
        "gpu_milli": _INTEGER,
        "gpu_models": _TEXT,
        "qos_class": _TEXT,
        "source": _TEXT,
    },
    required="observed_at cluster workload_uid kind name source",
)

WORKLOAD_TRANSITION: Final = _schema(
    {
        "occurred_at": _INSTANT,
        "observed_at": _INSTANT,
        "cluster": _TEXT,
        "workload_uid": _TEXT,
        "pod_uid": _TEXT,
        "attempt": _INTEGER,
        "transition": _TEXT,
        "reason": _TEXT,
        "message": _TEXT,
        "source": _TEXT,
    },
    required="occurred_at observed_at cluster workload_uid attempt transition source",
)

KUBERNETES_EVENT: Final = _schema(
    {
        "occurred_at": _INSTANT,
        "cluster": _TEXT,
        "event_uid": _TEXT,
        "namespace": _TEXT,
        "kind": _TEXT,
        "name": _TEXT,
        "object_uid": _TEXT,
        "type": _TEXT,
        "reason": _TEXT,
        "message": _TEXT,
        "occurrence_count": _INTEGER,
    },
    required="occurred_at cluster event_uid kind name",
)

QUOTA_SNAPSHOT: Final = _schema(
    {
        "observed_at": _INSTANT,
        "cluster": _TEXT,
        "queue": _TEXT,
        "tenant_id": _TEXT,
        "cohort": _TEXT,
        "gpu_model": _TEXT,
        "guaranteed_gpu_count": _REAL,
        "limit_gpu_count": _REAL,
        "used_gpu_count": _REAL,
        "borrowed_gpu_count": _REAL,
        "pending_workload_count": _INTEGER,
        "source": _TEXT,
    },
    required="observed_at cluster queue source",
)

SCHEMAS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {
        "node": NODE,
        "device": DEVICE,
        "device_sample": DEVICE_SAMPLE,
        "device_event": DEVICE_EVENT,
        "scrape": SCRAPE,
        "allocation": ALLOCATION,
        "workload": WORKLOAD,
        "workload_transition": WORKLOAD_TRANSITION,
        "kubernetes_event": KUBERNETES_EVENT,
        "quota_snapshot": QUOTA_SNAPSHOT,
    }
)
"""Every table a collector may append to, by name."""


def rows_table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows given as mappings as a table of this name's schema; absent keys are null."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMAS[name])
