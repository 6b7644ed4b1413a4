"""What is said of pods, queued workloads and gangs belongs to the workload that waits."""

from __future__ import annotations

import pytest

from tests.support.queue_story import Story


def said_of(story: Story) -> list[str]:
    return story.said()["workload_uid"].to_list()


@pytest.mark.parametrize(
    ("kind", "name", "found"),
    [
        pytest.param("Pod", "train-0-x7k2p", ["w1"], id="pod of a controller"),
        pytest.param("Pod", "train-worker-0", ["w1"], id="pod of a role"),
        pytest.param("Pod", "train", ["w1"], id="plain pod"),
        pytest.param("Workload", "pytorchjob-train-4f2e1", ["w1"], id="workload of Kueue"),
        pytest.param("PodGroup", "train-6f2d1f4e-7c1b-4d0e-9a55-0f5d3c1e7a10", ["w1"],
                     id="gang of Volcano"),
        pytest.param("Pod", "training-0", [], id="another name that begins alike"),
        pytest.param("Pod", "retrain-0", [], id="another name that ends alike"),
        pytest.param("Pod", "a-b-c-d-e-f-g-train", [], id="another name altogether"),
    ],
)  # fmt: skip
def test_names(kind: str, name: str, found: list[str]) -> None:
    story = Story().job(kind="PyTorchJob", name="train").steps(created=0)
    story.event(1, "FailedScheduling", "no", kind=kind, name=name)
    assert said_of(story) == found


def test_the_longest_name_counts() -> None:
    story = Story().job("short", name="train").job("long", name="train-big")
    story.steps("short", created=0).steps("long", created=0)
    story.event(1, "FailedScheduling", "no", name="train-big-0")
    assert said_of(story) == ["long"]


@pytest.mark.parametrize(("minute", "found"), [(4, ["first"]), (5, ["second"]), (6, ["second"])])
def test_of_equal_names_the_one_created_last_before_counts(minute: int, found: list[str]) -> None:
    story = Story().job("first", name="train").job("second", name="train")
    story.steps("first", created=0).steps("second", created=5)
    story.event(minute, "FailedScheduling", "no", name="train-0")
    assert said_of(story) == found


def test_before_any_of_that_name_it_belongs_to_nobody() -> None:
    story = (
        Story().job(name="train").steps(created=5).event(4, "FailedScheduling", "no", name="train")
    )
    assert said_of(story) == []


@pytest.mark.parametrize("place", [{"namespace": "team-b"}, {"cluster": "d"}])
def test_names_count_within_a_namespace_of_a_cluster(place: dict[str, str]) -> None:
    story = Story().job().steps(created=0).event(1, "FailedScheduling", "no", name="w1-0", **place)
    assert said_of(story) == []


def test_a_known_uid_needs_no_name() -> None:
    story = Story().job().steps(created=0)
    story.event(1, "FailedScheduling", "no", name="anything", workload_uid="w1")
    assert said_of(story) == ["w1"]


def test_what_is_said_of_others_is_left_out() -> None:
    story = Story().job().steps(created=0)
    story.event(1, "FailedScheduling", "no", name="anything", workload_uid="w2")
    assert said_of(story) == []
