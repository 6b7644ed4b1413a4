"""Building energy: what the counters of a day told is summed once its ledger is built, and stored.

A build is named as that of the day's ledger: readings that come late change the name, and the day
is built again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import polars as pl

from analytics.cost.energy_use import daily_energy
from analytics.inputs import conform
from analytics.schemas.columns import INSTANT
from dashboard.reports.arrow import frame
from dashboard.reports.hours import DAY, TICK, floor_day, is_day
from dashboard.reports.ledger_days import day_build_id, newest_builds
from dashboard.reports.ledger_readings import ends
from dashboard.reports.ledger_store import append
from steward.clock import Clock
from steward.period import Period
from steward.ports import Reader, Writer
from steward.version import __version__


class EnergyWarehouse(Reader, Writer, Protocol):
    """What a build asks and stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    build_id: str
    built_at: datetime


def build_energy(warehouse: EnergyWarehouse, window: Period, *, clock: Clock) -> int:
    """Build the energy of the days whose ledger is built by hour, where it is not built of these.

    Args:
        warehouse: where counters are read and energy is stored.
        window: only UTC days that begin in it, or in whose midst it begins.
        clock: the time of building.

    Returns:
        how many days were built

    Raises:
        WarehouseError: the warehouse cannot serve; what is stored is whole and may be gone on with.
    """
    days = Period(floor_day(window.from_at), window.until_at)
    hours = newest_builds(warehouse, days, "hour")
    known = _known(warehouse, days)
    count = 0
    for day_at in filter(is_day, hours):
        build_id = day_build_id(day_at, hours)
        earlier = known.get(day_at)
        if build_id is None or (earlier is not None and earlier.build_id == build_id):
            continue
        now = clock.now()
        built_at = now if earlier is None else max(now, earlier.built_at + TICK)
        _build_day(warehouse, day_at, build_id=build_id, built_at=built_at)
        count += 1
    return count


def _known(reader: Reader, days: Period) -> Mapping[datetime, _Built]:
    rows = frame(reader.query("energy_built", ends(days)))
    return {
        row["starts_at"].astimezone(UTC): _Built(build_id=row["build_id"], built_at=row["built_at"])
        for row in rows.iter_rows(named=True)
    }


def _build_day(
    warehouse: EnergyWarehouse, day_at: datetime, *, build_id: str, built_at: datetime
) -> None:
    """Store the energy of one day, and last the row that makes it count."""
    readings = frame(warehouse.query("energy_reading", ends(Period(day_at, day_at + DAY))))
    days, hours = daily_energy(conform("energy_by_hour", readings))
    name = pl.lit(build_id).alias("build_id")
    at = pl.lit(day_at, dtype=INSTANT).alias("day_at")
    told = pl.DataFrame(
        {
            "built_at": pl.Series([built_at], dtype=INSTANT),
            "build_id": [build_id],
            "starts_at": pl.Series([day_at], dtype=INSTANT),
            "code_version": [__version__],
        }
    )
    append(warehouse, "energy_day", days.select(name, at, pl.all()), name=build_id)
    append(warehouse, "energy_hour", hours.select(name, pl.all()), name=build_id)
    append(warehouse, "energy_build", told, name=build_id)
