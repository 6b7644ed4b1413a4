"""Where vendor names, units and sentinels end: from an exposition to rows in base units.

Pure: no clock, no files, no network. What the numbers mean for people belongs to ``analytics``;
what is kept of them is said in ``docs/metrics.md``.
"""

from __future__ import annotations

from collector.normalize.scrape_rows import NormalizedScrape, normalize
from collector.normalize.state import NormalizeState

__all__ = ["NormalizeState", "NormalizedScrape", "normalize"]
