"""Keeps one target's plan: when to use it, when to make a new one, when not to try for a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from collector.normalize.plan import Plan, Reals
from collector.normalize.plan_build import build_plan
from collector.normalize.plan_rows import PlannedScrape
from collector.normalize.plan_trace import Trace
from collector.normalize.presence import LOST_AFTER_SCRAPES
from collector.normalize.scrape_rows import NormalizedScrape
from collector.normalize.state import NormalizeState
from collector.sources.exposition import Exposition
from collector.sources.exposition_labels import Labels
from steward.units import MICROS_PER_SECOND

LONGEST_REST_SCRAPES: Final = 63
"""A target whose texts never fit is tried again after so many."""


@dataclass(slots=True)
class Planner:
    """One target's plan and how it fared."""

    _plan: Plan | None = None
    _has_fitted: bool = False
    _misfits_in_a_row: int = 0
    """Plans that were made and never used."""
    _rest_scrapes: int = field(default=0)

    def read(
        self, text: bytes, *, target: str, cluster: str, scraped_at: datetime, state: NormalizeState
    ) -> PlannedScrape | None:
        """Return what the text says if only ordinary numbers changed; None: read it in full.

        Args:
            text: the target's answer.
            target: its address.
            cluster: stored with every row.
            scraped_at: aware; the sampling time.
            state: the target's memory. A text that fits changes nothing in it.
        """
        plan = self._plan
        if plan is None:
            return None
        values = plan.read(text)
        if values is None or not plan.claim.holds(state.claims, target=target, at=scraped_at):
            self._give_up()
            return None
        self._has_fitted = True
        return _planned(plan, values, cluster=cluster, scraped_at=scraped_at)

    @property
    def has_plan(self) -> bool:
        """Tell whether the next text may be read by plan."""
        return self._plan is not None

    def trace(self) -> Trace | None:
        """Return where to take notes for a new plan; None where it is not worth it now."""
        if self._rest_scrapes:
            self._rest_scrapes -= 1
            return None
        return Trace()

    def make(
        self,
        text: bytes,
        exposition: Exposition,
        *,
        blocks: Mapping[str, Labels],
        trace: Trace,
        scrape: NormalizedScrape,
        state: NormalizeState,
    ) -> PlannedScrape | None:
        """Make a plan of a text that was read in full, and return its rows as the plan reads them.

        None is made while the same text once more would tell something: that a device stays away.
        """
        if _awaits_next(state):
            return None
        self._has_fitted = False
        self._plan = build_plan(text, exposition, blocks=blocks, trace=trace, scrape=scrape)
        if self._plan is None:
            self._give_up()
            return None
        values = self._plan.read(text)
        if values is None:
            return None
        return _planned(self._plan, values, cluster=scrape.cluster, scraped_at=scrape.scraped_at)

    def forget(self) -> None:
        """Drop the plan."""
        self._plan = None

    def _give_up(self) -> None:
        self._plan = None
        self._misfits_in_a_row = 0 if self._has_fitted else self._misfits_in_a_row + 1
        self._rest_scrapes = min(2**self._misfits_in_a_row - 1, LONGEST_REST_SCRAPES)


def _planned(plan: Plan, values: Reals, *, cluster: str, scraped_at: datetime) -> PlannedScrape:
    at_us = round(scraped_at.timestamp() * MICROS_PER_SECOND)
    return PlannedScrape(plan=plan, values=values, scraped_at_us=at_us, cluster=cluster)


def _awaits_next(state: NormalizeState) -> bool:
    return any(
        (device.is_present and 0 < device.missed_scrapes < LOST_AFTER_SCRAPES)
        or 0 < device.unprofiled_scrapes < LOST_AFTER_SCRAPES
        for device in state.devices.values()
    )
