"""The queue report as a whole: groupings, figures, sentences, the axis of waiting and free."""

from __future__ import annotations

import pytest

from analytics.pressure import POINT_COUNT, waiting_beside_free
from analytics.reports import queue
from analytics.reports.model import Question, Report
from steward.errors import UsageError
from tests.support.queue_story import TEN_HOURS, Story


def built(story: Story, by: str | None = None) -> Report:
    return queue.build(story.frames(), Question(period=TEN_HOURS, by=by))


def figures(found: Report) -> dict[str, object]:
    return {each.key: each.value for each in found.figures}


def coverage(found: Report) -> dict[str, float | None]:
    return {each.key: each.coverage_ratio for each in found.figures}


def test_a_grouping_it_does_not_know() -> None:
    with pytest.raises(UsageError, match="queue knows no grouping 'node'"):
        built(Story(), by="node")


@pytest.mark.parametrize("by", queue.BY)
def test_it_declares_the_groupings_it_knows(by: str) -> None:
    assert by in queue.DEFINITION.groupings
    assert built(Story(), by=by).name == "queue"


def test_nothing_waited() -> None:
    said = figures(built(Story()))
    assert (said["quota_wait_ratio"], said["placement_wait_ratio"]) == (None, None)
    assert (said["pending_count"], said["waited_gpu_hours"]) == (0, 0.0)


def test_measured_zero_is_not_unknown() -> None:
    story = Story().node().hold("n1/0").job()
    story.steps(created=0, quota_reserved=60, admitted=60, scheduled=60)
    found = built(story)
    shown = figures(found)
    assert (shown["quota_wait_ratio"], shown["capacity_wait_ratio"]) == (1.0, 0.0)
    assert coverage(found)["quota_wait_ratio"] == 1.0


def test_what_nothing_tells_lowers_the_coverage() -> None:
    story = Story().node().hold("n1/0").job().job("w2")
    story.steps(created=0, quota_reserved=60, admitted=60, scheduled=60)
    story.steps("w2", created=0, finished=180)
    found = built(story)
    assert figures(found)["quota_wait_ratio"] == 0.25
    assert coverage(found)["quota_wait_ratio"] == 0.25


def test_sentences() -> None:
    story = Story().node().hold("n1/0").job(gpu_count=4).steps(created=0)
    story.waits_for_quota(0, "WaitingForQuota")
    assert built(story).findings[1:] == (
        "1 attempts still wait at 2026-05-04 22:00 UTC, the oldest for 10.0 h.",
        "Most was waited for quota: 40.0 GPU-hours asked for, 100.0 % of the waiting time.",
    )


def points(story: Story) -> list[tuple[float, float | None, float | None]]:
    frame = waiting_beside_free(story.attempts(), story.free(), TEN_HOURS).drop("at")
    assert frame.height == POINT_COUNT
    first, middle, last = frame[0], frame[POINT_COUNT // 2], frame[-1]
    return [each.row(0) for each in (first, middle, last)]


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param(
            Story().node().hold("n1/0", until=300).hold("n1/1", since=300),
            [(0, 7, 7)] * 3, id="one goes as another comes",
        ),
        pytest.param(
            Story().node().hold("n1/0", "n1/1").lose("n1/2", 200),
            [(0, 6, 6), (0, 5, 5), (0, 5, 5)], id="a board is lost",
        ),
        pytest.param(
            Story().node().hold("n1/0").lose("n1/0", 200),
            [(0, 7, 7)] * 3, id="a board is lost while held: missing once",
        ),
        pytest.param(
            Story().node().hold("n1/0", gpu_share_ratio=0.25, sharing_mode="shared_measured"),
            [(0, 7.75, 7)] * 3, id="leftovers of a shared board",
        ),
        pytest.param(
            Story().node(gpus=1).instances("n1/0", 3, 3).hold(
                "n1/0", gpu_share_ratio=3 / 7, instance_id=1, sharing_mode="mig"),
            [(0, 0.428571, 0)] * 3, id="slices that no instance covers serve nobody",
        ),
        pytest.param(
            Story().node().hold("n1/0").cordon("n1", 400),
            [(0, 7, 7), (0, 7, 7), (0, 0, 0)], id="a node takes no more work",
        ),
        pytest.param(
            Story().node().job(gpu_count=4).steps(created=0),
            [(4, None, None)] * 3, id="no holder is recorded",
        ),
        pytest.param(
            Story().node().hold("n1/0").job(gpu_count=4).steps(created=0, scheduled=400),
            [(4, 7, 7), (4, 7, 7), (0, 7, 7)], id="four are waited for",
        ),
    ],
)  # fmt: skip
def test_waiting_beside_free(
    story: Story, expected: list[tuple[float, float | None, float | None]]
) -> None:
    assert points(story) == expected
