"""Composes the steps of this package: from one target's exposition to rows of the tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from collector.normalize.dictionary import MEASURES
from collector.normalize.presence import SOURCE, changes
from collector.normalize.rows import DeviceRow, Gathering
from collector.normalize.state import NormalizeState
from collector.sources.exposition import Exposition
from collector.tables import DEVICE, DEVICE_EVENT, DEVICE_SAMPLE, SCRAPE
from steward.units import MICROS_PER_SECOND, MILLIS_PER_SECOND, SECONDS_PER_HOUR

_NO_DEVICES: Final = DEVICE.empty_table()
_NO_EVENTS: Final = DEVICE_EVENT.empty_table()
_AHEAD_LIMIT_MS: Final = SECONDS_PER_HOUR * MILLIS_PER_SECOND
"""How far a line's own timestamp may be ahead of the scrape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizedScrape:
    """One scrape as rows, with what was counted on the way."""

    cluster: str
    target: str
    scraped_at: datetime
    samples: pa.Table
    """``device_sample``: one row per device and MIG instance, by device and instance."""
    devices: pa.Table
    """``device``: only devices that are new, changed, gone or back."""
    events: pa.Table
    """``device_event``: only what had not been shown before."""
    sample_count: int
    """Samples that were read, whatever became of them."""
    dropped_line_count: int
    duplicate_count: int
    """Values left out since their device already had one for that measure."""
    unknown_metric_count: int
    """Distinct names that the dictionary lacks."""
    unidentified_count: int
    """Label sets of known metrics that name no GPU."""
    conflict_count: int
    """Duplicates that disagreed with the value that was kept."""
    clamped_count: int
    """Ratios slightly above 1, taken as 1."""

    def scrape_table(self, *, duration_s: float, body_bytes: int) -> pa.Table:
        """Return the ``scrape`` row of this successful scrape."""
        row = {
            "scraped_at": self.scraped_at,
            "cluster": self.cluster,
            "target": self.target,
            "is_ok": True,
            "reason": None,
            "duration_s": duration_s,
            "body_bytes": body_bytes,
            "sample_count": self.sample_count,
            "dropped_line_count": self.dropped_line_count,
            "duplicate_count": self.duplicate_count,
            "unknown_metric_count": self.unknown_metric_count,
        }
        return pa.Table.from_pylist([row], schema=SCRAPE)

    def batches(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield each table's name with its rows, tables without rows left out."""
        for name, table in (
            ("device", self.devices),
            ("device_event", self.events),
            ("device_sample", self.samples),
        ):
            if table.num_rows:
                yield name, table


def normalize(
    exposition: Exposition,
    *,
    target: str,
    cluster: str,
    scraped_at: datetime,
    state: NormalizeState,
) -> NormalizedScrape:
    """Return one target's exposition as rows, in base units and without sentinels.

    Args:
        exposition: what the target said.
        target: its address or file; names the node where the labels do not.
        cluster: stored with every row.
        scraped_at: aware; the sampling time of all samples without a timestamp of their own.
        state: this target's memory, changed in place: use one per target, scrape after scrape.
    """
    gathering = Gathering(state, target=target)
    gathering.take(exposition.samples)
    state.keep_only(gathering.seen)
    changed = changes(gathering, state=state, at=scraped_at)
    same = {"cluster": cluster, "source": SOURCE}
    return NormalizedScrape(
        cluster=cluster,
        target=target,
        scraped_at=scraped_at,
        samples=_sample_table(list(gathering.rows.values()), cluster=cluster, at=scraped_at),
        devices=_table(changed.devices, same=same, schema=DEVICE) or _NO_DEVICES,
        events=_table(changed.events, same=same, schema=DEVICE_EVENT) or _NO_EVENTS,
        sample_count=len(exposition.samples),
        dropped_line_count=exposition.dropped_line_count,
        duplicate_count=gathering.duplicate_count,
        unknown_metric_count=len(gathering.unknown_names),
        unidentified_count=gathering.unidentified_count,
        conflict_count=gathering.conflict_count,
        clamped_count=gathering.clamped_count,
    )


def _table(
    rows: Sequence[Mapping[str, Any]], *, same: Mapping[str, str], schema: pa.Schema
) -> pa.Table | None:
    if not rows:
        return None
    return pa.Table.from_pylist([{**row, **same} for row in rows], schema=schema)


def _sample_table(rows: list[DeviceRow], *, cluster: str, at: datetime) -> pa.Table:
    """Return the gathered rows as ``device_sample``, one sampling time per board."""
    rows.sort(key=lambda row: (row.device_uuid, -1 if row.instance_id is None else row.instance_id))
    count, holders = len(rows), [row.holder for row in rows]
    columns: dict[str, Sequence[Any]] = {
        "sampled_at": _sampling_times(rows, at=at),
        "cluster": [cluster] * count,
        "node": [row.node for row in rows],
        "device_uuid": [row.device_uuid for row in rows],
        "instance_id": [row.instance_id for row in rows],
        "source": [SOURCE] * count,
        "namespace": [None if holder is None else holder.namespace for holder in holders],
        "pod": [None if holder is None else holder.pod for holder in holders],
        "container": [None if holder is None else holder.container for holder in holders],
        "absences": [row.absence_text() if row.absences else None for row in rows],
    }
    measured = zip(*(row.cells for row in rows), strict=True) if rows else ([] for _ in MEASURES)
    columns.update(zip(MEASURES, measured, strict=True))
    arrays = [_array(columns[field.name], field.type) for field in DEVICE_SAMPLE]
    return pa.Table.from_arrays(arrays, schema=DEVICE_SAMPLE)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return the values as an Arrow column; many columns of a scrape are wholly null."""
    if values.count(None) == len(values):
        return _nulls(len(values), kind)
    return pa.array(values, type=kind)


@lru_cache(maxsize=256)
def _nulls(count: int, kind: pa.DataType) -> pa.Array[Any]:
    return pa.array([None] * count, type=kind)


def _sampling_times(rows: list[DeviceRow], *, at: datetime) -> list[int]:
    """Return microseconds since 1970 by row: the board's newest own timestamp, or the scrape's.

    An own timestamp more than an hour ahead of the scrape is a broken clock's: the scrape's counts.
    """
    newest: dict[str, int] = {}
    latest_ms = at.timestamp() * MILLIS_PER_SECOND + _AHEAD_LIMIT_MS
    for row in rows:
        if row.sampled_ms is not None and row.sampled_ms <= latest_ms:
            newest[row.device_uuid] = max(row.sampled_ms, newest.get(row.device_uuid, 0))
    scraped_us = round(at.timestamp() * MICROS_PER_SECOND)
    return [
        newest[row.device_uuid] * 1_000 if row.device_uuid in newest else scraped_us for row in rows
    ]
