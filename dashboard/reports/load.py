"""From stored rows to a report: the period people ask for, and the rows that the report needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from analytics.inputs import COMPOSED, SCHEMAS, STATE
from analytics.reports.model import Question, ReportDefinition
from dashboard.reports.arrow import frame, state_frame
from dashboard.reports.cluster import DEVICE_KEY, of_cluster, refuse_unknown
from dashboard.reports.extent import required_extent
from dashboard.reports.ledger_compose import LEDGER, compose, spans
from dashboard.reports.ledger_readings import Bookkeeper, ends
from steward.calendar_period import TICK, length, period_from, zone_of
from steward.errors import UsageError
from steward.period import Period, instant_from
from steward.ports import Reader, Source

__all__ = ["Asked", "chosen_period", "frames", "prepared", "question", "required_extent"]

DEVICES: Final = "device_history"
EARLIEST_YEAR: Final = 1970
"""Instants are stored as time since then; nobody has older rows of a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person asks of a report, in words; None leaves a choice open."""

    period: str | None = None
    """Such as ``last-month``, ``2026-05``, ``may``; instead of the next three."""
    last: str | None = None
    """A length such as ``7d``, counted back from the end."""
    from_at: str | None = None
    """ISO 8601 with a zone, inclusive."""
    until_at: str | None = None
    """ISO 8601 with a zone, exclusive; by default just past the newest row."""
    by: str | None = None
    cluster: str | None = None
    zone: str = "UTC"
    currency: str | None = None
    fits: str | None = None


def prepared(
    reader: Source, definition: ReportDefinition, asked: Asked
) -> tuple[dict[str, pl.DataFrame], Question]:
    """Return what ``definition.build`` takes: the rows, and the question.

    Build the report once the reader is closed: an embedded warehouse holds memory while it is open.

    Raises:
        UsageError: words that mean nothing, contradict each other or do not fit the report.
        InputError: the warehouse holds no rows yet.
        WarehouseError: the warehouse cannot serve.
    """
    told = question(required_extent(reader), definition, asked)
    return frames(reader, definition, told, cluster=asked.cluster), told


def question(extent: Period, definition: ReportDefinition, asked: Asked) -> Question:
    """Return the question that the words ask.

    Args:
        extent: the period that all stored rows lie in.
        definition: the report.
        asked: the words.

    Raises:
        UsageError: words that mean nothing, contradict each other or do not fit the report.
    """
    zone_of(asked.zone)
    _refuse_grouping(definition, asked.by)
    return Question(
        period=known_part(extent, chosen_period(extent, asked)),
        by=asked.by,
        time_zone=asked.zone,
        currency=_currency(asked.currency),
        fits=asked.fits,
    )


def frames(
    reader: Source, definition: ReportDefinition, told: Question, *, cluster: str | None = None
) -> dict[str, pl.DataFrame]:
    """Return the rows that the report needs, by input.

    Args:
        reader: the warehouse.
        definition: the report.
        told: what it is asked.
        cluster: keep the rows of this one only; None keeps all.

    Raises:
        UsageError: there is no such cluster.
        QueryError: a named query is missing or does not fit.
        WarehouseError: the warehouse cannot serve.
    """
    if cluster is not None:
        refuse_unknown(reader, cluster)
    rows = _rows(reader, definition, told.period)
    if cluster is not None:
        rows = _narrowed(reader, rows, period=told.period, cluster=cluster)
    wanted = [name for name in definition.inputs if name in COMPOSED]
    if wanted:
        states = {name: each for name, each in rows.items() if name.startswith(STATE)}
        divided = spans(told.period, definition.cuts(states, told))
        keeper = Bookkeeper(source=reader, cluster=cluster)
        views = definition.asks(states, told)
        rows |= compose(
            reader, wanted, divided=divided, keep=keeper.keep, cluster=cluster, views=views
        )
        for name, more in definition.follows(rows, told).items():
            columns = {name: more.columns}
            rows |= compose(
                reader, [LEDGER], divided=more.spans, keep=keeper.keep, cluster=cluster,
                views=columns,
            )  # fmt: skip
    is_wanted = {*definition.inputs}
    return {
        name: each
        for name, each in rows.items()
        if name in is_wanted or name.startswith(f"{LEDGER}.")
    }


def _rows(reader: Source, definition: ReportDefinition, period: Period) -> dict[str, pl.DataFrame]:
    """Return the inputs that come as they are stored."""
    return {
        name: state_frame(reader.state_rows(name.removeprefix(STATE)), SCHEMAS[name])
        if name.startswith(STATE)
        else frame(reader.query(name, ends(period)))
        for name in definition.inputs
        if name not in COMPOSED
    }


def _narrowed(
    reader: Reader, rows: Mapping[str, pl.DataFrame], *, period: Period, cluster: str
) -> dict[str, pl.DataFrame]:
    """Return the rows of one cluster; readings need its devices, whether or not the report does."""
    needs_devices = any(DEVICE_KEY in each.columns for each in rows.values())
    if not needs_devices or DEVICES in rows:
        return of_cluster(rows, cluster)
    devices = {DEVICES: frame(reader.query(DEVICES, ends(period)))}
    return of_cluster({**rows, **devices}, cluster)


def known_part(extent: Period, period: Period) -> Period:
    """Return a period up to the newest stored row: nothing is known of what comes after it.

    Raises:
        UsageError: all of it comes after, or it begins before clocks counted seconds.
    """
    if period.from_at.year < EARLIEST_YEAR:
        raise UsageError(
            f"the period {period} begins before {EARLIEST_YEAR}",
            hint=f"stored rows lie in {extent}",
        )
    if period.from_at >= extent.until_at and period.until_at > period.from_at:
        raise UsageError(
            f"the period {period} begins after the newest row",
            hint=f"stored rows lie in {extent}",
        )
    return Period(period.from_at, max(period.from_at, min(period.until_at, extent.until_at)))


def chosen_period(extent: Period, asked: Asked) -> Period:
    """Return the period asked for; what was left open is filled from the stored rows' extent.

    Args:
        extent: the period that all stored rows lie in.
        asked: the words; lengths and relative words count back from the extent's end.

    Raises:
        UsageError: the words are not a period, or contradict each other.
    """
    _refuse_contradiction(asked)
    if asked.period is not None:
        return period_from(asked.period, zone=asked.zone, until_at=extent.until_at)
    end = extent.until_at
    if asked.until_at is not None:
        end = instant_from(asked.until_at, option="--until")
    if asked.last is not None:
        return Period.before(end, length(asked.last))
    if asked.from_at is None:
        return Period(extent.from_at, end)
    start = instant_from(asked.from_at, option="--from")
    if asked.until_at is None and start > end:
        end = start + TICK
    return Period(start, end)


def _refuse_contradiction(asked: Asked) -> None:
    given = {"--last": asked.last, "--from": asked.from_at, "--until": asked.until_at}
    others = [flag for flag, value in given.items() if value is not None]
    if asked.period is not None and others:
        raise UsageError(
            f"--period and {' and '.join(others)} both say which period is meant",
            hint="give --period alone, or leave it out",
        )
    if asked.last is not None and asked.from_at is not None:
        raise UsageError(
            "--last and --from both say where the period starts", hint="give one of the two"
        )


def _refuse_grouping(definition: ReportDefinition, by: str | None) -> None:
    if by is None or by in definition.groupings:
        return
    known = ", ".join(definition.groupings)
    raise UsageError(
        f"report {definition.name!r} has no grouping by {by!r}",
        hint=f"it groups by {known}" if known else "it takes no --by; leave it out",
    )


def _currency(text: str | None) -> str | None:
    if text is None:
        return None
    code = text.strip().upper()
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise UsageError(
            f"--currency {text!r} is no ISO 4217 code", hint="for example --currency EUR"
        )
    return code
