"""What the overview shows, picked from finished reports by stable keys; nothing is measured here.

A figure or table that a report does not carry is left out, so that a screen never breaks on a
report that has less to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.reports.model import Figure, Report, Table
from dashboard.i18n import Translate

REPORT_NAMES: Final = ("health", "queue")
CARDS: Final[tuple[tuple[str, str], ...]] = (
    ("health", "capacity_gpu_hours"),
    ("health", "apparent_ratio"),
    ("health", "effective_ratio"),
    ("health", "idle_gpu_hours"),
    ("health", "wait_p90_s"),
    ("health", "fragmentation_ratio"),
)
"""Report and figure of each card, in reading order."""
LEAVES: Final = ("health", "leaves")
TENANTS: Final = ("health", "by_tenant")
TENANT_COLUMNS: Final = (
    "tenant_id",
    "held_gpu_hours",
    "utilization_ratio",
    "idle_gpu_hours",
    "coverage_ratio",
)
"""What a first screen says of a tenant; the report has every leaf."""
TIMELINE: Final = ("queue", "waiting_and_idle")
FINDING_COUNT: Final = 6
"""More than these nobody reads on a first screen; the reports hold all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The first screen's content."""

    cards: tuple[tuple[str, Figure], ...]
    """Report name and figure."""
    leaves: Table | None
    tenants: Table | None
    timeline: Table | None
    findings: tuple[str, ...]


def overview(reports: Mapping[str, Report]) -> Overview:
    """Return the overview of these reports, by name."""
    picked = ((name, _figure(reports, name, key)) for name, key in CARDS)
    cards = tuple((name, figure) for name, figure in picked if figure is not None)
    findings = [text for name in REPORT_NAMES if name in reports for text in reports[name].findings]
    return Overview(
        cards=cards,
        leaves=_table(reports, *LEAVES),
        tenants=_table(reports, *TENANTS),
        timeline=_table(reports, *TIMELINE),
        findings=tuple(dict.fromkeys(findings))[:FINDING_COUNT],
    )


def shares(leaves: Table, translate: Translate) -> pl.DataFrame:
    """Return the leaves that hold any time, with their share of all of it, in the table's order.

    Columns: leaf str, title str, gpu_hours f64, share_ratio f64.
    """
    hours = pl.col("gpu_hours")
    held = leaves.frame.filter(hours > 0).with_columns(share_ratio=hours / hours.sum())
    titles = [translate(f"leaf.{leaf}", leaf) for leaf in held["leaf"]]
    return held.select(
        "leaf", pl.Series("title", titles, dtype=pl.String()), "gpu_hours", "share_ratio"
    )


def _figure(reports: Mapping[str, Report], name: str, key: str) -> Figure | None:
    if name not in reports:
        return None
    return next((one for one in reports[name].figures if one.key == key), None)


def _table(reports: Mapping[str, Report], name: str, key: str) -> Table | None:
    if name not in reports:
        return None
    return next((one for one in reports[name].tables if one.key == key), None)
