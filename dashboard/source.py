"""What screens read: settings from the environment, reports cached by the newest stored row.

Every value a cached answer depends on is an argument of the cached function: place, report, period
and watermark. Nothing about a person is read inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import streamlit as st

from analytics.reports.catalogue import REPORTS
from analytics.reports.model import Question, Report
from dashboard.reports import load
from dashboard.reports.extent import data_extent
from sql.access import open_warehouse
from steward.period import Period
from steward.settings import Settings
from steward.settings import load as load_settings

CACHE_TTL_S: Final = 300
"""Late rows do not move the watermark; after this long they are seen all the same."""
EXTENT_TTL_S: Final = 5
"""A click reruns the whole script: within this long the newest row is not asked for again."""
CACHE_ENTRIES: Final = 64


@dataclass(frozen=True, kw_only=True)
class Source:
    """One warehouse, as the screens ask it."""

    settings: Settings

    @property
    def place(self) -> str:
        """Return what tells this warehouse from another: its address or its folder."""
        return self.settings.warehouse.url or str(self.settings.data_dir.absolute())

    def extent(self) -> Period | None:
        """Return the period that all stored rows lie in, or None where there are none."""
        ends = _extent(self.place, _settings=self.settings)
        return None if ends is None else Period(*ends)

    def report(self, name: str, period: Period, *, watermark_at: datetime) -> Report:
        """Return one report over the period, as of the newest stored row."""
        ends = (period.from_at, period.until_at)
        return _report(
            self.place, name, ends=ends, watermark_at=watermark_at, _settings=self.settings
        )


def source() -> Source:
    """Return the warehouse that the environment's settings name."""
    return Source(settings=load_settings())


@st.cache_data(ttl=EXTENT_TTL_S, max_entries=CACHE_ENTRIES, show_spinner=False)
def _extent(place: str, *, _settings: Settings) -> tuple[datetime, datetime] | None:
    del place  # part of the cache's key only
    with open_warehouse(_settings) as warehouse:
        extent = data_extent(warehouse)
    return None if extent is None else (extent.from_at, extent.until_at)


@st.cache_data(ttl=CACHE_TTL_S, max_entries=CACHE_ENTRIES, show_spinner=False)
def _report(
    place: str,
    name: str,
    *,
    ends: tuple[datetime, datetime],
    watermark_at: datetime,
    _settings: Settings,
) -> Report:
    del place, watermark_at  # part of the cache's key only
    definition, question = REPORTS[name], Question(period=Period(*ends))
    with open_warehouse(_settings) as warehouse:
        frames = load.frames(warehouse, definition, question)
    return definition.build(frames, question)
