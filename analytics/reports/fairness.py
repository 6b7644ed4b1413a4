"""Report: whose quota was used by whom, who waited meanwhile, and whether shares are fair."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import polars as pl

from analytics.cost.days import midnights
from analytics.fairness import (
    HALF_LIFE_S,
    fair_shares,
    jain,
    lending,
    quota_by_day,
    quota_spans,
    quota_use,
    starvation,
    told_ratio,
)
from analytics.inputs import conform
from analytics.reports.grouping import Grouping, asking, grouping
from analytics.reports.model import Asks, Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total
from analytics.usage import gpu_hours
from steward.units import SECONDS_PER_DAY

_QUOTA, _LEDGER = "quota_use", "ledger"
GROUPINGS: Final = ("team", "queue")
"""Words of ``--by``."""
HALF_LIFE_DAYS: Final = HALF_LIFE_S / SECONDS_PER_DAY
STARVED_WORTH_TELLING_GPU_HOURS: Final = 1.0
"""A shorter wait within one's own guarantee is the ordinary time that preemption takes."""


def days(_state: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
    """Return the midnights of the period in the question's zone: use fades day by day."""
    return midnights(question.period, question.time_zone)


def asks(_state: Mapping[str, pl.DataFrame], question: Question) -> Asks:
    """Return what the report reads of the ledger: who held, team or queue."""
    return {"ledger": asking(words=(question.by or GROUPINGS[0],))}


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return quota use, borrowing, starvation and fair shares.

    Raises:
        UsageError: the question names a grouping that the report does not take.
    """
    period = question.period
    by = grouping(question.by or GROUPINGS[0], allowed=GROUPINGS)
    entity = by.key
    ledger = conform(_LEDGER, frames[_LEDGER])
    spans = quota_spans(conform(_QUOTA, frames[_QUOTA]), period)
    shares = fair_shares(ledger, spans, period, entity=entity)
    use = quota_use(spans, entity)
    lent, starved = lending(spans, entity), starvation(spans, entity)
    return Report(
        name=DEFINITION.name,
        title="Fairness",
        period=period,
        figures=_figures(use, lent, starved=starved, shares=shares, known_ratio=told_ratio(spans)),
        tables=(
            _use_table(use, by),
            _days_table(
                quota_by_day(spans, entity, edges=days(frames, question), period=period),
                by,
                question.time_zone,
            ),
            _shares_table(shares, by),
            _pairs_table(lent, "lending", "Who borrowed from whom", starts=("borrower", "lender")),
            _pairs_table(
                starved, "starvation", "Who waited while others borrowed",
                starts=("waiting", "borrower"),
            ),
        ),
        findings=_findings(spans, ledger, starved=starved, shares=shares),
    )  # fmt: skip


def _figures(
    use: pl.DataFrame,
    lent: pl.DataFrame,
    *,
    starved: pl.DataFrame,
    shares: pl.DataFrame,
    known_ratio: float | None,
) -> tuple[Figure, ...]:
    known = not use.is_empty()
    guaranteed, used, unused = (
        _known_total(use, f"{name}_gpu_hours") for name in ("guaranteed", "used", "unused")
    )
    facts: tuple[tuple[str, str, float | None, str, str, str], ...] = (
        ("guaranteed_gpu_hours", "Guaranteed", guaranteed, "GPU-hours",
         "Guarantees x time, of all queues.", _QUOTA),
        ("quota_used_gpu_hours", "Used", used, "GPU-hours", "Quota in use x time.", _QUOTA),
        ("unused_guarantee_gpu_hours", "Guarantee unused", unused, "GPU-hours",
         "Of each guarantee, what its queue did not use, whether lent or not.", _QUOTA),
        ("lent_gpu_hours", "Lent", total(lent, "gpu_hours") if known else None, "GPU-hours",
         "Unused guarantee that others of the cohort used meanwhile.", _QUOTA),
        ("starved_gpu_hours", "Waited for, at most", total(starved, "gpu_hours") if known else None,
         "GPU-hours", "Own guarantee lent to others while own work waited: a bound.", _QUOTA),
        ("jain_allocated_ratio", "Evenness of allocation", jain(shares, "allocated_share_ratio"),
         "ratio", "Jain's index of allocated / promised share: 1 if even, 1/n if one has all.",
         _LEDGER),
        ("jain_effective_ratio", "Evenness of use", jain(shares, "effective_share_ratio"),
         "ratio", "The same of time that was used.", _LEDGER),
    )  # fmt: skip
    return tuple(
        figure(
            key, title, value=value, unit=unit, definition=definition, rows=rows,
            coverage_ratio=known_ratio if rows == _QUOTA else None,
        )
        for key, title, value, unit, definition, rows in facts
    )  # fmt: skip


def _known_total(use: pl.DataFrame, name: str) -> float | None:
    known = use[name].drop_nulls()
    return float(known.sum()) if len(known) else None


def _use_table(use: pl.DataFrame, by: Grouping) -> Table:
    columns = (
        *by.columns(),
        column("guaranteed_gpu_hours", "Guaranteed", "GPU-hours"),
        column("used_gpu_hours", "Used", "GPU-hours"),
        column("used_of_guaranteed_ratio", "Used of guaranteed", "ratio"),
        column("borrowed_gpu_hours", "Borrowed", "GPU-hours"),
        column("unused_gpu_hours", "Guarantee unused", "GPU-hours"),
        column("limit_gpu_hours", "Limit", "GPU-hours"),
        column("known_ratio", "Known", "ratio", "share of time with guarantee and use told"),
    )
    return table(
        f"quota_by_{by.word}", f"Quota by {by.word}", frame=use, columns=columns, rows=_QUOTA,
        note="Weighted by time; each reading holds until the next.",
    )  # fmt: skip


def _days_table(use: pl.DataFrame, by: Grouping, zone: str) -> Table:
    told = pl.col("starts_at").dt.convert_time_zone(zone)
    columns = (
        column("day", "Day", "text"),
        *by.columns(),
        column("guaranteed_gpu_hours", "Guaranteed", "GPU-hours"),
        column("used_gpu_hours", "Used", "GPU-hours"),
        column("borrowed_gpu_hours", "Borrowed", "GPU-hours"),
        column("unused_gpu_hours", "Guarantee unused", "GPU-hours"),
    )
    return table(
        "quota_by_day", "Quota day by day", rows=_QUOTA, columns=columns,
        frame=use.with_columns(day=told.dt.to_string("%Y-%m-%d")),
        note=f"Days of {zone}; the first and last are cut to the period.",
    )  # fmt: skip


def _shares_table(shares: pl.DataFrame, by: Grouping) -> Table:
    columns = (
        *by.columns(),
        column("entitled_share_ratio", "Promised share", "ratio", "of all guarantees"),
        column("allocated_gpu_hours", "Allocated, faded", "GPU-hours"),
        column("allocated_share_ratio", "Share", "ratio"),
        column("allocated_factor_ratio", "Factor", "ratio", "2^-(share / promised): 0.5 is fair"),
        column("effective_gpu_hours", "Effective, faded", "GPU-hours"),
        column("effective_share_ratio", "Effective share", "ratio"),
        column("effective_factor_ratio", "Effective factor", "ratio"),
        column("known_use_ratio", "Use known", "ratio", "of allocated time"),
    )
    return table(
        "fair_share", "Shares of use beside shares promised", frame=shares, columns=columns,
        rows=_LEDGER,
        note=f"Use counts half after {HALF_LIFE_DAYS:g} days, and not from before the period.",
    )  # fmt: skip


def _pairs_table(pairs: pl.DataFrame, key: str, title: str, *, starts: tuple[str, str]) -> Table:
    frame = pairs.sort("gpu_hours", *starts, descending=[True, False, False], nulls_last=True)
    columns = (
        *(column(name, name.capitalize(), "text") for name in starts),
        column("gpu_hours", "GPU-hours", "GPU-hours"),
    )
    return table(
        key, title, frame=frame, columns=columns, rows=_QUOTA,
        note="At each moment, spread in proportion within one cluster, cohort and model.",
    )  # fmt: skip


def _findings(
    spans: pl.DataFrame, ledger: pl.DataFrame, *, starved: pl.DataFrame, shares: pl.DataFrame
) -> tuple[str, ...]:
    if spans.is_empty():
        return ("No quota is recorded: there is no promised share to compare use with.",)
    said = []
    worst = starved.sort("gpu_hours", "waiting", "borrower", descending=[True, False, False])
    if not worst.is_empty() and worst["gpu_hours"][0] >= STARVED_WORTH_TELLING_GPU_HOURS:
        row = worst.row(0, named=True)
        said.append(
            f"{row['waiting']} waited within its own guarantee while {row['borrower']} borrowed "
            f"up to {row['gpu_hours']:,.1f} GPU-hours of it."
        )
    promised = total(quota_use(spans, "cluster"), "guaranteed_gpu_hours")
    capacity = total(ledger.select(wall=gpu_hours(pl.col("wall_ticks"))), "wall")
    if capacity and promised > capacity * OVERCOMMIT_TOLERANCE_RATIO:
        share = percent(ratio(promised, capacity))
        said.append(f"Guarantees add up to {share} of capacity: they cannot all be kept at once.")
    unnamed = shares.filter(pl.col("entitled_share_ratio").is_null())
    if not unnamed.is_empty() and unnamed["allocated_gpu_hours"].sum() > 0:
        said.append("Some of those who hold GPUs have no guarantee, so no promised share.")
    return tuple(said)


OVERCOMMIT_TOLERANCE_RATIO: Final = 1.001
"""Guarantees and capacity are read at different instants; less than this is no overcommitment."""
DEFINITION = ReportDefinition(
    name="fairness",
    summary="whose quota was used by whom, who waited meanwhile, and whether shares are fair",
    inputs=(_QUOTA, _LEDGER),
    build=build,
    groupings=GROUPINGS,
    cuts=days,
    asks=asks,
)
