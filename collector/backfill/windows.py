"""How a period is cut: into hours that are stored whole, and into spans that are asked for.

An hour of UTC is the unit of storing: its batches have ids that follow from the hour alone, so a
second import that covers it stores nothing twice, however its own period begins or ends. A span is
only as long as the server's limits and our memory allow, and never crosses an hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from steward.errors import UsageError
from steward.period import Period

HOUR: Final = timedelta(hours=1)
FIRST_SPAN: Final = timedelta(minutes=5)
SHORTEST_SPAN: Final = timedelta(seconds=1)
SAMPLES_WANTED: Final = 200_000
"""Of one answer: some 80 MB while it is turned into rows, whatever the size of the cluster."""


def whole_hours(from_at: datetime, until_at: datetime, *, now: datetime) -> Period:
    """Return the period widened to whole hours of UTC, without the hour that is not over.

    Raises:
        UsageError: the period is empty, ends before it starts, or lies in the future.
    """
    asked = Period(from_at, until_at)
    if asked.from_at == asked.until_at:
        raise UsageError(f"the period {asked} is empty", hint="let --until be after --from")
    over_at = _hour_of(Period(now, now).from_at)
    until = min(_hour_of(asked.until_at + HOUR - timedelta(microseconds=1)), over_at)
    start = _hour_of(asked.from_at)
    if until <= start:
        raise UsageError(
            f"no whole hour of the period {asked} is over at {now.isoformat(timespec='seconds')}",
            hint="hours are stored whole once they are over: give an earlier --from",
        )
    return Period(start, until)


def hours_of(period: Period) -> Iterator[Period]:
    """Yield the hours of a period of whole hours, in order."""
    at = period.from_at
    while at < period.until_at:
        yield Period(at, at + HOUR)
        at += HOUR


def hour_count(period: Period) -> int:
    """Return how many hours a period of whole hours has."""
    return round(period.length / HOUR)


@dataclass(slots=True, kw_only=True)
class SpanLength:
    """How much is asked for at once: grows while answers are small, halves when they are not."""

    longest: timedelta
    length: timedelta = FIRST_SPAN

    def __post_init__(self) -> None:
        """Begin no longer than the longest."""
        self.length = min(self.length, self.longest)

    def next_span(self, at: datetime, *, hour: Period) -> Period:
        """Return the span from this instant on, within the hour."""
        return Period(at, min(at + self.length, hour.until_at))

    def learn(self, sample_count: int) -> None:
        """Choose the next length by the size of the last answer."""
        if sample_count > SAMPLES_WANTED:
            self.length = _halved(self.length)
        elif sample_count * 2 <= SAMPLES_WANTED:
            self.length = min(self.length * 2, self.longest)

    def halve(self, span: Period) -> bool:
        """Take half of a span that was too much; False where it cannot get shorter."""
        if span.length <= SHORTEST_SPAN:
            return False
        self.length = _halved(span.length)
        return True


def _halved(length: timedelta) -> timedelta:
    """Return half a length in whole seconds, so that spans meet exactly."""
    return max(timedelta(seconds=length // timedelta(seconds=2)), SHORTEST_SPAN)


def _hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
