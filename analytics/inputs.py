"""Declared shapes of the stored rows that measures read, and the one border where they are checked.

Each schema is named after the query that fills it. Nothing here measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl
from polars import selectors as cs

from steward.errors import InputError

INSTANT: Final = pl.Datetime("us", "UTC")
"""Every instant is UTC in microseconds."""


def _rows(**columns: pl.DataType | type[pl.DataType]) -> pl.Schema:
    return pl.Schema(columns)


SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "node_history": _rows(
            observed_at=INSTANT,
            cluster=pl.String,
            node=pl.String,
            gpu_model=pl.String,
            gpu_count=pl.Int64,
            cpu_milli=pl.Int64,
            memory_bytes=pl.Int64,
            is_schedulable=pl.Boolean,
        ),
        "device_history": _rows(
            observed_at=INSTANT,
            cluster=pl.String,
            node=pl.String,
            device_uuid=pl.String,
            device_key=pl.UInt64,
            instance_id=pl.Int64,
            model=pl.String,
            device_index=pl.Int64,
            memory_total_bytes=pl.Int64,
            mig_profile=pl.String,
            sm_share_ratio=pl.Float64,
            memory_share_ratio=pl.Float64,
            is_present=pl.Boolean,
        ),
        "device_event_history": _rows(
            occurred_at=INSTANT,
            node=pl.String,
            device_uuid=pl.String,
            kind=pl.String,
            code=pl.Int64,
        ),
        "utilization_sample": _rows(
            sampled_at=INSTANT,
            device_key=pl.UInt64,
            instance_id=pl.Int32,
            busy_ratio=pl.Float32,
            graphics_active_ratio=pl.Float32,
            sm_active_ratio=pl.Float32,
            tensor_active_ratio=pl.Float32,
            dram_active_ratio=pl.Float32,
            fp64_active_ratio=pl.Float32,
            fp32_active_ratio=pl.Float32,
            fp16_active_ratio=pl.Float32,
            memory_used_bytes=pl.Int64,
        ),
        "latest_device_sample": _rows(
            sampled_at=INSTANT,
            node=pl.String,
            device_uuid=pl.String,
            instance_id=pl.Int64,
            busy_ratio=pl.Float64,
            graphics_active_ratio=pl.Float64,
            sm_active_ratio=pl.Float64,
            tensor_active_ratio=pl.Float64,
            dram_active_ratio=pl.Float64,
            fp64_active_ratio=pl.Float64,
            fp32_active_ratio=pl.Float64,
            fp16_active_ratio=pl.Float64,
            memory_used_bytes=pl.Int64,
            memory_total_bytes=pl.Int64,
            power_w=pl.Float64,
            energy_j=pl.Float64,
            temperature_celsius=pl.Float64,
        ),
        "allocation_history": _rows(
            cluster=pl.String,
            node=pl.String,
            device_uuid=pl.String,
            instance_id=pl.Int64,
            started_at=INSTANT,
            ended_at=INSTANT,
            gpu_share_ratio=pl.Float64,
            sharing_mode=pl.String,
            namespace=pl.String,
            pod=pl.String,
            workload_uid=pl.String,
            tenant_id=pl.String,
            workload_class=pl.String,
            unheld_reason=pl.String,
        ),
        "workload_current": _rows(
            cluster=pl.String,
            workload_uid=pl.String,
            name=pl.String,
            tenant_id=pl.String,
            workload_class=pl.String,
            qos_class=pl.String,
            cpu_milli=pl.Int64,
            gpu_count=pl.Int64,
            gpu_milli=pl.Int64,
            gpu_models=pl.String,
        ),
        "transition_history": _rows(
            occurred_at=INSTANT,
            workload_uid=pl.String,
            attempt=pl.Int64,
            transition=pl.String,
            reason=pl.String,
        ),
        "scrape_health": _rows(
            target=pl.String,
            scrape_count=pl.Int64,
            failed_count=pl.Int64,
            sample_count=pl.Int64,
            dropped_line_count=pl.Int64,
            duplicate_count=pl.Int64,
            unknown_metric_count=pl.Int64,
            last_scraped_at=INSTANT,
        ),
    }
)
"""Columns and dtypes by query name; a query may return them in any integer or float width."""


def conform(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the declared columns of a query's rows, in UTC, with NaN turned into null.

    Raises:
        InputError: a declared column is missing.
    """
    schema = SCHEMAS[name]
    missing = sorted(set(schema) - set(frame.columns))
    if missing:
        raise InputError(
            f"rows of {name} lack the column(s) {', '.join(missing)}",
            hint="select every column that the query declares",
        )
    zoned = frame.select(*schema).with_columns(
        cs.datetime(time_zone="*").dt.convert_time_zone("UTC")
    )
    typed = zoned.cast(schema)
    spoiled = typed.select(cs.float().is_nan().any())
    nan_columns = [name for name in spoiled.columns if spoiled[name].item()]
    return typed.with_columns(pl.col(nan_columns).fill_nan(None)) if nan_columns else typed


def empty(name: str) -> pl.DataFrame:
    """Return no rows of a query, with its declared columns."""
    return pl.DataFrame(schema=SCHEMAS[name])
