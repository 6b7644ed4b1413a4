"""The measures that several reports share, made once from the frames of their queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from analytics import identity
from analytics.inputs import conform
from analytics.segments import Inputs

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
