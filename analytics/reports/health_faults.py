"""What broke in the period, on devices and in the readings of targets."""

from __future__ import annotations

from typing import Final

import polars as pl

from analytics.reports.model import Figure, Table
from analytics.reports.shape import column, figure, ratio, table
from steward.period import Period
from steward.units import MICROS_PER_SECOND

_TOP: Final = 10
_EVENTS: Final = (
    ("xid", "XID events", "XID errors reported"),
    ("lost", "GPUs lost", "losses of a GPU"),
    ("profiling_lost", "Profiling lost", "losses of profiling metrics"),
)
"""Kinds of device event that are faults: kind, title, and how a finding counts them."""
_FAULTS: Final = (
    ("failed_count", "failed scrapes"),
    ("dropped_line_count", "exporter lines that could not be read"),
    ("duplicate_count", "duplicate series dropped"),
)


def event_figures(events: pl.DataFrame, *, is_watched: bool) -> tuple[Figure, ...]:
    """Return how often each fault was recorded; not known where nothing was watched."""
    return tuple(
        figure(
            f"{kind}_event_count",
            title,
            value=int((events["kind"] == kind).sum()) if is_watched else None,
            unit="count",
            definition="Events recorded in the period.",
            rows="device_event_history",
        )
        for kind, title, _ in _EVENTS
    )


def scrape_figures(scrapes: pl.DataFrame, period: Period) -> tuple[Figure, ...]:
    """Return how many readings of targets failed, and how old the oldest target's last one is."""
    tried = int(scrapes["scrape_count"].sum())
    failed = int(scrapes["failed_count"].sum()) if tried else None
    oldest_us = scrapes.select(
        (pl.lit(period.until_at) - pl.col("last_scraped_at")).dt.total_microseconds().max()
    ).item()
    facts = (
        ("failed_scrape_count", "Failed scrapes", failed, "count",
         f"Readings of a target that failed, of {tried:,} tried."),
        ("failed_scrape_ratio", "Failed of scrapes",
         None if failed is None else ratio(failed, tried), "ratio",
         f"Readings of a target that failed / {tried:,} tried."),
        ("data_age_s", "Data age",
         None if oldest_us is None else oldest_us // MICROS_PER_SECOND, "s",
         "Seconds from the last reading to the period's end, of the target read longest ago."),
    )  # fmt: skip
    return tuple(
        figure(key, title, value=value, unit=unit, definition=definition, rows="scrape_health")
        for key, title, value, unit, definition in facts
    )


def events_table(events: pl.DataFrame) -> Table:
    """Return device events by kind and code."""
    frame = (
        events.group_by("kind", "code")
        .agg(
            event_count=pl.len().cast(pl.Int64),
            gpu_count=pl.col("device_uuid").n_unique().cast(pl.Int64),
            last_at=pl.col("occurred_at").max(),
        )
        .sort("kind", "code", nulls_last=True)
    )
    columns = (
        column("kind", "Event", "text"),
        column("code", "Code", "text", "XID number"),
        column("event_count", "Events", "count"),
        column("gpu_count", "GPUs", "GPU"),
        column("last_at", "Last at", "text"),
    )
    return table(
        "events", "Device events", frame=frame, columns=columns, rows="device_event_history"
    )


def scrapes_table(scrapes: pl.DataFrame) -> Table:
    """Return the targets with most faults."""
    faults = pl.sum_horizontal(name for name, _ in _FAULTS)
    frame = (
        scrapes.with_columns(faults=faults)
        .filter(pl.col("faults") > 0)
        .sort("faults", "target", descending=[True, False])
        .head(_TOP)
    )
    columns = (
        column("target", "Target", "text"),
        column("scrape_count", "Scrapes", "count"),
        column("failed_count", "Failed", "count"),
        column("dropped_line_count", "Dropped lines", "count"),
        column("duplicate_count", "Duplicates", "count"),
        column("unknown_metric_count", "Unknown metrics", "count"),
        column("last_scraped_at", "Last at", "text"),
    )
    return table(
        "scrapes", "Targets with faults", frame=frame, columns=columns, rows="scrape_health"
    )


def fault_findings(events: pl.DataFrame, scrapes: pl.DataFrame) -> list[str]:
    """Return sentences on what broke."""
    counts = [
        *[(int((events["kind"] == kind).sum()), said) for kind, _, said in _EVENTS],
        *[(int(scrapes[name].sum()), said) for name, said in _FAULTS],
    ]
    return [
        f"{said[0].upper()}{said[1:]} in this period: {count:,}." for count, said in counts if count
    ]
