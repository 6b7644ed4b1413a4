"""Energy of clusters by hour, from the counters of their boards."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from analytics.cost.energy import Draw, Tariff
from analytics.energy import used_energy
from steward.units import MICROS_PER_SECOND

HOUR: Final = timedelta(hours=1)
_BOARD: Final = ("cluster", "node", "device_uuid")


def hourly_energy(readings: pl.DataFrame) -> pl.DataFrame:
    """Return the energy of each cluster and hour.

    Args:
        readings: rows of ``energy_by_hour``.

    Returns:
        one row per cluster and hour in which two readings of a board lie or begin, ascending:
            cluster str, hour_at datetime, used_j i64 (whole joules of what is known),
            known_s f64, told_s f64 (board-seconds that are known, and all between readings)
        Energy between the last reading of an hour and the first of the next is the earlier's.
    """
    both = pl.concat(
        readings.select(*_BOARD, sampled_at=f"{end}_at", energy_j=f"{end}_j")
        for end in ("first", "last")
    ).unique()
    limit = pl.lit(None, dtype=pl.Float64)
    pairs = used_energy(both.with_columns(power_limit_w=limit))
    length_s = (pl.col("until_at") - pl.col("from_at")).dt.total_microseconds() / MICROS_PER_SECOND
    is_known = pl.col("used_j").is_not_null()
    return (
        pairs.with_columns(hour_at=pl.col("from_at").dt.truncate("1h"), length_s=length_s)
        .group_by("cluster", "hour_at")
        .agg(
            used_j=pl.col("used_j").round().cast(pl.Int64).sum(),
            known_s=pl.col("length_s").filter(is_known).sum(),
            told_s=pl.col("length_s").sum(),
        )
        .sort("cluster", "hour_at")
    )


def draws(hourly: pl.DataFrame) -> list[Draw]:
    """Return hours as what ``energy_cost`` takes; one without a known reading is unknown."""
    return [
        Draw(cluster=cluster, from_at=at, until_at=at + HOUR, joules=used if known > 0 else None)
        for cluster, at, used, known in hourly.select(
            "cluster", "hour_at", "used_j", "known_s"
        ).iter_rows()
    ]


def tariffs(rows: pl.DataFrame) -> tuple[Tariff, ...]:
    """Return the rows of ``state.energy_tariff`` as what ``energy_cost`` takes."""
    kept = rows.select(*Tariff.__dataclass_fields__)
    return tuple(Tariff(**row) for row in kept.iter_rows(named=True))
