"""Rows of many scrapes, kept until they leave together as a few big tables."""

from __future__ import annotations

import pyarrow as pa

from collector.normalize import PlannedScrape, sample_tables
from collector.reading import Reading
from collector.scrape_outcome import ScrapeOutcome
from collector.tables import rows_table


class Harvest:
    """What scrapes gave since it was last taken.

    Tables of a thousand targets a second would cost more than all the rest; numbers that were read
    by plan stay numbers until then.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._outcomes: list[ScrapeOutcome] = []
        self._planned: list[PlannedScrape] = []
        self._tables: list[tuple[str, pa.Table]] = []

    def add(self, reading: Reading) -> None:
        """Take over what one scrape gave."""
        self._outcomes.append(reading.outcome)
        self._tables += reading.rows
        if reading.planned is not None:
            self._planned.append(reading.planned)

    def take(self) -> list[tuple[str, pa.Table]]:
        """Return all of it as tables by name, and start anew."""
        tables, self._tables = self._tables, []
        outcomes, self._outcomes = self._outcomes, []
        planned, self._planned = self._planned, []
        tables += [("device_sample", table) for table in sample_tables(planned)]
        if outcomes:
            rows = [outcome.row() for outcome in outcomes]
            tables.append(("scrape", rows_table("scrape", rows)))
        return tables
