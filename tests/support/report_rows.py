"""A small fleet as stored rows: enough for every report to have something to say.

Two nodes with two GPUs each, one day of readings every five minutes, two tenants, one of which
holds a GPU that does nothing, and jobs that waited, one of them still.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from steward.ids import BatchId
from steward.ports import Writer

START = datetime(2026, 5, 1, tzinfo=UTC)
HOURS = 24
STEP = timedelta(minutes=5)
DEVICES = (("node-a", "gpu-0"), ("node-a", "gpu-1"), ("node-b", "gpu-2"), ("node-b", "gpu-3"))
BUSY = {"gpu-0": (0.95, 0.80, 0.55, 0.40), "gpu-1": (0.0, 0.0, 0.0, 0.0)}
"""By device: busy, SM active, tensor active, DRAM active; others are free and at rest."""


def store_fleet(writer: Writer, *, has_unknown: bool = False, cluster: str = "default") -> None:
    """Append the fleet; with ``has_unknown`` half of the readings lack what tells them apart.

    In another cluster than the default one everything has the cluster's name before its own.
    """
    tables = {
        "node": _nodes(),
        "device": _devices(),
        "device_sample": _samples(has_unknown=has_unknown),
        "allocation": _allocations(),
        "workload": _workloads(),
        "workload_transition": _transitions(),
    }
    for name, rows in tables.items():
        writer.append(name, _of(rows, cluster), batch_id=BatchId(f"fleet-{cluster}-{name}"))


def _of(rows: pl.DataFrame, cluster: str) -> pl.DataFrame:
    if cluster == "default":
        return rows
    named = {"node", "device_uuid", "workload_uid", "name"} & set(rows.columns)
    return rows.with_columns(
        pl.lit(cluster).alias("cluster"),
        *(pl.format("{}-{}", pl.lit(cluster), pl.col(name)).alias(name) for name in named),
    )


def _nodes() -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "observed_at": START,
                "cluster": "default",
                "node": node,
                "gpu_model": "H100",
                "gpu_count": 2,
                "cpu_milli": 64_000,
                "memory_bytes": 2**39,
                "is_schedulable": True,
                "source": "test",
            }
            for node in ("node-a", "node-b")
        ]
    )


def _devices() -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "observed_at": START,
                "cluster": "default",
                "node": node,
                "device_uuid": device,
                "vendor": "nvidia",
                "model": "H100",
                "device_index": index % 2,
                "memory_total_bytes": 80 * 2**30,
                "is_present": True,
                "source": "test",
            }
            for index, (node, device) in enumerate(DEVICES)
        ]
    )


def _samples(*, has_unknown: bool) -> pl.DataFrame:
    count = int(timedelta(hours=HOURS) / STEP) + 1
    rows = []
    for index in range(count):
        for node, device in DEVICES:
            busy, sm, tensor, dram = BUSY.get(device, (0.0, 0.0, 0.0, 0.0))
            is_blind = has_unknown and index % 2 == 1
            rows.append(
                {
                    "sampled_at": START + index * STEP,
                    "cluster": "default",
                    "node": node,
                    "device_uuid": device,
                    "source": "test",
                    "busy_ratio": None if is_blind else busy,
                    "sm_active_ratio": None if is_blind or has_unknown else sm,
                    "tensor_active_ratio": None if is_blind or has_unknown else tensor,
                    "dram_active_ratio": None if is_blind or has_unknown else dram,
                    "power_w": None if is_blind else 120.0 + 500 * busy,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _allocations() -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "observed_at": START,
                "cluster": "default",
                "node": "node-a",
                "device_uuid": device,
                "started_at": START,
                "ended_at": START + timedelta(hours=HOURS),
                "gpu_share_ratio": 1.0,
                "sharing_mode": "exclusive",
                "workload_uid": f"job-{tenant}",
                "tenant_id": tenant,
                "attribution_source": "test",
            }
            for device, tenant in (("gpu-0", "vision"), ("gpu-1", "语音"))
        ]
    )


def _workloads() -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "observed_at": START,
                "cluster": "default",
                "workload_uid": f"job-{tenant}",
                "kind": "Job",
                "name": f"train-{tenant}",
                "tenant_id": tenant,
                "workload_class": "training",
                "cpu_milli": 8_000,
                "memory_bytes": 2**34,
                "gpu_count": gpus,
                "gpu_milli": 1_000,
                "source": "test",
            }
            for tenant, gpus in (("vision", 1), ("语音", 1), ("waiting", 2))
        ]
    )


def _transitions() -> pl.DataFrame:
    steps = [
        ("vision", "created", 0),
        ("vision", "scheduled", 60),
        ("语音", "created", 0),
        ("语音", "scheduled", 900),
        ("语音", "finished", 80_000),
        ("waiting", "created", 3_600),
    ]
    return pl.DataFrame(
        [
            {
                "occurred_at": START + timedelta(seconds=after_s),
                "observed_at": START + timedelta(seconds=after_s),
                "cluster": "default",
                "workload_uid": f"job-{tenant}",
                "attempt": 1,
                "transition": transition,
                "source": "test",
            }
            for tenant, transition, after_s in steps
        ]
    )
