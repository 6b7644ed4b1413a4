"""What every screen is given: the warehouse, the period, the language.

``app`` puts the page together once per run and hands it over here, since Streamlit runs each
screen as a script of its own.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from analytics.reports.model import Report
from dashboard.i18n import Translate
from dashboard.source import Source
from steward.period import Period


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One run of one screen."""

    source: Source
    period: Period
    watermark_at: datetime
    """Just past the newest stored row."""
    language: str
    translate: Translate

    def report(self, name: str) -> Report:
        """Return one report over the page's period."""
        return self.source.report(name, self.period, watermark_at=self.watermark_at)


_current: ContextVar[Page] = ContextVar("steward_page")


def show_on(page: Page) -> None:
    """Make this the page that the screen of this run shows."""
    _current.set(page)


def current() -> Page:
    """Return the page of this run; each run of a script has a thread and a context of its own."""
    return _current.get()
