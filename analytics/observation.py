"""What telemetry saw in each segment: readings summed over time, one row per slice and tier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from analytics.intervals import observed_intervals
from analytics.segments import Segments
from analytics.tiers import with_readings
from steward.period import Period
from steward.units import MICROS_PER_SECOND

MEASURES = ("apparent", "effective", "gap", "sm_active", "dram_active")
"""Each has a time integral ``<measure>_s`` and the seconds it was known, ``<measure>_known_s``."""
BATCH_ROW_COUNT = 150_000
"""Readings worked on at a time, so that memory follows the batch and not the period."""
_NEEDED = (
    "series_id", "sampled_at", "tier", "apparent_source", "is_idle", "is_stuck",
    "memory_used_bytes", *[f"{name}_ratio" for name in MEASURES],
)  # fmt: skip


_NUMBERED = ("device_key", "instance_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What telemetry saw.

    ``by_slice``: rows of ``observations``; ``resting``: rows of ``stretches`` of held devices.
    """

    by_slice: pl.DataFrame
    resting: pl.DataFrame


def observe(samples: pl.DataFrame, segments: Segments, period: Period) -> Observed:
    """Return what the readings say of each segment.

    Args:
        samples: rows of ``utilization_sample``, any order.
        segments: the device-time they fall into.
        period: the span reported.
    """
    held = segments.holders.select("slice_id").unique()
    sums, resting = [], []
    for batch in _batches(samples, segments.series):
        cut = pieces(batch, segments, period)
        sums.append(observations(cut))
        resting.append(stretches(cut.join(held, on="slice_id", how="semi")))
    return Observed(by_slice=pl.concat(sums).sort("slice_id", "tier"), resting=pl.concat(resting))


def _batches(samples: pl.DataFrame, series: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the readings of known series with their series_id, whole series at a time."""
    wanted = series.select("series_id", "device_key", pl.col("instance_id").cast(pl.Int32))
    counted = (
        samples.group_by(_NUMBERED)
        .len(name="row_count")
        .join(wanted, on=_NUMBERED, nulls_equal=True)
        .sort("series_id")
        .with_columns(batch_id=pl.col("row_count").cum_sum() // BATCH_ROW_COUNT)
    )
    for batch in counted.partition_by("batch_id", maintain_order=True) or [counted]:
        named = batch.select("series_id", *_NUMBERED)
        yield samples.join(named, on=_NUMBERED, nulls_equal=True)


def pieces(samples: pl.DataFrame, segments: Segments, period: Period) -> pl.DataFrame:
    """Return observed readings cut at segment borders.

    Args:
        samples: rows of ``utilization_sample`` with the series_id they belong to.
        segments: the device-time they fall into.
        period: the span reported.

    Returns:
        one row per reading and slice it was observed in, ascending by slice and time
            slice_id, start_us, end_us, memory_used_bytes, tier, apparent_source, is_idle,
            is_stuck and a ratio for each of ``MEASURES``
        Board-wide readings of a device in MIG mode belong to no slice and are left out.
    """
    spans = observed_intervals(with_readings(samples).select(_NEEDED), period)
    borders = segments.slices.filter(~pl.col("is_remainder")).join(
        samples.select("series_id").unique(), on="series_id", how="semi"
    )
    return _cut(spans, borders)


def stretches(cut: pl.DataFrame) -> pl.DataFrame:
    """Return unbroken rest: what looks idle or stuck, from its first reading to its last.

    Args:
        cut: rows of ``pieces``.

    Returns:
        one row per slice and stretch, ascending
            slice_id, is_idle bool | null, is_stuck bool | null, start_us, end_us,
            memory_first_bytes i64 | null, memory_last_bytes i64 | null (in use)
    """
    state = ("slice_id", "is_idle", "is_stuck")
    is_new = (pl.col("start_us") > pl.col("end_us").shift(1)) | pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift(1)) for name in state
    )
    return (
        cut.filter(pl.col("is_idle") | pl.col("is_stuck"))
        .with_columns(stretch_id=is_new.fill_null(value=True).cum_sum())
        .group_by("stretch_id", maintain_order=True)
        .agg(
            *[pl.col(name).first() for name in (*state, "start_us")],
            pl.col("end_us").last(),
            memory_first_bytes=pl.col("memory_used_bytes").first(),
            memory_last_bytes=pl.col("memory_used_bytes").last(),
        )
        .drop("stretch_id")
    )


def _cut(spans: pl.DataFrame, borders: pl.DataFrame) -> pl.DataFrame:
    """Split spans at the borders of the slices they cross, round by round."""
    starts = borders.select(
        "series_id", "slice_id", border_us="start_us", border_end_us="end_us"
    ).sort("border_us")
    parts: list[pl.DataFrame] = []
    rest = spans
    while rest.height:
        found = rest.sort("start_us").join_asof(
            starts,
            left_on="start_us",
            right_on="border_us",
            by="series_id",
            strategy="backward",
            check_sortedness=False,
        )
        inside = pl.col("border_end_us") > pl.col("start_us")
        end = pl.min_horizontal("end_us", "border_end_us")
        parts.append(
            found.filter(inside).with_columns(end_us=end).drop("border_us", "border_end_us")
        )
        rest = _beyond(found, starts)
    return pl.concat(parts).sort("slice_id", "start_us") if parts else _no_pieces(spans)


def _beyond(found: pl.DataFrame, starts: pl.DataFrame) -> pl.DataFrame:
    """Return what of each span lies after the slice it was matched to."""
    inside = pl.col("border_end_us") > pl.col("start_us")
    reached = found.filter(
        inside.not_() | (pl.col("border_end_us") < pl.col("end_us")) | inside.is_null()
    )
    columns = [
        name for name in found.columns if name not in {"slice_id", "border_us", "border_end_us"}
    ]
    after = pl.when(inside).then("border_end_us").otherwise("start_us")
    moved = reached.with_columns(start_us=after).select(columns)
    onward = moved.sort("start_us").join_asof(
        starts.select("series_id", next_us="border_us"),
        left_on="start_us",
        right_on="next_us",
        by="series_id",
        strategy="forward",
        check_sortedness=False,
    )
    return (
        onward.with_columns(start_us="next_us")
        .filter(pl.col("start_us") < pl.col("end_us"))
        .select(columns)
    )


def _no_pieces(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.with_columns(slice_id=pl.lit(None, dtype=pl.Int64)).clear()


def observations(cut: pl.DataFrame) -> pl.DataFrame:
    """Return time integrals of readings.

    Args:
        cut: rows of ``pieces``.

    Returns:
        one row per slice and tier (null: the reading says nothing), ascending
            slice_id, tier, observed_s, idle_s, active_effective_s, active_ineffective_s,
            busy_source_s, graphics_source_s, and for each of ``MEASURES`` an integral and a
            known time
    """
    seconds = pl.col("length_s")
    effective = pl.col("effective_ratio").cast(pl.Float64)
    idle = pl.col("is_idle").fill_null(value=False)
    active = ~idle & effective.is_not_null()
    integrals = [
        column
        for name in MEASURES
        for column in (
            (pl.col(f"{name}_ratio").cast(pl.Float64) * seconds).sum().alias(f"{name}_s"),
            seconds.filter(pl.col(f"{name}_ratio").is_not_null()).sum().alias(f"{name}_known_s"),
        )
    ]
    source = pl.col("apparent_source")
    length = (pl.col("end_us") - pl.col("start_us")) / MICROS_PER_SECOND
    return (
        cut.with_columns(length_s=length)
        .group_by("slice_id", "tier")
        .agg(
            *integrals,
            observed_s=seconds.sum(),
            idle_s=seconds.filter(idle).sum(),
            active_effective_s=(effective * seconds).filter(active).sum(),
            active_ineffective_s=((1 - effective) * seconds).filter(active).sum(),
            busy_source_s=seconds.filter(source == "busy").sum(),
            graphics_source_s=seconds.filter(source == "graphics").sum(),
        )
        .sort("slice_id", "tier", nulls_last=True)
    )
