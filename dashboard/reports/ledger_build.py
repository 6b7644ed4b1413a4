"""Building the ledger: hours whose readings are complete are summed once and stored.

Every append has an id made of what it holds, and a build counts only once its last row, in
``ledger_build``, is stored: killed at any point, a build that starts again repeats nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from dashboard.reports.arrow import frame
from dashboard.reports.energy_build import build_energy
from dashboard.reports.extent import data_extent
from dashboard.reports.hours import DAY, HOUR, TICK, ceil_hour, floor_day, floor_hour, runs
from dashboard.reports.ledger_compose import ledger_sums
from dashboard.reports.ledger_days import day_build_id, newest_builds
from dashboard.reports.ledger_readings import Bookkeeper, Keep, chunks, ends, input_counts
from dashboard.reports.ledger_store import hour_builds, input_counts_of, store_day, store_hours
from dashboard.reports.ledger_sums import narrowed
from steward.clock import Clock
from steward.period import Period
from steward.ports import Reader, Source, Writer

CLOSED_AFTER: Final = timedelta(hours=1)
"""An hour is closed once a row is stored that is so much newer than its end: the readings of the
next hour end the last intervals of this one, and collectors that were behind have delivered."""
WINDOW_DAYS: Final = 31
"""Days looked through at a time: what is known of their hours is held in memory."""


class LedgerWarehouse(Source, Writer, Protocol):
    """What a build asks and stores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be built."""

    from_at: datetime | None = None
    """Hours that begin before are left alone; None: from the oldest row on."""
    until_at: datetime | None = None
    """Hours that end after are left alone; None: up to the last closed hour."""
    looks_back: timedelta | None = None
    """Only the days that reach so far back from the last closed hour; None: all."""
    is_again: bool = False
    """Also what is built already; what comes out the same is not stored again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What was stored."""

    hour_count: int = 0
    day_count: int = 0
    row_count: int = 0

    def __add__(self, other: Built) -> Built:
        """Return both together."""
        return Built(
            hour_count=self.hour_count + other.hour_count,
            day_count=self.day_count + other.day_count,
            row_count=self.row_count + other.row_count,
        )


def build(
    warehouse: LedgerWarehouse,
    order: Order,
    *,
    clock: Clock,
    keep: Keep | None = None,
    tell: Callable[[str], None] = lambda _line: None,
) -> Built:
    """Build the closed hours and days that are not built, or of which more is stored since.

    Args:
        warehouse: where rows are read and the ledger is stored.
        order: what is to be built.
        clock: the time of building.
        keep: how the ledger is made of readings; None: by a bookkeeper of this warehouse.
        tell: takes a line about each day as it is done.

    Raises:
        WarehouseError: the warehouse cannot serve; what is stored is whole and may be gone on with.
    """
    total = Built()
    keeper = Bookkeeper(source=warehouse).keep if keep is None else keep
    work = _Work(warehouse=warehouse, clock=clock, keep=keeper)
    for window in _windows(closed_period(warehouse, order)):
        for chunk in work.wanted(window, is_again=order.is_again):
            done = work.build_hours(chunk)
            total += done
            tell(f"{chunk}: {done.hour_count} hours, {done.row_count:,} rows")
        for day_at in work.stale_days(window):
            total += work.build_day(day_at)
        build_energy(warehouse, window, clock=clock)
    return total


def closed_period(warehouse: Reader, order: Order) -> Period | None:
    """Return the whole hours that may be built, or None where there are none."""
    extent = data_extent(warehouse)
    if extent is None:
        return None
    start, end = floor_day(extent.from_at), floor_hour(extent.until_at - TICK - CLOSED_AFTER)
    if order.from_at is not None:
        start = max(start, ceil_hour(order.from_at))
    if order.until_at is not None:
        end = min(end, floor_hour(order.until_at))
    if order.looks_back is not None:
        start = max(start, floor_day(end - order.looks_back))
    return Period(start, end) if start < end else None


def _windows(period: Period | None) -> Iterator[Period]:
    """Yield the period in parts that end at midnights, so that no day is parted."""
    start = None if period is None else period.from_at
    while period is not None and start is not None and start < period.until_at:
        end = min(floor_day(start) + WINDOW_DAYS * DAY, period.until_at)
        yield Period(start, end)
        start = end


@dataclass(slots=True, kw_only=True)
class _Work:
    """The builds of one warehouse."""

    warehouse: LedgerWarehouse
    clock: Clock
    keep: Keep

    def wanted(self, window: Period, *, is_again: bool) -> Iterator[Period]:
        """Yield chunks of hours that are not built as what is stored of them now."""
        counts = input_counts(self.warehouse, window)
        known = newest_builds(self.warehouse, window, "hour")
        late = {
            at for at in counts if at in known and input_counts_of(known[at].build_id) != counts[at]
        }
        touched = late | {near for at in late for near in (at - HOUR, at + HOUR)}
        hours = [at for at in counts if is_again or at not in known or at in touched]
        yield from chunks(runs(hours), {at: counted[0] for at, counted in counts.items()})

    def build_hours(self, chunk: Period) -> Built:
        """Build the hours of one chunk and store those that differ from their newest build."""
        counts = input_counts(self.warehouse, chunk)
        known = newest_builds(self.warehouse, chunk, "hour")
        kept = self.keep(chunk)
        builds = hour_builds(kept.books, list(counts), counts=counts, known=known)
        if not builds:
            return Built()
        now = self.clock.now()
        row_count = store_hours(self.warehouse, kept, builds, known=known, now=now)
        return Built(hour_count=len(builds), row_count=row_count)

    def stale_days(self, window: Period) -> list[datetime]:
        """Return the days of which all hours are built, but not the day, or not of these hours."""
        days = Period(floor_day(window.from_at), window.until_at)
        hours = newest_builds(self.warehouse, days, "hour")
        known = newest_builds(self.warehouse, days, "day")
        wanted = {at: day_build_id(at, hours) for at in hours if at == floor_day(at)}
        return [
            at
            for at, build_id in wanted.items()
            if build_id is not None and (at not in known or known[at].build_id != build_id)
        ]

    def build_day(self, day_at: datetime) -> Built:
        """Sum the built hours of one day and store it."""
        day = Period(day_at, day_at + DAY)
        build_id = day_build_id(day_at, newest_builds(self.warehouse, day, "hour"))
        if build_id is None:
            return Built()
        sums = narrowed(ledger_sums(self.warehouse, "ledger_hours", [(day, day)]))
        earlier = newest_builds(self.warehouse, day, "day").get(day_at)
        now = self.clock.now()
        store_day(
            self.warehouse,
            sums,
            frame(self.warehouse.query("ledger_caveats", ends(day))),
            day_at=day_at,
            build_id=build_id,
            built_at=now if earlier is None else max(now, earlier.built_at + TICK),
        )
        return Built(day_count=1, row_count=sums.height)
