"""Evidence for many workloads at one instant, from what was stored before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import polars as pl

from analytics.evidence import cells, clock, peaks, placed
from analytics.evidence.holds import all_holds
from analytics.evidence.signs import with_signs
from analytics.schemas.columns import INSTANT
from steward.units import MICROS_PER_SECOND, SECONDS_PER_MINUTE

CELL_S: Final = SECONDS_PER_MINUTE
"""Length of a cell where nothing else is said: the finest that ``evidence_sample`` is asked in."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
INPUTS: Final = ("evidence_sample", "evidence_process", "allocation_history", "device_history")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What was stored, put in order once, for evidence at any instant in its period."""

    ordered: pl.DataFrame
    """Rows of ``cells.ordered``."""
    processes: pl.DataFrame
    allocations: pl.DataFrame
    devices: pl.DataFrame
    cell_s: int

    def newest_at(self, at: datetime) -> datetime | None:
        """Return when anything was last read before an instant; None: nothing was."""
        newest_us = self.ordered["at_us"].filter(self.ordered["at_us"] < _micros(at)).max()
        return None if newest_us is None else _EPOCH + timedelta(microseconds=int(str(newest_us)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Evidence, still as frames."""

    devices: pl.DataFrame
    """One row per workload and device held now, ascending: see ``peaks.device_evidence``;
    newest_at instead of newest_us."""
    workloads: pl.DataFrame
    """One row per workload that holds something, ascending: see ``clock.clocks``; idle_since_at
    instead of idle_since_us, and scrape_interval_s f64 | null, the longest of its devices."""


def readings(frames: Mapping[str, pl.DataFrame], *, cell_s: int = CELL_S) -> Readings:
    """Return stored rows put in order.

    Args:
        frames: rows of ``INPUTS``.
        cell_s: in which ``evidence_sample`` and ``evidence_process`` were asked.
    """
    return Readings(
        ordered=cells.ordered(frames["evidence_sample"]),
        processes=frames["evidence_process"],
        allocations=frames["allocation_history"],
        devices=frames["device_history"],
        cell_s=cell_s,
    )


def evidence(stored: Readings, asks: pl.DataFrame, *, until_at: datetime) -> Found:
    """Return what was observed of the workloads that are asked for.

    Rows of later than ``until_at`` are not looked at, so that the same stored rows give the same
    evidence at the time and long after, if ``until_at`` is the end of a cell.

    Args:
        stored: what was stored, for at least the longest window before ``until_at``; how long a
            workload was idle is told up to the first row only.
        asks: rows of ``evidence_ask``.
        until_at: the end of every window.
    """
    until_us = _micros(until_at)
    known = stored.ordered.filter(pl.col("at_us") < until_us)
    series = cells.series_of(known)
    seen = cells.observed(known, series, stored.devices)
    holds = all_holds(stored.allocations, stored.devices, asks, until_us=until_us)
    rows = with_signs(
        pl.concat(
            [
                placed.of_one_holder(seen, series, holds),
                placed.of_shared(
                    seen,
                    holds,
                    processes=stored.processes,
                    allocations=stored.allocations,
                    cell_us=stored.cell_s * MICROS_PER_SECOND,
                ),
            ],
            how="diagonal",
        )
    )
    devices = peaks.device_evidence(holds, rows, until_us=until_us)
    return Found(
        devices=devices.with_columns(newest_at=_instant("newest_us")).drop("newest_us"),
        workloads=_with_interval(clock.clocks(holds, rows, devices), devices),
    )


def _micros(at: datetime) -> int:
    return int((at - _EPOCH) // timedelta(microseconds=1))


def _instant(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64).cast(INSTANT)


def _with_interval(clocks: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    usual = devices.group_by("cluster", "workload_uid").agg(
        scrape_interval_s=pl.col("usual_us").max() / MICROS_PER_SECOND
    )
    return (
        clocks.join(usual, on=["cluster", "workload_uid"], how="left", maintain_order="left")
        .with_columns(idle_since_at=_instant("idle_since_us"))
        .drop("idle_since_us")
    )
