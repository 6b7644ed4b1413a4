"""Pieces of a screen: cards of figures, tables with bars, findings; drawn from the report model."""

from __future__ import annotations

from typing import Final

import polars as pl
import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from analytics.reports.model import Column, Figure, Table
from dashboard import format as fmt
from dashboard.i18n import Translate

TABLE_ROWS_SHOWN: Final = 12
ROW_HEIGHT_PX: Final = 35


def card(figure: Figure, *, translate: Translate) -> None:
    """Show one figure with its coverage; its definition and rows on hover."""
    known = fmt.coverage(figure.coverage_ratio)
    st.metric(
        translate(f"figure.{figure.key}", figure.title),
        fmt.brief(figure.value, figure.unit),
        delta=f"{translate('report.coverage')} {known}" if known else None,
        delta_color="off",
        delta_arrow="off",
        border=True,
        height="stretch",
        help=f"{figure.definition}\n\n{translate('report.rows')}: `{figure.rows}`",
    )


def rows(table: Table, *, translate: Translate, shown: tuple[str, ...] | None = None) -> None:
    """Show a table with bars inside its cells, or say that it has no rows.

    Args:
        table: the table.
        translate: the screen's language.
        shown: the columns to show, those that the table has; None shows all.
    """
    if table.frame.is_empty():
        st.caption(translate("report.no_rows"))
        return
    height_rows = min(table.frame.height, TABLE_ROWS_SHOWN) + 1
    st.dataframe(
        table.frame,
        hide_index=True,
        height=height_rows * ROW_HEIGHT_PX + 2,
        column_order=shown,
        column_config={
            column.name: column_config(column, table.frame[column.name], translate=translate)
            for column in table.columns
        },
        placeholder=fmt.DASH,
    )
    note = f"{table.note} " if table.note else ""
    st.caption(f"{note}{translate('report.rows')}: `{table.rows}`")


def column_config(column: Column, values: pl.Series, *, translate: Translate) -> ColumnConfig:
    """Return how Streamlit shows a column: bars for shares and hours, words as they are."""
    title = fmt.header(translate(f"column.{column.name}", column.title), column.unit)
    explained = column.definition or None
    if column.unit == fmt.CURRENCY:
        return st.column_config.TextColumn(title, help=explained, alignment="right")
    if column.unit == "text" or not values.dtype.is_numeric():
        return st.column_config.Column(title, help=explained)
    if column.unit == "ratio":
        return st.column_config.ProgressColumn(
            title, help=explained, min_value=0, max_value=1, format="percent"
        )
    largest = values.max()
    if column.unit == "GPU-hours" and isinstance(largest, int | float) and largest > 0:
        return st.column_config.ProgressColumn(
            title, help=explained, min_value=0, max_value=largest, format="%,.1f"
        )
    pattern = "bytes" if column.unit == "bytes" else "localized"
    return st.column_config.NumberColumn(title, help=explained, format=pattern)


def findings(texts: tuple[str, ...], *, translate: Translate) -> None:
    """Show what needs attention, most important first."""
    st.subheader(translate("report.findings"), anchor=False)
    if not texts:
        st.caption(translate("overview.no_findings"))
        return
    with st.container(key="findings"):
        st.markdown("\n".join(f"{place}. {plain(text)}" for place, text in enumerate(texts, 1)))


def plain(text: str) -> str:
    """Return the text with everything that Markdown would take for markup made harmless."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>()#+-!|~$:&" else sign for sign in text)
