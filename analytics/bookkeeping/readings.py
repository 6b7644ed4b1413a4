"""Which time each reading stands for, and in which slice of device-time that lies.

A reading closes the interval since the one before it, of which at most 2.5 usual gaps count as
observed. The usual gap is local: the median of the latest ``GAPS`` gaps that lie inside the
``REACH_US`` before the reading (of an even number the lower middle one). So it does not matter
which readings are loaded beside those of the period, if an hour on both sides is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from analytics.bookkeeping.pieces import Pieces
from analytics.intervals import CADENCES_OBSERVED, bounds, micros
from steward.period import Period
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

GAPS: Final = 9
"""Gaps that say what is usual; a few scrapes that failed in a row do not change their median."""
REACH_US: Final = SECONDS_PER_HOUR * MICROS_PER_SECOND
"""How far back gaps count, and the longest observed interval. The query loads as much more."""
BATCH_ROW_COUNT: Final = 500_000
"""Readings worked on at a time, so that memory follows the batch and not the period."""
_SERIES: Final = ("device_key", "instance_id")
_BOARD: Final = 2_147_483_647
"""Stands for the whole board: the largest number of an instance, as nulls come last."""
_ORDER: Final = (*_SERIES, "sampled_at")


def batches(samples: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield readings in order, whole series at a time, without repeats.

    Of two different readings of one series at one instant the smaller counts, column by column
    with null last, so that the order of rows does not matter.
    """
    ordered = samples if _is_ordered(samples) else samples.sort(_ORDER, nulls_last=True)
    if ordered.select((_same_series() & (_step() == 0)).any()).item():
        others = [name for name in ordered.columns if name not in _ORDER]
        ordered = ordered.sort(*_ORDER, *others, nulls_last=True).unique(
            list(_ORDER), keep="first", maintain_order=True
        )
    if ordered.is_empty():
        return
    starts = ordered.select(pl.arg_where(~_same_series())).to_series().to_list()
    first = 0
    for following in [*starts[1:], ordered.height]:
        if following - first >= BATCH_ROW_COUNT or following == ordered.height:
            yield ordered.slice(first, following - first)
            first = following


def _step() -> pl.Expr:
    return micros(pl.col("sampled_at")).diff()


def _same_series() -> pl.Expr:
    same = [pl.col(name).eq_missing(pl.col(name).shift(1)) for name in _SERIES]
    return pl.all_horizontal(*same) & (pl.int_range(pl.len()) > 0)


def _is_ordered(samples: pl.DataFrame) -> bool:
    key, instance = pl.col("device_key"), pl.col("instance_id").fill_null(_BOARD)
    same_key = key == key.shift(1)
    same = same_key & (instance == instance.shift(1))
    backwards = (
        (key < key.shift(1)) | (same_key & (instance < instance.shift(1))) | (same & (_step() < 0))
    )
    return not samples.select(backwards.any()).item()


def observed(batch: pl.DataFrame, series: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the readings of known series that observe something inside the period.

    Args:
        batch: one of ``batches``.
        series: rows of ``series_of``.
        period: what lies outside it is cut off.

    Returns:
        in the same order: the columns of the batch without ``_ORDER``, and
            series_id i64, start_us, end_us i64 (half-open), power_idle_w f64 | null
        A reading without one before it inside the reach observes nothing.
    """
    from_us, until_us = bounds(period)
    run = (~_same_series()).cum_sum() - 1
    heads = batch.select(_SERIES).filter(batch.select(~_same_series()).to_series())
    named = heads.join(series, on=_SERIES, how="left", nulls_equal=True, maintain_order="left")
    number = batch.select(run).to_series()
    timed = batch.with_columns(
        series_id=named["series_id"].gather(number),
        power_idle_w=named["power_idle_w"].gather(number),
        end_us=micros(pl.col("sampled_at")),
        gap_us=pl.when(_same_series()).then(_step()),
    ).drop(_ORDER)
    start = pl.col("end_us") - _seen_us(timed)
    return (
        timed.with_columns(start_us=start.clip(lower_bound=from_us))
        .with_columns(pl.col("end_us").clip(upper_bound=until_us))
        .filter(pl.col("series_id").is_not_null() & (pl.col("start_us") < pl.col("end_us")))
        .drop("gap_us")
    )


def _seen_us(timed: pl.DataFrame) -> pl.Series:
    """Return how much of the gap before each reading it observes; null: nothing.

    A gap within 2.5 times the shortest one of its series is within 2.5 times any median: only the
    others are looked at closely.
    """
    gap = timed["gap_us"]
    within = pl.when(pl.col("gap_us") <= REACH_US).then("gap_us")
    shortest = pl.col("gap_us").min().over("series_id")
    long = timed.select(
        pl.arg_where(within.is_not_null() & (within > CADENCES_OBSERVED * shortest))
    ).to_series()
    plain = timed.select(within).to_series()
    if long.is_empty():
        return plain
    most = (_usual_us(gap, long) * CADENCES_OBSERVED).round().cast(pl.Int64)
    seen = pl.select(pl.min_horizontal(gap.gather(long), most)).to_series()
    return plain.scatter(long, seen)


def _usual_us(gap: pl.Series, rows: pl.Series) -> pl.Series:
    """Return the usual gap before each of some readings."""
    columns = [pl.DataFrame({"row": rows}).with_columns(back_us=0, gap_us=gap.gather(rows))]
    frame = columns[0].with_columns(is_inside=pl.lit(value=True))
    kept = [frame.select(pl.col("gap_us").alias("gap_0"))]
    back, inside = frame["gap_us"], frame["is_inside"]
    for number in range(1, GAPS):
        row = rows.cast(pl.Int64) - number
        one = gap.gather(row.clip(lower_bound=0))
        back = back + one
        inside = inside & (row >= 0) & one.is_not_null() & (back <= REACH_US)
        told = pl.DataFrame({"one": one, "inside": inside.fill_null(value=False)})
        kept.append(told.select(pl.when("inside").then("one").alias(f"gap_{number}")))
    every = pl.concat(kept, how="horizontal").select(
        pl.concat_list(pl.all()).list.drop_nulls().list.sort().alias("gaps")
    )
    middle = (pl.col("gaps").list.len() - 1) // 2
    return every.select(pl.col("gaps").list.get(middle)).to_series()


def series_of(devices: pl.DataFrame, floors: pl.DataFrame) -> pl.DataFrame:
    """Return one row per device-slice ever told: series_id i64, device_uuid, keys of its readings.

    Args:
        devices: rows of ``device_history``; those without a device_key have no readings.
        floors: rows of ``power.floors_by_device``; power_idle_w is null where there is none.
    """
    boards = devices.select("device_uuid", "device_key").unique()
    told = devices.select("device_uuid", "device_key", "instance_id").unique()
    whole = boards.with_columns(instance_id=pl.lit(None, dtype=pl.Int64))
    return (
        pl.concat([whole, told])
        .unique()
        .filter(pl.col("device_key").is_not_null())
        .join(floors, on="device_uuid", how="left")
        .sort("device_key", "instance_id", nulls_last=True)
        .with_columns(
            series_id=pl.int_range(pl.len(), dtype=pl.Int64),
            slice_instance_id=pl.col("instance_id"),
            instance_id=pl.col("instance_id").cast(pl.Int32),
        )
    )


def slices_of_series(cut_up: Pieces, series: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the slices that readings fall into, ascending by place.

    Board-wide readings of a device in MIG mode belong to no slice.

    Returns:
        slice_id, slice_start_us, slice_end_us, slice_series_id, place i64 (see ``_place``)
    """
    return (
        cut_up.slices.filter(~pl.col("is_remainder"))
        .select("slice_id", "device_uuid", "instance_id", "start_us", "end_us")
        .join(
            series.select("device_uuid", "series_id", instance_id="slice_instance_id"),
            on=["device_uuid", "instance_id"],
            nulls_equal=True,
        )
        .select(
            "slice_id",
            slice_start_us="start_us",
            slice_end_us="end_us",
            slice_series_id="series_id",
            place=_place("series_id", "start_us", period),
        )
        .sort("place")
    )


def _place(series: str, at: str, period: Period) -> pl.Expr:
    """Return one number that orders by series, then by time inside the period."""
    from_us, until_us = bounds(period)
    width = 1 << (until_us - from_us + 1).bit_length()
    return pl.col(series).cast(pl.Int64) * width + (pl.col(at) - from_us)


def placed(rows: pl.DataFrame, slices: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return observed intervals cut at the borders of the slices they lie in.

    Args:
        rows: rows of ``observed`` or what was computed of them, ordered by series and time.
        slices: rows of ``slices_of_series``.
        period: the same as for ``slices``.

    Returns:
        the rows with slice_id i64; most lie in one slice and keep their order, those that cross a
        border come last, once per slice
    """
    found = rows.with_columns(place=_place("series_id", "start_us", period)).join_asof(
        slices.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64)),
        on="place",
        strategy="backward",
        check_sortedness=False,
    )
    is_inside = (
        pl.col("slice_series_id").eq(pl.col("series_id"))
        & (pl.col("start_us") < pl.col("slice_end_us"))
    ).fill_null(value=False)
    is_whole = is_inside & (pl.col("end_us") <= pl.col("slice_end_us"))
    extra = ["slice_start_us", "slice_end_us", "slice_series_id", "number", "place"]
    whole = found.filter(is_whole).drop(extra)
    crossing = found.filter(~is_whole).with_columns(
        first=pl.col("number").fill_null(-1) + (~is_inside).cast(pl.Int64)
    )
    return pl.concat([whole, _cut(crossing.drop("slice_id", *extra), slices, period)])


def _cut(rows: pl.DataFrame, slices: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Split intervals over all slices from the one numbered ``first`` to that of their end."""
    if slices.is_empty() or rows.is_empty():
        return rows.drop("first").with_columns(slice_id=pl.lit(None, dtype=pl.Int64)).clear()
    last_us = rows.with_columns(last_us=pl.col("end_us") - 1)
    ends = last_us.select(_place("series_id", "last_us", period)).to_series()
    after = slices["place"].search_sorted(ends, side="right").cast(pl.Int64)
    spread = (
        rows.with_columns(after=after)
        .filter(pl.col("first") < pl.col("after"))
        .with_columns(number=pl.int_ranges("first", "after", dtype=pl.Int64))
        .explode("number")
    )
    at = spread["number"]
    return (
        spread.with_columns(
            slice_id=slices["slice_id"].gather(at),
            start_us=pl.max_horizontal("start_us", slices["slice_start_us"].gather(at)),
            end_us=pl.min_horizontal("end_us", slices["slice_end_us"].gather(at)),
        )
        .filter(pl.col("start_us") < pl.col("end_us"))
        .select(*[name for name in rows.columns if name != "first"], "slice_id")
    )
