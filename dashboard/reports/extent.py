"""The period that all stored rows lie in."""

from __future__ import annotations

from dashboard.reports.arrow import frame
from dashboard.reports.hours import TICK
from steward.errors import InputError
from steward.period import Period
from steward.ports import Reader


def data_extent(reader: Reader) -> Period | None:
    """Return the period that all stored rows lie in, or None where there are none."""
    row = frame(reader.query("data_extent")).row(0, named=True)
    first_at, last_at = row["first_at"], row["last_at"]
    if first_at is None or last_at is None:
        return None
    return Period(first_at, last_at + TICK)


def required_extent(reader: Reader) -> Period:
    """Return the period that all stored rows lie in.

    Raises:
        InputError: the warehouse holds no rows yet.
    """
    extent = data_extent(reader)
    if extent is None:
        raise InputError(
            "the warehouse holds no rows yet",
            hint="bring some in: `steward import simulated`, `steward import openb ...` "
            "or `steward collect --scrape URL`",
        )
    return extent
