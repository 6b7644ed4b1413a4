"""Who used whose quota, who waited meanwhile, and whether shares of use match what was promised.

Two questions kept apart: what was allocated, and what of it did work. Past use fades with a
half-life, as in Slurm's multifactor priority plugin, so that a share says who has had much lately.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import polars as pl

from analytics.intervals import bounds, micros
from analytics.schemas.columns import INSTANT
from analytics.usage import allocated, gpu_hours, leaf
from steward.period import Period
from steward.units import MICROS_PER_SECOND, SECONDS_PER_DAY, SECONDS_PER_HOUR

HALF_LIFE_S: Final = 7 * SECONDS_PER_DAY
"""After this time use counts half: the week that Slurm's and Kueue's documented settings use."""
ENTITIES: Final = ("tenant_id", "queue")
"""Who shares: teams or queues."""
_MICROS_PER_HOUR: Final = MICROS_PER_SECOND * SECONDS_PER_HOUR
_READING: Final = ("cluster", "queue", "gpu_model")
_POOL: Final = ("cluster", "cohort", "gpu_model")
"""Within which quota is lent."""
_COUNTS: Final = ("guaranteed", "limit", "used", "borrowed", "unused")


def quota_spans(quota: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return each reading of a quota as the span until the next one or the period's end.

    Args:
        quota: rows of ``quota_use``, any order.
        period: what lies outside it is cut off.

    Returns:
        one row per reading with a positive span, ascending by cluster, queue, gpu_model, start_us
            cluster, queue, tenant_id, cohort, gpu_model ("" where quota is not per model),
            guaranteed, limit, used, borrowed, unused f64 | null (GPUs; unused: of the guarantee;
            borrowed: as told, else what is used beyond the guarantee), pending i64 | null,
            start_us, end_us i64
    """
    from_us, until_us = bounds(period)
    named = quota.with_columns(pl.col("gpu_model").fill_null(""))
    ordered = named.sort(*_READING, "observed_at").with_columns(
        start_us=micros(pl.col("observed_at"))
    )
    following = pl.col("start_us").shift(-1).over(_READING)
    beyond = (pl.col("used_gpu_count") - pl.col("guaranteed_gpu_count")).clip(lower_bound=0)
    return (
        ordered.with_columns(end_us=following.fill_null(until_us))
        .with_columns(pl.col("start_us", "end_us").clip(from_us, until_us))
        .filter(pl.col("start_us") < pl.col("end_us"))
        .select(
            "cluster", "queue", "tenant_id", "cohort", "gpu_model",
            guaranteed="guaranteed_gpu_count",
            limit="limit_gpu_count",
            used="used_gpu_count",
            borrowed=pl.coalesce("borrowed_gpu_count", beyond),
            unused=(pl.col("guaranteed_gpu_count") - pl.col("used_gpu_count")).clip(lower_bound=0),
            pending="pending_workload_count",
            start_us="start_us",
            end_us="end_us",
        )
        .sort(*_READING, "start_us")
    )  # fmt: skip


def quota_use(spans: pl.DataFrame, entity: str) -> pl.DataFrame:
    """Return time-weighted quota and use of each team or queue.

    Args:
        spans: rows of ``quota_spans``.
        entity: one of ``ENTITIES``.

    Returns:
        one row per entity, ascending (null last)
            entity, guaranteed_gpu_hours, limit_gpu_hours, used_gpu_hours, borrowed_gpu_hours,
            unused_gpu_hours f64 | null (null: never told), used_of_guaranteed_ratio f64 | null
            (over the time for which both are told), known_ratio f64 (share of the time for which
            both are told)
    """
    return _use(spans, entity)


def _use(spans: pl.DataFrame, *keys: str) -> pl.DataFrame:
    hours, is_known = _hours(), _is_told()
    guaranteed, used = (
        (pl.col(name) * hours).filter(is_known).sum() for name in ("guaranteed", "used")
    )
    return (
        spans.group_by(keys)
        .agg(
            *[_sum_known(pl.col(name) * hours).alias(f"{name}_gpu_hours") for name in _COUNTS],
            known_ratio=hours.filter(is_known).sum() / hours.sum(),
            used_of_guaranteed_ratio=pl.when(guaranteed > 0).then(used / guaranteed),
        )
        .sort(keys, nulls_last=True)
    )


def told_ratio(spans: pl.DataFrame) -> float | None:
    """Return the share of quota time for which guarantee and use are told; None without any."""
    known, whole = spans.select(known=_hours().filter(_is_told()).sum(), whole=_hours().sum()).row(
        0
    )
    return known / whole if whole > 0 else None


def _hours() -> pl.Expr:
    return (pl.col("end_us") - pl.col("start_us")) / _MICROS_PER_HOUR


def _is_told() -> pl.Expr:
    return pl.col("guaranteed").is_not_null() & pl.col("used").is_not_null()


def quota_by_day(
    spans: pl.DataFrame, entity: str, *, edges: Sequence[datetime], period: Period
) -> pl.DataFrame:
    """Return time-weighted quota and use of each team or queue, day by day.

    Args:
        spans: rows of ``quota_spans``.
        entity: one of ``ENTITIES``.
        edges: the midnights of some zone; those outside the period are ignored.
        period: the first and last day are cut to it.

    Returns:
        one row per day and entity, ascending (null last): starts_at datetime, entity, and the
        columns of ``quota_use``; days for which nothing is told have no row
    """
    inside = [edge for edge in edges if period.from_at < edge < period.until_at]
    ends = [period.from_at, *sorted(set(inside)), period.until_at]
    days = pl.DataFrame(
        {"starts_at": ends[:-1], "ends_at": ends[1:]},
        schema={"starts_at": INSTANT, "ends_at": INSTANT},
    ).with_columns(day_start_us=micros(pl.col("starts_at")), day_end_us=micros(pl.col("ends_at")))
    cut = spans.join_where(
        days,
        pl.col("start_us") < pl.col("day_end_us"),
        pl.col("end_us") > pl.col("day_start_us"),
    ).with_columns(
        start_us=pl.max_horizontal("start_us", "day_start_us"),
        end_us=pl.min_horizontal("end_us", "day_end_us"),
    )
    return _use(cut, "starts_at", entity)


def _sum_known(value: pl.Expr) -> pl.Expr:
    return pl.when(value.is_not_null().any()).then(value.sum())


def lending(spans: pl.DataFrame, entity: str) -> pl.DataFrame:
    """Return who borrowed from whom: at each moment loans are spread over what is left unused.

    Within one cluster, cohort and model, the smaller of all that is borrowed and all that is unused
    of guarantees is lent, by each in proportion to what it leaves unused. What is borrowed beyond
    that comes from capacity that nobody was promised, and has no lender.

    Returns:
        one row per borrower and lender, ascending: borrower, lender str | null, gpu_hours f64
    """
    levels = _levels(spans, entity)
    lent = pl.min_horizontal("all_borrowed", "all_unused")
    part = lent * pl.col("borrowed") / pl.col("all_borrowed")
    return _pairs(
        levels.filter(pl.col("borrowed") > 0).with_columns(amount=part),
        levels.filter(pl.col("unused") > 0).with_columns(
            weight=pl.col("unused") / pl.col("all_unused")
        ),
        names=("borrower", "lender"),
    )


def starvation(spans: pl.DataFrame, entity: str) -> pl.DataFrame:
    """Return who waited within its own guarantee while who borrowed.

    At each moment in which work of an entity waits although it uses less than its guarantee, and
    others of its cohort borrow, the smaller of its unused guarantee and what is borrowed counts. It
    is an upper bound: how many GPUs the waiting work asks for is not part of a quota reading.

    Returns:
        one row per waiting entity and borrower, ascending: waiting, borrower str | null,
        gpu_hours f64
    """
    levels = _levels(spans, entity)
    is_starved = (pl.col("pending") > 0) & (pl.col("unused") > 0)
    amount = pl.min_horizontal("unused", "all_borrowed")
    return _pairs(
        levels.filter(is_starved).with_columns(amount=amount),
        levels.filter(pl.col("borrowed") > 0).with_columns(
            weight=pl.col("borrowed") / pl.col("all_borrowed")
        ),
        names=("waiting", "borrower"),
    )


def _levels(spans: pl.DataFrame, entity: str) -> pl.DataFrame:
    """Return what each entity has at each step between two readings of its pool."""
    pooled = spans.filter(pl.col("cohort").is_not_null())
    ends = pl.concat([pooled.select(*_POOL, at_us=end) for end in ("start_us", "end_us")])
    steps = (
        ends.unique()
        .sort(*_POOL, "at_us")
        .with_columns(step_end_us=pl.col("at_us").shift(-1).over(_POOL))
        .filter(pl.col("step_end_us").is_not_null())
    )
    each = steps.join(pooled.select(*_POOL, "queue").unique(), on=_POOL).sort("at_us")
    told = pooled.sort("start_us").rename({"start_us": "at_us"})
    found = each.join_asof(told, on="at_us", by=[*_POOL, "queue"], check_sortedness=False).filter(
        pl.col("at_us") < pl.col("end_us")
    )
    step = [*_POOL, "at_us"]
    merged = found.group_by(*step, "step_end_us", entity).agg(
        pl.col("borrowed", "unused", "pending").sum()
    )
    return merged.with_columns(
        all_borrowed=pl.col("borrowed").sum().over(step),
        all_unused=pl.col("unused").sum().over(step),
        hours=(pl.col("step_end_us") - pl.col("at_us")) / _MICROS_PER_HOUR,
        entity=pl.col(entity),
    )


def _pairs(takers: pl.DataFrame, givers: pl.DataFrame, *, names: tuple[str, str]) -> pl.DataFrame:
    step = [*_POOL, "at_us"]
    taker, giver = names
    return (
        takers.select(*step, "hours", "amount", pl.col("entity").alias(taker))
        .join(givers.select(*step, "weight", pl.col("entity").alias(giver)), on=step)
        .filter(pl.col(taker).ne_missing(pl.col(giver)))
        .group_by(taker, giver)
        .agg(gpu_hours=(pl.col("amount") * pl.col("weight") * pl.col("hours")).sum())
        .sort(taker, giver, nulls_last=True)
    )


def faded(until_us: int, *, half_life_s: float = HALF_LIFE_S) -> pl.Expr:
    """Return the mean weight of a span of the ledger: 1 for now, half a half-life earlier.

    Over a span the weight is averaged exactly, as if use were even in it, so that dividing a span
    of even use changes nothing: the mean of e^-at over a span is e^-a middle x sinh(x) / x, where x
    is a times half its length.
    """
    rate = math.log(2) / (half_life_s * MICROS_PER_SECOND)
    older = until_us - micros(pl.col("started_at"))
    newer = until_us - micros(pl.col("ended_at"))
    middle, half = (older + newer) / 2 * rate, (older - newer) / 2 * rate
    evened = pl.when(half > 0).then(half.sinh() / half).otherwise(1.0)
    return (-middle).exp() * evened


def fair_shares(
    ledger: pl.DataFrame,
    spans: pl.DataFrame,
    period: Period,
    *,
    entity: str,
    half_life_s: float = HALF_LIFE_S,
) -> pl.DataFrame:
    """Return shares of faded use beside the shares that guarantees promise.

    Args:
        ledger: rows of ``ledger``; the shorter its spans, the finer the fading.
        spans: rows of ``quota_spans``.
        period: its end is now.
        entity: one of ``ENTITIES``.
        half_life_s: see ``HALF_LIFE_S``.

    Returns:
        one row per entity that holds or is promised something, ascending (null last)
            entity, allocated_gpu_hours, effective_gpu_hours f64 (faded),
            allocated_share_ratio, effective_share_ratio f64 | null (each adds up to 1; null: nobody
            held, or used, anything), entitled_share_ratio f64 | null (null: no guarantee is told;
            adds up to 1), allocated_factor_ratio, effective_factor_ratio f64 | null
            (2^-(share / entitled share): 1 unused, 0.5 exactly its share, towards 0 beyond),
            known_use_ratio f64 | null (allocated time whose use is known)
    """
    _, until_us = bounds(period)
    weight = faded(until_us, half_life_s=half_life_s)
    held = ledger.filter(pl.col("is_held")).group_by(entity).agg(
        allocated_gpu_hours=(gpu_hours(allocated()) * weight).sum(),
        effective_gpu_hours=(gpu_hours(leaf("used")) * weight).sum(),
        unknown_gpu_hours=(gpu_hours(leaf("unknown_use")) * weight).sum(),
    )  # fmt: skip
    promised = quota_use(spans, entity).select(entity, "guaranteed_gpu_hours")
    both = held.join(promised, on=entity, how="full", coalesce=True, nulls_equal=True)
    filled = both.with_columns(pl.exclude(entity, "guaranteed_gpu_hours").fill_null(0.0))
    shares = filled.with_columns(
        allocated_share_ratio=_share("allocated_gpu_hours"),
        effective_share_ratio=_share("effective_gpu_hours"),
        entitled_share_ratio=_share("guaranteed_gpu_hours"),
        known_use_ratio=1 - _over("unknown_gpu_hours", "allocated_gpu_hours"),
    )
    return shares.with_columns(
        allocated_factor_ratio=_factor("allocated_share_ratio"),
        effective_factor_ratio=_factor("effective_share_ratio"),
    ).sort(entity, nulls_last=True)


def _over(part: str, whole: str) -> pl.Expr:
    return pl.when(pl.col(whole) > 0).then(pl.col(part) / pl.col(whole))


def _share(name: str) -> pl.Expr:
    return pl.when(pl.col(name).sum() > 0).then(pl.col(name) / pl.col(name).sum())


def _factor(share: str) -> pl.Expr:
    entitled = pl.col("entitled_share_ratio")
    fraction = pl.when(entitled > 0).then(pl.col(share) / entitled)
    return (-fraction * math.log(2)).exp()


def jain(shares: pl.DataFrame, share: str) -> float | None:
    """Return Jain's index of share / entitled share over those who are promised something.

    Args:
        shares: rows of ``fair_shares``.
        share: ``allocated_share_ratio`` or ``effective_share_ratio``.

    Returns:
        1 where all have the same part of their promise, 1 / n where one has everything; None where
        nobody is promised or holds anything. It says nothing of how much was used.
    """
    promised = shares.filter(pl.col("entitled_share_ratio") > 0)
    parts = (promised[share] / promised["entitled_share_ratio"]).drop_nulls().to_list()
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares > 0 else None
