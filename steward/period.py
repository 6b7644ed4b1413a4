"""Half-open periods of time in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from steward.errors import UsageError


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """The half-open span ``[from_at, until_at)``; both ends aware and kept in UTC.

    Raises:
        UsageError: an end is naive, or the period ends before it starts.
    """

    from_at: datetime
    until_at: datetime

    def __post_init__(self) -> None:
        """Refuse naive ends and negative lengths; turn both ends into UTC."""
        for name in ("from_at", "until_at"):
            end: datetime = getattr(self, name)
            if end.tzinfo is None:
                raise UsageError(
                    f"period end {name}={end.isoformat()} has no time zone",
                    hint="add one, for example 2026-05-01T00:00:00Z",
                )
            object.__setattr__(self, name, _utc(end))
        if self.until_at < self.from_at:
            raise UsageError(
                f"period {self} ends before it starts", hint="swap the two ends of the period"
            )

    @classmethod
    def before(cls, until_at: datetime, length: timedelta) -> Period:
        """Return the period of this length that ends at this instant."""
        try:
            return cls(until_at - length, until_at)
        except OverflowError as error:
            raise _beyond_calendar(f"{length.days} days before {until_at.isoformat()}") from error

    @property
    def length(self) -> timedelta:
        """Return the elapsed time between the ends."""
        return self.until_at - self.from_at

    @property
    def length_s(self) -> float:
        """Return the elapsed seconds between the ends."""
        return self.length.total_seconds()

    def contains(self, instant: datetime) -> bool:
        """Tell whether the instant lies inside; the end does not."""
        return self.from_at <= instant < self.until_at

    def intersection(self, other: Period) -> Period | None:
        """Return the common part, or None where there is none."""
        from_at, until_at = max(self.from_at, other.from_at), min(self.until_at, other.until_at)
        return Period(from_at, until_at) if from_at < until_at else None

    def __str__(self) -> str:
        """Return ISO 8601 ends in interval notation, cut to the second."""
        return f"[{_iso(self.from_at)}, {_iso(self.until_at)})"


def instant_from(text: str, *, option: str = "") -> datetime:
    """Return the aware instant that an ISO 8601 text names, in the zone it names.

    Args:
        text: what a person wrote.
        option: the flag they wrote it behind, for the message.

    Raises:
        UsageError: the text is not ISO 8601, or has no time zone.
    """
    said = f"{option} {text!r}".lstrip()
    example = f"{option} 2026-05-01T00:00:00Z".lstrip()
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(
            f"{said} is not an ISO 8601 instant", hint=f"for example {example}"
        ) from error
    if at.tzinfo is None:
        raise UsageError(f"{said} has no time zone", hint=f"add one, for example {example}")
    _utc(at)
    return at


def _utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError as error:
        raise _beyond_calendar(instant.isoformat()) from error


def _beyond_calendar(what: str) -> UsageError:
    return UsageError(
        f"{what} lies outside the years 1 to 9999", hint="choose a period within the stored rows"
    )


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")
