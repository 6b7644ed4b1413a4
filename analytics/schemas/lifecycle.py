"""Rows of how work waits and why: transitions, conditions, events, pods."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "condition_history": rows(
            occurred_at=INSTANT,
            cluster=pl.String,
            kind=pl.String,
            namespace=pl.String,
            name=pl.String,
            object_uid=pl.String,
            workload_uid=pl.String,
            condition=pl.String,
            status=pl.String,
            reason=pl.String,
            message=pl.String,
        ),
        "scheduling_event": rows(
            occurred_at=INSTANT,
            cluster=pl.String,
            kind=pl.String,
            namespace=pl.String,
            name=pl.String,
            object_uid=pl.String,
            workload_uid=pl.String,
            reason=pl.String,
            message=pl.String,
        ),
        "worker_request": rows(
            cluster=pl.String, workload_uid=pl.String, worker_gpu_count=pl.Int64
        ),
        "interruption_history": rows(
            occurred_at=INSTANT,
            cluster=pl.String,
            workload_uid=pl.String,
            attempt=pl.Int64,
            transition=pl.String,
            reason=pl.String,
            message=pl.String,
        ),
    }
)
"""``condition_history``, ``scheduling_event``: what says that something cannot go on; workload_uid
is null where the object (a queued workload, a gang, a pod never seen) is tied to its workload by
name only. ``worker_request``: whole slots that one pod asks for."""
