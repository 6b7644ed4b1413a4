"""The clock as a port: only front doors and loops read it, everything else is told the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the current instant."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class FixedClock:
    """A clock that stands still: for tests, backtests and reproducible demonstrations."""

    at: datetime

    def now(self) -> datetime:
        """Return the fixed instant."""
        return self.at
