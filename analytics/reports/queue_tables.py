"""The tables, figures and sentences of the queue report on what waits were made of."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.queue.causes import CAPACITY, CLASSES, PLACEMENT, QUOTA, UNKNOWN
from analytics.queue.pingpong import FEWEST_LOSSES
from analytics.queue.shares import OCCURS_S, SHARES
from analytics.queue.starvation import FEWEST_OVERTAKING
from analytics.reports.model import Column, Figure, Table
from analytics.reports.shape import column, figure, percent, table, total
from steward.units import SECONDS_PER_HOUR

ROWS: Final = "transition_history"
NAIVE: Final = "of scheduled attempts, linearly interpolated"
ESTIMATED: Final = "Kaplan-Meier: those never scheduled count as still waiting"
_PLAIN: Final = (("mean", "Mean"), ("p50", "p50"), ("p75", "p75"), ("p90", "p90"), ("p95", "p95"),
          ("p99", "p99"), ("max", "Max"))  # fmt: skip
WAIT_COLUMNS: Final = (
    column("attempt_count", "Attempts", "count", "created in the period"),
    column("never_scheduled_count", "Never scheduled", "count"),
    *[column(f"{name}_wait_s", title, "s", NAIVE) for name, title in _PLAIN],
    *[column(f"km_{name}_wait_s", f"KM {name}", "s", ESTIMATED)
      for name in ("p50", "p75", "p90", "p95", "p99")],
    column("zero_wait_count", "No wait", "count", "scheduled at once"),
    column("over_60_s_count", "Over 60 s", "count", "of scheduled attempts"),
    column("over_600_s_count", "Over 600 s", "count", "of scheduled attempts"),
)  # fmt: skip
CLASSES_TOLD_BY: Final = ("tenant_id", "workload_class", "gpu_models", "gang_size", "queue")
"""Groupings by which the classes of waiting are told where none is asked for."""
_CLASS_TITLES: Final = {
    "quota": "created until quota is reserved, and what a queue says of quota",
    "admission": "quota reserved until admitted: admission checks",
    "placement": "admitted, and enough GPUs of a model it accepts were free, but not together",
    "capacity": "admitted, and fewer GPUs of the models it accepts were free than it asks for",
    "start-up": "scheduled until its last pod started",
    "other": "suspended, misconfigured, no matching flavor, not evaluated, no GPU asked for",
    "unknown": "no step, condition, event or holder was recorded that tells why",
}


def class_table(classes: pl.DataFrame) -> Table:
    """Return what all waits of the period were made of.

    Args:
        classes: rows of ``shares.class_summary``.
    """
    meaning = pl.col("wait_class").replace_strict(_CLASS_TITLES, return_dtype=pl.String)
    columns = (
        column("wait_class", "Class", "text"),
        column("time_ratio", "Of time", "ratio", "of all waiting inside the period"),
        column("occurrence_ratio", "Of occurrences", "ratio", "an attempt may be in several"),
        column("occurrence_count", "Occurrences", "count", f"attempts in it for {OCCURS_S} s"),
        column("waited_s", "Job time", "s", "time waited by all jobs together"),
        column("waited_gpu_hours", "Waited", "GPU-hours", "GPUs asked for x time"),
        *_of_class(),
        column("meaning", "Meaning", "text"),
    )
    return table(
        "wait_classes",
        "What waits were made of",
        frame=classes.with_columns(meaning=meaning),
        columns=columns,
        rows=ROWS,
        note="Every second from creation to start is in exactly one class.",
    )


def _of_class() -> tuple[Column, ...]:
    renamed = {"attempt_count": "created in the period, that were in it",
               "never_scheduled_count": "gave up in it, or are in it now"}  # fmt: skip
    titles = {"never_scheduled_count": "Not over"}
    return tuple(
        column(
            each.name,
            titles.get(each.name, each.title),
            each.unit,
            renamed.get(each.name, each.definition),
        )
        for each in WAIT_COLUMNS
    )


def class_shares_table(shares: pl.DataFrame, *, key: str, title: str) -> Table:
    """Return what the waiting of each group was made of.

    Args:
        shares: rows of ``shares.class_shares_by``.
        key: the column that they are grouped by.
        title: its title.
    """
    unit = "GPU" if key == "gpu_count" else "text"
    columns = (
        column(key, title, unit),
        column("attempt_count", "Attempts", "count", "that waited in the period"),
        column("waited_s", "Job time", "s", "by all of them together, start-up included"),
        column("waited_gpu_hours", "Waited", "GPU-hours", "GPUs asked for x time"),
        *[
            column(name, wait_class.capitalize(), "ratio", _CLASS_TITLES[wait_class])
            for name, wait_class in zip(SHARES, CLASSES, strict=True)
        ],
    )
    return table(
        f"wait_classes_by_{key}",
        f"What waits were made of, by {title}",
        frame=shares,
        columns=columns,
        rows=ROWS,
        note="Shares of the group's own waiting time; they add up to 100 %.",
    )


def pending_table(pending: pl.DataFrame) -> Table:
    """Return why each job waits that waits at the period's end.

    Args:
        pending: rows of ``pending.why_pending``.
    """
    columns = (
        column("name", "Job", "text"),
        column("tenant_id", "Tenant", "text"),
        column("queue", "Queue", "text"),
        column("workload_class", "Workload class", "text"),
        column("priority_class", "Priority", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("gpu_models", "Models accepted", "text", "empty: any"),
        column("wait_s", "Waits for", "s", "since this attempt was created"),
        column("wait_class", "Class", "text"),
        column("blocking", "Why", "text", "the resource it lacks at the period's end"),
        column("fix", "Nearest fix", "text", "computed from free room, quota and rest"),
        column("evidence", "Said", "text", "the last condition or event while it waited"),
        column("said_at", "Said at", "text"),
        column("cluster", "Cluster", "text"),
        column("workload_uid", "Workload", "text"),
    )
    return table("pending", "Why it is pending", frame=pending, columns=columns, rows=ROWS)


def starved_table(unfair: pl.DataFrame) -> Table:
    """Return the work that later work overtook.

    Args:
        unfair: rows of ``starvation.starved``.
    """
    columns = (
        column("name", "Job", "text"),
        column("tenant_id", "Tenant", "text"),
        column("queue", "Queue", "text"),
        column("gpu_count", "GPUs", "GPU"),
        column("gpu_models", "Models accepted", "text"),
        column("wait_s", "Waited", "s"),
        column(
            "peer_wait_s",
            "Peers",
            "s",
            "KM p99 of its peers; p95 of few, or where p99 is not reached",
        ),
        column(
            "overtaken_count",
            "Overtaken",
            "count",
            "created later, not more urgent, at least as large, scheduled meanwhile",
        ),
        column("is_scheduled", "Got a place", "text"),
        column("workload_uid", "Workload", "text"),
    )
    return table(
        "starved",
        "Starved",
        frame=unfair.with_columns(pl.col("is_scheduled").cast(pl.String)),
        columns=columns,
        rows=ROWS,
        note=f"Waited beyond its peers and was overtaken {FEWEST_OVERTAKING} times or more.",
    )


def ping_pong_table(turns: pl.DataFrame) -> Table:
    """Return the work that lost its place again and again.

    Args:
        turns: rows of ``pingpong.ping_pong``.
    """
    columns = (
        column("name", "Job", "text"),
        column("tenant_id", "Tenant", "text"),
        column("loss_count", "Lost its place", "count", "evicted or preempted in the period"),
        column("most_in_window_count", "In a day", "count", "the most within 24 h"),
        column("turn_with", "In turns with", "text", "preempted it and was preempted by it"),
        column("lost_gpu_hours", "At stake", "GPU-hours", "held by the attempts cut off"),
        column("last_at", "Last", "text"),
        column("workload_uid", "Workload", "text"),
    )
    return table(
        "ping_pong",
        "Lost its place again and again",
        frame=turns,
        columns=columns,
        rows="interruption_history",
        note=f"{FEWEST_LOSSES} times or more within 24 h, or in turns with another.",
    )


def points_table(points: pl.DataFrame) -> Table:
    """Return waiting beside free GPUs.

    Args:
        points: rows of ``pressure.waiting_beside_free``.
    """
    columns = (
        column("at", "At", "text"),
        column("waiting_gpu_count", "GPUs waited for", "GPU"),
        column("idle_gpu_count", "GPUs free", "GPU", "usable and held by nobody"),
        column("idle_whole_gpu_count", "Free as a whole", "GPU", "the rest are leftovers"),
    )
    return table(
        "waiting_and_idle", "Waiting beside free GPUs", frame=points, columns=columns, rows=ROWS
    )


def class_figures(classes: pl.DataFrame, pending: pl.DataFrame) -> tuple[Figure, ...]:
    """Return how much of the waiting was for what, and how much waits now."""
    told = dict(classes.select("wait_class", "time_ratio").iter_rows())
    known = None if not told else 1.0 - (told.get(UNKNOWN) or 0.0)
    shares = tuple(
        figure(
            f"{name}_wait_ratio",
            f"Waiting for {name}",
            value=None if not told else told.get(name, 0.0),
            unit="ratio",
            definition=f"Share of the time waited inside the period: {_CLASS_TITLES[name]}.",
            rows=ROWS,
            coverage_ratio=known,
        )
        for name in (QUOTA, PLACEMENT, CAPACITY)
    )
    waited = figure(
        "waited_gpu_hours",
        "GPU-hours waited for",
        value=total(classes, "waited_gpu_hours"),
        unit="GPU-hours",
        definition="GPUs asked for x time from creation to start, inside the period, where known.",
        rows=ROWS,
    )
    now = figure(
        "pending_count",
        "Waiting at the end",
        value=pending.height,
        unit="count",
        definition="Attempts that were neither scheduled nor over when the period ended.",
        rows=ROWS,
    )
    return (*shares, waited, now)


def cause_findings(
    classes: pl.DataFrame, *, unfair: pl.DataFrame, turns: pl.DataFrame
) -> tuple[str, ...]:
    """Return sentences on causes of waiting that need attention."""
    said = []
    longest = classes.sort("waited_gpu_hours", descending=True).head(1)
    if not longest.is_empty() and longest["waited_gpu_hours"][0] > 0:
        row = longest.row(0, named=True)
        said.append(
            f"Most was waited for {row['wait_class']}: {row['waited_gpu_hours']:,.1f} GPU-hours "
            f"asked for, {percent(row['time_ratio'])} of the waiting time."
        )
    if not unfair.is_empty():
        row = unfair.row(0, named=True)
        said.append(
            f"{unfair.height:,} attempts starved: {row['name']} waited "
            f"{row['wait_s'] / SECONDS_PER_HOUR:.1f} h while {row['overtaken_count']:,} later, "
            f"not more urgent ones of its size or larger started."
        )
    if not turns.is_empty():
        hours = total(turns, "lost_gpu_hours")
        said.append(
            f"{turns.height:,} workloads lost their place again and again, with {hours:,.1f} "
            "GPU-hours at stake."
        )
    return tuple(said)
