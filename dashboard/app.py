"""The Streamlit entry point: page frame, filters, navigation, and the last door for failures."""

from __future__ import annotations

import streamlit as st

from dashboard import filters
from dashboard import format as fmt
from dashboard.i18n import Translate, translator
from dashboard.page import Page, show_on
from dashboard.source import Source, source
from dashboard.style import LOGO, MARK, STYLE
from steward.errors import StewardError


def main() -> None:
    """Show the frame and, inside it, the screen that the address names."""
    st.set_page_config(page_title="Steward", page_icon=MARK, layout="wide")
    st.logo(LOGO, size="large")
    st.html(STYLE)
    try:
        warehouse = source()
        language = filters.language(warehouse.settings.dashboard.language)
        _screens(warehouse, language)
    except StewardError as error:
        st.error(f"{error.message}\n\n{error.hint}", icon=":material/error:")


def _screens(warehouse: Source, language: str) -> None:
    translate = translator(language)
    screen = st.navigation(
        [
            st.Page("screens/overview.py", title=translate("page.overview"), default=True),
            st.Page("screens/report.py", title=translate("page.reports"), url_path="reports"),
        ],
        position="top",
    )
    extent = warehouse.extent()
    if extent is None:
        _welcome(translate)
        return
    bar = st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    )
    with bar:
        period = filters.period_picker(extent, translate=translate)
        filters.language_picker(language, translate=translate)
    page = Page(
        source=warehouse,
        period=period,
        watermark_at=extent.until_at,
        language=language,
        translate=translate,
    )
    show_on(page)
    st.caption(_freshness(page))
    screen.run()


def _freshness(page: Page) -> str:
    newest = f"{page.translate('overview.data_to')} {fmt.instant(page.watermark_at)} UTC"
    return f"{fmt.period(page.period)} \u00b7 {newest} \u00b7 {page.source.settings.cluster}"


def _welcome(translate: Translate) -> None:
    st.info(translate("empty.title"), icon=":material/inbox:")
    st.markdown(translate("empty.next"))
    st.code("steward import simulated\nsteward collect --scrape http://NODE:9400/metrics", "bash")


main()
