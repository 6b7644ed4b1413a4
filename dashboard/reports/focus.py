"""From the warehouse to the FOCUS export: which rows it needs, and what it says beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Literal

import polars as pl

from analytics.cost.costing import INPUTS, Costing, cost_instants, costing
from analytics.cost.days import midnights
from analytics.focus.columns import Mode, Version
from analytics.focus.export import Export, export
from analytics.focus.from_costing import (
    Statement,
    is_of,
    priced_rows,
    printed_total,
    rounding_entry,
    shared_entries,
    statement_of,
)
from analytics.focus.terms import Terms
from analytics.inputs import conform
from analytics.reports.model import Question, Report, ReportDefinition
from dashboard.reports import load
from steward.period import Period
from steward.ports import Source

Grain = Literal["hour", "day"]
HOUR: Final = timedelta(hours=1)
CLOSED: Final = "state.closed_period"
SECOND: Final = timedelta(seconds=1)
"""The resolution of instants in the export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How the export is wanted."""

    mode: Mode = "internal"
    version: Version = "1.2"
    grain: Grain = "hour"
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An export and what a person must know of it."""

    export: Export
    notes: tuple[str, ...]
    """Sentences, most important first."""


def definition(grain: Grain) -> ReportDefinition:
    """Return what the export reads, the ledger cut at hours (or days of the question's zone)."""

    def cuts(state: Mapping[str, pl.DataFrame], question: Question) -> tuple[datetime, ...]:
        ends = cost_instants(state, question.period)
        return (*ends, *grid(question.period, grain=grain, zone=question.time_zone))

    return ReportDefinition(
        name="focus",
        summary="cost and usage rows of the FinOps specification",
        inputs=INPUTS,
        build=_no_report,
        cuts=cuts,
    )


def grid(period: Period, *, grain: Grain, zone: str) -> tuple[datetime, ...]:
    """Return the midnights of the zone inside the period, and of an hourly grain the full hours.

    Both, since months are the zone's, and not every zone is a whole number of hours off.
    """
    days = midnights(period, zone)
    if grain == "day":
        return days
    first = period.from_at.replace(minute=0, second=0, microsecond=0)
    count = (period.until_at - first) // HOUR
    hours = (first + number * HOUR for number in range(count + 1))
    return tuple(sorted({*days, *(at for at in hours if period.from_at < at < period.until_at)}))


def asked_rows(
    reader: Source, asked: load.Asked, *, grain: Grain
) -> tuple[dict[str, pl.DataFrame], Question]:
    """Return the rows of the period, widened to full seconds, and the question.

    Raises:
        UsageError: words that mean nothing, or contradict each other.
        InputError: the warehouse holds no rows yet.
        WarehouseError: the warehouse cannot serve.
    """
    wanted = definition(grain)
    told = load.question(load.required_extent(reader), wanted, asked)
    told = replace(told, period=in_seconds(told.period))
    return load.frames(reader, wanted, told, cluster=asked.cluster), told


def in_seconds(period: Period) -> Period:
    """Return the shortest period of full seconds that contains this one."""
    from_at = period.from_at.replace(microsecond=0)
    until_at = period.until_at.replace(microsecond=0)
    return Period(from_at, until_at if until_at == period.until_at else until_at + SECOND)


def made(frames: Mapping[str, pl.DataFrame], question: Question, wish: Wish) -> Made:
    """Return the export of the period.

    Args:
        frames: the inputs of ``definition``, by name.
        question: its period is exported.
        wish: mode, version and names.
    """
    known = conform(CLOSED, frames[CLOSED])
    closed = statement_of(known, question.period)
    cost, is_stated = _cost(frames, question.period, closed)
    terms, entries = wish.terms, list(shared_entries(cost))
    rounding = rounding_entry(cost, entries)
    entries += [] if rounding is None else [rounding]
    if closed is not None and is_stated:
        terms = replace(terms, invoice_id=terms.invoice_id or closed.statement_id)
        entries += closed.corrections
    found = export(
        priced_rows(cost), terms=terms, mode=wish.mode, version=wish.version, entries=entries
    )
    return Made(export=found, notes=_notes(found, cost, None if is_stated else closed))


def _cost(
    frames: Mapping[str, pl.DataFrame], period: Period, closed: Statement | None
) -> tuple[Costing, bool]:
    """Return the cost of the period, and whether it is what its statement says.

    A statement is told at the prices it was closed with; its corrections are rows of their own.
    """
    if closed is not None:
        first = frames[CLOSED].filter(pl.col("kind") == "statement")
        stated = costing({**frames, CLOSED: first}, period)
        if is_of(closed, stated):
            return stated, True
    return costing(frames, period), False


def _notes(found: Export, cost: Costing, differing: Statement | None) -> tuple[str, ...]:
    notes = []
    if found.frame.is_empty():
        notes.append(f"Nothing of {cost.period} has a price: the file holds the header only.")
    if not found.unpriced.is_empty():
        hours = float(found.unpriced["gpu_hours"].sum())
        models = found.unpriced["model"].fill_null("GPUs of unknown model").unique().sort()
        names = ", ".join(models)
        notes.append(f"{hours:,.2f} GPU-hours without a price are not in the file: {names}.")
    if differing is not None:
        notes.append(
            f"The rows add up to {printed_total(cost)} {cost.currency}, statement "
            f"{differing.statement_id} says {differing.total} {differing.currency}: they carry no "
            "statement, and its corrections are not repeated."
        )
    currencies = found.frame["BillingCurrency"].unique().sort().to_list()
    if len(currencies) > 1:
        notes.append(f"Rows are in the currencies of their prices: {', '.join(currencies)}.")
    return tuple(notes)


def _no_report(_frames: Mapping[str, pl.DataFrame], _question: Question) -> Report:
    raise NotImplementedError("the export is a file, not a report")
