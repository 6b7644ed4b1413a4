"""Short ways to state figures and columns; no report of its own."""

from __future__ import annotations

import polars as pl

from analytics.reports.model import Column, Figure, Table

FINEST_TOLD_RATIO = 0.0005
"""A smaller share would read 0.0 %, as if it were none."""


def figure(  # noqa: PLR0913  # a figure is exactly these facts
    key: str,
    title: str,
    *,
    value: float | str | None,
    unit: str,
    definition: str,
    rows: str,
    coverage_ratio: float | None = None,
) -> Figure:
    """Return a figure; coverage defaults to "does not apply"."""
    return Figure(
        key=key,
        title=title,
        value=value,
        unit=unit,
        coverage_ratio=coverage_ratio,
        definition=definition,
        rows=rows,
    )


def table(
    key: str,
    title: str,
    *,
    frame: pl.DataFrame,
    columns: tuple[Column, ...],
    rows: str,
    note: str = "",
) -> Table:
    """Return a table whose frame is narrowed to the declared columns, in their order."""
    return Table(
        key=key,
        title=title,
        frame=frame.select(column.name for column in columns),
        columns=columns,
        rows=rows,
        note=note,
    )


def column(  # noqa: PLR0917  # reads as one line of a table of columns
    name: str, title: str, unit: str, definition: str = ""
) -> Column:
    """Return a column."""
    return Column(name=name, title=title, unit=unit, definition=definition)


def value_of(frame: pl.DataFrame, name: str) -> float | None:
    """Return one value of a one-row frame, None for null or no row."""
    if frame.is_empty():
        return None
    value = frame[name][0]
    return None if value is None else float(value)


def total(frame: pl.DataFrame, name: str) -> float:
    """Return the sum of a numeric column, 0 without rows."""
    return float(frame.select(pl.col(name).sum().cast(pl.Float64)).item())


def ratio(part: float, whole: float) -> float | None:
    """Return part / whole, None where there is no whole."""
    return part / whole if whole > 0 else None


def percent(value: float | None) -> str:
    """Return a ratio as a person reads it in a sentence."""
    if value is not None and 0 < value < FINEST_TOLD_RATIO:
        return "less than 0.1 %"
    return "unknown" if value is None else f"{value * 100:.1f} %"
