"""The shape of every report: figures and tables that carry unit, period and coverage.

Renderers (terminal, JSON, CSV, Parquet, HTML, screens) know this shape and no particular report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import polars as pl

from analytics.schemas.usage import ASKED
from steward.errors import UsageError
from steward.period import Period

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number a person reads."""

    key: str
    """Stable name, for links and machine formats: snake_case with the unit's suffix."""
    title: str
    value: float | int | str | None
    """None where it could not be measured: shown as a dash, never as 0."""
    unit: str
    """One of: ratio, s, GPU-hours, GPU, milli-GPU, W, J, bytes, count, text."""
    coverage_ratio: float | None
    """Share of the underlying device-time or rows that were known, 0..1; None: does not apply."""
    definition: str
    """One sentence: how it is computed, shown on hover."""
    rows: str
    """The named query or table whose rows it came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    name: str
    title: str
    unit: str
    """As in Figure.unit."""
    definition: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows a person reads, in their final order."""

    key: str
    title: str
    frame: pl.DataFrame
    """Has exactly the columns named in ``columns``, in that order."""
    columns: tuple[Column, ...]
    rows: str
    """The named query or table whose rows it came from."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The answer to one question over one period."""

    name: str
    title: str
    period: Period
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    findings: tuple[str, ...] = ()
    """Sentences that need a person's attention, most important first."""

    def table(self, key: str) -> pl.DataFrame:
        """Return the rows of the table of this key, for further computation.

        Raises:
            UsageError: the report has no such table; those it has are named.
        """
        frames = {each.key: each.frame for each in self.tables}
        return _named(frames, key, what=f"report {self.name!r} has no table")

    def figure(self, key: str) -> Figure:
        """Return the figure of this key.

        Raises:
            UsageError: the report has no such figure; those it has are named.
        """
        figures = {each.key: each for each in self.figures}
        return _named(figures, key, what=f"report {self.name!r} has no figure")


def _named(known: Mapping[str, Found], key: str, *, what: str) -> Found:
    if key not in known:
        raise UsageError(f"{what} {key!r}", hint=f"it has {', '.join(known) or 'none'}")
    return known[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person asks of a report."""

    period: Period
    by: str | None = None
    """One of the definition's ``groupings``; None: its own choice."""
    time_zone: str = "UTC"
    """IANA name of the zone whose days and months the answer is told in."""
    currency: str | None = None
    """ISO 4217; None: the currency of the prices."""
    fits: str | None = None
    """A request for capacity, as in ``gpus=4,cpu=32,model=H100``: what of it would fit now."""


def never(_state: Mapping[str, pl.DataFrame], _question: Question) -> tuple[datetime, ...]:
    """Return no instant: the ledger is one span, the period."""
    return ()


Asks = Mapping[str, tuple[str, ...]]
"""Columns by the name of a view of the ledger: ``ledger`` itself, and ``ledger.<word>`` for others.
A view is the same ledger, summed over what it does not name."""


def everything(_state: Mapping[str, pl.DataFrame], _question: Question) -> Asks:
    """Return all columns of the ledger that a report may ask for."""
    return {"ledger": ASKED}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A further view of the ledger, over spans of its own."""

    columns: tuple[str, ...]
    spans: tuple[Period, ...]
    """Disjoint parts of the period, ascending."""


def no_more(_frames: Mapping[str, pl.DataFrame], _question: Question) -> Mapping[str, View]:
    """Return no further view."""
    return {}


def view(frames: Mapping[str, pl.DataFrame], word: str) -> pl.DataFrame:
    """Return the view of this word, or where it is not given the ledger: it tells the same."""
    return frames.get(f"ledger.{word}", frames["ledger"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDefinition:
    """How to make one report: which stored rows it needs, and the pure function over them."""

    name: str
    summary: str
    """One line for ``steward report --help``."""
    inputs: tuple[str, ...]
    """Named queries, each taking exactly ``$from_at`` and ``$until_at``; ``ledger``, ``rest`` and
    ``ledger_caveat``, which the reader composes of what is built and of readings where nothing is
    built yet; and ``state.<table>`` for rows of a state table. All are keys of ``SCHEMAS``."""
    build: Callable[[Mapping[str, pl.DataFrame], Question], Report]
    """From the frames by name, and what was asked."""
    groupings: tuple[str, ...] = ()
    """What ``--by`` may name; empty: the report takes none."""
    cuts: Callable[[Mapping[str, pl.DataFrame], Question], tuple[datetime, ...]] = never
    """From its ``state.*`` frames: the instants inside the period at which ``ledger`` is divided
    into spans (price changes, days of a zone). Any order; repeats and those outside are ignored."""
    asks: Callable[[Mapping[str, pl.DataFrame], Question], Asks] = everything
    """From its ``state.*`` frames: which of ``schemas.usage.ASKED`` it reads of ``ledger`` and of
    each further view, of which there are no other columns; ticks are always there."""
    follows: Callable[[Mapping[str, pl.DataFrame], Question], Mapping[str, View]] = no_more
    """From all of its frames: what it still has to read of the ledger now that it knows these."""
