"""How patient the collector is with an API server."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

RELIST_AFTER_FAILURES: Final = 3
"""Failed watches in a row after which the objects are listed anew instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Sizes and times; the defaults suit clusters of any size."""

    page_size: int = 500
    """Objects of one page of a list."""
    watch_s: float = 300.0
    """The server ends a watch after this long, up to half as much longer by chance."""
    silence_s: float = 90.0
    """A watch without a byte for so long is dead or quiet: it goes on with a new connection.

    Servers send a bookmark about once a minute.
    """
    connect_s: float = 5.0
    answer_s: float = 60.0
    """For one page of a list, from the request to its last byte."""
    backoff_first_s: float = 0.5
    backoff_max_s: float = 30.0
    survey_s: float = 60.0
    """The API is asked this often what kinds it serves; a CRD that comes later is found so."""
    lists_at_once: int = 4
    """Lists that run together: bounds memory and the load of a start on the API server."""


@dataclass(slots=True, kw_only=True)
class Backoff:
    """Waiting times that double with each failure in a row, spread by chance."""

    first_s: float
    max_s: float
    random: random.Random = field(default_factory=random.Random)
    failures_in_a_row: int = 0

    def next_s(self) -> float:
        """Return how long to wait after one more failure: 50 to 100 % of the doubled time."""
        longest_s = min(self.max_s, self.first_s * 2.0**self.failures_in_a_row)
        self.failures_in_a_row = min(self.failures_in_a_row + 1, 32)
        return longest_s * self.random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin anew: something succeeded."""
        self.failures_in_a_row = 0
