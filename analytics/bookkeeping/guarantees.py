"""Free time inside somebody's guarantee that they did not use and nobody borrowed.

At every instant: of each cluster, cohort and GPU model the sum of what queues were guaranteed and
did not use, less what others of the cohort borrowed, but never more than the usable devices that
are really free. It is spread over those devices in equal ratio, and over the queues by what each
left unused. A guarantee without a model takes what the others leave, of any model.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.bookkeeping.pieces import PARTS
from analytics.bookkeeping.shapes_now import model_key
from analytics.intervals import bounds, micros
from steward.period import Period

RATE_LEVELS: Final = 1_000_000_000_000
"""The share of a device that is reserved is counted in these, so that sums add up exactly."""
_ANY: Final = ""
"""Stands for a guarantee, or a device, whose model is not told."""
_QUEUE: Final = ("cluster", "queue", "quota_model")
_POOL: Final = ("cluster", "at_us", "cohort", "quota_model")
_RATE: Final = ("cluster", "model", "queue")
_EMPTY: Final = pl.Schema(
    {
        "slice_id": pl.Int64,
        "tenant_id": pl.String,
        "queue": pl.String,
        "reserved_ticks": pl.Int64,
    }
)


def reserved_ticks(
    free: pl.DataFrame, usable: pl.DataFrame, *, quotas: pl.DataFrame, period: Period
) -> pl.DataFrame:
    """Return what of usable free time each queue's guarantee kept from others.

    Args:
        free: rows of ``free.free_slices`` without a reason.
        usable: rows of ``shapes_now.usable_spans``.
        quotas: rows of ``quota_history``, one per queue, model and instant.
        period: the span built.

    Returns:
        one row per slice and queue, ascending: slice_id, tenant_id str | null, queue,
            reserved_ticks i64
        A guarantee or use that is unknown reserves nothing.
    """
    spans = usable.join(
        free.select("slice_id", "cluster", "free_parts", model=model_key(pl.col("model"))),
        on="slice_id",
    ).with_columns(pl.col("model").fill_null(_ANY))
    states = _states(quotas)
    if states.is_empty() or spans.is_empty():
        return pl.DataFrame(schema=_EMPTY)
    room = _room(spans)
    grid = _grid(room, states, period)
    asked = _asked(grid, states)
    rates = _integrals(_rates(asked, _room_at(room, asked)), grid)
    tenants = _tenants(quotas)
    return (
        _inside(spans, rates)
        .join(tenants, on=["cluster", "queue"], how="left")
        .group_by("slice_id", "tenant_id", "queue")
        .agg(pl.col("reserved_ticks").sum())
        .filter(pl.col("reserved_ticks") > 0)
        .sort("slice_id", "tenant_id", "queue", nulls_last=True)
        .select(*_EMPTY)
    )


def _tenants(quotas: pl.DataFrame) -> pl.DataFrame:
    ordered = quotas.filter(pl.col("tenant_id").is_not_null()).sort("observed_at", "tenant_id")
    return ordered.group_by("cluster", "queue").agg(pl.col("tenant_id").last())


def _states(quotas: pl.DataFrame) -> pl.DataFrame:
    """Return what each queue left unused and borrowed from when on, in whole parts of a board."""
    guaranteed, used = pl.col("guaranteed_gpu_count"), pl.col("used_gpu_count")
    unused = (guaranteed - used).clip(lower_bound=0)
    borrowed = pl.coalesce("borrowed_gpu_count", (used - guaranteed).clip(lower_bound=0))
    return quotas.select(
        "cluster",
        "queue",
        quota_model=model_key(pl.col("gpu_model")).fill_null(_ANY),
        cohort=pl.coalesce("cohort", pl.concat_str(pl.lit("queue/"), pl.col("queue"))),
        at_us=micros(pl.col("observed_at")),
        unused=_parts(unused),
        borrowed=_parts(borrowed),
    ).sort("at_us", *_QUEUE)


def _parts(count: pl.Expr) -> pl.Expr:
    return (count.fill_null(0) * PARTS).round().cast(pl.Int64)


def _room(spans: pl.DataFrame) -> pl.DataFrame:
    """Return the usable free parts of each cluster and model, at every change, ascending."""
    begun = spans.select("cluster", "model", at_us="usable_start_us", free="free_parts")
    over = spans.select("cluster", "model", at_us="usable_end_us", free=-pl.col("free_parts"))
    return (
        pl.concat([begun, over])
        .group_by("cluster", "model", "at_us")
        .agg(pl.col("free").sum())
        .filter(pl.col("free") != 0)
        .sort("at_us", "cluster", "model")
        .with_columns(pl.col("free").cum_sum().over("cluster", "model"))
    )


def _grid(room: pl.DataFrame, states: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return every instant of a cluster at which a rate may change: cluster, at_us, ascending."""
    from_us, until_us = bounds(period)
    instants = pl.concat([room.select("cluster", "at_us"), states.select("cluster", "at_us")])
    inside = instants.with_columns(pl.col("at_us").clip(from_us, until_us))
    first = inside.select("cluster", at_us=pl.lit(from_us))
    return pl.concat([inside, first]).unique().sort("at_us", "cluster")


def _asked(grid: pl.DataFrame, states: pl.DataFrame) -> pl.DataFrame:
    """Return what each queue's guarantee asks for at each instant.

    Returns:
        cluster, at_us, cohort, queue, quota_model, unused (of the queue), unused_all, wanted (both
        of its pool: unused by all, and that less what is borrowed) in parts; only queues that ask
    """
    queues = states.select(_QUEUE).unique()
    at = grid.join(queues, on="cluster").sort("at_us")
    told = at.join_asof(
        states, on="at_us", by=list(_QUEUE), strategy="backward", check_sortedness=False
    ).filter(pl.col("unused").is_not_null())
    pool = pl.col("unused").sum().over(_POOL), pl.col("borrowed").sum().over(_POOL)
    return (
        told.with_columns(unused_all=pool[0], wanted=(pool[0] - pool[1]).clip(lower_bound=0))
        .filter((pl.col("unused") > 0) & (pl.col("wanted") > 0))
        .drop("borrowed")
    )


def _room_at(room: pl.DataFrame, asked: pl.DataFrame) -> pl.DataFrame:
    """Return what is free and what guarantees of the model want of it, at each instant asked.

    Returns:
        cluster, at_us, model, free, wanted, left (of free, for guarantees of any model), left_all
    """
    instants = asked.select("cluster", "at_us").unique().sort("at_us", "cluster")
    models = room.select("cluster", "model").unique()
    pools = asked.select(*_POOL, "wanted").unique()
    wanted = pools.group_by("cluster", "at_us", model="quota_model").agg(pl.col("wanted").sum())
    left = pl.col("free") - pl.min_horizontal("free", "wanted")
    return (
        instants.join(models, on="cluster")
        .sort("at_us")
        .join_asof(
            room, on="at_us", by=["cluster", "model"], strategy="backward", check_sortedness=False
        )
        .filter(pl.col("free") > 0)
        .join(wanted.filter(pl.col("model") != _ANY), on=["cluster", "at_us", "model"], how="left")
        .with_columns(pl.col("wanted").fill_null(0))
        .with_columns(left=left)
        .with_columns(left_all=pl.col("left").sum().over("cluster", "at_us"))
    )


def _rates(asked: pl.DataFrame, room: pl.DataFrame) -> pl.DataFrame:
    """Return the share of each free device of a model that a queue reserves, from when on.

    Returns:
        cluster, model, queue, at_us, rate i128 (of ``RATE_LEVELS``)
    """
    is_any = pl.col("quota_model") == _ANY
    queue = pl.col("wanted").cast(pl.Int128) * pl.col("unused") * RATE_LEVELS
    most = pl.max_horizontal("room_wanted", "free").cast(pl.Int128)
    at_model = room.rename({"wanted": "room_wanted"})
    named = asked.filter(~is_any).join(
        at_model,
        left_on=["cluster", "at_us", "quota_model"],
        right_on=["cluster", "at_us", "model"],
    )
    of_model = named.select(
        "cluster",
        "queue",
        "at_us",
        model="quota_model",
        rate=queue // (most * pl.col("unused_all")),
    )
    pools = asked.filter(is_any).select(*_POOL, "wanted").unique()
    all_any = pools.group_by("cluster", "at_us").agg(any_wanted=pl.col("wanted").sum())
    shared = (
        asked.filter(is_any)
        .join(at_model, on=["cluster", "at_us"])
        .join(all_any, on=["cluster", "at_us"])
    )
    rest = pl.max_horizontal("any_wanted", "left_all").cast(pl.Int128)
    of_any = shared.select(
        "cluster",
        "queue",
        "at_us",
        "model",
        rate=queue * pl.col("left") // (rest * pl.col("unused_all") * pl.col("free")),
    )
    return (
        pl.concat([of_model, of_any], how="diagonal")
        .group_by(*_RATE, "at_us")
        .agg(pl.col("rate").sum())
    )


def _integrals(rates: pl.DataFrame, grid: pl.DataFrame) -> pl.DataFrame:
    """Return the rates with what they have come to before: reached i128, rate levels x us."""
    following = grid.sort("cluster", "at_us").with_columns(
        next_us=pl.col("at_us").shift(-1).over("cluster")
    )
    ends = rates.join(following, on=["cluster", "at_us"]).select(
        *_RATE, at_us="next_us", rate=pl.lit(0, dtype=pl.Int128)
    )
    over = ends.filter(pl.col("at_us").is_not_null()).join(rates, on=[*_RATE, "at_us"], how="anti")
    whole = pl.concat([rates.select(*_RATE, "at_us", "rate"), over])
    step = (pl.col("at_us") - pl.col("at_us").shift(1)).over(_RATE).fill_null(0)
    before = pl.col("rate").shift(1).over(_RATE).fill_null(0)
    return (
        whole.sort("at_us", *_RATE)
        .with_columns(grown=before * step.cast(pl.Int128))
        .with_columns(reached=pl.col("grown").cum_sum().over(_RATE))
        .drop("grown")
    )


def _inside(spans: pl.DataFrame, rates: pl.DataFrame) -> pl.DataFrame:
    """Return what of each span each queue reserves, in whole ticks."""
    pairs = spans.join(rates.select(_RATE).unique(), on=["cluster", "model"])
    ends = []
    for name in ("usable_start_us", "usable_end_us"):
        at = pairs.with_row_index("row").select("row", *_RATE, at_us=name).sort("at_us")
        found = at.join_asof(
            rates.rename({"at_us": "since_us"}),
            left_on="at_us",
            right_on="since_us",
            by=list(_RATE),
            strategy="backward",
            check_sortedness=False,
        ).sort("row")
        onward = pl.col("rate") * (pl.col("at_us") - pl.col("since_us")).cast(pl.Int128)
        ends.append(found.select((pl.col("reached") + onward).fill_null(0)).to_series())
    ticks = pl.col("free_parts").cast(pl.Int128) * pl.lit(ends[1] - ends[0]) // RATE_LEVELS
    return pairs.select("slice_id", "cluster", "queue", reserved_ticks=ticks.cast(pl.Int64))
