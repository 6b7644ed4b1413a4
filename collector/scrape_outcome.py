"""How one target could be read at one time: the row of table ``scrape``, good or bad."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeOutcome:
    """One scrape. Counts are 0 where nothing was read."""

    scraped_at: datetime
    cluster: str
    target: str
    """The scraped address or file."""
    reason: str | None
    """The stable word for why nothing was read; None where the target was read."""
    duration_s: float
    body_bytes: int
    """Of the answer, decompressed; of one that was given up, what had come of it."""
    sample_count: int = 0
    """Samples that were read, whatever became of them."""
    dropped_line_count: int = 0
    duplicate_count: int = 0
    unknown_metric_count: int = 0

    def row(self) -> dict[str, object]:
        """Return the row of table ``scrape``."""
        row: dict[str, object] = {name: getattr(self, name) for name in _COLUMNS}
        row["is_ok"] = self.reason is None
        return row


_COLUMNS: Final = tuple(each.name for each in fields(ScrapeOutcome))
