"""Overview: what there is, how much of it worked, who holds it, why jobs wait."""

from __future__ import annotations

import streamlit as st

from dashboard import blocks, charts
from dashboard.overview import REPORT_NAMES, TENANT_COLUMNS, Overview, overview, shares
from dashboard.page import Page, current


def render(page: Page) -> None:
    """Show the overview of the page's period."""
    with st.spinner(page.translate("page.measuring")):
        content = overview({name: page.report(name) for name in REPORT_NAMES})
    cards = st.container(horizontal=True, gap="small", key="cards")
    for _name, figure in content.cards:
        with cards:
            blocks.card(figure, translate=page.translate)
    _where_hours_went(page, content)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _tenants(page, content)
    with right:
        blocks.findings(content.findings, translate=page.translate)
    _timeline(page, content)


def _where_hours_went(page: Page, content: Overview) -> None:
    st.subheader(page.translate("overview.hours"), anchor=False)
    if content.leaves is None or content.leaves.frame.is_empty():
        st.caption(page.translate("report.no_rows"))
        return
    st.altair_chart(charts.where_hours_went(shares(content.leaves, page.translate)), theme=None)
    with st.expander(page.translate("overview.rows")):
        blocks.rows(content.leaves, translate=page.translate)


def _tenants(page: Page, content: Overview) -> None:
    st.subheader(page.translate("overview.tenants"), anchor=False)
    if content.tenants is None:
        st.caption(page.translate("report.no_rows"))
        return
    blocks.rows(content.tenants, shown=TENANT_COLUMNS, translate=page.translate)
    st.page_link(
        "screens/report.py",
        label=page.translate("overview.more"),
        icon=":material/table_rows:",
        query_params=st.query_params.to_dict() | {"report": "health"},
    )


def _timeline(page: Page, content: Overview) -> None:
    if content.timeline is None or content.timeline.frame.is_empty():
        return
    st.subheader(page.translate("overview.waiting_and_idle"), anchor=False)
    st.altair_chart(
        charts.waiting_and_idle(
            content.timeline.frame,
            waiting=page.translate("overview.waiting"),
            idle=page.translate("overview.idle"),
        ),
        theme=None,
    )


render(current())
