"""Starved work, work that takes turns, and how many workers a job has."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest

from analytics.queue.pingpong import ping_pong
from analytics.queue.stages import numbered
from analytics.queue.starvation import starved
from analytics.schemas.lifecycle import SCHEMAS
from tests.support.queue_story import TEN_HOURS, Story, at


def crowd(*later: Mapping[str, object], priority: int | None = 100) -> Story:
    """Twenty jobs that waited a minute, one that still waits, and later ones that started.

    The one that waits has no place since minute 60; each later one is created at 100 and scheduled
    at 110 unless it says otherwise.
    """
    story = Story().node().hold("n1/0")
    for index in range(20):
        story.job(f"peer-{index}").steps(f"peer-{index}", created=0, scheduled=1)
    story.job("victim", gpu_count=2, gang_size=None, priority=priority)
    story.stored["workload_current"][-1]["gpu_count"] = 1
    story.steps("victim", created=60)
    for index, facts in enumerate(later):
        steps = {name: facts.get(name, minute) for name, minute in
                 (("created", 100), ("scheduled", 110))}  # fmt: skip
        rest = {name: fact for name, fact in facts.items() if name not in steps}
        story.job(f"later-{index}", **rest)
        story.steps(f"later-{index}", **{name: float(str(each)) for name, each in steps.items()})
    return story


def victims(story: Story) -> list[tuple[str, int]]:
    found = starved(numbered(story.attempts(), TEN_HOURS))
    return list(found.select("name", "overtaken_count").iter_rows())


@pytest.mark.parametrize(
    ("later", "overtaken"),
    [
        pytest.param([{}] * 3, 3, id="exactly three went past it"),
        pytest.param([{}] * 4, 4, id="four went past it"),
        pytest.param([{}] * 2, None, id="two are no order"),
        pytest.param([{"priority": 101}] * 3, None, id="more urgent ones"),
        pytest.param([{"priority": 99}] * 3, 3, id="less urgent ones"),
        pytest.param([{"priority": None}] * 3, 3, id="of unknown priority: the default"),
        pytest.param([{"gpu_models": "A100"}] * 3, None, id="of another model"),
        pytest.param([{"gpu_models": "A100|H100"}] * 3, 3, id="of a model that both accept"),
        pytest.param([{"gpu_models": None}] * 3, 3, id="of any model"),
        pytest.param([{"gpu_count": 0}] * 3, None, id="without GPUs"),
        pytest.param([{"created": 60}] * 3, None, id="created at the same time"),
        pytest.param([{"created": 61}] * 3, 3, id="created a minute later"),
        pytest.param([{"created": 59, "scheduled": 61}] * 3, None, id="created before"),
    ],
)
def test_overtaken(later: list[Mapping[str, object]], overtaken: int | None) -> None:
    expected = [] if overtaken is None else [("victim", overtaken)]
    assert victims(crowd(*later)) == expected


def test_smaller_ones_that_fill_a_gap_do_not_starve_it() -> None:
    story = crowd({}, {}, {})
    story.stored["workload_current"] = [
        {**row, "gpu_count": 2} if row["name"] == "victim" else row
        for row in story.stored["workload_current"]
    ]
    for index in range(20):
        story.job(f"pair-{index}", gpu_count=2).steps(f"pair-{index}", created=0, scheduled=1)
    assert victims(story) == []


def test_too_few_peers_to_say() -> None:
    story = crowd({}, {}, {})
    story.stored["workload_current"] = story.stored["workload_current"][8:]
    assert victims(story) == []


def test_as_long_as_its_peers_is_not_starved() -> None:
    story = crowd({}, {}, {}).steps("victim", scheduled=61)
    assert victims(story) == []


def test_a_job_that_got_its_place_late_was_starved_until_then() -> None:
    story = crowd({}, {}, {}, {"created": 200, "scheduled": 210}).steps("victim", scheduled=150)
    assert victims(story) == [("victim", 3)]


def lost(minute: float, uid: str = "a", *, attempt: int, **facts: object) -> dict[str, object]:
    return {"occurred_at": at(minute), "cluster": "c", "workload_uid": uid, "attempt": attempt,
            "transition": "preempted", "reason": "InClusterQueue", **facts}  # fmt: skip


def turns(*rows: Mapping[str, object], story: Story | None = None) -> list[dict[str, object]]:
    schema = SCHEMAS["interruption_history"]
    columns = {name: [row.get(name) for row in rows] for name in schema}
    told = story or Story().job("a", gpu_count=2).job("b", gpu_count=4)
    found = ping_pong(
        pl.DataFrame(columns, schema=schema),
        told.attempts(),
        told.frames()["workload_current"],
    )
    return found.to_dicts()


DAY = 24 * 60.0


@pytest.mark.parametrize(
    ("minutes", "most"),
    [
        pytest.param((0, 10), None, id="twice"),
        pytest.param((0, 10, 20), 3, id="three times"),
        pytest.param((0, 10, DAY - 1), 3, id="three times within a day, just inside"),
        pytest.param((0, 10, DAY), 3, id="three times within exactly a day"),
        pytest.param((0, 10, DAY + 1), None, id="three times, the last just past a day"),
        pytest.param((0, 10, DAY + 5, DAY + 9), 3, id="any three of four"),
    ],
)
def test_loses_its_place_again_and_again(minutes: tuple[float, ...], most: int | None) -> None:
    found = turns(*[lost(minute, attempt=index) for index, minute in enumerate(minutes)])
    assert [each["most_in_window_count"] for each in found] == ([] if most is None else [most])


def test_an_attempt_ends_once() -> None:
    evicted = lost(1, attempt=1, transition="evicted", reason="Preempted")
    assert turns(lost(0, attempt=1), evicted, lost(5, attempt=2)) == []


def test_gpu_hours_at_stake_are_those_of_the_attempts_cut_off() -> None:
    story = Story().job("a", gpu_count=2)
    for attempt in (1, 2, 3):
        story.steps("a", attempt=attempt, created=60 * attempt, scheduled=60 * attempt)
    (row,) = turns(*[lost(60 * n + 30, attempt=n) for n in (1, 2, 3)], story=story)
    assert (row["loss_count"], row["lost_gpu_hours"]) == (3, 3.0)
    assert (row["name"], row["tenant_id"], row["turn_with"]) == ("a", "team-a", None)


def test_gpu_hours_at_stake_are_unknown_where_nothing_tells_when_it_began() -> None:
    (row,) = turns(*[lost(n, attempt=n) for n in (1, 2, 3)])
    assert row["lost_gpu_hours"] is None


BY_UID = "Preempted to accommodate a workload (UID: x, JobUID: {}) due to prioritization"
BY_NAME = "to accommodate workload team-a/{}"


@pytest.mark.parametrize("words", [BY_UID, BY_NAME], ids=["by uid", "by name"])
def test_two_that_take_turns(words: str) -> None:
    found = turns(
        lost(0, "a", attempt=1, message=words.format("b")),
        lost(30, "b", attempt=1, message=words.format("a")),
    )
    assert [(each["name"], each["turn_with"]) for each in found] == [("a", "b"), ("b", "a")]


@pytest.mark.parametrize(
    ("minute", "count"),
    [
        pytest.param(DAY - 1, 2, id="just inside a day"),
        pytest.param(DAY, 2, id="exactly a day apart"),
        pytest.param(DAY + 1, 0, id="just past a day"),
    ],
)
def test_turns_lie_within_a_day(minute: float, count: int) -> None:
    found = turns(
        lost(0, "a", attempt=1, message=BY_UID.format("b")),
        lost(minute, "b", attempt=1, message=BY_UID.format("a")),
    )
    assert len(found) == count


@pytest.mark.parametrize(
    "message", [None, "a node went away", BY_UID.format("nobody"), BY_UID.format("a")]
)
def test_one_way_is_no_turn(message: str | None) -> None:
    assert turns(
        lost(0, "a", attempt=1, message=message), lost(9, "b", attempt=1, message=None)
    ) == []  # fmt: skip


@pytest.mark.parametrize(
    ("story", "size", "count", "bucket"),
    [
        pytest.param(Story().job(gpu_count=16).worker("w1", 8), 8, 2, "2-4 workers", id="pods"),
        pytest.param(
            Story().job(gpu_count=2).hold("n1/0", "n1/1", workload_uid="w1"),
            2, 1, "1 worker", id="holders, where no pod is stored",
        ),
        pytest.param(Story().job(gpu_count=2), None, None, None, id="never seen"),
        pytest.param(
            Story().job(gpu_count=9).worker("w1", 1), 1, 9, "more than 8 workers", id="many"
        ),
        pytest.param(Story().job(gpu_count=8).worker("w1", 1), 1, 8, "5-8 workers", id="eight"),
        pytest.param(Story().job(gpu_count=0).worker("w1", 1), 1, 0, None, id="no GPU"),
    ],
)  # fmt: skip
def test_workers(story: Story, size: int | None, count: int | None, bucket: str | None) -> None:
    row = story.steps(created=0).attempts().row(0, named=True)
    assert (row["worker_gpu_count"], row["worker_count"], row["workers"]) == (size, count, bucket)
