"""How far a target's clock is off for certain, from the Date header of one answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collector.doctor.targets import certain_skew_s, date_of
from tests.support.exposition_texts import NOON

UNTIL = NOON + timedelta(seconds=2)


@pytest.mark.parametrize(
    ("told_s", "skew_s"),
    [
        pytest.param(-2.0, -1.0, id="behind: even the end of its second is before we asked"),
        pytest.param(-1.1, -0.1, id="just behind"),
        pytest.param(-1.0, 0.0, id="its second ends as we ask"),
        pytest.param(-0.9, 0.0, id="its second holds the moment we ask"),
        pytest.param(0.0, 0.0, id="as we ask"),
        pytest.param(1.0, 0.0, id="while it answers"),
        pytest.param(1.9, 0.0, id="just before it answered"),
        pytest.param(2.0, 0.0, id="as it answered"),
        pytest.param(2.1, 0.1, id="just ahead"),
        pytest.param(62.0, 60.0, id="ahead"),
    ],
)
def test_a_clock_counts_as_wrong_only_beyond_the_time_it_took_to_ask(
    told_s: float, skew_s: float
) -> None:
    told_at = NOON + timedelta(seconds=told_s)
    assert certain_skew_s(told_at, NOON, until_at=UNTIL) == pytest.approx(skew_s)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Mon, 04 May 2026 12:00:00 GMT", NOON),
        ("Mon, 04 May 2026 14:00:00 +0200", NOON),
        ("Mon, 04 May 2026 12:00:00 -0000", NOON),
        (None, None),
        ("", None),
        ("noon", None),
        ("Mon, 04 May 99999 12:00:00 GMT", None),
        ("Mon, 04 May 2026 12:00:00 +99999999999", None),
        ("Fri, 31 Dec 9999 23:00:00 -2359", None),
    ],
)
def test_the_instant_of_a_date_header(header: str | None, expected: datetime | None) -> None:
    found = date_of(header)
    assert found == expected
    assert found is None or found.tzinfo is UTC
