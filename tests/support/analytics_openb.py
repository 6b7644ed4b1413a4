"""The openb trace as the rows that named queries return: read straight, without a warehouse."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from analytics.inputs import SCHEMAS, conform, empty
from steward.period import Period

STARTS_AT = datetime(2023, 1, 1, tzinfo=UTC)
MIB_BYTES = 1_048_576


def openb_frames(folder: Path, pods: str) -> tuple[dict[str, pl.DataFrame], Period]:
    """Return frames by query name, and the period that the trace spans."""
    pod_rows = pl.read_csv(folder / pods)
    node_rows = pl.read_csv(folder / "openb_node_list_gpu_node.csv")
    frames = {name: empty(name) for name in SCHEMAS}
    frames["node_history"] = _nodes(node_rows)
    frames["device_history"] = _devices(node_rows)
    frames["workload_current"] = _workloads(pod_rows)
    frames["transition_history"] = _transitions(pod_rows)
    last = frames["transition_history"]["occurred_at"].max()
    assert isinstance(last, datetime)
    return frames, Period(STARTS_AT, last + timedelta(microseconds=1))


def _nodes(rows: pl.DataFrame) -> pl.DataFrame:
    frame = rows.select(
        pl.lit(STARTS_AT).alias("observed_at"),
        pl.lit("openb").alias("cluster"),
        pl.col("sn").alias("node"),
        pl.col("model").alias("gpu_model"),
        pl.col("gpu").alias("gpu_count"),
        "cpu_milli",
        (pl.col("memory_mib") * MIB_BYTES).alias("memory_bytes"),
        pl.lit(value=True).alias("is_schedulable"),
        pl.lit(value=True).alias("is_present"),
    )
    return conform("node_history", frame)


def _devices(rows: pl.DataFrame) -> pl.DataFrame:
    frame = (
        rows.select("sn", "model", index=pl.int_ranges(0, pl.col("gpu")))
        .explode("index", empty_as_null=False)
        .select(
            pl.lit(STARTS_AT).alias("observed_at"),
            pl.lit("openb").alias("cluster"),
            pl.col("sn").alias("node"),
            pl.format("{}/{}", "sn", "index").alias("device_uuid"),
            pl.format("{}/{}", "sn", "index").hash(seed=0).alias("device_key"),
            pl.lit(None).alias("instance_id"),
            "model",
            pl.col("index").alias("device_index"),
            pl.lit(None).alias("memory_total_bytes"),
            pl.lit(None).alias("mig_profile"),
            pl.lit(None).alias("sm_share_ratio"),
            pl.lit(None).alias("memory_share_ratio"),
            pl.lit(value=True).alias("is_present"),
        )
    )
    return conform("device_history", frame)


def _workloads(rows: pl.DataFrame) -> pl.DataFrame:
    named = {"gpu_spec": "gpu_models", "qos": "qos_class"}
    untold = ("kind", "namespace", "tenant_id", "owner", "workload_class", "queue",
              "priority_class", "priority", "memory_bytes")  # fmt: skip
    known = rows.with_columns(
        pl.lit(None).alias(name) for name in named if name not in rows.columns
    )
    frame = known.rename(named).select(
        pl.lit("openb").alias("cluster"),
        pl.col("name").alias("workload_uid"),
        "name",
        "qos_class",
        "cpu_milli",
        pl.col("num_gpu").alias("gpu_count"),
        "gpu_milli",
        "gpu_models",
        *[pl.lit(None).alias(name) for name in untold],
    )
    return conform("workload_current", frame)


def _transitions(rows: pl.DataFrame) -> pl.DataFrame:
    columns = {
        "created": "creation_time",
        "scheduled": "scheduled_time",
        "finished": "deletion_time",
    }
    if not set(columns.values()) <= set(rows.columns):
        return empty("transition_history").vstack(_one_transition())
    parts = [
        rows.filter(pl.col(column).is_not_null()).select(
            occurred_at=pl.lit(STARTS_AT) + pl.duration(seconds=pl.col(column)),
            cluster=pl.lit("openb"),
            workload_uid="name",
            attempt=pl.lit(1),
            transition=pl.lit(transition),
            reason=pl.lit(None),
        )
        for transition, column in columns.items()
    ]
    return conform("transition_history", pl.concat(parts))


def _one_transition() -> pl.DataFrame:
    row = {
        "occurred_at": [STARTS_AT],
        "cluster": ["openb"],
        "workload_uid": ["none"],
        "attempt": [1],
        "transition": ["created"],
        "reason": [None],
    }
    return conform("transition_history", pl.DataFrame(row))
