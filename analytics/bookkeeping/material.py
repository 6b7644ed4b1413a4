"""The stored rows that a ledger is built from: checked, told apart, without repeats, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics import identity
from analytics.inputs import conform, empty

BOOK_INPUTS: Final = (
    "node_history",
    "device_history",
    "device_event_history",
    "allocation_history",
    "first_allocation",
    "utilization_sample",
    "workload_current",
    "quota_history",
)
"""The queries behind the ledger. ``first_allocation`` may be left empty: then holders count as
recorded all along wherever the given allocations name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Rows of the ``BOOK_INPUTS`` by name; a device id stands for one device only.

    ``samples`` are as stored. ``known_keys``: every device_key of the inventory, also those that
    several devices share.
    """

    nodes: pl.DataFrame
    devices: pl.DataFrame
    events: pl.DataFrame
    allocations: pl.DataFrame
    firsts: pl.DataFrame
    samples: pl.DataFrame
    workloads: pl.DataFrame
    quotas: pl.DataFrame
    known_keys: pl.DataFrame


def material(frames: Mapping[str, pl.DataFrame]) -> Material:
    """Return the frames of ``BOOK_INPUTS`` ready to be counted; a frame not given has no rows.

    Raises:
        InputError: a declared column is missing.
    """
    given = {name: conform(name, frames.get(name, empty(name))) for name in BOOK_INPUTS}
    stored = given["device_history"]
    allocations = given["allocation_history"]
    shared = identity.shared_ids(stored, allocations)
    devices = identity.with_own_keys(identity.named_by_cluster(stored, shared))
    return Material(
        nodes=_last_told(given["node_history"], "cluster", "node", "observed_at"),
        devices=_last_told(devices, "cluster", "device_uuid", "instance_id", "observed_at"),
        events=identity.named_by_node(given["device_event_history"], shared, devices=stored),
        allocations=identity.named_by_cluster(allocations, shared).unique(),
        firsts=given["first_allocation"],
        samples=given["utilization_sample"],
        workloads=_last_told(given["workload_current"], "cluster", "workload_uid"),
        quotas=_last_told(given["quota_history"], "cluster", "queue", "gpu_model", "observed_at"),
        known_keys=stored.select("device_key").unique(),
    )


def _last_told(rows: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return one row per key: of contradicting ones the greatest, so that order does not matter."""
    others = [name for name in rows.columns if name not in keys]
    return rows.sort(*keys, *others).unique(list(keys), keep="last", maintain_order=True)
