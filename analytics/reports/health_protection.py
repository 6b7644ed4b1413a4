"""Whether critical work started in time, as one figure of health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from analytics.inputs import conform
from analytics.protection import starts
from analytics.reports.model import Figure
from analytics.reports.shape import figure, ratio
from analytics.value import LEVELS, declared, with_level
from steward.period import Period

PROTECTION_INPUTS: Final = ("transition_history", "workload_standing", "state.business_value")
"""The inputs behind ``protection_figure``."""


def protection_figure(frames: Mapping[str, pl.DataFrame], period: Period) -> Figure:
    """Return the share of critical work that started within its objective.

    Work still inside its objective is left out of the share, and seen in its coverage.
    """
    said = declared(conform("state.business_value", frames["state.business_value"]), period)
    standing = with_level(conform("workload_standing", frames["workload_standing"]), said)
    told = conform("transition_history", frames["transition_history"])
    critical = starts(told, standing, period).filter(pl.col("value_level") == LEVELS[0])
    decided = critical["is_met"].drop_nulls()
    return figure(
        "critical_protection_ratio",
        "Critical work started in time",
        value=ratio(int(decided.sum()), decided.len()),
        unit="ratio",
        definition="Critical workloads started within their objective / those decided.",
        rows="transition_history",
        coverage_ratio=ratio(decided.len(), critical.height),
    )
