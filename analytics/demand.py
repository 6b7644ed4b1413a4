"""How many GPUs of each tier were there, held and waited for, day by day."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.capability import TIERS, capability_of
from analytics.cost.days import days, midnight, whole_days, with_day
from analytics.intervals import micros
from analytics.usage import allocated, leaf
from analytics.waits import asked_gpus
from steward.period import Period
from steward.units import MICROS_PER_SECOND, TICKS_PER_SECOND

ALL: Final = "all"
"""Every tier together."""
ANY: Final = "any"
"""What waits for whichever GPU comes: it counts in ``ALL`` only."""
UNKNOWN: Final = "unknown"
"""GPUs of models whose tier is not known, and what waits for them."""
COUNTS: Final = (
    "capacity_gpu_count",
    "usable_gpu_count",
    "allocated_gpu_count",
    "waiting_gpu_count",
)


def daily(
    ledger: pl.DataFrame, attempts: pl.DataFrame, period: Period, *, zone: str
) -> pl.DataFrame:
    """Return mean GPUs of each day and tier.

    Args:
        ledger: rows of ``ledger`` cut at the zone's midnights, with capability str | null.
        attempts: rows of ``waits.attempts`` with capability str (see ``wanted_tiers``).
        period: what the ledger covers.
        zone: IANA name of the zone whose days are meant.

    Returns:
        one row per day and tier (and ``ALL``), ascending by tier and day
            capability str, day date, is_whole bool (the period has all of it), ``COUNTS`` f64
            (usable: without down; means over the part of the day in the period),
            demand_gpu_count f64 (allocated + waiting)
        A tier has every day: those without rows are 0. Work whose request is unknown is left out.
    """
    grid = _grid(period, zone)
    held = _held(with_day(ledger, period, zone))
    waiting = _waiting(attempts, grid, period)
    tiers = pl.concat([held.select("capability"), waiting.select("capability")]).unique()
    rows = (
        tiers.join(grid, how="cross")
        .join(held, on=["capability", "day"], how="left")
        .join(waiting, on=["capability", "day"], how="left")
        .with_columns(pl.col("^.*_s$").fill_null(0.0))
    )
    whole = rows.group_by("day", "is_whole", "length_s").agg(pl.col("^.*_gpu_s$").sum())
    both = pl.concat([rows, whole.with_columns(capability=pl.lit(ALL))], how="diagonal")
    counts = {
        name: pl.col(name.replace("_gpu_count", "_gpu_s")) / pl.col("length_s") for name in COUNTS
    }
    return (
        both.filter(pl.col("capability") != ANY)
        .select("capability", "day", "is_whole", **counts)
        .with_columns(demand_gpu_count=pl.col("allocated_gpu_count") + pl.col("waiting_gpu_count"))
        .sort("capability", "day")
    )


def wanted_tiers(attempts: pl.DataFrame, overrides: pl.DataFrame | None) -> pl.DataFrame:
    """Return attempts with the tier they wait for: the weakest of the models they name.

    Returns:
        the rows in their order with capability str: a tier, ``ANY`` where no model is named,
        ``UNKNOWN`` where none of the named ones is known
    """
    named = attempts["gpu_models"].unique().to_list()
    tiers = [_weakest(models, overrides) for models in named]
    table = pl.DataFrame(
        {"gpu_models": named, "capability": tiers},
        schema={"gpu_models": pl.String, "capability": pl.String},
    )
    return attempts.join(
        table, on="gpu_models", how="left", nulls_equal=True, maintain_order="left"
    )


def _weakest(models: str | None, overrides: pl.DataFrame | None) -> str:
    if not models:
        return ANY
    found = [capability_of(name, overrides=overrides) for name in models.split("|")]
    tiers = [one.tier for one in found if one is not None]
    return max(tiers, key=TIERS.index) if tiers else UNKNOWN


def _grid(period: Period, zone: str) -> pl.DataFrame:
    """Return the days of the period: day, is_whole, start_us, end_us, length_s (inside it)."""
    touched = days(period, zone)
    starts = [midnight(day, zone) for day in touched]
    ends = [*starts[1:], period.until_at][: len(starts)]
    whole = set(whole_days(period, zone))
    frame = pl.DataFrame(
        {
            "day": touched,
            "is_whole": [day in whole for day in touched],
            "start_at": [max(at, period.from_at) for at in starts],
            "end_at": [min(at, period.until_at) for at in ends],
        },
        schema={
            "day": pl.Date,
            "is_whole": pl.Boolean,
            "start_at": pl.Datetime("us", "UTC"),
            "end_at": pl.Datetime("us", "UTC"),
        },
    )
    start_us, end_us = micros(pl.col("start_at")), micros(pl.col("end_at"))
    return frame.select(
        "day",
        "is_whole",
        start_us=start_us,
        end_us=end_us,
        length_s=(end_us - start_us) / MICROS_PER_SECOND,
    )


def _held(rows: pl.DataFrame) -> pl.DataFrame:
    """Return GPU-seconds of each tier and day: capacity, usable, allocated."""
    wall = pl.col("wall_ticks").cast(pl.Int128)
    sums = {
        "capacity_gpu_s": wall,
        "usable_gpu_s": wall - leaf("down"),
        "allocated_gpu_s": allocated(),
    }
    return (
        rows.with_columns(pl.col("capability").fill_null(UNKNOWN))
        .group_by("capability", "day")
        .agg(
            (value.sum().cast(pl.Float64) / TICKS_PER_SECOND).alias(name)
            for name, value in sums.items()
        )
    )


def _waiting(attempts: pl.DataFrame, grid: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return GPU-seconds waited for, of each tier and day."""
    start_us = micros(pl.col("created_at"))
    end_us = start_us + (pl.col("wait_s") * MICROS_PER_SECOND).round().cast(pl.Int64)
    spans = attempts.select("capability", start_us=start_us, end_us=end_us, amount=asked_gpus)
    inside = spans.filter(pl.col("amount") > 0, pl.col("end_us") > pl.col("start_us"))
    first = grid.with_row_index("first").select("first", start_us="start_us")
    last = grid.with_row_index("last").select("last", last_us="start_us")
    numbered = grid.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))
    period_start, period_end = (micros(pl.lit(at)) for at in (period.from_at, period.until_at))
    clipped = (
        inside.with_columns(
            start_us=pl.max_horizontal("start_us", period_start),
            end_us=pl.min_horizontal("end_us", period_end),
        )
        .filter(pl.col("end_us") > pl.col("start_us"))
        .with_columns(last_us=pl.col("end_us") - 1)
    )
    placed = (
        clipped.sort("start_us")
        .join_asof(first, on="start_us")
        .sort("last_us")
        .join_asof(last, on="last_us")
        .with_columns(number=pl.int_ranges("first", pl.col("last") + 1, dtype=pl.Int64))
        .explode("number")
        .join(numbered, on="number", suffix="_day")
    )
    overlap_us = pl.min_horizontal("end_us", "end_us_day") - pl.max_horizontal(
        "start_us", "start_us_day"
    )
    return placed.group_by("capability", "day").agg(
        waiting_gpu_s=(pl.col("amount") * overlap_us / MICROS_PER_SECOND).sum()
    )
