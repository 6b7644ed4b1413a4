"""The measures that several reports share, made once from the frames of their queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics import identity
from analytics import ledger as gpu_hours
from analytics.inputs import conform
from analytics.inventory import current_devices
from analytics.observation import observe
from analytics.segments import Inputs, Segments, segments
from analytics.utilization import observed_slices
from steward.period import Period

DEVICE_TIME_INPUTS = (
    "node_history",
    "device_history",
    "device_event_history",
    "allocation_history",
    "utilization_sample",
)
"""The queries behind ``device_time``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """What became of every second of every device.

    ``rows`` are ledger rows with cluster, node and model added; ``weighted`` observations likewise.
    """

    inputs: Inputs
    segments: Segments
    resting: pl.DataFrame
    weighted: pl.DataFrame
    rows: pl.DataFrame
    has_holders: bool
    stray_device_count: int
    """Devices that send readings but are not in the inventory."""
    indistinct_device_count: int
    """Devices whose readings cannot be told from those of a device of another cluster."""


def stored_inputs(frames: Mapping[str, pl.DataFrame]) -> Inputs:
    """Return the conformed frames that decide who had which device when, each device told apart."""
    devices = conform("device_history", frames["device_history"])
    events = conform("device_event_history", frames["device_event_history"])
    allocations = conform("allocation_history", frames["allocation_history"])
    shared = identity.shared_ids(devices, allocations)
    return Inputs(
        nodes=conform("node_history", frames["node_history"]),
        devices=identity.with_own_keys(identity.named_by_cluster(devices, shared)),
        events=identity.named_by_node(events, shared, devices=devices),
        allocations=identity.named_by_cluster(allocations, shared),
    )


def device_time(frames: Mapping[str, pl.DataFrame], period: Period) -> DeviceTime:
    """Return the period's device-time, measured."""
    inputs = stored_inputs(frames)
    samples = conform("utilization_sample", frames["utilization_sample"])
    cut_up = segments(inputs, period)
    seen = observe(samples, cut_up, period)
    homes = current_devices(inputs.devices, inputs.nodes).select(
        "cluster", "node", "device_uuid", "model"
    )
    has_holders = inputs.allocations["unheld_reason"].null_count() > 0
    rows = gpu_hours.ledger(cut_up, seen.by_slice, has_holders=has_holders)
    known = conform("device_history", frames["device_history"])
    stray = samples.select("device_key").unique().join(known, on="device_key", how="anti")
    indistinct = inputs.devices.filter(pl.col("device_key").is_null())
    return DeviceTime(
        inputs=inputs,
        segments=cut_up,
        resting=seen.resting,
        weighted=observed_slices(cut_up, seen.by_slice).join(homes, on="device_uuid", how="left"),
        rows=rows.join(homes, on="device_uuid", how="left", maintain_order="left"),
        has_holders=has_holders,
        stray_device_count=stray.height,
        indistinct_device_count=indistinct["device_uuid"].n_unique(),
    )
