"""Report: what each tier of GPU is used for, and jobs on a tier above their need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import polars as pl

from analytics import need
from analytics.capability import TIERS, unknown_models, with_capability
from analytics.cost.costing import INPUTS as COST_INPUTS
from analytics.cost.costing import cost_instants, costing
from analytics.cost.rounding_frames import minor_as_text, with_minor
from analytics.inputs import conform
from analytics.inventory import known_devices
from analytics.need_cost import cheapest, worth_it
from analytics.reports.grouping import Grouping, asking, grouping, with_jobs
from analytics.reports.model import Asks, Column, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total
from analytics.schemas.usage import PEAK
from analytics.usage import allocated, gpu_hours, leaf, share

ROWS: Final = "ledger"
_HOLDERS: Final = ("class", "team", "user", "queue", "priority", "cluster", "model", "node")
_DEFAULT: Final = ("class", "team")
_SHOWN: Final = 200
"""Jobs shown, those that would have saved most; machine formats carry the same."""
_NAMED: Final = 3
"""Jobs told as findings."""
_HOURS: Final = (
    column("gpu_hours", "All", "GPU-hours", "wall clock x devices"),
    column("allocated_gpu_hours", "Held", "GPU-hours"),
    column("used_gpu_hours", "Used", "GPU-hours", "held, active, and working"),
    column("allocated_ratio", "Held share", "ratio", "held / all"),
    column("used_ratio", "Used share", "ratio", "used / held time of known use"),
)
_MONEY: Final = (
    column("currency", "Currency", "text", "of the prices; empty: without a price"),
    column("cost", "Cost", "currency", "of all, at the prices in force; empty: without a price"),
)
_TIER: Final = column("capability", "Tier", "text", "S strongest to D; empty: model not known")
_ABOVE: Final = (
    column("cluster", "Cluster", "text"),
    column("job", "Job", "text", "its name, else its id"),
    column("workload_uid", "Workload", "text"),
    column("tenant_id", "Tenant", "text"),
    column("workload_class", "Class", "text"),
    column("model", "GPU model", "text"),
    column("capability", "Tier", "text"),
    column("gpu_hours", "Held", "GPU-hours"),
    column("load_ratio", "Load", "ratio", "effective use while active, measured"),
    column("memory_peak_bytes", "Peak memory", "bytes", "largest reading of one GPU"),
    column("coverage_ratio", "Coverage", "ratio", "held time of measured use / held"),
    column("model_there", "Would do", "text", "the weaker model here that saves most"),
    column("capability_there", "Its tier", "text"),
    column("load_there_ratio", "Load there", "ratio", "by compute or bandwidth, the worse"),
    column("memory_there_bytes", "Memory there", "bytes"),
    column("currency", "Currency", "text"),
    column("saving", "Difference", "currency", "of both models' prices x held; empty: not known"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The measures behind the report."""

    rows: pl.DataFrame
    """The ledger with its cost and capability."""
    models: pl.DataFrame
    judged: pl.DataFrame
    above: pl.DataFrame


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return use by tier, and jobs that a weaker GPU would have carried.

    Raises:
        UsageError: the question names a grouping that the report does not take.
    """
    found = _found(frames, question)
    words = _DEFAULT if question.by is None else (question.by,)
    groups = [grouping(word, allowed=_HOLDERS) for word in words]
    return Report(
        name=DEFINITION.name,
        title="Tiers",
        period=question.period,
        figures=_figures(found),
        tables=(
            _hours_table(found.rows),
            *[_by_table(found.rows, by) for by in groups],
            _above_table(found.above),
            _judged_table(found.judged),
            _models_table(found.models),
        ),
        findings=_findings(found),
    )


def cuts(state: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
    """Return the instants at which a price changes."""
    return cost_instants(state, question.period)


def _found(frames: Mapping[str, pl.DataFrame], question: Question) -> _Found:
    cost = costing(frames, question.period, currency=question.currency)
    overrides = conform("state.capability", frames["state.capability"])
    ledger = conform(ROWS, frames[ROWS])
    models = need.models_here(ledger, overrides, device_memory(frames))
    jobs = need.jobs(ledger, conform("workload_current", frames["workload_current"]))
    able = need.alternatives(jobs, models)
    above = worth_it(cheapest(able, ledger, cost.book))
    return _Found(
        rows=with_capability(cost.rows, overrides),
        models=models,
        judged=need.judged(jobs, models, able=able, above=above),
        above=with_jobs(above, frames),
    )


def device_memory(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return the memory that devices of each model report, the smallest where they differ.

    Returns:
        one row per model, ascending: model str, memory_bytes i64 | null
    """
    devices = known_devices(
        conform("device_history", frames["device_history"]),
        conform("node_history", frames["node_history"]),
    )
    return (
        devices.drop_nulls("model")
        .group_by("model")
        .agg(memory_bytes=pl.col("memory_total_bytes").min())
        .sort("model")
    )


def _summed(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return GPU-hours and cost by keys and currency; printed costs add up by currency."""
    used, held = leaf("used").sum(), allocated().sum()
    known = (leaf("used") + leaf("allocated_idle")).sum()
    wall = pl.col("wall_ticks").cast(pl.Int128).sum()
    sums = (
        rows.group_by(*keys, "currency")
        .agg(
            gpu_hours=gpu_hours(wall),
            allocated_gpu_hours=gpu_hours(held),
            used_gpu_hours=gpu_hours(used),
            allocated_ratio=share(held, wall),
            used_ratio=share(used, known),
            cost_parts=pl.when(pl.col("capacity_parts").count() > 0).then(
                pl.col("capacity_parts").sum()
            ),
        )
        .sort(*keys, "currency", nulls_last=True)
    )
    return with_minor(sums, parts="cost_parts", ties=keys).with_columns(
        cost=minor_as_text("cost_minor")
    )


def _hours_table(rows: pl.DataFrame) -> Table:
    frame = _summed(rows, ["capability"])
    rank = pl.col("capability").replace_strict(
        TIERS, range(len(TIERS)), default=None, return_dtype=pl.Int64
    )
    return table(
        "tiers",
        "GPU-hours and cost by tier",
        frame=frame.sort(rank, "currency", nulls_last=True),
        columns=(_TIER, *_HOURS, *_MONEY),
        rows=ROWS,
        note="Amounts of one currency add up to its total.",
    )


def _by_table(rows: pl.DataFrame, by: Grouping) -> Table:
    keys = [name for name in by.keys if name != "capability"]
    return table(
        f"tiers_by_{by.table_key}",
        f"Tiers by {by.title}",
        frame=_summed(by.scope(rows), ["capability", *keys]),
        columns=(_TIER, *by.columns(), *_HOURS, *_MONEY),
        rows=ROWS,
    )


def _above_table(above: pl.DataFrame) -> Table:
    shown = with_minor(above, parts="saving_parts", ties=need.JOB).with_columns(
        saving=minor_as_text("saving_minor")
    )
    cut = f"The {_SHOWN:,} of {above.height:,} that would have saved most. "
    return table(
        "above_need",
        "Jobs on a tier above their need",
        frame=shown.head(_SHOWN),
        columns=_ABOVE,
        rows=ROWS,
        note=(cut if above.height > _SHOWN else "")
        + f"A weaker model of the same cluster would have stayed below "
        f"{percent(need.LOAD_LIMIT_RATIO)} load with the same work, and its memory below "
        f"{percent(need.MEMORY_LIMIT_RATIO)}. Whether it was free is another question.",
    )


def _judged_table(judged: pl.DataFrame) -> Table:
    counts = judged.group_by("reason").agg(
        job_count=pl.len().cast(pl.Int64), gpu_hours=pl.col("gpu_hours").sum()
    )
    frame = pl.DataFrame({"reason": need.REASONS}).join(
        counts, on="reason", how="left", maintain_order="left"
    )
    columns: tuple[Column, ...] = (
        column("reason", "Jobs", "text"),
        column("job_count", "Count", "count"),
        column("gpu_hours", "Held", "GPU-hours"),
    )
    return table(
        "judged",
        "What could be said of jobs",
        frame=frame.with_columns(pl.col("job_count", "gpu_hours").fill_null(0)),
        columns=columns,
        rows=ROWS,
        note="Only the first three are judgements; a job of the others is never named.",
    )


def _models_table(models: pl.DataFrame) -> Table:
    columns = (
        column("cluster", "Cluster", "text"),
        column("model", "GPU model", "text"),
        _TIER,
        column("gpu_hours", "GPU-hours", "GPU-hours"),
        column("generation", "Generation", "text"),
        column("memory_bytes", "Memory", "bytes", "as devices report it, else as sold"),
        column("compute_tflops", "TFLOPS", "count", "dense, BF16 or the nearest it has"),
        column("bandwidth_gb_per_s", "GB/s", "count", "of memory"),
        column("link", "Link", "text"),
        column("has_mig", "MIG", "text"),
        column("source", "Source", "text"),
    )
    return table("models", "GPU models", frame=models, columns=columns, rows=ROWS)


def _figures(found: _Found) -> tuple[Figure, ...]:
    judged = found.judged
    is_judged = pl.col("reason").is_in([need.ABOVE, need.DEARER, need.FITS])
    all_hours, hours = total(judged, "gpu_hours"), total(judged.filter(is_judged), "gpu_hours")
    above = total(found.above, "gpu_hours")
    coverage = ratio(hours, all_hours)
    facts = (
        ("judged_gpu_hours", "Held by jobs that could be judged", hours, "GPU-hours",
         "Held by jobs whose model, memory and use are known well enough."),
        ("above_need_gpu_hours", "On a tier above the need", above if hours else None,
         "GPU-hours", "Held by jobs that a weaker model here would have carried for less."),
        ("above_need_ratio", "Share above the need", ratio(above, hours), "ratio",
         "Held on a tier above the need / held by jobs that could be judged."),
        ("unknown_model_count", "Models without a tier", len(_unknown(found)), "count",
         "GPU models that neither the table nor a record knows."),
    )  # fmt: skip
    return (
        *[
            figure(
                key,
                title,
                value=value,
                unit=unit,
                definition=definition,
                rows=ROWS,
                coverage_ratio=None if unit == "count" else coverage,
            )
            for key, title, value, unit, definition in facts
        ],
        *_savings(found.above),
    )


def _savings(above: pl.DataFrame) -> tuple[Figure, ...]:
    """Return the printed difference in each currency."""
    known = above.filter(pl.col("saving_parts").is_not_null())
    sums = known.group_by("currency").agg(pl.col("saving_parts").sum()).sort("currency")
    printed = with_minor(sums, parts="saving_parts").with_columns(
        saving=minor_as_text("saving_minor")
    )
    return tuple(
        figure(
            f"above_need_saving_{str(row['currency']).lower()}",
            f"Difference of prices ({row['currency']})",
            value=row["saving"],
            unit="currency",
            definition="Cost of these jobs here minus at the weaker model's price, both known.",
            rows=ROWS,
            coverage_ratio=ratio(
                total(known.filter(pl.col("currency") == row["currency"]), "gpu_hours"),
                total(above, "gpu_hours"),
            ),
        )
        for row in printed.iter_rows(named=True)
    )


def _unknown(found: _Found) -> list[str]:
    return unknown_models(found.rows)


def _findings(found: _Found) -> tuple[str, ...]:
    told = with_minor(found.above, parts="saving_parts", ties=need.JOB).with_columns(
        saving=minor_as_text("saving_minor")
    )
    said = [_sentence(row) for row in told.head(_NAMED).iter_rows(named=True)]
    unknown = _unknown(found)
    if unknown:
        said.append(
            f"No tier is known of {', '.join(unknown)}: record one with `steward capability set`."
        )
    return tuple(said)


def _sentence(row: Mapping[str, object]) -> str:
    money = "" if row["saving"] is None else f", {row['saving']} {row['currency']} less"
    hours = float(str(row["gpu_hours"]))
    load = percent(float(str(row["load_there_ratio"])))
    return (
        f"{row['job']} of {row['tenant_id'] or 'an unknown tenant'} held {hours:,.1f} "
        f"GPU-hours of {row['model']}; {row['model_there']} would have carried it at {load} "
        f"load{money}."
    )


def asks(_state: Mapping[str, pl.DataFrame], question: Question) -> Asks:
    """Return what the report reads of the ledger: jobs, and what they are grouped by."""
    words = _DEFAULT if question.by is None else (question.by,)
    known = ("is_held", *need.JOB, "tenant_id", "workload_class", "tier", PEAK)
    return {"ledger": asking(*known, words=words)}


DEFINITION = ReportDefinition(
    name="tiers",
    summary="what each tier of GPU is used for, and jobs on a tier above their need",
    inputs=(
        *COST_INPUTS,
        "state.capability",
        "device_history",
        "node_history",
        "workload_current",
    ),
    build=build,
    groupings=_HOLDERS,
    cuts=cuts,
    asks=asks,
)
