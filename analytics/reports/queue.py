"""Report: how long work waited and why, what waits now, and who held the GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from analytics.inputs import conform
from analytics.pressure import waiting_beside_free
from analytics.queue import free as free_time
from analytics.queue.decomposition import Decomposition, decompose
from analytics.queue.evidence import evidence
from analytics.queue.pending import scene_at_end, why_pending
from analytics.queue.pingpong import ping_pong
from analytics.queue.shares import class_shares_by, class_summary
from analytics.queue.starvation import starved
from analytics.queue.workers import with_workers
from analytics.reports import queue_tables as tables
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total, value_of
from analytics.waits import attempts, gpu_hours_by, wait_summary
from steward.errors import UsageError
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

ROWS = "transition_history"
WAIT_COLUMNS = tables.WAIT_COLUMNS
_FACTS = (
    ("wait_mean_s", "Mean wait", "mean_wait_s", "Mean"),
    ("wait_p50_s", "Wait p50", "p50_wait_s", "Median"),
    ("wait_p90_s", "Wait p90", "p90_wait_s", "90 % quantile"),
    ("wait_p95_s", "Wait p95", "p95_wait_s", "95 % quantile"),
    ("wait_p99_s", "Wait p99", "p99_wait_s", "99 % quantile"),
    ("km_wait_p50_s", "Wait p50, KM", "km_p50_wait_s", None),
    ("km_wait_p90_s", "Wait p90, KM", "km_p90_wait_s", None),
    ("km_wait_p95_s", "Wait p95, KM", "km_p95_wait_s", None),
    ("km_wait_p99_s", "Wait p99, KM", "km_p99_wait_s", None),
)
_GROUPS = (
    ("qos_class", "QoS class"),
    ("size_class", "Size"),
    ("tenant_id", "Tenant"),
    ("workload_class", "Workload class"),
    ("gpu_models", "Models accepted"),
    ("gang_size", "GPUs together"),
    ("workers", "Workers"),
    ("queue", "Queue"),
    ("priority_class", "Priority class"),
    ("gpu_count", "GPUs asked for"),
)
_HOURS_KEYS: Final = ("qos_class", "size_class", "tenant_id", "workload_class")
BY: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "team": ("tenant_id", "Tenant"),
        "class": ("workload_class", "Workload class"),
        "model": ("gpu_models", "Models accepted"),
        "size": ("gang_size", "GPUs together"),
        "queue": ("queue", "Queue"),
        "priority": ("priority_class", "Priority class"),
        "user": ("owner", "User"),
    }
)
"""What ``--by`` may name: the column of the attempts, and its title."""


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return waits and GPU-hours held over the period."""
    period = question.period
    rows = attempt_rows(frames, period)
    free = free_time.free_boards(frames, period)
    workloads = conform("workload_current", frames["workload_current"])
    found, said = _decomposed(frames, rows, free=free, period=period)
    scene = scene_at_end(frames, free=free, workloads=workloads, period=period)
    pending = why_pending(found, said, scene=scene, free=free, period=period)
    losses = conform("interruption_history", frames["interruption_history"])
    unfair, turns = starved(found.attempts), ping_pong(losses, rows, workloads)
    classes = class_summary(found)
    return Report(
        name=DEFINITION.name,
        title="Queue",
        period=period,
        figures=(*figures(rows), *tables.class_figures(classes, pending)),
        tables=(
            scope_table(rows.filter("is_in_period")),
            tables.class_table(classes),
            tables.pending_table(pending),
            *_grouped(found, question.by),
            tables.starved_table(unfair),
            tables.ping_pong_table(turns),
            *[
                _hours_table(rows, key, title)
                for key, title in _groups(question.by, _HOURS_KEYS)
                if _is_known(rows, key)
            ],
            tables.points_table(waiting_beside_free(rows, free, period)),
        ),
        findings=(
            *findings(rows, period),
            *tables.cause_findings(classes, unfair=unfair, turns=turns),
        ),
    )


def _decomposed(
    frames: Mapping[str, pl.DataFrame], rows: pl.DataFrame, *, free: free_time.Free, period: Period
) -> tuple[Decomposition, pl.DataFrame]:
    """Return what the waits were made of, and what was said meanwhile."""
    sized = with_workers(
        rows,
        conform("worker_request", frames["worker_request"]),
        conform("allocation_history", frames["allocation_history"]),
    )
    said = evidence(
        conform("condition_history", frames["condition_history"]),
        conform("scheduling_event", frames["scheduling_event"]),
        sized,
    )
    return decompose(sized, said, free=free, period=period), said


def _groups(by: str | None, keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the one grouping that is asked for, or those of the report's own choice.

    Raises:
        UsageError: the report does not know this grouping.
    """
    if by is None:
        return tuple(pair for pair in _GROUPS if pair[0] in keys)
    if by not in BY:
        raise UsageError(f"queue knows no grouping {by!r}", hint=f"use one of {', '.join(BY)}")
    return (BY[by],)


def _grouped(found: Decomposition, by: str | None) -> list[Table]:
    """Return waits and their classes by each grouping of which anything is known."""
    created = found.attempts.filter("is_in_period")
    known = [
        (key, title)
        for key, title in _groups(by, tuple(key for key, _ in _GROUPS))
        if _is_known(created, key)
    ]
    return [
        *[_wait_table(created, key, title) for key, title in known],
        *[
            tables.class_shares_table(class_shares_by(found, key), key=key, title=title)
            for key, title in known
            if by is not None or key in tables.CLASSES_TOLD_BY
        ],
    ]


def attempt_rows(frames: Mapping[str, pl.DataFrame], period: Period) -> pl.DataFrame:
    """Return the attempts behind the report."""
    return attempts(
        conform(ROWS, frames[ROWS]),
        conform("workload_current", frames["workload_current"]),
        period,
    )


def scoped(rows: pl.DataFrame) -> pl.DataFrame:
    """Return waits of all attempts, and of those asking for GPUs once more, with their scope."""
    waits = rows.select("wait_s", "is_scheduled", "gpu_count")
    return pl.concat(
        [
            waits.with_columns(scope=pl.lit("all work")),
            waits.filter(pl.col("gpu_count") > 0).with_columns(scope=pl.lit("work with GPUs")),
        ]
    )


def scope_table(created: pl.DataFrame) -> Table:
    """Return waits of all work and of work with GPUs."""
    return table(
        "waits",
        "Waits",
        frame=wait_summary(scoped(created), "scope"),
        columns=(column("scope", "Over", "text"), *WAIT_COLUMNS),
        rows=ROWS,
        note="Plain quantiles leave out what was never scheduled; Kaplan-Meier (KM) ones do not.",
    )


def figures(rows: pl.DataFrame) -> tuple[Figure, ...]:
    """Return the headline of waits and GPU-hours."""
    created = rows.filter("is_in_period")
    summary = wait_summary(scoped(created), "scope").filter(pl.col("scope") == "all work")
    known = ratio(int(created["wait_s"].is_not_null().sum()), created.height)
    counts = (
        _count(
            "attempt_count",
            "Attempts",
            value=created.height,
            definition="Attempts created in the period.",
        ),
        _count(
            "never_scheduled_count",
            "Never scheduled",
            value=int((~created["is_scheduled"]).sum()),
            definition="Attempts that gave up, or still wait at the period's end.",
        ),
    )
    waits = tuple(
        figure(
            key,
            title,
            value=value_of(summary, name),
            unit="s",
            definition=f"{basis} {tables.NAIVE}." if basis else f"{tables.ESTIMATED}.",
            rows=ROWS,
            coverage_ratio=known,
        )
        for key, title, name, basis in _FACTS
    )
    return (*counts, *waits, _gpu_hours_figure(rows))


def _count(key: str, title: str, *, value: int, definition: str) -> Figure:
    return figure(key, title, value=value, unit="count", definition=definition, rows=ROWS)


def _gpu_hours_figure(rows: pl.DataFrame) -> Figure:
    served = rows.filter("is_scheduled")
    known = int(served["gpu_hours"].is_not_null().sum())
    return figure(
        "requested_gpu_hours",
        "GPU-hours held",
        value=total(served, "gpu_hours") if known else None,
        unit="GPU-hours",
        definition="GPUs asked for x (end - scheduled), inside the period, of scheduled attempts.",
        rows=ROWS,
        coverage_ratio=ratio(known, served.height),
    )


def findings(rows: pl.DataFrame, period: Period) -> tuple[str, ...]:
    """Return sentences on waits that need attention."""
    created = rows.filter("is_in_period")
    never = int((~created["is_scheduled"]).sum())
    said = []
    if never:
        share = percent(ratio(never, created.height))
        said.append(
            f"{never:,} of {created.height:,} attempts ({share}) were never scheduled; "
            "quantiles that leave them out are too small."
        )
    still = rows.filter(~pl.col("is_scheduled") & pl.col("ended_at").is_null())
    oldest = still["wait_s"].max()
    if isinstance(oldest, float):
        said.append(
            f"{still.height:,} attempts still wait at {period.until_at:%Y-%m-%d %H:%M} UTC, "
            f"the oldest for {oldest / SECONDS_PER_HOUR:.1f} h."
        )
    return tuple(said)


def _is_known(rows: pl.DataFrame, key: str) -> bool:
    return bool(rows[key].is_not_null().any())


def _wait_table(rows: pl.DataFrame, key: str, title: str) -> Table:
    unit = "GPU" if key == "gpu_count" else "text"
    return table(
        f"waits_by_{key}",
        f"Waits by {title}",
        frame=wait_summary(rows, key),
        columns=(column(key, title, unit), *WAIT_COLUMNS),
        rows=ROWS,
    )


def _hours_table(rows: pl.DataFrame, key: str, title: str) -> Table:
    columns = (
        column(key, title, "text"),
        column("attempt_count", "Attempts", "count"),
        column("gpu_hours", "GPU-hours", "GPU-hours", "GPUs asked for x time held"),
        column("share_ratio", "Share", "ratio", "of all GPU-hours held"),
        column("unknown_count", "Unknown", "count", "scheduled attempts with unknown GPUs"),
    )
    return table(
        f"gpu_hours_by_{key}",
        f"GPU-hours held by {title}",
        frame=gpu_hours_by(rows, key),
        columns=columns,
        rows=ROWS,
    )


DEFINITION = ReportDefinition(
    name="queue",
    summary="how long work waited and why, what waits now and the nearest fix",
    inputs=(
        ROWS,
        "workload_current",
        *free_time.INPUTS,
        "condition_history",
        "scheduling_event",
        "worker_request",
        "interruption_history",
        "quota_use",
        "rest",
    ),
    build=build,
    groupings=tuple(BY),
)
