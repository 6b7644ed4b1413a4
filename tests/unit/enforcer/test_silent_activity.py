"""What a silent activity probe must not do: let an idle clock run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from enforcer.decisions import Verdict
from tests.support.enforcer_world import HOUR, MINUTE, START, WORKING, World

IDLE, BUSY, UNKNOWN = Verdict.IDLE, Verdict.BUSY, Verdict.UNKNOWN


def notebook() -> World:
    return World().node().job("GPU-a", kind="Notebook", workload_class="development")


def test_finding_f7_a_notebook_that_nothing_can_ask_is_unknown_and_its_clock_stands() -> None:
    world = notebook()
    for hours in (2, 8, 24):
        at = START + hours * HOUR
        assert world.judged(at).verdict is UNKNOWN
        assert world.judged(at).observed_idle_s == 0


@pytest.mark.parametrize(
    "silence",
    [
        pytest.param(10 * MINUTE, id="minutes"),
        pytest.param(3 * HOUR, id="hours"),
        pytest.param(24 * HOUR, id="a day"),
    ],
)
def test_finding_f7_silence_after_work_is_not_idle_time(silence: timedelta) -> None:
    stopped_at = START + 4 * HOUR
    world = notebook().reads(until_at=stopped_at, **WORKING)
    judgement = world.judged(stopped_at + silence)
    assert judgement.verdict is not IDLE
    assert judgement.observed_idle_s == 0
