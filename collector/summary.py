"""What ``steward collect --once`` prints: one line per target."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from collector.reading import Reading

MACHINE_WIDTH = 200
"""Columns where no terminal tells its width: wide enough for addresses in one line."""


def print_summary(readings: Sequence[Reading]) -> None:
    """Print a table of the readings to standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=MACHINE_WIDTH)
    console.print(summary_table(readings))


def summary_table(readings: Sequence[Reading]) -> Table:
    """Return the table: targets in the order given, with what each one brought."""
    table = Table(box=None, pad_edge=False)
    for heading in ("target", "result"):
        table.add_column(heading, overflow="fold")
    for heading in ("samples", "dropped lines", "bytes", "seconds"):
        table.add_column(heading, justify="right")
    for reading in readings:
        outcome = reading.outcome
        result = "ok" if reading.refusal is None else str(reading.refusal.reason)
        table.add_row(
            Text(reading.url),
            Text(result),
            f"{outcome.sample_count:,}",
            f"{outcome.dropped_line_count:,}",
            f"{outcome.body_bytes:,}",
            f"{outcome.duration_s:.3f}",
        )
    return table
