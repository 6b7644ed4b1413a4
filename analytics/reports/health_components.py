"""Components of health: each with value, target, coverage and status; never summed to one number.

A target is a starting point that an operator can defend, with its reason; none is a law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.reports.model import Figure, Table
from analytics.reports.shape import column, percent, table
from analytics.utilization import PUBLISH_COVERAGE_RATIO, UNATTRIBUTED_TARGET_RATIO
from steward.units import SECONDS_PER_MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a component should reach."""

    key: str
    """The figure that it judges."""
    value: float
    is_least: bool
    """Whether the figure should be at least the value; else at most."""
    reason: str

    def is_met(self, value: float) -> bool:
        """Tell whether a value reaches the target; the target itself does."""
        return value >= self.value if self.is_least else value <= self.value


def _least(key: str, value: float, reason: str) -> Target:
    return Target(key=key, value=value, is_least=True, reason=reason)


def _most(key: str, value: float, reason: str) -> Target:
    return Target(key=key, value=value, is_least=False, reason=reason)


TARGETS: Final[tuple[Target, ...]] = (
    _least("effective_ratio", 0.5, "below half of its SMs active, a GPU is likely used badly"),
    _least("occupancy_ratio", 0.85, "the rest is room for gangs, repairs and peaks"),
    _most("unknown_use_ratio", 1 - PUBLISH_COVERAGE_RATIO,
          "with more unknown, no mean is fit to publish"),
    _most("unattributed_ratio", UNATTRIBUTED_TARGET_RATIO,
          "a charge that nobody answers for cannot be paid"),
    _most("idle_held_ratio", 0.1, "pauses for data and checkpoints; more is held without need"),
    _most("wait_p90_s", 30 * SECONDS_PER_MINUTE, "people who wait longer hold GPUs in advance"),
    _most("fragmentation_ratio", 0.5, "with more, most idle GPUs are of no use to expected work"),
    _least("critical_protection_ratio", 0.95, "of critical jobs start within their objective"),
    _least("telemetry_coverage_ratio", 0.95, "the rest is restarts of exporters and nodes"),
    _most("failed_scrape_ratio", 0.01, "one in a hundred; more loses coverage"),
    _most("xid_event_count", 0, "each is a fault of hardware or of a program, and worth reading"),
    _most("lost_event_count", 0, "each took a GPU away from its work"),
    _most("profiling_lost_event_count", 0, "each leaves a GPU without effective utilisation"),
    _most("data_age_s", 10 * SECONDS_PER_MINUTE, "older, and the page shows the past"),
)  # fmt: skip
"""In the order in which they are shown."""
_COLUMNS: Final = (
    column("component", "Component", "text"),
    column("value", "Value", "text"),
    column("target", "Target", "text"),
    column("coverage_ratio", "Coverage", "ratio", "of the device-time or rows asked about"),
    column("status", "Status", "text", "unknown: no value, or it speaks for less than 80 %"),
    column("reason", "Why this target", "text"),
    column("key", "Figure", "text", "the figure that holds the value and its definition"),
)


def components_table(figures: Mapping[str, Figure]) -> Table:
    """Return every component with its target, in the order of ``TARGETS``.

    Args:
        figures: by key; one that is missing reads as unknown.
    """
    rows = [_row(target, figures.get(target.key)) for target in TARGETS]
    schema = {each.name: pl.Float64 if each.unit == "ratio" else pl.String for each in _COLUMNS}
    return table(
        "components",
        "Components",
        frame=pl.DataFrame(rows, schema=schema),
        columns=_COLUMNS,
        rows="ledger",
        note="Read each by itself: they are not added up.",
    )


def status(target: Target, found: Figure | None) -> str:
    """Return ``ok``, ``below target`` or ``unknown``.

    Unknown without a value, and where the value speaks for less than 80 % of what was asked about.
    """
    if found is None or not isinstance(found.value, int | float):
        return "unknown"
    if found.coverage_ratio is not None and found.coverage_ratio < PUBLISH_COVERAGE_RATIO:
        return "unknown"
    return "ok" if target.is_met(found.value) else "below target"


def _row(target: Target, found: Figure | None) -> dict[str, str | float | None]:
    unit = "count" if found is None else found.unit
    value = None if found is None or not isinstance(found.value, int | float) else found.value
    sign = "at least" if target.is_least else "at most"
    return {
        "component": target.key.replace("_", " ") if found is None else found.title,
        "value": None if value is None else _said(value, unit),
        "target": f"{sign} {_said(target.value, _unit_of(target))}",
        "coverage_ratio": None if found is None else found.coverage_ratio,
        "status": status(target, found),
        "reason": target.reason,
        "key": target.key,
    }


def _unit_of(target: Target) -> str:
    suffixes = {"_ratio": "ratio", "_s": "s", "_count": "count"}
    return next(unit for suffix, unit in suffixes.items() if target.key.endswith(suffix))


def _said(value: float, unit: str) -> str:
    if unit == "ratio":
        return percent(value)
    if unit == "s":
        return f"{value / SECONDS_PER_MINUTE:,.1f} min"
    return f"{value:,.0f}"
