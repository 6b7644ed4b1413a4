"""Where each device was, and when what is told of its node or cluster holds for it.

Times are i64 microseconds, spans half-open and clipped to the period.
"""

from __future__ import annotations

import polars as pl

from analytics.bookkeeping.material import Material
from analytics.intervals import bounds, micros
from analytics.inventory import node_models
from analytics.lifetimes import DEVICE
from steward.period import Period

_HOME = ("cluster", "node", "model")
_ALWAYS = 0
"""1970: before anything that is told."""


def home_spans(stock: Material, period: Period) -> pl.DataFrame:
    """Return where each device was and which model it is.

    A model that is not told is the node's, as last told. A device is where its MIG instances are
    until the board itself is told of.

    Returns:
        one row per device and stay, ascending: device_uuid, cluster, node, model str | null,
            start_us, end_us; the first stay starts in 1970, the last ends with the period
    """
    is_board = pl.col("instance_id").is_null()
    states = (
        stock.devices.join(node_models(stock.nodes), on=["cluster", "node"], how="left")
        .with_columns(model=pl.coalesce("model", "gpu_model"), is_board=is_board)
        .sort(DEVICE, "observed_at", "is_board", *_HOME, nulls_last=True)
        .filter(pl.col("is_board") | ~pl.col("is_board").cum_max().over(DEVICE))
    )
    moved = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift(1)) for name in (DEVICE, *_HOME)
    )
    _, until_us = bounds(period)
    is_first = pl.col(DEVICE).ne_missing(pl.col(DEVICE).shift(1))
    return (
        states.filter(moved)
        .with_columns(
            start_us=pl.when(is_first).then(_ALWAYS).otherwise(micros(pl.col("observed_at")))
        )
        .with_columns(end_us=pl.col("start_us").shift(-1).over(DEVICE).fill_null(until_us))
        .with_columns(pl.col("end_us").clip(upper_bound=until_us))
        .filter(pl.col("start_us") < pl.col("end_us"))
        .select(DEVICE, *_HOME, "start_us", "end_us")
    )


def cordoned_spans(stock: Material, homes: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return when each device sat on a node that took no new work.

    Returns:
        one row per device and span: device_uuid, start_us, end_us
        A node whose schedulability is unknown counts as schedulable.
    """
    _, until_us = bounds(period)
    key = ["cluster", "node"]
    at_us = micros(pl.col("observed_at"))
    shut = (
        stock.nodes.sort(*key, "observed_at")
        .select(
            *key,
            "is_schedulable",
            shut_us=at_us,
            opened_us=at_us.shift(-1).over(key).fill_null(until_us),
        )
        .filter(~pl.col("is_schedulable"))
    )
    return _overlaps(homes.join(shut, on=key), "shut_us", "opened_us", period=period)


def gone_spans(stock: Material, homes: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return when each device was no part of any cluster, since its node had left.

    Returns:
        one row per device and span: device_uuid, start_us, end_us
        From the node's removal until the node or the device itself is seen again, the device not
        counting where it is seen at that very instant. A device that moved on stays with its node.
    """
    _, until_us = bounds(period)
    key = ["cluster", "node"]
    at_us = micros(pl.col("observed_at"))
    removed = (
        stock.nodes.sort(*key, "observed_at")
        .select(
            *key,
            "is_present",
            left_us=at_us,
            back_us=at_us.shift(-1).over(key).fill_null(until_us),
        )
        .filter(~pl.col("is_present"))
        .drop("is_present")
    )
    seen = stock.devices.filter("is_present").select(DEVICE, seen_us=at_us).sort("seen_us")
    stays = homes.join(removed, on=key).sort("left_us")
    again = stays.join_asof(
        seen,
        left_on="left_us",
        right_on="seen_us",
        by=DEVICE,
        strategy="forward",
        allow_exact_matches=False,
        check_sortedness=False,
    ).with_columns(pl.min_horizontal("back_us", "seen_us").alias("back_us"))
    return _overlaps(again, "left_us", "back_us", period=period)


def recorded_spans(stock: Material, homes: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return from when on the holders of each device are recorded, if anybody had it.

    Returns:
        one row per device and span: device_uuid, start_us, end_us
        That is from its cluster's first allocation on; always, where only the given allocations
        name a holder.
    """
    _, until_us = bounds(period)
    since = stock.firsts.group_by("cluster").agg(since_us=micros(pl.col("started_at").min()))
    named = (
        stock.allocations.filter(pl.col("unheld_reason").is_null())
        .select("cluster", since_us=pl.lit(_ALWAYS, dtype=pl.Int64))
        .unique()
        .join(since, on="cluster", how="anti")
    )
    told = homes.join(pl.concat([since, named]), on="cluster").with_columns(
        until_us=pl.lit(until_us)
    )
    return _overlaps(told, "since_us", "until_us", period=period)


def _overlaps(stays: pl.DataFrame, start: str, end: str, *, period: Period) -> pl.DataFrame:
    from_us, until_us = bounds(period)
    first = pl.max_horizontal("start_us", start).clip(from_us, until_us)
    last = pl.min_horizontal("end_us", end).clip(from_us, until_us)
    spans = stays.select(DEVICE, start_us=first, end_us=last)
    return spans.filter(pl.col("start_us") < pl.col("end_us"))
