"""The period people ask for, and a report over exactly that period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest

from analytics.reports.model import Question
from dashboard.reports import load
from steward.errors import InputError, QueryError, UsageError
from steward.period import Period
from tests.support.report_builders import NOON, WEEK, FrameReader, definition, extent_frame

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
    assert load.chosen_period(WEEK, last=last, from_at=from_at, until_at=until_at) == expected


@pytest.mark.parametrize(
    "text", ["", "7", "d", "0d", "-1d", "7 days", "1.5h", "7y", "7D", "\u0667d"]
)
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a length of time"):
        load.length(text)


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
        load.chosen_period(WEEK, last=last, from_at=from_at, until_at=until_at)


def test_the_newest_row_lies_inside_the_extent() -> None:
    last_at = NOON + timedelta(hours=1)
    extent = load.required_extent(FrameReader({"data_extent": extent_frame(NOON, last_at)}))
    assert extent.contains(last_at)
    assert not extent.contains(last_at + load.TICK)


def test_no_rows_are_told_with_the_next_step() -> None:
    reader = FrameReader({"data_extent": extent_frame(None, None)})
    assert load.data_extent(reader) is None
    with pytest.raises(InputError, match="holds no rows yet") as caught:
        load.required_extent(reader)
    assert "steward import simulated" in caught.value.hint


def test_a_report_is_made_from_its_queries_over_its_period() -> None:
    reader = FrameReader({"one": pl.DataFrame({"x": [1, 2]}), "two": pl.DataFrame({"x": []})})
    wanted = definition("any", "one", "two")
    made = wanted.build(load.frames(reader, wanted, WEEK), Question(period=WEEK))
    assert [(figure.key, figure.value) for figure in made.figures] == [
        ("one_count", 2),
        ("two_count", 0),
    ]
    ends = {"from_at": WEEK.from_at, "until_at": WEEK.until_at}
    assert reader.asked == [("one", ends), ("two", ends)]


def test_a_missing_query_is_not_hidden() -> None:
    with pytest.raises(QueryError):
        load.frames(FrameReader({}), definition("any", "absent"), WEEK)


@pytest.mark.parametrize(
    "values", [[], [0], [None], [0, None, 3]], ids=["nothing", "zero", "null", "both"]
)
def test_a_frame_takes_every_chunk(values: list[int | None]) -> None:
    chunk = pa.table({"x": pa.array(values, pa.int64())})
    found = load.frame(pa.concat_tables([chunk, chunk]))
    assert found.to_dict(as_series=False) == {"x": values * 2}
    assert found.schema == {"x": pl.Int64}


def test_chunks_are_not_joined_in_a_copy() -> None:
    chunk = pa.table({"x": [1, 2]})
    assert load.frame(pa.concat_tables([chunk, chunk])).n_chunks() == 2
