"""Composes the steps of this package: from one target's exposition to rows of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from collector.holdings import Holding
from collector.normalize.device_row import DeviceRow
from collector.normalize.identity import Place
from collector.normalize.metric import MEASURES
from collector.normalize.plan_trace import Claim, Trace
from collector.normalize.presence import SOURCE, changes
from collector.normalize.rows import Gathering
from collector.normalize.state import NormalizeState
from collector.normalize.told import Told
from collector.scrape_outcome import ScrapeOutcome
from collector.sources.exposition import Exposition
from collector.tables import DEVICE, DEVICE_EVENT, DEVICE_PROCESS, DEVICE_SAMPLE, SCRAPE
from steward.units import MICROS_PER_SECOND, MILLIS_PER_SECOND, SECONDS_PER_HOUR

_NO_DEVICES: Final = DEVICE.empty_table()
_NO_EVENTS: Final = DEVICE_EVENT.empty_table()
_NO_PROCESSES: Final = DEVICE_PROCESS.empty_table()
_KINDS: Final = tuple(field.type for field in DEVICE_SAMPLE)
_AHEAD_LIMIT_MS: Final = SECONDS_PER_HOUR * MILLIS_PER_SECOND
"""How far a line's own timestamp may be ahead of the scrape."""
_EARLIEST_MS: Final = 946_684_800_000
"""The year 2000: a clock before it was never set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizedScrape:
    """One scrape as rows, with what was counted on the way."""

    cluster: str
    target: str
    scraped_at: datetime
    rows: Sequence[DeviceRow]
    """One row per device and MIG instance, by device and instance."""
    devices: pa.Table
    """``device``: only devices that are new, changed, gone or back."""
    events: pa.Table
    """``device_event``: only what had not been shown before."""
    processes: pa.Table
    """``device_process``: one row per device and process that was told."""
    holdings: tuple[Holding, ...]
    """Who holds what according to the labels, each once."""
    kubelet_speaks: bool | None
    """Whether the node agent hears from its kubelet who holds what; None: it is no agent."""
    sample_count: int
    """Samples that were read, whatever became of them."""
    dropped_line_count: int
    duplicate_count: int
    """Values left out since their device already had one for that measure."""
    unknown_metric_count: int
    """Distinct names that the dictionary lacks."""
    unknown_names: tuple[str, ...]
    """These names, ascending."""
    unidentified_count: int
    """Label sets of known metrics that name no GPU."""
    conflict_count: int
    """Duplicates that disagreed with the value that was kept."""
    clamped_count: int
    """Ratios slightly above 1, taken as 1."""
    foreign_devices: tuple[str, ...]
    """Devices that belong to another target; their rows are left out, ascending."""

    @property
    def samples(self) -> pa.Table:
        """Return the rows as ``device_sample``, built anew each time."""
        return _sample_table(self.rows, cluster=self.cluster, at=self.scraped_at)

    def outcome(self, *, duration_s: float, body_bytes: int) -> ScrapeOutcome:
        """Return how this target was read, which took so long for so many bytes."""
        return ScrapeOutcome(
            scraped_at=self.scraped_at,
            cluster=self.cluster,
            target=self.target,
            reason=None,
            duration_s=duration_s,
            body_bytes=body_bytes,
            sample_count=self.sample_count,
            dropped_line_count=self.dropped_line_count,
            duplicate_count=self.duplicate_count,
            unknown_metric_count=self.unknown_metric_count,
        )

    def scrape_table(self, *, duration_s: float, body_bytes: int) -> pa.Table:
        """Return the same as a table ``scrape``."""
        outcome = self.outcome(duration_s=duration_s, body_bytes=body_bytes)
        return pa.Table.from_pylist([outcome.row()], schema=SCRAPE)

    def batches(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield each table's name with its rows, tables without rows left out."""
        yield from self.other_batches()
        if self.rows:
            yield "device_sample", self.samples

    def other_batches(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the same without the samples."""
        for name, table in (
            ("device", self.devices),
            ("device_event", self.events),
            ("device_process", self.processes),
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
    trace: Trace | None = None,
) -> NormalizedScrape:
    """Return one target's exposition as rows, in base units and without sentinels.

    Args:
        exposition: what the target said.
        target: its address or file; names the node where the labels do not.
        cluster: stored with every row.
        scraped_at: aware; the sampling time of all samples without a timestamp of their own.
        state: this target's memory, changed in place: use one per target, scrape after scrape.
        trace: takes notes of what became of each number, for a plan.
    """
    place = Place(target=target, node=state.node, own_pod=state.own_pod)
    gathering = Gathering(state, place=place, trace=trace)
    gathering.take(exposition.samples)
    gathering.counters.fill(gathering.rows, state.counters, at=scraped_at)
    state.keep_only(gathering.seen)
    foreign = _left_out(gathering, state=state, target=target, at=scraped_at)
    changed = changes(gathering, state=state, at=scraped_at)
    rows = _in_order(state.fresh(gathering.rows.values()))
    if trace is not None:
        _end(trace, gathering, rows=rows, foreign=foreign)
    same = {"cluster": cluster, "source": SOURCE}
    return NormalizedScrape(
        cluster=cluster,
        target=target,
        scraped_at=scraped_at,
        rows=rows,
        devices=_table(changed.devices, same=same, schema=DEVICE) or _NO_DEVICES,
        events=_table(changed.events, same=same, schema=DEVICE_EVENT) or _NO_EVENTS,
        processes=process_table(gathering.told, cluster=cluster, at=scraped_at),
        holdings=gathering.holdings(),
        kubelet_speaks=gathering.kubelet_speaks,
        sample_count=len(exposition.samples),
        dropped_line_count=exposition.dropped_line_count,
        duplicate_count=gathering.duplicate_count,
        unknown_metric_count=len(gathering.unknown_names),
        unknown_names=tuple(sorted(gathering.unknown_names)),
        unidentified_count=gathering.unidentified_count,
        conflict_count=gathering.conflict_count,
        clamped_count=gathering.clamped_count,
        foreign_devices=tuple(sorted(foreign)),
    )


def _end(
    trace: Trace, gathering: Gathering, *, rows: Sequence[DeviceRow], foreign: frozenset[str]
) -> None:
    trace.end(
        gathering.unknown_names,
        rows=rows,
        claim=_claim(gathering, foreign=foreign),
        is_steady=not gathering.counters.counts,
    )


def _left_out(
    gathering: Gathering, *, state: NormalizeState, target: str, at: datetime
) -> frozenset[str]:
    """Leave out devices that belong to another target and return them; claim the others."""
    if state.claims is None:
        return frozenset()
    shown = {identity.device_uuid for identity in gathering.seen.values() if identity is not None}
    precedence = gathering.precedence
    foreign = state.claims.foreign(shown, target=target, precedence=precedence, at=at)
    if foreign:
        gathering.leave_out(foreign)
        state.forget_devices(foreign)
    return foreign


def _claim(gathering: Gathering, *, foreign: frozenset[str]) -> Claim:
    devices = (each.device_uuid for each in gathering.seen.values() if each is not None)
    return Claim(devices=foreign.union(devices), precedence=gathering.precedence, foreign=foreign)


def process_table(told: Told, *, cluster: str, at: datetime) -> pa.Table:
    """Return the processes that were told as ``device_process``."""
    rows = [
        {
            "sampled_at": at,
            "node": told.nodes[uuid],
            "device_uuid": uuid,
            "instance_id": instance_id,
            "pid": pid,
            "process": found.process,
            "pod_uid": found.pod_uid,
            "container_id": found.container_id,
            "memory_used_bytes": found.memory_used_bytes,
            "sm_ratio": found.sm_ratio,
        }
        for ((uuid, instance_id), pid), found in told.processes.items()
    ]
    same = {"cluster": cluster, "source": SOURCE}
    return _table(rows, same=same, schema=DEVICE_PROCESS) or _NO_PROCESSES


def _table(
    rows: Sequence[Mapping[str, Any]], *, same: Mapping[str, str], schema: pa.Schema
) -> pa.Table | None:
    if not rows:
        return None
    return pa.Table.from_pylist([{**row, **same} for row in rows], schema=schema)


def _in_order(rows: Iterable[DeviceRow]) -> list[DeviceRow]:
    """Return the rows by device and instance, a board before its instances."""
    return sorted(
        rows, key=lambda row: (row.device_uuid, -1 if row.instance_id is None else row.instance_id)
    )


def _sample_table(rows: Sequence[DeviceRow], *, cluster: str, at: datetime) -> pa.Table:
    """Return the gathered rows as ``device_sample``, one sampling time per board."""
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
        "absences": [row.absence_text() if row.absences or row.doubts else None for row in rows],
    }
    measured = zip(*(row.cells for row in rows), strict=True) if rows else ([] for _ in MEASURES)
    columns.update(zip(MEASURES, measured, strict=True))
    arrays = [
        nulls if (values := columns[field.name]).count(None) == count else pa.array(values, kind)
        for field, kind, nulls in zip(DEVICE_SAMPLE, _KINDS, _null_columns(count), strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=DEVICE_SAMPLE)


@lru_cache(maxsize=256)
def _null_columns(count: int) -> tuple[pa.Array[Any], ...]:
    """Return each column as it is where nothing was measured, which many of a scrape are."""
    return tuple(pa.nulls(count, kind) for kind in _KINDS)


def _sampling_times(rows: Sequence[DeviceRow], *, at: datetime) -> list[int]:
    """Return microseconds since 1970 by row: the board's newest own timestamp, or the scrape's.

    An own timestamp more than an hour ahead of the scrape, or before the year 2000, is a broken
    clock's: the scrape's counts.
    """
    newest: dict[str, int] = {}
    latest_ms = at.timestamp() * MILLIS_PER_SECOND + _AHEAD_LIMIT_MS
    for row in rows:
        if row.sampled_ms is not None and _EARLIEST_MS <= row.sampled_ms <= latest_ms:
            newest[row.device_uuid] = max(row.sampled_ms, newest.get(row.device_uuid, 0))
    scraped_us = round(at.timestamp() * MICROS_PER_SECOND)
    return [
        newest[row.device_uuid] * 1_000 if row.device_uuid in newest else scraped_us for row in rows
    ]
