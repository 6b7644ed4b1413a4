"""From an idle verdict to GPUs at work again: how far each case came, how fast, with what regret.

A case is one stretch in which a workload was judged idle: from the first such verdict to the first
busy one, or until it let go. UNKNOWN neither ends a case nor starts one. Only real actions count:
a dry run warned and stopped nobody.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import polars as pl

from analytics.intervals import bounds, micros
from steward.period import Period
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

IDLE: Final = "IDLE"
BUSY: Final = "BUSY"
WARNING_KINDS: Final = ("notify", "warn")
"""Actions that tell the owner and change nothing."""
GENTLE_KINDS: Final = ("lower_priority", "mark_preemptible")
"""Actions that let others take the GPUs, and take none themselves: neither warning nor reclaim."""
REUSE_WITHIN: Final = timedelta(hours=1)
"""GPUs that nobody else holds within this time after they were reclaimed were not needed then."""
REGRET_WITHIN: Final = timedelta(hours=24)
"""An owner who wants the GPUs back within this time did not consider them idle."""
STEPS: Final = ("detected", "warned", "reclaimed", "reused")
_CASE: Final = ("cluster", "workload_uid", "case_number")
_WORKLOAD: Final = ("cluster", "workload_uid")
_MICROS_PER_HOUR: Final = MICROS_PER_SECOND * SECONDS_PER_HOUR


def cases(verdicts: pl.DataFrame, holds: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return the cases of the period: stretches in which a workload was judged idle.

    Args:
        verdicts: rows of ``verdict_history``, any order; words in any case.
        holds: rows of ``holds_of``: a case ends when its workload holds nothing any more.
        period: a case belongs to the period if it is open at some time in it.

    Returns:
        one row per case, ascending
            cluster, workload_uid, case_number i64, detected_us i64, busy_us i64 | null (judged
            busy again), let_go_us i64 | null (null: still held when the period ended, or it is not
            recorded that it held anything), gpu_count f64 | null (held when detected; null: not
            recorded)
    """
    from_us, until_us = bounds(period)
    word = pl.col("verdict").str.to_uppercase()
    told = (
        verdicts.with_columns(word=word, at_us=micros(pl.col("judged_at")))
        .filter(pl.col("word").is_in([IDLE, BUSY]) & (pl.col("at_us") < until_us))
        .sort(*_WORKLOAD, "at_us", "word")
    )
    is_new = pl.col("word").ne_missing(pl.col("word").shift(1).over(_WORKLOAD))
    numbered = told.with_columns(case_number=is_new.cast(pl.Int64).cum_sum().over(_WORKLOAD))
    stretches = (
        numbered.group_by(_CASE, maintain_order=True)
        .agg(pl.col("word").first(), detected_us=pl.col("at_us").first())
        .with_columns(busy_us=pl.col("detected_us").shift(-1).over(_WORKLOAD))
        .filter(pl.col("word") == IDLE)
        .drop("word")
    )
    found = _with_holds(stretches, holds)
    end_us = pl.min_horizontal("busy_us", "let_go_us").fill_null(until_us)
    return found.filter(end_us > from_us).sort(_CASE)


def holds_of(allocations: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return what each workload held, clipped to the period's end.

    Args:
        allocations: rows of ``allocation_history``.
        period: what begins later is left out.

    Returns:
        one row per allocation of a known workload, ascending
            cluster, workload_uid, device_uuid, instance_id, gpu_share_ratio, start_us, end_us i64,
            is_open bool (held beyond the period's end)
    """
    _, until_us = bounds(period)
    end_us = micros(pl.col("ended_at"))
    return (
        allocations.filter(
            pl.col("workload_uid").is_not_null() & (micros(pl.col("started_at")) < until_us)
        )
        .select(
            *_WORKLOAD, "device_uuid", "instance_id", "gpu_share_ratio",
            start_us=micros(pl.col("started_at")),
            end_us=end_us.fill_null(until_us).clip(upper_bound=until_us),
            is_open=end_us.is_null() | (end_us > until_us),
        )
        .sort(*_WORKLOAD, "device_uuid", "instance_id", "start_us")
    )  # fmt: skip


def _with_holds(stretches: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    """Add what was held when a case was detected and when the last of it was let go."""
    at = pl.col("detected_us")
    touching = stretches.select(*_CASE, "detected_us").join(holds, on=_WORKLOAD)
    held = touching.filter((pl.col("start_us") <= at) & (pl.col("end_us") > at))
    sums = held.group_by(_CASE).agg(
        gpu_count=pl.col("gpu_share_ratio").sum(),
        let_go_us=pl.when(~pl.col("is_open").any()).then(pl.col("end_us").max()),
    )
    return stretches.join(sums, on=_CASE, how="left", maintain_order="left")


def with_actions(found: pl.DataFrame, actions: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return cases with what was done about them.

    Args:
        found: rows of ``cases``.
        actions: rows of ``state.action``, any order; those on the case's workload that were carried
            out while it was open count.
        period: what was done at its end or later does not count.

    Returns:
        the cases with warned_us, reclaimed_us i64 | null and reclaim_action_id i64 | null (the
        first of each)
    """
    _, until_us = bounds(period)
    carried = _carried_out(actions).filter(pl.col("undoes_action_id").is_null())
    last_us = pl.col("busy_us").fill_null(until_us)
    inside = (
        found.select(*_CASE, "detected_us", "busy_us")
        .join(carried, left_on="workload_uid", right_on="subject_uid")
        .filter((pl.col("acted_us") >= pl.col("detected_us")) & (pl.col("acted_us") < last_us))
        .sort("acted_us", "action_id")
    )
    is_warning = pl.col("kind").is_in(WARNING_KINDS)
    is_reclaim = ~pl.col("kind").is_in([*WARNING_KINDS, *GENTLE_KINDS])
    steps = inside.group_by(_CASE).agg(
        warned_us=pl.col("acted_us").filter(is_warning).first(),
        reclaimed_us=pl.col("acted_us").filter(is_reclaim).first(),
        reclaim_action_id=pl.col("action_id").filter(is_reclaim).first(),
    )
    return found.join(steps, on=_CASE, how="left", maintain_order="left")


def _carried_out(actions: pl.DataFrame) -> pl.DataFrame:
    is_real = (pl.col("is_dry_run") == 0) & (pl.col("outcome") == "done")
    return actions.filter(is_real).with_columns(acted_us=micros(pl.col("recorded_at")))


def with_outcomes(
    acted: pl.DataFrame,
    *,
    holds: pl.DataFrame,
    actions: pl.DataFrame,
    exemptions: pl.DataFrame,
    period: Period,
) -> pl.DataFrame:
    """Return cases with what became of the GPUs, and whether the owner wanted them back.

    Args:
        acted: rows of ``with_actions``.
        holds: rows of ``holds_of``.
        actions: rows of ``state.action``.
        exemptions: rows of ``state.exemption``: one for the workload, recorded after it was
            reclaimed, is an appeal that was granted.
        period: outcomes are watched to its end.

    Returns:
        the cases with
            reused_us i64 | null (another workload took one of the GPUs),
            is_reused bool | null (within ``REUSE_WITHIN``; null: not reclaimed, no GPU is recorded,
            or the period ended first), reused_gpu_hours f64 | null (held by others since),
            regret str | null (undone, came_back or appealed, the first that holds),
            is_regretted bool | null (within ``REGRET_WITHIN``; null: not reclaimed, or the period
            ended first),
            idle_gpu_hours f64 | null (detected until reclaimed, busy, let go or the period's end,
            inside the period)
    """
    from_us, until_us = bounds(period)
    freed = acted.filter(pl.col("reclaimed_us").is_not_null())
    reused = _reuse(freed, holds)
    regrets = _regrets(freed, holds=holds, actions=actions, exemptions=exemptions)
    rows = acted.join(reused, on=_CASE, how="left", maintain_order="left").join(
        regrets, on=_CASE, how="left", maintain_order="left"
    )
    end_us = pl.min_horizontal("reclaimed_us", "busy_us", "let_go_us", pl.lit(until_us))
    idle_us = end_us - pl.col("detected_us").clip(lower_bound=from_us)
    is_known = pl.col("reclaimed_us").is_not_null() & pl.col("gpu_count").is_not_null()
    hours = pl.col("reused_gpu_hours").fill_null(0.0)
    return rows.with_columns(
        is_reused=pl.when(is_known).then(_within("reused_us", REUSE_WITHIN, until_us)),
        is_regretted=_within("regret_us", REGRET_WITHIN, until_us),
        reused_gpu_hours=pl.when(is_known).then(hours),
        idle_gpu_hours=pl.col("gpu_count") * idle_us.clip(lower_bound=0) / _MICROS_PER_HOUR,
    ).drop("regret_us")


def _within(instant: str, within: timedelta, until_us: int) -> pl.Expr:
    """Tell whether an instant came in time after the reclaim; null while it still may."""
    last_us = pl.col("reclaimed_us") + within // timedelta(microseconds=1)
    return (
        pl.when(pl.col(instant) <= last_us)
        .then(pl.lit(value=True))
        .when(last_us < until_us)
        .then(pl.lit(value=False))
    )


def _reuse(freed: pl.DataFrame, holds: pl.DataFrame) -> pl.DataFrame:
    """Return when others first took a GPU of each case, and the GPU-hours that they held since."""
    slot = ["cluster", "device_uuid", "instance_id"]
    at = pl.col("detected_us")
    own = (
        freed.select(*_CASE, "detected_us", "reclaimed_us")
        .join(holds, on=_WORKLOAD)
        .filter((pl.col("start_us") <= at) & (pl.col("end_us") > at))
        .select(*_CASE, "reclaimed_us", *slot[1:])
        .unique()
    )
    others = own.join(holds, on=slot, nulls_equal=True, suffix="_other").filter(
        (pl.col("workload_uid_other") != pl.col("workload_uid"))
        & (pl.col("start_us") >= pl.col("reclaimed_us"))
    )
    hours = (pl.col("end_us") - pl.col("start_us")) / _MICROS_PER_HOUR
    return others.group_by(_CASE).agg(
        reused_us=pl.col("start_us").min(),
        reused_gpu_hours=(hours * pl.col("gpu_share_ratio")).sum(),
    )


def _regrets(
    freed: pl.DataFrame, *, holds: pl.DataFrame, actions: pl.DataFrame, exemptions: pl.DataFrame
) -> pl.DataFrame:
    """Return the first sign that the owner of each case wanted the GPUs back."""
    keys = [*_CASE, "reclaimed_us", "reclaim_action_id"]
    reclaimed = freed.select(keys)
    back = holds.select(*_WORKLOAD, at_us="start_us")
    appealed = exemptions.filter(pl.col("scope_kind") == "workload").select(
        workload_uid="scope_key", at_us=micros(pl.col("recorded_at"))
    )
    signs = [
        reclaimed.join(rows, on=on).with_columns(regret=pl.lit(name))
        for name, rows, on in (
            ("undone", _undone(actions), ["reclaim_action_id"]),
            ("came_back", back, list(_WORKLOAD)),
            ("appealed", appealed, ["workload_uid"]),
        )
    ]
    columns = [*_CASE, "reclaimed_us", "at_us", "regret"]
    last_us = pl.col("reclaimed_us") + REGRET_WITHIN // timedelta(microseconds=1)
    is_after = (pl.col("at_us") > pl.col("reclaimed_us")) & (pl.col("at_us") <= last_us)
    order = pl.col("regret").replace_strict(
        ["undone", "came_back", "appealed"], [0, 1, 2], return_dtype=pl.Int64
    )
    return (
        pl.concat([each.select(columns) for each in signs])
        .filter(is_after)
        .sort(order, "at_us")
        .group_by(_CASE, maintain_order=True)
        .agg(regret=pl.col("regret").first(), regret_us=pl.col("at_us").first())
    )


def _undone(actions: pl.DataFrame) -> pl.DataFrame:
    """Return when which action was undone, by an action of its own or as an outcome of its step."""
    by_action = _carried_out(actions).filter(pl.col("undoes_action_id").is_not_null())
    step = ["plan_id", "step_number"]
    as_outcome = actions.filter((pl.col("outcome") == "undone") & (pl.col("is_dry_run") == 0))
    own = _carried_out(actions).select(*step, reclaim_action_id="action_id")
    return pl.concat(
        [
            by_action.select(reclaim_action_id="undoes_action_id", at_us="acted_us"),
            as_outcome.join(own, on=step).select(
                "reclaim_action_id", at_us=micros(pl.col("recorded_at"))
            ),
        ]
    )


def funnel(rows: pl.DataFrame, *, has_verdicts: bool, has_actions: bool) -> pl.DataFrame:
    """Return how many cases reached each step.

    Args:
        rows: rows of ``with_outcomes``.
        has_verdicts: whether verdicts are recorded at all.
        has_actions: whether actions are recorded at all.

    Returns:
        one row per step of ``STEPS``, in that order
            step, case_count i64 | null (null: what would tell is not recorded), gpu_count f64 |
            null (null too if what one of them held is not recorded), of_detected_ratio f64 | null
    """
    flags = {
        "detected": pl.lit(value=True),
        "warned": pl.col("warned_us").is_not_null(),
        "reclaimed": pl.col("reclaimed_us").is_not_null(),
        "reused": pl.col("is_reused").fill_null(value=False),
    }
    told = []
    for step in STEPS:
        reached = rows.filter(flags[step])
        is_told = has_verdicts and (step == "detected" or has_actions)
        gpus = reached["gpu_count"].drop_nulls()
        told.append(
            {
                "step": step,
                "case_count": reached.height if is_told else None,
                "gpu_count": gpus.sum() if is_told and len(gpus) == reached.height else None,
                "of_detected_ratio": (
                    reached.height / rows.height if is_told and rows.height else None
                ),
            }
        )
    return pl.DataFrame(told, schema=_FUNNEL)


_FUNNEL: Final = pl.Schema(
    {
        "step": pl.String,
        "case_count": pl.Int64,
        "gpu_count": pl.Float64,
        "of_detected_ratio": pl.Float64,
    }
)


def speed(rows: pl.DataFrame) -> dict[str, float | None]:
    """Return the median seconds from detected to reclaimed, and the shares reused and regretted.

    Args:
        rows: rows of ``with_outcomes``.

    Returns:
        median_s, reused_ratio (of decided reclaims), regret_ratio (of decided reclaims); None
        where there is none
    """
    seconds = (rows["reclaimed_us"] - rows["detected_us"]).drop_nulls() / MICROS_PER_SECOND
    ratios = {
        name: rows[flag].drop_nulls().cast(pl.Float64).mean()
        for name, flag in (("reused_ratio", "is_reused"), ("regret_ratio", "is_regretted"))
    }
    known = {"median_s": seconds.median(), **ratios}
    return {name: value if isinstance(value, float) else None for name, value in known.items()}


def by_holder(rows: pl.DataFrame, key: str) -> pl.DataFrame:
    """Return cases, GPU-hours and outcomes by team or class.

    Args:
        rows: rows of ``with_outcomes`` with the key.
        key: tenant_id or workload_class.

    Returns:
        one row per value, most idle first (ties by name)
            key, detected_count, warned_count, reclaimed_count, reused_count, regretted_count i64,
            idle_gpu_hours, reused_gpu_hours f64 | null (null: not recorded what was held)
    """
    hours = [
        pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()).alias(name)
        for name in ("idle_gpu_hours", "reused_gpu_hours")
    ]
    return (
        rows.group_by(key)
        .agg(
            detected_count=pl.len().cast(pl.Int64),
            warned_count=pl.col("warned_us").is_not_null().sum().cast(pl.Int64),
            reclaimed_count=pl.col("reclaimed_us").is_not_null().sum().cast(pl.Int64),
            reused_count=pl.col("is_reused").sum().cast(pl.Int64),
            regretted_count=pl.col("is_regretted").sum().cast(pl.Int64),
        )
        .join(rows.group_by(key).agg(hours), on=key, nulls_equal=True)
        .sort("idle_gpu_hours", key, descending=[True, False], nulls_last=True)
    )
