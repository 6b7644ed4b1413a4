"""Laws of a composed ledger's sources, whatever is built and wherever the period is divided."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.reports.hours import HOUR, hours_of
from dashboard.reports.ledger_compose import plan, spans
from dashboard.reports.ledger_days import StoredBuild, day_build_id
from steward.period import Period
from steward.ports import ArrowTable, Parameter
from tests.support.report_builders import FrameReader

MONDAY = datetime(2026, 5, 4, tzinfo=UTC)
DAY_COUNT = 4
SECONDS = DAY_COUNT * 86_400
instants = st.integers(0, SECONDS).map(lambda second: MONDAY + timedelta(seconds=second))
built_hours = st.sets(st.integers(0, DAY_COUNT * 24 - 1)) | st.just(set(range(DAY_COUNT * 24)))


class BuiltReader(FrameReader):
    """A warehouse in which some hours are built, and every day of which all are."""

    def query(self, name: str, parameters: dict[str, Parameter] | None = None) -> ArrowTable:  # type: ignore[override]  # asked with a dict
        """Return the builds of the grain asked for."""
        assert name == "ledger_built"
        return self.frames[str((parameters or {})["grain"])]


def reader(numbers: set[int]) -> BuiltReader:
    ids = {MONDAY + number * HOUR: f"h{number}" for number in numbers}
    builds = {
        at: StoredBuild(build_id=build_id, built_at=MONDAY, build_count=1)
        for at, build_id in ids.items()
    }
    midnights = [MONDAY + timedelta(days=number) for number in range(DAY_COUNT)]
    days = {at: build_id for at in midnights if (build_id := day_build_id(at, builds))}
    return BuiltReader({"hour": frame(ids), "day": frame(days)})


def frame(ids: dict[datetime, str]) -> pl.DataFrame:
    kinds = {"starts_at": pl.Datetime("us", "UTC"), "build_id": pl.String}
    columns = {"starts_at": list(ids), "build_id": list(ids.values())}
    return pl.DataFrame(columns, schema=kinds).with_columns(
        built_at=pl.lit(MONDAY), build_count=pl.lit(1)
    )


@settings(max_examples=200)
@given(st.tuples(instants, instants).map(sorted), st.lists(instants, max_size=4), built_hours)
def test_every_instant_has_one_source(
    ends: list[datetime], cuts: list[datetime], numbers: set[int]
) -> None:
    period = Period(ends[0], ends[1])
    divided = spans(period, cuts)
    for span in plan(reader(numbers), divided):
        parts = sorted([*span.days, *span.hours, *span.readings])
        assert all(before.until_at == after.from_at for before, after in pairwise(parts))
        if parts:
            assert (parts[0].from_at, parts[-1].until_at) == (
                span.period.from_at,
                span.period.until_at,
            )
        stored = {at for piece in (*span.days, *span.hours) for at in hours_between(piece)}
        assert stored <= {MONDAY + number * HOUR for number in numbers}


@settings(max_examples=200)
@given(st.tuples(instants, instants).map(sorted), built_hours)
def test_nothing_that_is_built_and_whole_is_read_again(
    ends: list[datetime], numbers: set[int]
) -> None:
    period = Period(ends[0], ends[1])
    (span,) = plan(reader(numbers), [period])
    for number in numbers:
        hour = Period(MONDAY + number * HOUR, MONDAY + (number + 1) * HOUR)
        is_whole = period.from_at <= hour.from_at and hour.until_at <= period.until_at
        is_read = any(hour.intersection(piece) for piece in span.readings)
        assert not (is_whole and is_read)
    for day in span.days:
        assert day.length % timedelta(days=1) == timedelta(0)
        assert set(hours_of(day.from_at)) <= {MONDAY + number * HOUR for number in numbers}


def hours_between(piece: Period) -> list[datetime]:
    return [piece.from_at + step * HOUR for step in range(piece.length // HOUR)]
