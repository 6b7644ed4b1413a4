"""Rows of the ledger of device-time: what reports read of usage."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.schemas.columns import INSTANT, rows

PLACE: Final = ("cluster", "node", "model")
HOLDER: Final = (
    "is_held",
    "tenant_id",
    "workload_class",
    "workload_uid",
    "queue",
    "priority_class",
    "owner",
)
"""Who held the device-time. Reserved-unused time names tenant and queue of the guarantee."""
KEYS: Final = (*PLACE, *HOLDER, "reason", "tier")
"""What tells rows of one span apart. ``reason``: why time is down (``lost``, ``cordoned``),
stranded (``mig_geometry``, ``no_shape_fits``) or of unknown holder (``no_holder_recorded``,
``share_unknown``, ``unobserved``, ``busy_without_holder``); null elsewhere. ``tier``: how use is
known, 1 to 4 (see ``analytics.tiers``); null for time without a reading that says anything."""
LEAVES: Final = (
    "used_measured_ticks",
    "used_estimated_ticks",
    "ineffective_ticks",
    "idle_ticks",
    "unknown_ticks",
    "down_ticks",
    "stranded_ticks",
    "reserved_unused_ticks",
    "free_idle_ticks",
)
"""Every tick of a device is in exactly one of these; they add up to ``wall_ticks``.

used = used_measured (tier 1) + used_estimated (tiers 2, 3); allocated-idle = ineffective (active,
times 1 - effective) + idle (at rest); unknown-use = unknown; then the four unallocated leaves."""
MEANS: Final = ("apparent", "effective", "gap", "sm_active", "dram_active")
"""Each has a time integral ``<mean>_s`` and the seconds it was known, ``<mean>_known_s``."""
OVERLAYS: Final = (
    "observed_s",
    *[column for mean in MEANS for column in (f"{mean}_s", f"{mean}_known_s")],
    "busy_source_s",
    "graphics_source_s",
    "stuck_s",
    "idle_memory_byte_s",
)
"""GPU-seconds (a whole board counts 1), f64: sums that stand beside the leaves. ``stuck_s``: looks
busy while nothing works. ``idle_memory_byte_s``: memory in use while at rest, bytes x s."""
PEAK: Final = "memory_peak_bytes"
"""The largest memory in use that was read of one device."""
ASKED: Final = (*KEYS, *OVERLAYS, PEAK)
"""What a report may do without: it then reads the ledger summed over these, without the column."""

_KEY_TYPES: Final = dict.fromkeys(KEYS, pl.String) | {"is_held": pl.Boolean, "tier": pl.Int8}
_SUMS: Final = {
    "wall_ticks": pl.Int64,
    **dict.fromkeys(LEAVES, pl.Int64),
    **dict.fromkeys(OVERLAYS, pl.Float64),
    PEAK: pl.Int64,
}

SCHEMAS: Final[Mapping[str, pl.Schema]] = MappingProxyType(
    {
        "ledger": rows(started_at=INSTANT, ended_at=INSTANT, **_KEY_TYPES, **_SUMS),
        "rest": rows(
            cluster=pl.String,
            node=pl.String,
            device_uuid=pl.String,
            instance_id=pl.Int64,
            tenant_id=pl.String,
            workload_class=pl.String,
            workload_uid=pl.String,
            namespace=pl.String,
            pod=pl.String,
            is_idle=pl.Boolean,
            is_stuck=pl.Boolean,
            started_at=INSTANT,
            ended_at=INSTANT,
            gpu_share_ratio=pl.Float64,
            memory_first_bytes=pl.Int64,
            memory_last_bytes=pl.Int64,
        ),
        "ledger_caveat": rows(
            starts_at=INSTANT,
            stray_device_count=pl.Int64,
            indistinct_device_count=pl.Int64,
            unplaced_allocation_count=pl.Int64,
            unplaced_gpu_hours=pl.Float64,
            has_holders=pl.Boolean,
        ),
    }
)
"""``ledger``: one row per span and combination of those ``KEYS`` that the report asks for (sums may
fill several rows); spans are disjoint parts of the period.
``rest``: unbroken rest of held devices, cut at hour borders. ``ledger_caveat``: what the ledger
could not place, one row per hour built."""
