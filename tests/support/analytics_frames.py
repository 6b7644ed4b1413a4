"""Builders of stored rows with harmless defaults: a case shows only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

import polars as pl

from analytics.inputs import SCHEMAS
from analytics.inputs import empty as new_empty
from steward.period import Period

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ONE_HOUR = Period(NOON, NOON + HOUR)

Row = Mapping[str, object]

_DEFAULTS: Mapping[str, Row] = {
    "node_history": {
        "observed_at": NOON - HOUR,
        "cluster": "c",
        "node": "n1",
        "gpu_model": "H100",
        "gpu_count": 8,
        "cpu_milli": 96_000,
        "is_schedulable": True,
        "is_present": True,
    },
    "device_history": {
        "observed_at": NOON - HOUR,
        "cluster": "c",
        "node": "n1",
        "device_uuid": "GPU-a",
        "model": "H100",
        "memory_total_bytes": 80_000,
        "is_present": True,
    },
    "device_event_history": {"node": "n1", "device_uuid": "GPU-a", "kind": "xid"},
    "utilization_sample": {"device_uuid": "GPU-a"},
    "latest_device_sample": {"sampled_at": NOON, "node": "n1", "device_uuid": "GPU-a"},
    "allocation_history": {
        "cluster": "c",
        "node": "n1",
        "device_uuid": "GPU-a",
        "started_at": NOON,
        "gpu_share_ratio": 1.0,
        "sharing_mode": "exclusive",
        "namespace": "team-a",
        "pod": "pod-1",
        "workload_uid": "w1",
        "tenant_id": "team-a",
        "workload_class": "training",
    },
    "first_allocation": {"cluster": "c", "started_at": NOON - HOUR},
    "quota_history": {
        "observed_at": NOON - HOUR,
        "cluster": "c",
        "queue": "team-a",
        "tenant_id": "team-a",
        "cohort": "all",
        "gpu_model": "H100",
        "guaranteed_gpu_count": 1.0,
        "used_gpu_count": 0.0,
        "borrowed_gpu_count": 0.0,
    },
    "workload_current": {
        "cluster": "c",
        "workload_uid": "w1",
        "kind": "Job",
        "namespace": "team-a",
        "name": "w1",
        "tenant_id": "team-a",
        "workload_class": "training",
        "qos_class": "LS",
        "cpu_milli": 8_000,
        "gpu_count": 1,
        "gpu_milli": 1_000,
    },
    "transition_history": {
        "cluster": "c",
        "workload_uid": "w1",
        "attempt": 1,
        "transition": "created",
    },
    "scrape_health": {
        "target": "n1:9400",
        "scrape_count": 10,
        "failed_count": 0,
        "sample_count": 100,
        "dropped_line_count": 0,
        "duplicate_count": 0,
        "unknown_metric_count": 0,
        "last_scraped_at": NOON,
    },
}


def key_of(device_uuid: str) -> int:
    """Return a stable device key."""
    return int.from_bytes(device_uuid.encode()[-8:].rjust(8, b"\0"), "big")


@cache
def _empty(name: str) -> pl.DataFrame:
    return new_empty(name)


def empty(name: str) -> pl.DataFrame:
    """Return no rows of a query: a copy of one frame, since laws need dozens an example."""
    return _empty(name).clone()


def framed(name: str, given: Sequence[Row]) -> pl.DataFrame:
    """Return rows of a query as they are given; columns that a row does not name are null."""
    return pl.from_dicts(given, schema=SCHEMAS[name], strict=False) if given else empty(name)


def rows(name: str, *given: Row) -> pl.DataFrame:
    """Return rows of a query: the defaults, with what each row says instead."""
    if not given:
        return empty(name)
    schema = SCHEMAS[name]
    filled = [{**_DEFAULTS[name], **row} for row in given]
    for row in filled:
        if "device_key" in schema:
            row.setdefault("device_key", key_of(str(row["device_uuid"])))
    return framed(name, filled)


def readings(
    values: Sequence[Row | None], *, every: timedelta = MINUTE, **same: object
) -> pl.DataFrame:
    """Return one reading per step from noon on; None leaves a step out."""
    return rows(
        "utilization_sample",
        *[
            {"sampled_at": NOON + step * every, **same, **value}
            for step, value in enumerate(values)
            if value is not None
        ],
    )


def frames(**given: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Return frames for every query: those given, else no rows."""
    return {name: given.get(name, empty(name)) for name in SCHEMAS}
