"""Values of a schedule in a policy file: week days, times of day, dates, zones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Final

from enforcer.policies.shapes import At, Schema, is_list, shown
from steward.calendar_period import zone_of
from steward.errors import UsageError

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
CLOCK_PATTERN: Final = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
DAYS_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.\.[0-9]{4}-[0-9]{2}-[0-9]{2})?$"
SPAN_DAYS: Final = 400
"""The longest span of freeze days: longer ones are a policy that observes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekdays:
    """A list of week days."""

    @property
    def blank(self) -> frozenset[int]:
        """Return no days."""
        return frozenset()

    def read(self, value: object, at: At) -> frozenset[int]:
        """Return the days, 0 for Monday."""
        words = list(value) if is_list(value) else []
        days = [WEEKDAYS.index(one) for one in words if isinstance(one, str) and one in WEEKDAYS]
        if not words or len(days) < len(words):
            at.fault(f"must be a list of {', '.join(WEEKDAYS)}, not {shown(value)}")
            return frozenset()
        return frozenset(days)

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "array", "minItems": 1, "items": {"enum": list(WEEKDAYS)}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A time of day."""

    @property
    def blank(self) -> time:
        """Return midnight."""
        return time()

    def read(self, value: object, at: At) -> time:
        """Return the time."""
        if isinstance(value, str) and re.fullmatch(CLOCK_PATTERN, value):
            return time.fromisoformat(value)
        at.fault(f"must be a time of day such as 22:00, not {shown(value)}")
        return time()

    def schema(self) -> Schema:
        """Describe how it is written."""
        return {"type": "string", "pattern": CLOCK_PATTERN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """A list of dates and of spans ``FIRST..LAST``, both days included."""

    @property
    def blank(self) -> frozenset[date]:
        """Return no days."""
        return frozenset()

    def read(self, value: object, at: At) -> frozenset[date]:
        """Return all days."""
        if not is_list(value):
            at.fault(f"must be a list of dates, not {shown(value)}")
            return frozenset()
        return frozenset(
            day for number, one in enumerate(value) for day in _span(one, at.item(number))
        )

    def schema(self) -> Schema:
        """Describe how they are written."""
        return {"type": "array", "items": {"type": "string", "pattern": DAYS_PATTERN}}


def _span(value: object, at: At) -> Iterator[date]:
    first, last = _ends(value)
    if first is None or last is None or not 0 <= (last - first).days < SPAN_DAYS:
        at.fault(f"must be 2026-12-24, or 2026-12-24..2027-01-02, not {shown(value)}")
        return
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _ends(value: object) -> tuple[date | None, date | None]:
    if not isinstance(value, str) or re.fullmatch(DAYS_PATTERN, value) is None:
        return None, None
    first, _, last = value.partition("..")
    try:
        return date.fromisoformat(first), date.fromisoformat(last or first)
    except ValueError:
        return None, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The IANA name of a time zone."""

    @property
    def blank(self) -> str:
        """Return the name that is always known."""
        return "UTC"

    def read(self, value: object, at: At) -> str:
        """Return the name."""
        try:
            return (
                zone_of(value).key if isinstance(value, str) and value else self._faulty(value, at)
            )
        except UsageError:
            return self._faulty(value, at)

    def _faulty(self, value: object, at: At) -> str:
        at.fault(f"must be a time zone such as Asia/Shanghai, not {shown(value)}")
        return self.blank

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "string", "minLength": 1}
