"""What a simulation is told: everything that decides its rows, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from steward.errors import UsageError
from steward.period import Period
from steward.units import SECONDS_PER_DAY

GENERATOR_VERSION: Final = "1"
"""Part of every batch id: a changed generator makes new batches, never half-old ones."""
SMALLEST_NODE_COUNT: Final = 4
"""One node of each GPU model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationParameters:
    """Seed, size and period of one simulated fleet.

    Raises:
        UsageError: a value lies outside what the simulation can make.
    """

    until_at: datetime
    """The simulated period ends here, exclusive."""
    seed: int = 7
    days: int = 14
    node_count: int = 24
    cadence_s: int = 120
    cluster: str = "default"

    def __post_init__(self) -> None:
        """Refuse what cannot be simulated, naming the value and its bounds."""
        bounds = {
            "seed": (self.seed, 0, 2**32 - 1),
            "days": (self.days, 1, 90),
            "nodes": (self.node_count, SMALLEST_NODE_COUNT, 500),
            "cadence": (self.cadence_s, 5, 3_600),
        }
        for name, (value, lowest, highest) in bounds.items():
            if not lowest <= value <= highest:
                raise UsageError(
                    f"--{name} {value} is outside {lowest}..{highest}",
                    hint=f"choose a value from {lowest} to {highest}",
                )

    @property
    def from_at(self) -> datetime:
        """Return the first simulated instant."""
        return self.period.from_at

    @property
    def period(self) -> Period:
        """Return the simulated period."""
        return Period.before(self.until_at.astimezone(UTC), timedelta(days=self.days))

    @property
    def duration_s(self) -> int:
        """Return the simulated seconds."""
        return self.days * SECONDS_PER_DAY

    def identity(self) -> str:
        """Return the text that two simulations share only when all their rows are the same."""
        return json.dumps(
            {
                "generator": GENERATOR_VERSION,
                "seed": self.seed,
                "days": self.days,
                "nodes": self.node_count,
                "cadence_s": self.cadence_s,
                "until_at": self.until_at.astimezone(UTC).isoformat(),
                "cluster": self.cluster,
            },
            sort_keys=True,
        )
