"""Where vendor names, units and sentinels end: from an exposition to rows in base units.

Pure: no clock, no files, no network. What the numbers mean for people belongs to ``analytics``;
what is kept of them is said in ``docs/metrics.md``.
"""

from __future__ import annotations

from collector.normalize.claims import DeviceClaims
from collector.normalize.plan_rows import PlannedScrape, sample_tables
from collector.normalize.planner import Planner
from collector.normalize.scrape_rows import NormalizedScrape, normalize
from collector.normalize.state import NormalizeState

__all__ = [
    "DeviceClaims",
    "NormalizeState",
    "NormalizedScrape",
    "PlannedScrape",
    "Planner",
    "normalize",
    "sample_tables",
]
