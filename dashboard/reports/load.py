"""From stored rows to a report's frames: the period people ask for, and the named queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import polars as pl

from analytics.reports.model import ReportDefinition
from steward.errors import InputError, UsageError
from steward.period import Period, instant_from
from steward.ports import ArrowTable, Parameter, Reader

LAST_UNITS: Final = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
TICK: Final = timedelta(microseconds=1)
"""The resolution of stored instants: the newest row lies inside a period that ends a tick later."""


def frames(reader: Reader, definition: ReportDefinition, period: Period) -> dict[str, pl.DataFrame]:
    """Return the rows that the report needs, by query name.

    Build the report once the reader is closed: an embedded warehouse holds memory while it is open.

    Raises:
        QueryError: a named query is missing or does not fit.
        WarehouseError: the warehouse cannot serve.
    """
    parameters: Mapping[str, Parameter] = {
        "from_at": period.from_at,
        "until_at": period.until_at,
    }
    return {name: frame(reader.query(name, parameters)) for name in definition.inputs}


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


def chosen_period(
    extent: Period,
    *,
    last: str | None = None,
    from_at: str | None = None,
    until_at: str | None = None,
) -> Period:
    """Return the period asked for; what was left open is filled from the stored rows' extent.

    Args:
        extent: the period that all stored rows lie in.
        last: a length such as ``7d``, counted back from the end.
        from_at: ISO 8601 with a zone, inclusive.
        until_at: ISO 8601 with a zone, exclusive; by default just past the newest row.

    Raises:
        UsageError: the words are not a period, or contradict each other.
    """
    if last is not None and from_at is not None:
        raise UsageError(
            "--last and --from both say where the period starts", hint="give one of the two"
        )
    end = extent.until_at if until_at is None else instant_from(until_at, option="--until")
    if last is not None:
        return Period.before(end, length(last))
    start = extent.from_at if from_at is None else instant_from(from_at, option="--from")
    return Period(start, end)


def length(text: str) -> timedelta:
    """Return the length that ``7d``, ``12h``, ``30m`` or ``2w`` names.

    Raises:
        UsageError: the text names none.
    """
    match = re.fullmatch(r"([0-9]{1,6})([mhdw])", text.strip())
    if match is None or int(match[1]) == 0:
        raise UsageError(
            f"--last {text!r} is not a length of time",
            hint="use a number with m, h, d or w, for example --last 7d",
        )
    return int(match[1]) * LAST_UNITS[match[2]]


@dataclass(frozen=True, slots=True)
class _Stream:
    """An Arrow table seen as no more than a stream of chunks.

    Polars joins the chunks of tables whose library it knows in one copy, which doubles memory.
    """

    table: ArrowTable

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the table's own stream."""
        return self.table.__arrow_c_stream__(requested_schema)


def frame(table: ArrowTable) -> pl.DataFrame:
    """Return an Arrow table as a Polars frame, chunk by chunk, without one joint copy."""
    return pl.DataFrame(_Stream(table))
