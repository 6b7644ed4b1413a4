"""Filters that live in the address, so that a copied address shows the same page: period, language.

``?last=7d`` counts back from the newest row; ``?from=…&until=…`` names both ends; ``?lang=zh``.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

from dashboard.i18n import LANGUAGES, Translate, language_of
from dashboard.reports.load import Asked, chosen_period
from steward.period import Period

ALL: Final = "all"
LENGTHS: Final = (ALL, "24h", "7d", "14d", "30d")
LANGUAGE_NAMES: Final = {"en": "English", "zh": "中文"}


def language(otherwise: str) -> str:
    """Return the language in the address, else the one from the settings."""
    return language_of(st.query_params.get("lang"), otherwise=otherwise)


def language_picker(shown: str, *, translate: Translate) -> None:
    """Offer the languages; a choice goes into the address."""
    st.segmented_control(
        translate("filter.language"),
        list(LANGUAGES),
        default=shown,
        format_func=LANGUAGE_NAMES.__getitem__,
        key="chosen_language",
        label_visibility="collapsed",
        on_change=_keep,
        args=("lang", "chosen_language"),
    )


def period_picker(extent: Period, *, translate: Translate) -> Period:
    """Offer lengths of time and return the period in the address.

    Raises:
        UsageError: the address holds words that are no period.
    """
    last = st.query_params.get("last", ALL)
    options = LENGTHS if last in LENGTHS else (*LENGTHS, last)
    st.segmented_control(
        translate("filter.period"),
        options,
        default=last,
        format_func=lambda length: translate(f"filter.{length}", length),
        key="chosen_last",
        label_visibility="collapsed",
        on_change=_keep,
        args=("last", "chosen_last"),
    )
    asked = Asked(
        last=None if last == ALL else last,
        from_at=st.query_params.get("from"),
        until_at=st.query_params.get("until"),
    )
    return chosen_period(extent, asked)


def _keep(parameter: str, widget: str) -> None:
    """Put the choice into the address; a length replaces both ends."""
    chosen = st.session_state[widget]
    if parameter == "last":
        for end in ("from", "until"):
            st.query_params.pop(end, None)
    if chosen is None or (parameter == "last" and chosen == ALL):
        st.query_params.pop(parameter, None)
    else:
        st.query_params[parameter] = chosen
