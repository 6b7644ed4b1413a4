"""A history that moves on sees what one read anew sees, and late readings within the hour."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from enforcer.history import LOOK_BACK, look_back
from enforcer.policies.shipped import default_policy
from enforcer.sliding import ALL_EVERY, LATE, SlidingHistory
from steward.ports import Parameter
from tests.support.enforcer_world import CLUSTER, HOUR, MINUTE, START, WORKING, Answers, World

BACK = 2 * HOUR


class CountedAnswers(Answers):
    """Remembers how long a stretch of readings was asked for."""

    def __init__(self, answers: Answers) -> None:
        """Answer as these do."""
        super().__init__(answers.connection, answers.state)
        self.asked: list[timedelta] = []

    def query(self, name: str, parameters: Mapping[str, Parameter] | None = None) -> pa.Table:
        given = dict(parameters or {})
        if name == "evidence_sample":
            self.asked.append(given["until_at"] - given["from_at"])  # type: ignore[operator] # both are instants
        return super().query(name, parameters)


def world() -> World:
    told = World().node().job("GPU-a").reads(until_at=START + 3 * HOUR, **WORKING)
    return told.reads(from_at=START + 3 * HOUR, until_at=START + 7 * HOUR)


@pytest.mark.parametrize("minutes", [1, 17, 59], ids=lambda minutes: f"{minutes} min later")
def test_a_later_history_equals_one_read_anew(minutes: int) -> None:
    told, at = world(), START + 4 * HOUR
    with told.stored() as answers:
        moving = SlidingHistory(answers, answers, cluster=CLUSTER)
        moving.until(at, back=BACK)
        later = at + minutes * MINUTE
        moved = World.snapshot_of(moving.until(later, back=BACK), later)
        anew = SlidingHistory(answers, answers, cluster=CLUSTER).until(later, back=BACK)
        assert moved == World.snapshot_of(anew, later)


def test_a_round_reads_only_what_is_new_and_all_once_an_hour() -> None:
    with world().stored() as stored:
        answers = CountedAnswers(stored)
        moving = SlidingHistory(answers, answers, cluster=CLUSTER)
        at = START + 4 * HOUR
        for later in (0 * MINUTE, MINUTE, 6 * MINUTE, ALL_EVERY, ALL_EVERY + MINUTE):
            moving.until(at + later, back=BACK)
        assert answers.asked == [BACK, LATE + MINUTE, LATE + 5 * MINUTE, BACK, LATE + MINUTE]


@pytest.mark.parametrize(
    ("step", "back"),
    [
        pytest.param(-MINUTE, BACK, id="back in time"),
        pytest.param(MINUTE, BACK + HOUR, id="further back"),
        pytest.param(3 * HOUR, BACK, id="after a long pause"),
    ],
)
def test_what_is_kept_does_not_reach_is_read_anew(step: timedelta, back: timedelta) -> None:
    with world().stored() as stored:
        answers = CountedAnswers(stored)
        moving = SlidingHistory(answers, answers, cluster=CLUSTER)
        moving.until(START + 4 * HOUR, back=BACK)
        moving.until(START + 4 * HOUR + step, back=back)
        assert answers.asked == [BACK, back]


def test_history_reaches_as_far_back_as_the_policies_need() -> None:
    shipped = default_policy()
    assert look_back([]) == LOOK_BACK
    needed = look_back([shipped])
    for rule in shipped.rules:
        windows = [] if rule.idle is None else [rule.idle.window]
        assert needed >= max([*windows, *(rung.after for rung in rule.ladder)], default=LOOK_BACK)


def test_readings_that_arrive_very_late_are_a_gap_until_all_is_read_again() -> None:
    def is_late(at: datetime, _uuid: str) -> bool:
        return START + 210 * MINUTE <= at < START + 225 * MINUTE

    at = START + 4 * HOUR
    with world().without(is_late).stored() as answers:
        moving = SlidingHistory(answers, answers, cluster=CLUSTER)
        moving.until(at, back=BACK)
    with world().stored():
        soon = moving.until(at + MINUTE, back=BACK)
        later = moving.until(at + ALL_EVERY, back=BACK)
    assert [told.readings.ordered.height for told in (soon, later)] == [120 - 15, 120]


def test_readings_that_arrive_a_little_late_are_seen_by_the_next_round() -> None:
    def is_late(at: datetime, _uuid: str) -> bool:
        return at >= START + 4 * HOUR - 5 * MINUTE

    at = START + 4 * HOUR
    with world().without(is_late).stored() as answers:
        moving = SlidingHistory(answers, answers, cluster=CLUSTER)
        moving.until(at, back=BACK)
    with world().stored():
        told = moving.until(at + MINUTE, back=BACK)
    assert told.readings.ordered.height == 120
