"""Report: how long work waited, and who held the GPUs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from analytics.inputs import conform
from analytics.pressure import waiting_and_free
from analytics.reports.measured import stored_inputs
from analytics.reports.model import Figure, Question, Report, ReportDefinition, Table
from analytics.reports.shape import column, figure, percent, ratio, table, total, value_of
from analytics.waits import attempts, gpu_hours_by, wait_summary
from steward.period import Period
from steward.units import SECONDS_PER_HOUR

ROWS = "transition_history"
_NAIVE = "of scheduled attempts, linearly interpolated"
_ESTIMATED = "Kaplan-Meier: those never scheduled count as still waiting"
_PLAIN = (("mean", "Mean"), ("p50", "p50"), ("p75", "p75"), ("p90", "p90"), ("p95", "p95"),
          ("p99", "p99"), ("max", "Max"))  # fmt: skip
WAIT_COLUMNS = (
    column("attempt_count", "Attempts", "count", "created in the period"),
    column("never_scheduled_count", "Never scheduled", "count"),
    *[column(f"{name}_wait_s", title, "s", _NAIVE) for name, title in _PLAIN],
    *[column(f"km_{name}_wait_s", f"KM {name}", "s", _ESTIMATED)
      for name in ("p50", "p75", "p90", "p95", "p99")],
    column("zero_wait_count", "No wait", "count", "scheduled at once"),
    column("over_60_s_count", "Over 60 s", "count", "of scheduled attempts"),
    column("over_600_s_count", "Over 600 s", "count", "of scheduled attempts"),
)  # fmt: skip
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
    ("gpu_count", "GPUs asked for"),
)


def build(frames: Mapping[str, pl.DataFrame], question: Question) -> Report:
    """Return waits and GPU-hours held over the period."""
    period = question.period
    rows = attempt_rows(frames, period)
    created = rows.filter("is_in_period")
    points = waiting_and_free(rows, stored_inputs(frames), period)
    return Report(
        name=DEFINITION.name,
        title="Queue",
        period=period,
        figures=figures(rows),
        tables=(
            scope_table(created),
            *[
                _wait_table(created, key, title)
                for key, title in _GROUPS
                if _is_known(created, key)
            ],
            *[_hours_table(rows, key, title) for key, title in _GROUPS[:4] if _is_known(rows, key)],
            _points_table(points),
        ),
        findings=findings(rows, period),
    )


def attempt_rows(frames: Mapping[str, pl.DataFrame], period: Period) -> pl.DataFrame:
    """Return the attempts behind the report."""
    return attempts(
        conform(ROWS, frames[ROWS]),
        conform("workload_current", frames["workload_current"]),
        period,
    )


def scoped(rows: pl.DataFrame) -> pl.DataFrame:
    """Return all attempts, and those asking for GPUs once more, with their scope."""
    return pl.concat(
        [
            rows.with_columns(scope=pl.lit("all work")),
            rows.filter(pl.col("gpu_count") > 0).with_columns(scope=pl.lit("work with GPUs")),
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
            definition=f"{basis} {_NAIVE}." if basis else f"{_ESTIMATED}.",
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


def _points_table(points: pl.DataFrame) -> Table:
    columns = (
        column("at", "At", "text"),
        column("waiting_gpu_count", "GPUs waited for", "GPU"),
        column("idle_gpu_count", "GPUs free", "GPU", "held by nobody and not lost"),
    )
    return table(
        "waiting_and_idle", "Waiting beside free GPUs", frame=points, columns=columns, rows=ROWS
    )


DEFINITION = ReportDefinition(
    name="queue",
    summary="waits with those never scheduled counted in, and GPU-hours held",
    inputs=(
        ROWS,
        "workload_current",
        "node_history",
        "device_history",
        "device_event_history",
        "allocation_history",
    ),
    build=build,
)
