"""Rows from which verdicts are made: readings in short stretches, processes, pods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "evidence_sample": rows(
            device_key=pl.UInt64,
            instance_id=pl.Int32,
            source=pl.String,
            first_at=INSTANT,
            sampled_at=INSTANT,
            reading_count=pl.Int64,
            profiling_count=pl.Int64,
            busy_count=pl.Int64,
            profiling_ratio=pl.Float64,
            busy_ratio=pl.Float64,
            disagreement_ratio=pl.Float64,
            power_low_w=pl.Float32,
            power_w=pl.Float32,
            power_limit_w=pl.Float32,
            memory_low_bytes=pl.Int64,
            memory_used_bytes=pl.Int64,
            memory_total_bytes=pl.Int64,
            traffic_bytes_per_s=pl.Float32,
            process_count=pl.Int64,
            energy_j=pl.Float64,
            temperature_celsius=pl.Float32,
        ),
        "evidence_process": rows(
            device_key=pl.UInt64,
            instance_id=pl.Int32,
            namespace=pl.String,
            pod=pl.String,
            sampled_at=INSTANT,
            own_busy_ratio=pl.Float64,
        ),
        "evidence_pod": rows(
            observed_at=INSTANT,
            cluster=pl.String,
            workload_uid=pl.String,
            pod_uid=pl.String,
            namespace=pl.String,
            pod=pl.String,
            node=pl.String,
            phase=pl.String,
            created_at=INSTANT,
            started_at=INSTANT,
            over_at=INSTANT,
            gpu_count=pl.Int64,
            gpu_resource=pl.String,
            labels_json=pl.String,
        ),
        "evidence_ask": rows(
            cluster=pl.String,
            workload_uid=pl.String,
            window_s=pl.Float64,
            below_ratio=pl.Float64,
            power_margin_ratio=pl.Float64,
        ),
    }
)
"""``evidence_sample``: the peaks of one source's readings of one device or instance in one short
stretch; ``disagreement_ratio`` is the most by which busy lay above profiling in one reading;
``power_low_w`` and ``memory_low_bytes`` are smallest values. ``evidence_ask``: for which workloads
evidence is wanted, and by which limits of idleness; one row per workload."""
