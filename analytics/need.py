"""Jobs on a GPU above their need: would a weaker GPU of the same cluster have carried them?

Judged by what a job did while it worked, never by what is unknown: its measured load (tier 1) is
scaled by the ratio of peak compute and of memory bandwidth, whichever is worse, so a job bound by
either counts as bound by both; its largest memory reading must fit with room to spare; a job of
several GPUs that had fast links keeps them. A job is named only where all of that is known.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.capability import TIERS, capability_of
from analytics.tiers import TIER_PIPES
from analytics.usage import ALLOCATED, gpu_hours, leaf, share

LOAD_LIMIT_RATIO: Final = 0.7
"""A weaker GPU carries a job only below this load: the rest is room for bursts."""
MEMORY_LIMIT_RATIO: Final = 0.9
"""The largest memory reading may fill at most this much of a weaker GPU."""
COVERAGE_FLOOR_RATIO: Final = 0.8
"""Share of held time whose use must be measured before a job is judged."""
SMALLEST_GPU_HOURS: Final = 1.0
"""A job that held less is not worth moving."""
FAST_LINKS: Final = ("NVLink", "xGMI", "HCCS")
JOB: Final = ("cluster", "workload_uid", "model")

ABOVE: Final = "a weaker GPU would do"
DEARER: Final = "a weaker GPU would do, and costs no less"
FITS: Final = "needs what it has"
REASONS: Final = (
    ABOVE,
    DEARER,
    FITS,
    "GPU model not known",
    "held too little",
    "memory not known",
    "use not measured",
    "did no measured work",
)
"""Every job has one of these; only the first three are judgements."""


def models_here(
    ledger: pl.DataFrame, overrides: pl.DataFrame | None, memory: pl.DataFrame
) -> pl.DataFrame:
    """Return what the GPU models of the ledger can do.

    Args:
        ledger: rows of ``ledger``.
        overrides: rows of ``state.capability``.
        memory: one row per model: model, memory_bytes i64 | null, what its devices report.

    Returns:
        one row per cluster and model, ascending: cluster, model, capability str | null,
        memory_bytes i64 | null, bandwidth_gb_per_s i64 | null, compute_tflops f64 | null,
        generation, link, source str | null, has_mig bool | null, gpu_hours f64 (all leaves)
    """
    reported = dict(memory.select("model", "memory_bytes").iter_rows())
    hours = (
        ledger.group_by("cluster", "model")
        .agg(gpu_hours=gpu_hours(pl.col("wall_ticks").cast(pl.Int128).sum()))
        .sort("cluster", "model", nulls_last=True)
    )
    found = [
        capability_of(name, memory_bytes=reported.get(name), overrides=overrides)
        for name in hours["model"]
    ]
    facts = {
        "memory_bytes": pl.Int64,
        "bandwidth_gb_per_s": pl.Int64,
        "compute_tflops": pl.Float64,
        "generation": pl.String,
        "link": pl.String,
        "has_mig": pl.Boolean,
        "source": pl.String,
    }
    columns = [
        pl.Series(name, [getattr(one, name, None) for one in found], dtype=dtype)
        for name, dtype in facts.items()
    ]
    tiers = pl.Series("capability", [getattr(one, "tier", None) for one in found], dtype=pl.String)
    return hours.with_columns(tiers, *columns).select(
        "cluster", "model", "capability", *facts, "gpu_hours"
    )


def jobs(ledger: pl.DataFrame, workloads: pl.DataFrame) -> pl.DataFrame:
    """Return what each job held of each model and did with it.

    Args:
        ledger: rows of ``ledger``.
        workloads: rows of ``workload_current``, for the number of GPUs asked for.

    Returns:
        one row per cluster, workload_uid and model, ascending
            ``JOB``, tenant_id, workload_class (of most of its time), gpu_hours f64 (held),
            coverage_ratio f64 | null (measured / held), load_ratio f64 | null (effective use while
            active, measured), memory_peak_bytes i64 | null, gpu_count i64 | null
    """
    held = ledger.filter("is_held", pl.col("workload_uid").is_not_null()).with_columns(
        held=pl.sum_horizontal(leaf(name) for name in ALLOCATED)
    )
    is_measured = pl.col("tier") == TIER_PIPES
    used, ineffective, idle = (
        pl.col(name).cast(pl.Int128).filter(is_measured).sum()
        for name in ("used_measured_ticks", "ineffective_ticks", "idle_ticks")
    )
    asked = workloads.select("cluster", "workload_uid", "gpu_count").unique(
        ["cluster", "workload_uid"], keep="last", maintain_order=True
    )
    order = ["held", "tenant_id", "workload_class"]
    longest_first = held.sort(order, descending=[True, False, False], nulls_last=True)
    return (
        longest_first.group_by(JOB, maintain_order=True)
        .agg(
            pl.col("tenant_id", "workload_class").first(),
            gpu_hours=gpu_hours(pl.col("held").sum()),
            coverage_ratio=share(used + ineffective + idle, pl.col("held").sum()),
            load_ratio=share(used, used + ineffective),
            memory_peak_bytes=pl.col("memory_peak_bytes").max(),
        )
        .join(asked, on=["cluster", "workload_uid"], how="left")
        .sort(JOB, nulls_last=True)
    )


def judged(
    jobs: pl.DataFrame, models: pl.DataFrame, *, able: pl.DataFrame, above: pl.DataFrame
) -> pl.DataFrame:
    """Return each job with whether a weaker GPU of its cluster would have carried it.

    Args:
        jobs: rows of ``jobs``.
        models: rows of ``models_here``.
        able: rows of ``alternatives``.
        above: those of them that do not cost more (``need_cost.worth_it``).

    Returns:
        the jobs in their order with capability str | null and reason (one of ``REASONS``)
    """
    here = models.select("cluster", "model", "capability", "compute_tflops", "bandwidth_gb_per_s")
    told = jobs.join(
        here, on=["cluster", "model"], how="left", nulls_equal=True, maintain_order="left"
    )
    for name, found in (("is_able", able), ("is_above", above)):
        known = found.select(JOB).unique().with_columns(pl.lit(value=True).alias(name))
        told = told.join(known, on=JOB, how="left", maintain_order="left")
    reason: pl.Expr = pl.lit(FITS)
    for text, is_so in reversed(_obstacles().items()):
        reason = pl.when(is_so).then(pl.lit(text)).otherwise(reason)
    is_able, is_above = (pl.col(name).fill_null(value=False) for name in ("is_able", "is_above"))
    told_reason = (
        pl.when(is_above).then(pl.lit(ABOVE)).when(is_able).then(pl.lit(DEARER)).otherwise(reason)
    )
    return told.with_columns(reason=told_reason).drop(
        "is_able", "is_above", "compute_tflops", "bandwidth_gb_per_s"
    )


def alternatives(jobs: pl.DataFrame, models: pl.DataFrame) -> pl.DataFrame:
    """Return every weaker GPU of its cluster that would have carried a job.

    Returns:
        one row per job and model, ascending: the columns of ``jobs``, capability,
        model_there, capability_there, load_there_ratio f64, memory_there_bytes i64
    """
    known = models.drop_nulls(["compute_tflops", "bandwidth_gb_per_s"]).drop("gpu_hours")
    ranked = known.with_columns(
        rank=pl.col("capability").replace_strict(TIERS, range(len(TIERS)), return_dtype=pl.Int64),
        is_linked=pl.col("link").is_in(FAST_LINKS),
    )
    there = ranked.select("cluster", pl.exclude("cluster").name.suffix("_there"))
    compute = pl.col("compute_tflops") / pl.col("compute_tflops_there")
    bandwidth = pl.col("bandwidth_gb_per_s") / pl.col("bandwidth_gb_per_s_there")
    is_known = ~pl.any_horizontal(_obstacles().values())
    pairs = (
        jobs.join(ranked, on=["cluster", "model"])
        .filter(is_known)
        .join(there, on="cluster")
        .with_columns(load_there_ratio=pl.col("load_ratio") * pl.max_horizontal(compute, bandwidth))
    )
    room = pl.col("memory_bytes_there") * MEMORY_LIMIT_RATIO
    keeps_links = ~pl.col("is_linked") | pl.col("is_linked_there") | (pl.col("gpu_count") == 1)
    return (
        pairs.filter(
            pl.col("rank_there") > pl.col("rank"),
            pl.col("load_there_ratio") < LOAD_LIMIT_RATIO,
            pl.col("memory_peak_bytes") <= room,
            keeps_links.fill_null(value=False),
        )
        .select(
            *jobs.columns,
            "capability",
            "model_there",
            "capability_there",
            "load_there_ratio",
            memory_there_bytes="memory_bytes_there",
        )
        .sort(*JOB, "model_there")
    )


def _obstacles() -> dict[str, pl.Expr]:
    """Return what keeps a job from being judged, the first that holds counts."""
    nothing_done = pl.col("load_ratio").is_null() | (pl.col("load_ratio") == 0)
    figures = pl.col("compute_tflops").is_null() | pl.col("bandwidth_gb_per_s").is_null()
    return {
        REASONS[3]: figures,
        REASONS[4]: pl.col("gpu_hours") < SMALLEST_GPU_HOURS,
        REASONS[5]: pl.col("memory_peak_bytes").is_null(),
        REASONS[6]: pl.col("coverage_ratio").fill_null(0.0) < COVERAGE_FLOOR_RATIO,
        REASONS[7]: nothing_done,
    }
