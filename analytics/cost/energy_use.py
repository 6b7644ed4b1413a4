"""Energy of clusters by hour, from the counters of their boards."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from analytics.cost.energy import Draw, Tariff
from analytics.energy import LARGEST_POWER_W, believed_j
from steward.units import MICROS_PER_SECOND

HOUR: Final = timedelta(hours=1)
_BOARD: Final = ("cluster", "node", "device_uuid")
_TOLD: Final = (*_BOARD, "first_at", "first_j", "last_at", "last_j")


def hourly_energy(readings: pl.DataFrame, days: pl.DataFrame, hours: pl.DataFrame) -> pl.DataFrame:
    """Return the energy of each cluster and hour.

    Args:
        readings: rows of ``energy_by_hour``, of the time that no row of ``energy_days`` covers.
        days: rows of ``energy_days``.
        hours: rows of ``energy_hours``, of the same days.

    Returns:
        one row per cluster and hour in which two readings of a board lie or begin, ascending:
            cluster str, hour_at datetime, used_j i64 (whole joules of what is known),
            known_s f64, told_s f64 (board-seconds that are known, and all between readings)
        Energy between the last reading of an hour and the first of the next is the earlier's.
    """
    within = readings.filter(pl.col("first_at") < pl.col("last_at")).select(
        "cluster", from_at="first_at", from_j="first_j", until_at="last_at", until_j="last_j"
    )
    between = _between(pl.concat([readings.select(_TOLD), days.select(_TOLD)]))
    summed = _summed(pl.concat([within, between.select(within.columns)]))
    return (
        pl.concat([summed, hours.select(summed.columns)])
        .group_by("cluster", "hour_at")
        .agg(pl.col("used_j", "known_s", "told_s").sum())
        .sort("cluster", "hour_at")
    )


def daily_energy(readings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what is kept of one day: the rows of ``energy_days`` and of ``energy_hours``.

    Args:
        readings: rows of ``energy_by_hour``, of the whole day.

    Returns:
        the first and the last reading of each board, and the energy between those of the day;
        both ascending
    """
    ordered = readings.sort(*_BOARD, "first_at")
    days = ordered.group_by(_BOARD, maintain_order=True).agg(
        pl.col("first_at", "first_j").first(), pl.col("last_at", "last_j").last()
    )
    none = days.clear()
    hours = pl.DataFrame(
        schema={
            "cluster": pl.String,
            "hour_at": readings.schema["hour_at"],
            "used_j": pl.Int64,
            "known_s": pl.Float64,
            "told_s": pl.Float64,
        }
    )
    return days, hourly_energy(readings, none, hours)


def _between(told: pl.DataFrame) -> pl.DataFrame:
    """Return each board's last reading of a span beside its first of the next."""
    boards = told.select(_BOARD).unique().with_row_index("board_id")
    numbered = told.join(boards, on=_BOARD).sort("board_id", "first_at")
    is_same = pl.col("board_id") == pl.col("board_id").shift(-1)
    return numbered.select(
        "cluster",
        is_same=is_same,
        from_at="last_at",
        from_j="last_j",
        until_at=pl.col("first_at").shift(-1),
        until_j=pl.col("first_j").shift(-1),
    ).filter("is_same")


def _summed(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of readings by cluster and hour of the earlier one."""
    length_us = (pl.col("until_at") - pl.col("from_at")).dt.total_microseconds()
    used_j = believed_j(
        pl.col("from_j"),
        pl.col("until_j"),
        elapsed_s=pl.col("length_us") / MICROS_PER_SECOND,
        limit_w=pl.lit(LARGEST_POWER_W),
    )
    is_known = pl.col("used_j").is_not_null()
    known_us = pl.when(is_known).then("length_us").otherwise(0)
    return (
        pairs.with_columns(length_us=length_us)
        .select(
            "cluster",
            "length_us",
            hour_at=pl.col("from_at").dt.truncate("1h"),
            used_j=used_j.round().cast(pl.Int64),
        )
        .with_columns(known_us=known_us)
        .group_by("cluster", "hour_at")
        .agg(pl.col("used_j", "known_us", "length_us").sum())
        .select(
            "cluster",
            "hour_at",
            "used_j",
            known_s=pl.col("known_us") / MICROS_PER_SECOND,
            told_s=pl.col("length_us") / MICROS_PER_SECOND,
        )
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
