"""The shape of every report: figures and tables that carry unit, period and coverage.

Renderers (terminal, JSON, CSV, Parquet, HTML, screens) know this shape and no particular report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import polars as pl

from steward.period import Period


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDefinition:
    """How to make one report: which stored rows it needs, and the pure function over them."""

    name: str
    summary: str
    """One line for ``steward report --help``."""
    inputs: tuple[str, ...]
    """Named queries, each taking exactly ``$from_at`` and ``$until_at``."""
    build: Callable[[Mapping[str, pl.DataFrame], Period], Report]
    """From the frames by query name, and the period asked for."""
