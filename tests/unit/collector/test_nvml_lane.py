"""A lane does one job at a time, and outlives whatever its job does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from collector.sources.nvml.lane import Done, Lane
from steward.errors import SourceError

PATIENCE_S = 10.0


@pytest.fixture
def lane() -> Iterator[Lane[int]]:
    made: Lane[int] = Lane("test")
    yield made
    made.close()


def soon() -> float:
    return time.monotonic() + PATIENCE_S


def test_a_job_gives_its_value_once(lane: Lane[int]) -> None:
    assert lane.give(lambda: 7)
    assert lane.collect(until_s=soon()) == Done(7, None)
    assert lane.collect(until_s=soon()) is None


def test_a_job_that_does_not_end_is_not_waited_for(lane: Lane[int]) -> None:
    release = threading.Event()
    assert lane.give(lambda: int(release.wait(PATIENCE_S)))
    assert lane.collect(until_s=time.monotonic()) is None
    assert not lane.give(lambda: 2)
    release.set()
    assert lane.collect(until_s=soon()) == Done(1, None)
    assert lane.give(lambda: 3)
    assert lane.collect(until_s=soon()) == Done(3, None)


def test_a_late_value_is_dropped_by_the_next_job(lane: Lane[int]) -> None:
    assert lane.give(lambda: 1)
    until_s = soon()
    while lane.busy_since_s is not None:
        assert time.monotonic() < until_s
    assert lane.give(lambda: 2)
    assert lane.collect(until_s=soon()) == Done(2, None)


def test_a_failure_is_handed_over(lane: Lane[int]) -> None:
    failure = SourceError("gone", hint="look")

    def fail() -> int:
        raise failure

    lane.give(fail)
    assert lane.collect(until_s=soon()) == Done(None, failure)


def test_a_mistake_does_not_end_the_lane(lane: Lane[int], caplog: pytest.LogCaptureFixture) -> None:
    lane.give(lambda: 1 // 0)
    done = lane.collect(until_s=soon())
    assert done is not None
    assert "ZeroDivisionError" in str(done.failure)
    assert "ZeroDivisionError" in caplog.text
    lane.give(lambda: 4)
    assert lane.collect(until_s=soon()) == Done(4, None)
