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
from steward.period import Period

DEVICE_TIME_INPUTS = (
    "node_history",
    "device_history",
    "device_event_history",
    "allocation_history",
    "utilization_sample",
)
"""The queries behind ``device_time``."""


USAGE_INPUTS = ("ledger", "rest", "ledger_caveat")
"""The inputs behind ``usage``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The ledger of the period, the rest inside it, and what it could not place."""

    rows: pl.DataFrame
    """Rows of ``ledger``."""
    rest: pl.DataFrame
    """Rows of ``rest``."""
    has_holders: bool
    """Whether anybody is recorded as a holder; if not, no device-time can be called idle."""
    stray_device_count: int
    """Devices that send readings but are not in the inventory, in the worst hour."""
    indistinct_device_count: int
    """Devices whose readings cannot be told from those of a device of another cluster, likewise."""
    unplaced_allocation_count: int
    """Allocations of a GPU or MIG instance that was not in the inventory, in the worst hour."""
    unplaced_gpu_hours: float
    """What those allocations held, over the whole period."""

    @property
    def spoken_for(self) -> pl.DataFrame:
        """Return the rows over which means are taken: held time, or all where nobody holds any.

        Apparent beside effective utilisation must be of the same time.
        """
        return self.rows.filter("is_held") if self.has_holders else self.rows


def usage(frames: Mapping[str, pl.DataFrame]) -> Usage:
    """Return the conformed frames of the ledger."""
    rows, caveats = conform("ledger", frames["ledger"]), frames["ledger_caveat"]
    told = conform("ledger_caveat", caveats).select(
        pl.col("has_holders").any(),
        pl.col("stray_device_count", "indistinct_device_count", "unplaced_allocation_count")
        .max()
        .fill_null(0),
        pl.col("unplaced_gpu_hours").sum(),
    )
    stray, indistinct, unplaced = told.row(0)[1:4]
    return Usage(
        rows=rows,
        rest=conform("rest", frames["rest"]),
        has_holders=bool(told["has_holders"][0]) or bool(rows["is_held"].any()),
        stray_device_count=stray,
        indistinct_device_count=indistinct,
        unplaced_allocation_count=unplaced,
        unplaced_gpu_hours=float(told["unplaced_gpu_hours"][0]),
    )


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
        weighted=_observed_slices(cut_up, seen.by_slice).join(homes, on="device_uuid", how="left"),
        rows=rows.join(homes, on="device_uuid", how="left", maintain_order="left"),
        has_holders=has_holders,
        stray_device_count=stray.height,
        indistinct_device_count=indistinct["device_uuid"].n_unique(),
    )


def _observed_slices(cut_up: Segments, observed: pl.DataFrame) -> pl.DataFrame:
    """Return observations weighted by board share, with the slice they belong to."""
    times = [name for name in observed.columns if name.endswith("_s")]
    slices = cut_up.slices.select(
        "slice_id", "device_uuid", "instance_id", "weight_ratio", "is_lost"
    )
    return (
        observed.join(slices, on="slice_id", maintain_order="left")
        .with_columns(pl.col(name) * pl.col("weight_ratio") for name in times)
        .drop("weight_ratio")
    )
