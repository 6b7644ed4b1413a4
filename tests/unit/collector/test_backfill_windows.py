"""How a period is cut, and what is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from collector.backfill.selectors import duration, matchers_from, selector
from collector.backfill.windows import (
    SAMPLES_WANTED,
    SHORTEST_SPAN,
    SpanLength,
    hour_count,
    hours_of,
    whole_hours,
)
from steward.errors import UsageError
from steward.period import Period

NINE = datetime(2026, 5, 1, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
NOW = NINE + 24 * HOUR


@pytest.mark.parametrize(
    ("from_at", "until_at", "expected"),
    [
        pytest.param(NINE, NINE + HOUR, (NINE, NINE + HOUR), id="whole already"),
        pytest.param(NINE + TICK, NINE + HOUR, (NINE, NINE + HOUR), id="begins a tick later"),
        pytest.param(
            NINE - TICK, NINE + HOUR, (NINE - HOUR, NINE + HOUR), id="begins a tick before"
        ),
        pytest.param(NINE, NINE + HOUR - TICK, (NINE, NINE + HOUR), id="ends a tick before"),
        pytest.param(NINE, NINE + HOUR + TICK, (NINE, NINE + 2 * HOUR), id="ends a tick later"),
        pytest.param(NINE, NINE + TICK, (NINE, NINE + HOUR), id="a tick"),
        pytest.param(NINE, NOW + 9 * HOUR, (NINE, NOW), id="into the future: until now"),
    ],
)
def test_a_period_is_widened_to_whole_hours(
    from_at: datetime, until_at: datetime, *, expected: tuple[datetime, datetime]
) -> None:
    assert whole_hours(from_at, until_at, now=NOW) == Period(*expected)


@pytest.mark.parametrize(
    ("now", "last"),
    [
        pytest.param(NINE + HOUR - TICK, None, id="the hour is not over"),
        pytest.param(NINE + HOUR, NINE + HOUR, id="the hour is just over"),
        pytest.param(NINE + HOUR + TICK, NINE + HOUR, id="the next one began"),
    ],
)
def test_an_hour_that_is_not_over_is_left_out(now: datetime, last: datetime | None) -> None:
    if last is None:
        with pytest.raises(UsageError, match="no whole hour"):
            whole_hours(NINE, NINE + 9 * HOUR, now=now)
    else:
        assert whole_hours(NINE, NINE + 9 * HOUR, now=now).until_at == last


def test_an_empty_or_reversed_period_is_refused() -> None:
    with pytest.raises(UsageError, match="is empty"):
        whole_hours(NINE, NINE, now=NOW)
    with pytest.raises(UsageError, match="ends before it starts"):
        whole_hours(NINE + HOUR, NINE, now=NOW)


def test_hours_cover_a_period_without_gaps() -> None:
    period = Period(NINE, NINE + 3 * HOUR)
    hours = list(hours_of(period))
    assert len(hours) == hour_count(period) == 3
    assert (hours[0].from_at, hours[-1].until_at) == (period.from_at, period.until_at)
    assert all(first.until_at == second.from_at for first, second in pairwise(hours))


@pytest.mark.parametrize(
    ("sample_count", "factor"),
    [
        pytest.param(0, 2, id="nothing: more"),
        pytest.param(SAMPLES_WANTED // 2, 2, id="half of what is wanted: more"),
        pytest.param(SAMPLES_WANTED // 2 + 1, 1, id="a little more: as before"),
        pytest.param(SAMPLES_WANTED, 1, id="as wanted"),
        pytest.param(SAMPLES_WANTED + 1, 0.5, id="too many: less"),
    ],
)
def test_spans_follow_the_size_of_answers(sample_count: int, factor: float) -> None:
    span = SpanLength(longest=HOUR, length=timedelta(minutes=10))
    span.learn(sample_count)
    assert span.length == timedelta(minutes=10) * factor


def test_spans_stay_within_the_hour_and_the_longest() -> None:
    hour = Period(NINE, NINE + HOUR)
    span = SpanLength(longest=timedelta(minutes=7))
    assert span.next_span(NINE, hour=hour).length == timedelta(minutes=5)
    span.learn(0)
    assert span.length == timedelta(minutes=7)
    late = NINE + timedelta(minutes=58)
    assert span.next_span(late, hour=hour) == Period(late, hour.until_at)


def test_halving_ends_at_a_second_and_stays_whole() -> None:
    span = SpanLength(longest=HOUR)
    asked = Period(NINE, NINE + timedelta(seconds=7))
    assert span.halve(asked)
    assert span.length == timedelta(seconds=3)
    assert span.halve(Period(NINE, NINE + 2 * SHORTEST_SPAN))
    assert not span.halve(Period(NINE, NINE + SHORTEST_SPAN))


@pytest.mark.parametrize(
    ("text", "matchers"),
    [
        ("", ""),
        ("{}", ""),
        (' {job="a"} ', 'job="a"'),
        ('job=~"a|b",cluster!="x",', 'job=~"a|b",cluster!="x"'),
        ('{pod="with \\" and }"}', 'pod="with \\" and }"'),
    ],
)
def test_a_selector_may_be_written_with_or_without_braces(text: str, matchers: str) -> None:
    assert matchers_from(text) == matchers


@pytest.mark.parametrize(
    "text", ["job", "{job}", 'job="a', 'up{job="a"}', 'a="b"} or {c="d"', "job=a"]
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no selector of labels"):
        matchers_from(text)


def test_a_selector_names_metrics_matchers_and_values() -> None:
    assert selector(["b", "a", "b", "no name"], matchers='c="d"', job=["x.y", 'q "-']) == (
        '{__name__=~"a|b",job=~"q \\"-|x\\\\.y",c="d"}'
    )
    assert duration(timedelta(minutes=1, microseconds=1_500)) == "60002ms"
