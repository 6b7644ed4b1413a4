"""How long each workload was seen idle: observed time only, on all of its devices at once."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.evidence import limits
from analytics.evidence.holds import WORKLOAD
from steward.units import MICROS_PER_SECOND

_NEVER_US: Final = -1


def clocks(holds: pl.DataFrame, rows: pl.DataFrame, devices: pl.DataFrame) -> pl.DataFrame:
    """Return the idle clock of every workload that holds something.

    Args:
        holds: rows of ``all_holds``.
        rows: of ``signs.with_signs``.
        devices: rows of ``peaks.device_evidence``: the source that keeps each device's clock.

    Returns:
        one row per workload, ascending
            cluster, workload_uid, held_device_count i64, observed_idle_s f64 (time in which each
            device held now was seen quiet, since any of its devices last worked), idle_since_us
            i64 | null (when that began), was_ever_active bool | null, level_activity_s f64 | null
    """
    held = holds.filter("is_now").group_by("work").agg(held_device_count=pl.len().cast(pl.Int64))
    kept = rows.filter(_by_row(rows, "hold", told=devices, value="series") == pl.col("series"))
    names = holds.select("work", *WORKLOAD).unique("work")
    return (
        held.join(_together(_quiet(rows, kept), held), on="work", how="left")
        .join(_ever(holds, rows, kept), on="work", how="left")
        .join(_level(rows, kept, held), on="work", how="left")
        .join(names, on="work")
        .with_columns(pl.col("observed_idle_s").fill_null(0.0))
        .drop("work")
        .sort(WORKLOAD)
    )


def _by_row(rows: pl.DataFrame, key: str, *, told: pl.DataFrame, value: str) -> pl.Series:
    """Return what is told of each row's key, null where nothing is.

    Keys are small numbers: a place in a list is found faster than a join finds it.
    """
    if rows.is_empty():
        return pl.Series(value, [], dtype=told.schema[value])
    places = pl.DataFrame({key: pl.int_range(int(rows[key].max()) + 1, eager=True)})  # type: ignore[arg-type] # a column of whole numbers, not empty
    listed = places.join(told.select(key, value), on=key, how="left", maintain_order="left")
    return listed[value].gather(rows[key])


def _quiet(rows: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Return the quiet cells since a workload last worked, cut where it did."""
    last = rows.filter("is_active").group_by("work").agg(last_us=pl.col("at_us").max())
    return (
        kept.select("work", "hold", "start_us", "at_us", "is_quiet")
        .with_columns(
            last_us=_by_row(kept, "work", told=last, value="last_us").fill_null(_NEVER_US)
        )
        .filter("is_quiet", pl.col("at_us") > pl.col("last_us"))
        .with_columns(start_us=pl.max_horizontal("start_us", "last_us"))
    )


def _together(quiet: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return the time in which all devices of a workload were quiet, and when it began."""
    stretches = _joined(quiet)
    changes = pl.concat(
        [
            stretches.select("work", at_us="start_us", change=pl.lit(1, dtype=pl.Int64)),
            stretches.select("work", at_us="end_us", change=pl.lit(-1, dtype=pl.Int64)),
        ]
    )
    depth = (
        changes.group_by("work", "at_us")
        .agg(pl.col("change").sum())
        .sort("work", "at_us")
        .with_columns(
            quiet_count=pl.col("change").cum_sum().over("work"),
            next_us=pl.col("at_us").shift(-1).over("work"),
        )
        .join(held, on="work", how="left", maintain_order="left")
        .filter(
            pl.col("quiet_count") == pl.col("held_device_count"), pl.col("next_us").is_not_null()
        )
    )
    return depth.group_by("work").agg(
        observed_idle_s=(pl.col("next_us") - pl.col("at_us")).sum() / MICROS_PER_SECOND,
        idle_since_us=pl.col("at_us").min(),
    )


def _joined(quiet: pl.DataFrame) -> pl.DataFrame:
    """Join cells that touch, so that few stretches are left."""
    ordered = quiet.sort("hold", "at_us")
    is_new = (pl.col("hold") != pl.col("hold").shift(1)) | (
        pl.col("start_us") > pl.col("at_us").shift(1)
    )
    return (
        ordered.with_columns(stretch=is_new.fill_null(value=True).cum_sum())
        .group_by("stretch")
        .agg(
            pl.col("work").first(),
            start_us=pl.col("start_us").min(),
            end_us=pl.col("at_us").max(),
        )
    )


def _ever(holds: pl.DataFrame, rows: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Return whether a workload ever worked; false only where nearly all of its life was seen."""
    is_told = pl.col("activity_ratio").is_not_null()
    seen_us = (pl.col("at_us") - pl.col("start_us")) * pl.col("told_ratio")
    by_hold = kept.group_by("hold").agg(seen_us=seen_us.filter(is_told).sum())
    held_us = (pl.col("held_until_us") - pl.col("held_from_us")).clip(lower_bound=1)
    lives = holds.join(by_hold, on="hold", how="left").with_columns(
        seen=pl.col("seen_us").fill_null(0) / held_us
    )
    known = lives.group_by("work").agg(
        is_known=(pl.col("seen") >= limits.KNOWN_FROM_RATIO).all() & pl.col("is_now").all()
    )
    active = rows.filter("is_active").select("work").unique().with_columns(is_active=True)
    return known.join(active, on="work", how="left").select(
        "work",
        was_ever_active=pl.when("is_active")
        .then(statement=True)
        .when("is_known")
        .then(statement=False),
    )


def _level(rows: pl.DataFrame, kept: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Return for how long activity was small and level on every device, up to now."""
    is_told = pl.col("level_ratio").is_not_null()
    other = (
        rows.filter(~pl.col("is_level"), is_told)
        .group_by("work")
        .agg(other_us=pl.col("at_us").max())
    )
    told = kept.select("work", "hold", "start_us", "at_us", "level_ratio").filter(is_told)
    since = told.filter(
        pl.col("at_us") > _by_row(told, "work", told=other, value="other_us").fill_null(_NEVER_US)
    )
    by_hold = since.group_by("work", "hold").agg(
        level_s=(pl.col("at_us") - pl.col("start_us")).sum() / MICROS_PER_SECOND,
        spread=pl.col("level_ratio").max() - pl.col("level_ratio").min(),
    )
    by_workload = by_hold.group_by("work").agg(
        level_s=pl.col("level_s").min(), spread=pl.col("spread").max(), seen_count=pl.len()
    )
    is_level = (pl.col("spread") <= limits.LEVEL_SPREAD_RATIO) & (
        pl.col("seen_count") == pl.col("held_device_count")
    )
    return (
        told.select("work")
        .unique()
        .join(held, on="work")
        .join(by_workload, on="work", how="left")
        .select(
            "work",
            level_activity_s=pl.when(is_level.fill_null(value=False))
            .then("level_s")
            .otherwise(0.0),
        )
    )
