"""What conditions and events say of waiting, tied to the workloads that wait.

A pod's condition names its workload through the stored pod. A queued workload of Kueue, and a pod
that was never stored, are tied by name: Kueue calls its object KIND-NAME-HASH, controllers call
pods NAME-SUFFIX or NAME-INDEX-SUFFIX. Of equal names the one created last before counts.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.intervals import micros
from analytics.queue.causes import ADMISSION, pod_cause, queue_cause
from analytics.waits import WORKLOAD

QUEUE: Final = "queue"
POD: Final = "pod"
_STAGES: Final = {"QuotaReserved": QUEUE, "Admitted": ADMISSION}
"""Conditions of queued workloads; the others are those of pods and gangs."""
_MOST_SUFFIXES: Final = 5
"""Parts after the name: role, index, random word; a gang of Volcano has its job's uid."""


def evidence(
    conditions: pl.DataFrame, events: pl.DataFrame, attempts: pl.DataFrame
) -> pl.DataFrame:
    """Return what was said of workloads that wait.

    Args:
        conditions: rows of ``condition_history``.
        events: rows of ``scheduling_event``.
        attempts: rows of ``waits.attempts``.

    Returns:
        one row per thing said, ascending by time and workload
            cluster, workload_uid str, at_us i64, stage str (queue, admission or pod), cause str (a
            class, or scheduling), source str (as in "condition QuotaReserved"), reason, message
            str | null
        What cannot be tied to a workload is left out.
    """
    told = pl.concat([_of_conditions(conditions), _of_events(events)])
    tied = pl.concat([_by_uid(told, attempts), _by_name(told, attempts)])
    stage = pl.col("stage")
    of_pods = pl.when(stage == POD).then(pod_cause()).otherwise(pl.lit(ADMISSION))
    cause = pl.when(stage == QUEUE).then(queue_cause()).otherwise(of_pods)
    columns = (*WORKLOAD, "at_us", "stage", "cause", "source", "reason", "message")
    return (
        tied.with_columns(cause=cause).select(columns).sort("at_us", *WORKLOAD, "stage", "reason")
    )


def _of_conditions(conditions: pl.DataFrame) -> pl.DataFrame:
    return conditions.select(
        *_ABOUT,
        at_us=micros(pl.col("occurred_at")),
        stage=pl.col("condition").replace_strict(_STAGES, default=POD),
        source=pl.format("condition {}", "condition"),
        reason=pl.col("reason").fill_null(""),
        message="message",
    )


def _of_events(events: pl.DataFrame) -> pl.DataFrame:
    is_queue = pl.col("reason") == "Pending"
    return events.select(
        *_ABOUT,
        at_us=micros(pl.col("occurred_at")),
        stage=pl.when(is_queue).then(pl.lit(QUEUE)).otherwise(pl.lit(POD)),
        source=pl.format("event of {}", "kind"),
        reason="reason",
        message="message",
    )


_OBJECT: Final = ("cluster", "namespace", "name")
_ABOUT: Final = ("cluster", "kind", "namespace", "name", "workload_uid")


def _by_uid(told: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    known = attempts.select(WORKLOAD).unique()
    return told.join(known, on=WORKLOAD, how="semi").drop("kind", "namespace", "name")


def _by_name(told: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Tie what names its object only: the longest name that fits, created last before."""
    nameless = told.filter(pl.col("workload_uid").is_null())
    columns = [name for name in told.columns if name not in {"kind", "namespace", "name"}]
    if nameless.is_empty():
        return nameless.select(columns)
    named = attempts.filter(pl.col("created_at").is_not_null()).select(
        *WORKLOAD, "namespace", "name", "kind", born_us=micros(pl.col("created_at"))
    )
    of_kind = pl.format("{}-{}", pl.col("kind").str.to_lowercase(), "name")
    calls = pl.concat([named, named.with_columns(name=of_kind)]).select(
        "cluster", "namespace", "born_us", call="name", found_uid="workload_uid"
    )
    fitting = (
        _calls_of(nameless, calls)
        .join(nameless, on=_OBJECT)
        .sort("at_us")
        .join_asof(
            calls.sort("born_us"),
            left_on="at_us",
            right_on="born_us",
            by=["cluster", "namespace", "call"],
            check_sortedness=False,
        )
    )
    return (
        fitting.filter(pl.col("found_uid").is_not_null())
        .with_columns(workload_uid="found_uid")
        .select(columns)
    )


def _calls_of(nameless: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Return for each object the longest part of its name that is what a workload is called."""
    left = nameless.select(_OBJECT).unique()
    cuts = pl.concat(
        left.with_columns(call=_without_suffixes(count), cut_count=pl.lit(count))
        for count in range(_MOST_SUFFIXES + 1)
    )
    return (
        cuts.join(calls, on=["cluster", "namespace", "call"], how="semi")
        .sort("cut_count")
        .unique(_OBJECT, keep="first", maintain_order=True)
        .drop("cut_count")
    )


def _without_suffixes(count: int) -> pl.Expr:
    return pl.col("name").str.replace(rf"(-[^-]*){{{count}}}$", "") if count else pl.col("name")
