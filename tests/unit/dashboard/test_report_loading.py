"""The period people ask for, and a report over exactly that period."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest

from analytics.reports.model import Question
from dashboard.reports import load
from dashboard.reports.arrow import frame, state_frame
from dashboard.reports.extent import data_extent, required_extent
from dashboard.reports.hours import TICK
from steward.errors import InputError, QueryError, UsageError
from steward.period import Period
from tests.support.report_builders import NOON, WEEK, FrameReader, definition, extent_frame

QUESTION = Question(period=WEEK)
MIDNIGHT = datetime(2026, 5, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("last", "from_at", "until_at", "expected"),
    [
        pytest.param(None, None, None, WEEK, id="all rows by default"),
        pytest.param("7d", None, None, WEEK, id="a length counts back from the newest row"),
        pytest.param(
            "12h",
            None,
            None,
            Period(WEEK.until_at - timedelta(hours=12), WEEK.until_at),
            id="hours",
        ),
        pytest.param(
            "30m",
            None,
            "2026-05-03T00:00:00Z",
            Period(MIDNIGHT - timedelta(minutes=30), MIDNIGHT),
            id="a length before a named end",
        ),
        pytest.param(
            None,
            "2026-05-03T08:00:00+08:00",
            None,
            Period(MIDNIGHT, WEEK.until_at),
            id="a start in another zone",
        ),
        pytest.param(None, None, "2026-05-03T00:00:00Z", Period(NOON, MIDNIGHT), id="an end alone"),
    ],
)
def test_chosen_period(
    *, last: str | None, from_at: str | None, until_at: str | None, expected: Period
) -> None:
    asked = load.Asked(last=last, from_at=from_at, until_at=until_at)
    assert load.chosen_period(WEEK, asked) == expected


def test_a_period_in_words_is_that_of_the_zone() -> None:
    asked = load.Asked(period="2026-05-03", zone="Asia/Shanghai")
    shanghai = MIDNIGHT - timedelta(hours=8)
    assert load.chosen_period(WEEK, asked) == Period(shanghai, shanghai + timedelta(days=1))


@pytest.mark.parametrize(
    ("last", "from_at", "until_at", "message"),
    [
        ("7d", "2026-05-03T00:00:00Z", None, "both say"),
        (None, "2026-05-03", None, "no time zone"),
        (None, None, "2026-05-03T00:00:00", "no time zone"),
        (None, "yesterday", None, "not an ISO 8601"),
        (None, "2026-05-09T00:00:00Z", "2026-05-03T00:00:00Z", "ends before it starts"),
    ],
)
def test_contradictions_are_refused(
    *, last: str | None, from_at: str | None, until_at: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        load.chosen_period(WEEK, load.Asked(last=last, from_at=from_at, until_at=until_at))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param(load.Asked(period="may", last="7d"), "--period and --last", id="with --last"),
        pytest.param(
            load.Asked(period="may", from_at="x", until_at="y"),
            "--period and --from and --until",
            id="with both ends",
        ),
        pytest.param(load.Asked(period="soon"), "is no period", id="no period"),
        pytest.param(load.Asked(zone="Mars/Base"), "no time zone", id="no zone"),
        pytest.param(load.Asked(by="colour"), "no grouping by 'colour'", id="no such grouping"),
        pytest.param(load.Asked(currency="euro"), "no ISO 4217 code", id="no currency"),
    ],
)
def test_a_question_that_means_nothing_is_refused(asked: load.Asked, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load.question(WEEK, replace(definition("any"), groupings=("team", "model")), asked)


def test_the_groupings_are_named() -> None:
    grouped = replace(definition("any"), groupings=("team", "model"))
    with pytest.raises(UsageError) as caught:
        load.question(WEEK, grouped, load.Asked(by="colour"))
    assert caught.value.hint == "it groups by team, model"
    with pytest.raises(UsageError) as caught:
        load.question(WEEK, definition("any"), load.Asked(by="team"))
    assert caught.value.hint == "it takes no --by; leave it out"


def test_a_question_carries_what_was_asked() -> None:
    grouped = replace(definition("any"), groupings=("team",))
    asked = load.Asked(by="team", zone="Asia/Shanghai", currency="eur", fits="gpus=4")
    assert load.question(WEEK, grouped, asked) == Question(
        period=WEEK, by="team", time_zone="Asia/Shanghai", currency="EUR", fits="gpus=4"
    )


def test_the_newest_row_lies_inside_the_extent() -> None:
    last_at = NOON + timedelta(hours=1)
    extent = required_extent(FrameReader({"data_extent": extent_frame(NOON, last_at)}))
    assert extent.contains(last_at)
    assert not extent.contains(last_at + TICK)


def test_no_rows_are_told_with_the_next_step() -> None:
    reader = FrameReader({"data_extent": extent_frame(None, None)})
    assert data_extent(reader) is None
    with pytest.raises(InputError, match="holds no rows yet") as caught:
        required_extent(reader)
    assert "steward import simulated" in caught.value.hint


def test_a_report_is_made_from_its_queries_over_its_period() -> None:
    reader = FrameReader({"one": pl.DataFrame({"x": [1, 2]}), "two": pl.DataFrame({"x": []})})
    wanted = definition("any", "one", "two")
    made = wanted.build(load.frames(reader, wanted, QUESTION), QUESTION)
    assert [(figure.key, figure.value) for figure in made.figures] == [
        ("one_count", 2),
        ("two_count", 0),
    ]
    ends = {"from_at": WEEK.from_at, "until_at": WEEK.until_at}
    assert reader.asked == [("one", ends), ("two", ends)]


def test_a_missing_query_is_not_hidden() -> None:
    with pytest.raises(QueryError):
        load.frames(FrameReader({}), definition("any", "absent"), QUESTION)


@pytest.mark.parametrize(
    "values", [[], [0], [None], [0, None, 3]], ids=["nothing", "zero", "null", "both"]
)
def test_a_frame_takes_every_chunk(values: list[int | None]) -> None:
    chunk = pa.table({"x": pa.array(values, pa.int64())})
    found = frame(pa.concat_tables([chunk, chunk]))
    assert found.to_dict(as_series=False) == {"x": values * 2}
    assert found.schema == {"x": pl.Int64}


def test_chunks_are_not_joined_in_a_copy() -> None:
    chunk = pa.table({"x": [1, 2]})
    assert frame(pa.concat_tables([chunk, chunk])).n_chunks() == 2


STATE = pl.Schema(
    {"valid_from_at": pl.Datetime("us", "UTC"), "amount_micros": pl.Int64, "currency": pl.String}
)


def test_state_rows_are_read_in_their_types() -> None:
    rows = [
        {"valid_from_at": "2026-05-01T12:00:00.250Z", "amount_micros": 0, "price_id": 7},
        {"valid_from_at": None, "amount_micros": None, "currency": "EUR"},
    ]
    found = state_frame(rows, STATE)
    assert found.schema == STATE
    assert found.rows() == [(NOON + timedelta(milliseconds=250), 0, None), (None, None, "EUR")]


def test_no_state_rows_are_a_frame_of_the_same_types() -> None:
    assert state_frame([], STATE).schema == STATE


@pytest.mark.parametrize(
    ("until_at", "expected"),
    [
        pytest.param(WEEK.until_at - TICK, WEEK.until_at - TICK, id="inside"),
        pytest.param(WEEK.until_at, WEEK.until_at, id="exactly at the newest row"),
        pytest.param(WEEK.until_at + TICK, WEEK.until_at, id="just past it"),
        pytest.param(WEEK.until_at + timedelta(days=31), WEEK.until_at, id="a month ahead"),
    ],
)
def test_nothing_is_told_of_time_after_the_newest_row(
    until_at: datetime, expected: datetime
) -> None:
    asked = Period(WEEK.from_at, until_at)
    assert load.known_part(WEEK, asked) == Period(WEEK.from_at, expected)


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        pytest.param(WEEK.until_at, "begins after the newest row", id="where the rows end"),
        pytest.param(datetime(1969, 12, 31, tzinfo=UTC), "begins before 1970", id="before clocks"),
        pytest.param(datetime(1, 1, 1, tzinfo=UTC), "begins before 1970", id="the first year"),
    ],
)
def test_a_period_of_which_nothing_can_be_known_is_refused(start: datetime, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        load.known_part(WEEK, Period(start, start + timedelta(days=1)))
