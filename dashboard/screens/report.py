"""Any report in full: every figure with its definition, every table with its rows, as files too."""

from __future__ import annotations

import streamlit as st

from analytics.reports.catalogue import REPORTS
from dashboard import blocks
from dashboard.page import Page, current
from dashboard.reports.render import Rendering
from dashboard.reports.render import render as rendered

DOWNLOADS = {"html": "text/html", "csv": "text/csv", "json": "application/json"}


def render(page: Page) -> None:
    """Show the report that the address names."""
    name = st.selectbox(
        page.translate("reports.which"), list(REPORTS), key="report", bind="query-params"
    )
    with st.spinner(page.translate("page.measuring")):
        report = page.report(name)
    st.subheader(page.translate(f"report.{name}", report.title), anchor=False)
    cards = st.container(horizontal=True, gap="small", key="cards")
    for figure in report.figures:
        with cards:
            blocks.card(figure, translate=page.translate)
    blocks.findings(report.findings, translate=page.translate)
    for table in report.tables:
        st.subheader(table.title, anchor=False)
        blocks.rows(table, translate=page.translate)
    files = st.container(horizontal=True)
    for kind, media_type in DOWNLOADS.items():
        files.download_button(
            kind.upper(),
            data=rendered(report, Rendering(format=kind, language=page.language)),
            file_name=f"{name}.{kind}",
            mime=media_type,
            on_click="ignore",
        )


render(current())
