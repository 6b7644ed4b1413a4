"""Of the GPUs waited for, how many were free and of use to the work that waited."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.placeable import placeable
from analytics.pressure import POINT_COUNT, axis, waiting_beside_free
from tests.support.queue_story import TEN_HOURS, Story


def ends(story: Story) -> list[float | None]:
    """Return what could have been placed at the first, the middle and the last instant."""
    at = axis(TEN_HOURS)["at"]
    found = placeable(at, story.attempts(), story.free())
    assert found["at"].to_list() == at.to_list()
    values = found["placeable_gpu_count"].to_list()
    return [values[0], values[POINT_COUNT // 2], values[-1]]


def two_models() -> Story:
    """One H100 of eight is free, and all of four T4."""
    held = [f"n1/{index}" for index in range(7)]
    return Story().node().hold(*held).node("t4", gpus=4, model="T4")


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param(
            two_models().job(gpu_count=4, gpu_models="T4").steps(created=0), [4] * 3,
            id="all that is asked for is free",
        ),
        pytest.param(
            two_models().job(gpu_count=4, gpu_models="H100").steps(created=0), [1] * 3,
            id="free GPUs of another model do not count",
        ),
        pytest.param(
            two_models().job(gpu_count=9, gpu_models="T4|H100").steps(created=0), [5] * 3,
            id="either of two models",
        ),
        pytest.param(
            two_models().job(gpu_count=9, gpu_models=None).steps(created=0), [5] * 3,
            id="any model",
        ),
        pytest.param(
            two_models().job(gpu_count=4, gpu_models="T4").steps(created=0)
            .job("w2", gpu_count=9, gpu_models=None).steps("w2", created=0), [5] * 3,
            id="two requests do not count the same GPUs twice",
        ),
        pytest.param(
            two_models().job(gpu_count=2, gpu_models="T4").steps(created=0, scheduled=400),
            [2, 2, 0], id="no longer waiting",
        ),
        pytest.param(
            two_models().cordon("t4", 400).job(gpu_count=2, gpu_models="T4").steps(created=0),
            [2, 2, 0], id="no longer free",
        ),
        pytest.param(
            two_models().job(gpu_count=None, gpu_models="T4").steps(created=0), [0] * 3,
            id="request unknown",
        ),
        pytest.param(two_models(), [0] * 3, id="nothing waits"),
        pytest.param(
            Story().node().job(gpu_count=4).steps(created=0), [None] * 3,
            id="no holder is recorded",
        ),
        pytest.param(
            Story().node("gb", gpus=2, model="NVIDIA GB200").hold("n2/0")
            .job(gpu_count=2, gpu_models="NVIDIA-GB200").steps(created=0), [2] * 3,
            id="labels write names without spaces",
        ),
        pytest.param(
            Story().node(gpus=0, cluster="d").device("n1/0", cluster="d").hold("n2/0")
            .job(gpu_count=2).steps(created=0), [0] * 3,
            id="free in another cluster",
        ),
    ],
)  # fmt: skip
def test_placeable(story: Story, expected: list[float | None]) -> None:
    assert ends(story) == expected


def test_never_more_than_waits_or_is_free() -> None:
    story = two_models().job(gpu_count=3, gpu_models="H100|T4").steps(created=60, scheduled=300)
    story.job("w2", gpu_count=9, gpu_models=None).steps("w2", created=200, finished=500)
    points = waiting_beside_free(story.attempts(), story.free(), TEN_HOURS)
    found = placeable(points["at"], story.attempts(), story.free())["placeable_gpu_count"]
    assert (
        found.to_list()
        == points.select(pl.min_horizontal("waiting_gpu_count", "idle_gpu_count"))
        .to_series()
        .to_list()
    )
    assert found.max() == 5
