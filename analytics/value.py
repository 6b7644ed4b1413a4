"""What work is worth to the business, as declared, and which GPUs it occupies.

Declared levels come from ``state.business_value``. Where nothing is declared for a workload, its
priority class and class decide, and every row says which of the two spoke.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import bounds, micros
from analytics.usage import allocated, gpu_hours, leaf, share
from steward.period import Period
from steward.units import MICROS_PER_SECOND, SECONDS_PER_HOUR

LEVELS: Final = ("critical", "high", "normal", "low")
"""Most valuable first."""
SCOPES: Final = ("workload", "queue", "priority_class", "workload_class", "tenant")
"""What a level may be declared for; of several that hold for a workload the first counts."""
_COLUMNS: Final = {
    "workload": "workload_uid",
    "queue": "queue",
    "priority_class": "priority_class",
    "workload_class": "workload_class",
    "tenant": "tenant_id",
}
CRITICAL_PRIORITIES: Final = ("production", "critical")
"""Priority classes that count as critical where nothing is declared."""
LOW_PRIORITIES: Final = ("best-effort", "low")
"""Priority classes that count as low where nothing is declared."""
CRITICAL_CLASSES: Final = ("inference",)
"""Workload classes that count as critical where nothing is declared and the priority says nothing:
they serve someone while they run."""
LOWER_LEVELS: Final = ("normal", "low")
"""Work of these levels should not hold top GPUs while critical work waits for them."""
_MICROS_PER_HOUR: Final = MICROS_PER_SECOND * SECONDS_PER_HOUR


def declared(values: pl.DataFrame, period: Period) -> pl.DataFrame:
    """Return what is declared at the period's end, for each scope the row recorded last.

    Args:
        values: rows of ``state.business_value``, any order.
        period: its last moment counts: a declaration that ends with it still holds, one that
            starts at its end does not.

    Returns:
        one row per scope and key, ascending: scope_kind, scope_key, value_level str,
        start_objective_s i64 | null
    """
    last = period.until_at
    holds = (pl.col("valid_from_at") < last) & (
        pl.col("valid_until_at").is_null() | (pl.col("valid_until_at") >= last)
    )
    return (
        values.filter(holds)
        .sort("business_value_id")
        .unique(["scope_kind", "scope_key"], keep="last", maintain_order=True)
        .select("scope_kind", "scope_key", "value_level", "start_objective_s")
        .sort("scope_kind", "scope_key")
    )


def scopes(said: pl.DataFrame) -> dict[str, str]:
    """Return the scopes that something is declared for, in their order, each with its column.

    Args:
        said: rows of ``declared``.
    """
    told = set(said["scope_kind"])
    return {scope: _COLUMNS[scope] for scope in SCOPES if scope in told}


def with_level(rows: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the level of value of their workload.

    Args:
        rows: with priority_class, workload_class and the columns of ``scopes``, str | null, as in
            ``workload_standing`` and ``ledger``.
        said: rows of ``declared``.

    Returns:
        the rows in their order, with value_level str, start_objective_s i64 | null (declared with
        the level) and is_declared bool (false: by priority class or class)
    """
    found, known = rows, scopes(said)
    for scope, key in known.items():
        of_scope = said.filter(pl.col("scope_kind") == scope).select(
            pl.col("scope_key").alias(key),
            pl.col("value_level").alias(f"_{scope}"),
            pl.col("start_objective_s").alias(f"_{scope}_s"),
        )
        found = found.join(of_scope, on=key, how="left", maintain_order="left")
    levels = pl.coalesce(*[f"_{scope}" for scope in known], pl.lit(None, dtype=pl.String))
    objective = pl.coalesce(
        *[
            pl.when(pl.col(f"_{scope}").is_not_null()).then(pl.struct(seconds=f"_{scope}_s"))
            for scope in known
        ],
        pl.lit(None, dtype=pl.Struct({"seconds": pl.Int64})),
    ).struct.field("seconds")
    return found.with_columns(
        value_level=pl.coalesce(levels, _undeclared()),
        start_objective_s=objective,
        is_declared=levels.is_not_null(),
    ).select(*rows.columns, "value_level", "start_objective_s", "is_declared")


def _undeclared() -> pl.Expr:
    priority, kind = pl.col("priority_class"), pl.col("workload_class")
    return (
        pl.when(priority.is_in(CRITICAL_PRIORITIES))
        .then(pl.lit("critical"))
        .when(priority.is_in(LOW_PRIORITIES))
        .then(pl.lit("low"))
        .when(priority.is_null() & kind.is_in(CRITICAL_CLASSES))
        .then(pl.lit("critical"))
        .otherwise(pl.lit("normal"))
    )


def occupancy(ledger: pl.DataFrame, said: pl.DataFrame, tiers: pl.DataFrame) -> pl.DataFrame:
    """Return GPU-hours held by value and by capability of the GPU.

    Args:
        ledger: rows of ``ledger``.
        said: rows of ``declared``.
        tiers: one row per model: model str, capability_tier str (S the most capable).

    Returns:
        one row per level and tier, in the order of ``LEVELS``, then tiers ascending (null: the
        model's tier is unknown)
            value_level, capability_tier str | null, held_gpu_hours, used_gpu_hours f64,
            used_ratio f64 | null (of time whose use is known), share_of_tier_ratio f64 | null (of
            what is held of the tier), declared_ratio f64 | null (of held time, by declaration)
    """
    held = ledger.filter("is_held")
    levelled = with_level(held, said).join(tiers, on="model", how="left", maintain_order="left")
    ticks, known = allocated(), leaf("used") + leaf("allocated_idle")
    sums = levelled.group_by("value_level", "capability_tier").agg(
        held=ticks.sum(),
        used=leaf("used").sum(),
        known=known.sum(),
        declared=ticks.filter(pl.col("is_declared")).sum(),
    )
    order = pl.col("value_level").replace_strict(LEVELS, range(len(LEVELS)), return_dtype=pl.Int64)
    tier_held = pl.col("held").sum().over("capability_tier")
    return sums.sort(order, "capability_tier", nulls_last=True).select(
        "value_level",
        "capability_tier",
        held_gpu_hours=gpu_hours(pl.col("held")),
        used_gpu_hours=gpu_hours(pl.col("used")),
        used_ratio=share(pl.col("used"), pl.col("known")),
        share_of_tier_ratio=share(pl.col("held"), tier_held),
        declared_ratio=share(pl.col("declared"), pl.col("held")),
    )


def lower_while_critical_waits(
    allocations: pl.DataFrame, waiting: pl.DataFrame, period: Period
) -> pl.DataFrame:
    """Return GPU-hours that lower work held on GPUs for which critical work waited meanwhile.

    Args:
        allocations: started_at, ended_at | null, gpu_share_ratio, cluster, model, tenant_id,
            value_level; those of ``LOWER_LEVELS`` count.
        waiting: one row per stretch in which critical work waited: cluster, start_us, end_us i64,
            gpu_models str ("" for any, else names joined by "|").
        period: what lies outside it is cut off.

    Returns:
        one row per tenant and model, most first (ties by name): tenant_id str | null, model,
        gpu_hours f64. Each moment of a holder counts once, however many wait.
    """
    from_us, until_us = bounds(period)
    held = (
        allocations.filter(pl.col("value_level").is_in(LOWER_LEVELS))
        .with_row_index("holder")
        .with_columns(
            held_us=micros(pl.col("started_at")).clip(from_us, until_us),
            let_go_us=micros(pl.col("ended_at")).fill_null(until_us).clip(from_us, until_us),
        )
    )
    written = waiting.with_columns(
        model=pl.col("gpu_models").fill_null("").str.replace_all(" ", "-").str.split("|")
    ).explode("model", empty_as_null=False)
    waits = _merged(written).rename({"cluster": "at_cluster", "model": "wanted"})
    is_wanted = (pl.col("wanted") == "") | (pl.col("wanted") == _written())
    together = (
        held.join_where(
            waits,
            pl.col("cluster") == pl.col("at_cluster"),
            pl.col("held_us") < pl.col("end_us"),
            pl.col("let_go_us") > pl.col("start_us"),
        )
        .filter(is_wanted)
        .with_columns(
            start_us=pl.max_horizontal("held_us", "start_us"),
            end_us=pl.min_horizontal("let_go_us", "end_us"),
        )
    )
    return _hours_once(together)


def _written() -> pl.Expr:
    return pl.col("model").fill_null("").str.replace_all(" ", "-")


def _merged(spans: pl.DataFrame) -> pl.DataFrame:
    """Return overlapping spans of one cluster and model as one."""
    keys = ["cluster", "model"]
    reach = pl.col("end_us").cum_max().shift(1).over(keys)
    is_new = (reach.is_null() | (pl.col("start_us") > reach)).cast(pl.Int64)
    return (
        spans.sort(*keys, "start_us")
        .with_columns(group=is_new.cum_sum().over(keys))
        .group_by(*keys, "group")
        .agg(pl.col("start_us").min(), pl.col("end_us").max())
        .sort(*keys, "start_us")
    )


def _hours_once(spans: pl.DataFrame) -> pl.DataFrame:
    """Return hours by holder and model in which at least one span covers the holder."""
    reach = pl.col("end_us").cum_max().shift(1).over("holder")
    start = pl.max_horizontal("start_us", reach)
    hours = (pl.col("end_us") - pl.col("start_us")).clip(lower_bound=0) / _MICROS_PER_HOUR
    return (
        spans.sort("holder", "start_us")
        .with_columns(start_us=start)
        .group_by("tenant_id", "model")
        .agg(gpu_hours=(hours * pl.col("gpu_share_ratio")).sum())
        .sort("gpu_hours", "tenant_id", "model", descending=[True, False, False], nulls_last=True)
    )
