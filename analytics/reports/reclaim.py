"""Report: what became of GPUs that were judged idle."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import polars as pl

from analytics.inputs import conform
from analytics.inventory import known_devices
from analytics.reclaim import (
    REGRET_WITHIN,
    REUSE_WITHIN,
    by_holder,
    cases,
    funnel,
    holds_of,
    speed,
    with_actions,
    with_outcomes,
)
from analytics.reclaimed_time import STRETCHES, as_ledger, idle_spans, reused_spans
from analytics.reports import leaf_cost
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, table
from steward.period import Period

_VERDICTS, _ACTIONS, _EXEMPTIONS = "verdict_history", "state.action", "state.exemption"
_HOLDS, _STANDING = "allocation_history", "workload_standing"
_DEVICES, _NODES = "device_history", "node_history"
GROUPINGS: Final = {"team": "tenant_id", "class": "workload_class"}
"""Words of ``--by`` and the columns that they name."""
_TITLES: Final = {"team": "Team", "class": "Class"}
CASES_SHOWN: Final = 20
_MEANINGS: Final = {
    "detected": "judged idle",
    "warned": "and the owner was told",
    "reclaimed": "and the GPUs were taken back",
    "reused": "and somebody else held one of them within 1 h",
}


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return the way from detected to reused, its speed and its regret."""
    period = question.period
    rows = _rows(frames, period)
    verdicts, actions = frames[_VERDICTS], frames[_ACTIONS]
    steps = funnel(rows, has_verdicts=not verdicts.is_empty(), has_actions=not actions.is_empty())
    return Report(
        name=DEFINITION.name,
        title="Reclaim",
        period=period,
        figures=_figures(rows, steps, has_actions=not actions.is_empty()),
        tables=(
            _funnel_table(steps),
            _holders_table(rows, question.by or "team"),
            _regrets_table(rows),
            _cases_table(rows, period),
            *_money_table(frames, rows, question),
        ),
        findings=_findings(frames, rows),
    )


def _rows(frames: Mapping[str, pl.DataFrame], period: Period) -> pl.DataFrame:
    holds = holds_of(conform(_HOLDS, frames[_HOLDS]), period)
    actions = conform(_ACTIONS, frames[_ACTIONS])
    found = cases(conform(_VERDICTS, frames[_VERDICTS]), holds, period)
    outcomes = with_outcomes(
        with_actions(found, actions, period),
        holds=holds,
        actions=actions,
        exemptions=conform(_EXEMPTIONS, frames[_EXEMPTIONS]),
        period=period,
    )
    known = conform(_STANDING, frames[_STANDING]).select(
        "cluster", "workload_uid", "name", "tenant_id", "workload_class", "owner"
    )
    return outcomes.join(known, on=["cluster", "workload_uid"], how="left", maintain_order="left")


def _figures(rows: pl.DataFrame, steps: pl.DataFrame, *, has_actions: bool) -> tuple[Figure, ...]:
    counts = dict(steps.select("step", "case_count").iter_rows())
    told = speed(rows if has_actions else rows.clear())
    is_told = counts["detected"] is not None
    idle, reused = (_known_sum(rows, name) for name in ("idle_gpu_hours", "reused_gpu_hours"))
    facts: tuple[tuple[str, str, float | None, str, str], ...] = (
        ("detected_count", "Judged idle", counts["detected"], "count",
         "Stretches in which a workload was judged idle, open at some time of the period."),
        ("reclaimed_count", "Reclaimed", counts["reclaimed"], "count",
         "Of these, those whose GPUs were taken back by an action that was carried out."),
        ("judged_idle_gpu_hours", "Idle while judged so", idle if is_told else None, "GPU-hours",
         "GPUs held x time from the first idle verdict to reclaim, work, release or the end."),
        ("reused_gpu_hours", "Reused", reused if has_actions else None, "GPU-hours",
         "Held by other workloads on the same GPUs since they were reclaimed."),
        ("idle_to_reclaimed_s", "Idle to reclaimed", told["median_s"], "s",
         "Median time from the first idle verdict to the reclaim."),
        ("reused_ratio", "Reused within 1 h", told["reused_ratio"], "ratio",
         f"Share of reclaims after which others took a GPU within {_hours(REUSE_WITHIN)} h."),
        ("regret_ratio", "Regretted within 24 h", told["regret_ratio"], "ratio",
         f"Share of reclaims undone, appealed or asked back within {_hours(REGRET_WITHIN)} h."),
    )  # fmt: skip
    return tuple(
        figure(key, title, value=value, unit=unit, definition=definition, rows=_VERDICTS)
        for key, title, value, unit, definition in facts
    )


def _hours(length: timedelta) -> int:
    return length // timedelta(hours=1)


def _known_sum(rows: pl.DataFrame, name: str) -> float | None:
    known = rows[name].drop_nulls()
    return float(known.sum()) if len(known) else None


def _funnel_table(steps: pl.DataFrame) -> Table:
    columns = (
        column("step", "Step", "text"),
        column("case_count", "Cases", "count"),
        column("gpu_count", "GPUs", "GPU", "held when judged idle first"),
        column("of_detected_ratio", "Of detected", "ratio"),
        column("meaning", "Meaning", "text"),
    )
    meaning = pl.col("step").replace_strict(_MEANINGS, return_dtype=pl.String)
    frame = steps.with_columns(meaning=meaning)
    return table("funnel", "From idle to reused", frame=frame, columns=columns, rows=_VERDICTS)


def _holders_table(rows: pl.DataFrame, word: str) -> Table:
    key = GROUPINGS[word]
    columns = (
        column(key, _TITLES[word], "text"),
        column("detected_count", "Judged idle", "count"),
        column("warned_count", "Warned", "count"),
        column("reclaimed_count", "Reclaimed", "count"),
        column("reused_count", "Reused", "count"),
        column("regretted_count", "Regretted", "count"),
        column("idle_gpu_hours", "Idle", "GPU-hours"),
        column("reused_gpu_hours", "Reused", "GPU-hours"),
    )
    title = f"By {_TITLES[word].lower()}"
    frame = by_holder(rows, key)
    return table(f"by_{word}", title, frame=frame, columns=columns, rows=_VERDICTS)


def _regrets_table(rows: pl.DataFrame) -> Table:
    frame = (
        rows.filter(pl.col("is_regretted"))
        .group_by("regret")
        .agg(case_count=pl.len().cast(pl.Int64))
        .sort("regret")
    )
    columns = (
        column("regret", "Sign", "text", "undone, came_back or appealed"),
        column("case_count", "Cases", "count"),
    )
    return table("regrets", "Regretted reclaims", frame=frame, columns=columns, rows=_ACTIONS)


def _cases_table(rows: pl.DataFrame, period: Period) -> Table:
    ends = ("detected", "warned", "reclaimed", "reused")
    frame = rows.sort(
        "idle_gpu_hours", "cluster", "workload_uid", "case_number",
        descending=[True, False, False, False], nulls_last=True,
    ).head(CASES_SHOWN).with_columns(
        _told_at(pl.col(f"{each}_us")).alias(f"{each}_at") for each in ends
    )  # fmt: skip
    columns = (
        column("name", "Workload", "text"),
        column("tenant_id", "Team", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("idle_gpu_hours", "Idle", "GPU-hours"),
        *(column(f"{each}_at", each.capitalize(), "text", "UTC") for each in ends),
        column("regret", "Regret", "text"),
    )
    return table(
        "cases", f"Longest idle cases ({CASES_SHOWN})", frame=frame, columns=columns,
        rows=_VERDICTS, note=f"Open at some time before {period.until_at:%Y-%m-%d %H:%M} UTC.",
    )  # fmt: skip


def _told_at(instant_us: pl.Expr) -> pl.Expr:
    return instant_us.cast(pl.Datetime("us")).dt.to_string("%Y-%m-%d %H:%M")


def _money_table(
    frames: Mapping[str, pl.DataFrame], rows: pl.DataFrame, question: Question
) -> tuple[Table, ...]:
    """Return what idle cases cost, and what others held of their GPUs since is worth."""
    if frames["state.price"].is_empty() or rows.is_empty():
        return ()
    period = question.period
    holds = holds_of(conform(_HOLDS, frames[_HOLDS]), period)
    spans = (idle_spans(rows, holds, period), reused_spans(rows, holds))
    homes = known_devices(conform(_DEVICES, frames[_DEVICES]), conform(_NODES, frames[_NODES]))
    parts = [
        as_ledger(
            each,
            models=homes.select("cluster", "device_uuid", "model"),
            owners=rows.select("cluster", "workload_uid", "tenant_id").unique(),
            cuts=(period.from_at, *leaf_cost.cuts(frames, question)),
        ).with_columns(reason=pl.lit(stretch))
        for stretch, each in zip(STRETCHES, spans, strict=True)
    ]
    charged = leaf_cost.with_prices(pl.concat(parts), frames, period)
    frame = leaf_cost.printed_by(charged, "allocated_idle_parts", ["reason", "tenant_id"])
    columns = (
        column("stretch", "Stretch", "text", "judged_idle, or reused: held by others since"),
        column("tenant_id", "Team", "text", "of the workload that was judged idle"),
        column("currency", "Currency", "text"),
        column("cost", "At its price", "currency"),
    )
    return (
        table(
            "money", "What idle cases cost, and what was won back", columns=columns,
            frame=frame.rename({"reason": "stretch"}), rows=_HOLDS,
            note="Device-time at the price in force; GPUs without a price have no row.",
        ),
    )  # fmt: skip


def _findings(frames: Mapping[str, pl.DataFrame], rows: pl.DataFrame) -> tuple[str, ...]:
    if frames[_VERDICTS].is_empty():
        return ("No verdict is recorded: nothing has been judged idle or busy in this period.",)
    if frames[_ACTIONS].is_empty():
        return ("No action is recorded: what was judged idle was neither warned nor reclaimed.",)
    told = speed(rows)
    if told["regret_ratio"]:
        return (f"{percent(told['regret_ratio'])} of reclaims were regretted within 24 h.",)
    return ()


DEFINITION = ReportDefinition(
    name="reclaim",
    summary="what became of GPUs that were judged idle, how fast, and with what regret",
    inputs=(
        _VERDICTS,
        _ACTIONS,
        _EXEMPTIONS,
        _HOLDS,
        _STANDING,
        _DEVICES,
        _NODES,
        *leaf_cost.INPUTS,
    ),
    build=build,
    groupings=tuple(GROUPINGS),
)
