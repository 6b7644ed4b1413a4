"""Every second of a wait is in one class: hand-built histories with known answers."""

from __future__ import annotations

import polars as pl
import pytest

from analytics.queue.decomposition import COLUMNS
from analytics.queue.shares import SHARES, class_shares_by, class_summary
from steward.period import Period
from tests.support.analytics_frames import HOUR, MINUTE, NOON
from tests.support.queue_story import Story

Minutes = dict[str, float]
ALL_EIGHT = tuple(f"n1/{index}" for index in range(8))


def cluster(**job: object) -> Story:
    """One node of eight H100, one job."""
    return Story().node().job(**job)


def admitted(**steps: float) -> Story:
    """A job of eight GPUs that is admitted at once; seven are held by another."""
    return cluster(gpu_count=8).steps(created=0, quota_reserved=0, admitted=0, **steps)


CASES: dict[str, tuple[Story, Minutes]] = {
    "quota": (
        cluster().hold("n1/0").steps(created=0, quota_reserved=30, admitted=30, scheduled=30),
        {"quota": 30},
    ),
    "admission": (
        cluster().hold("n1/0").steps(created=0, quota_reserved=0, admitted=20, scheduled=20),
        {"admission": 20},
    ),
    "placement: eight free, but not to be had": (
        Story().node().node("n2").job(gpu_count=8).hold("n1/0", "n2/0")
        .steps(created=0, quota_reserved=0, admitted=0, scheduled=40),
        {"placement": 40},
    ),
    "capacity: seven free, eight wanted": (
        admitted(scheduled=40).hold("n1/0"),
        {"capacity": 40},
    ),
    "start-up": (
        admitted(scheduled=0, started=3).hold("n1/0"),
        {"start-up": 3},
    ),
    "other": (
        cluster().hold("n1/0").steps(created=0).waits_for_quota(0, "Misconfigured"),
        {"other": 600},
    ),
    "unknown: of a queue that says nothing": (
        cluster().hold("n1/0").steps(created=0),
        {"unknown": 600},
    ),
    "unknown: no holder is recorded": (
        cluster(queue=None).steps(created=0, scheduled=40),
        {"unknown": 40},
    ),
    "unknown: what it asks for is not recorded": (
        cluster(gpu_count=None).hold("n1/0")
        .steps(created=0, quota_reserved=0, admitted=0, scheduled=5),
        {"unknown": 5},
    ),
    "other: asks for no GPU": (
        cluster(gpu_count=0, queue=None).hold("n1/0").steps(created=0, scheduled=5),
        {"other": 5},
    ),
    "no wait at all": (
        admitted(scheduled=0, started=0).hold("n1/0"),
        {},
    ),
    "one job through all of them": (
        cluster(gpu_count=8)
        .waits_for_quota(10, "Suspended").waits_for_quota(15, "WaitingForQuota")
        .steps(created=0, quota_reserved=60, admitted=70, scheduled=200, started=205)
        .node("n2").hold(*ALL_EIGHT[:4]).hold("n2/0", "n2/1", "n2/2", "n2/3", since=100, until=150)
        .hold("n2/4", since=60),
        # 12 - 1 are free until 100, then 7 until 150, then 11.
        {"quota": 55, "other": 5, "admission": 10, "placement": 80, "capacity": 50, "start-up": 5},
    ),
    "a topology that does not fit is placement": (
        cluster().hold("n1/0").steps(created=0, quota_reserved=50, admitted=50, scheduled=50)
        .waits_for_quota(0, "WaitingForQuota").waits_for_quota(20, "TopologyPlacementFailed"),
        {"quota": 20, "placement": 30},
    ),
    "an old queue says Pending for a topology": (
        cluster().hold("n1/0").steps(created=0)
        .waits_for_quota(0, "Pending", 'topology "rack" allows to fit only 1 out of 2 pod(s)'),
        {"placement": 600},
    ),
    "an old queue says Pending for a flavor that does not match": (
        cluster().hold("n1/0").steps(created=0)
        .waits_for_quota(0, "Pending", "couldn't assign flavors: flavor x doesn't match"),
        {"other": 600},
    ),
    "an old queue says Pending for quota": (
        cluster().hold("n1/0").steps(created=0)
        .waits_for_quota(0, "Pending", "insufficient unused quota in flavor x, 1 more needed"),
        {"quota": 600},
    ),
    "a word that nobody knows is other, not unknown": (
        cluster().hold("n1/0").steps(created=0).waits_for_quota(0, "MoonPhase"),
        {"other": 600},
    ),
    "a gate holds pods back": (
        cluster(queue=None).hold("n1/0").steps(created=0, scheduled=30)
        .pod_says(0, "SchedulingGated").pod_says(10),
        {"other": 10, "placement": 20},
    ),
    "a ResourceQuota that refuses pods is quota": (
        cluster(queue=None).hold("n1/0").steps(created=0)
        .event(0, "FailedCreate", 'pods "w1" is forbidden: exceeded quota: gpus', name="w1",
               kind="Job"),
        {"quota": 600},
    ),
    "pods that cannot be made are other": (
        cluster(queue=None).hold("n1/0").steps(created=0)
        .event(0, "FailedCreate", "admission webhook denied the request", name="w1", kind="Job"),
        {"other": 600},
    ),
    "a scheduler without queues: from creation on": (
        cluster(queue=None).hold("n1/0").steps(created=0, scheduled=10),
        {"placement": 10},
    ),
    "another queue system that tells no quota: pods say it": (
        cluster().hold("n1/0").steps(created=0, scheduled=10).event(1, "FailedScheduling", "no"),
        {"placement": 10},
    ),
    "a gang that is let in without admission": (
        cluster(gpu_count=8).hold("n1/0").steps(created=0, quota_reserved=5, scheduled=9),
        {"quota": 5, "capacity": 4},
    ),
    "steps that were missed show in what pods say": (
        cluster(gpu_count=8).hold("n1/0").steps(created=0, scheduled=30)
        .waits_for_quota(0, "WaitingForQuota").pod_says(20),
        {"quota": 20, "capacity": 10},
    ),
    "a clock that runs back makes no negative time": (
        cluster(gpu_count=8).hold("n1/0")
        .steps(created=5, quota_reserved=0, admitted=3, scheduled=8, started=7),
        {"capacity": 3},
    ),
    "still starting when the period ends": (
        admitted(scheduled=590).hold("n1/0").job("w2").steps("w2", created=0, started=0),
        {"capacity": 590, "start-up": 10},
    ),
    "gave up": (
        admitted(finished=25).hold("n1/0"),
        {"capacity": 25},
    ),
    "preempted before it started": (
        admitted(scheduled=0, preempted=2).hold("n1/0").job("w2").steps("w2", created=0, started=0),
        {"start-up": 2},
    ),
    "a cluster that tells no starts has no start-up": (
        admitted(scheduled=10, finished=300).hold("n1/0"),
        {"capacity": 10},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_class_of_each_minute(case: str) -> None:
    story, expected = CASES[case]
    assert story.minutes()[0] == expected


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(6, {"placement": 10}, id="one more free than asked for"),
        pytest.param(7, {"placement": 10}, id="exactly as many free as asked for"),
        pytest.param(8, {"capacity": 10}, id="one too few"),
    ],
)
def test_border_of_placement_and_capacity(held: int, expected: Minutes) -> None:
    story = Story().node().node("n2", gpus=4).job(gpu_count=5)
    story.hold(*[*ALL_EIGHT[:5], *(f"n2/{index}" for index in range(3))][:held])
    story.steps(created=0, quota_reserved=0, admitted=0, scheduled=10)
    assert story.minutes() == [expected]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda story: story, {"placement": 60}, id="all there"),
        pytest.param(
            lambda story: story.lose("n1/1", 20), {"placement": 20, "capacity": 40}, id="lost"
        ),
        pytest.param(
            lambda story: story.cordon("n1", 20), {"placement": 20, "capacity": 40}, id="cordoned"
        ),
        pytest.param(
            lambda story: story.device("n1/1", observed_at=NOON + 20 * MINUTE, is_present=False),
            {"placement": 20, "capacity": 40},
            id="gone",
        ),
        pytest.param(
            lambda story: story.instances("n1/1", 3, 4), {"capacity": 60}, id="divided"
        ),
        pytest.param(
            lambda story: story.hold("n1/1", gpu_share_ratio=0.5, sharing_mode="shared_equal"),
            {"capacity": 60},
            id="shared",
        ),
        pytest.param(
            lambda story: story.hold("n1/1", unheld_reason="busy_without_holder"),
            {"capacity": 60},
            id="busy for nobody known",
        ),
    ],
)  # fmt: skip
def test_only_what_can_be_had_is_free(change: object, expected: Minutes) -> None:
    story = Story().node().job(gpu_count=7)
    story.hold("n1/0").steps(created=0, quota_reserved=0, admitted=0, scheduled=60)
    assert callable(change)
    assert change(story).minutes() == [expected]


@pytest.mark.parametrize(
    ("models", "gpus", "expected"),
    [
        pytest.param("H100", 7, "placement", id="of the model it names"),
        pytest.param("A100", 5, "capacity", id="not of the model it names"),
        pytest.param("H100|A100", 7, "placement", id="of one of two models"),
        pytest.param("H100|A100", 9, "capacity", id="a gang is of one model"),
        pytest.param(None, 9, "placement", id="any model: all together"),
        pytest.param(None, 12, "capacity", id="any model: one too few"),
        pytest.param("B200", 1, "capacity", id="a model that is not there"),
    ],
)
def test_free_of_accepted_models(models: str | None, gpus: int, expected: str) -> None:
    story = Story().node().node("n2", gpus=4, model="A100").job(gpu_count=gpus, gpu_models=models)
    story.hold("n1/0").steps(created=0, quota_reserved=0, admitted=0, scheduled=10)
    assert story.minutes() == [{expected: 10}]


@pytest.mark.parametrize(
    ("free", "expected"),
    [
        pytest.param((1, 2), "placement", id="more sevenths than asked for"),
        pytest.param((2,), "placement", id="exactly two sevenths"),
        pytest.param((1,), "capacity", id="one seventh"),
    ],
)
def test_parts_of_a_divided_board(free: tuple[int, ...], expected: str) -> None:
    story = Story().node(gpus=2).instances("n1/0", 4, *free).job(gpu_count=1, gpu_milli=286)
    story.hold("n1/0", instance_id=1, gpu_share_ratio=4 / 7, sharing_mode="mig")
    story.steps(created=0, quota_reserved=0, admitted=0, scheduled=10)
    assert story.minutes() == [{expected: 10}]


def test_a_requeue_starts_a_new_wait() -> None:
    story = cluster(gpu_count=8).hold("n1/0")
    story.steps(created=0, quota_reserved=10, admitted=10, scheduled=15, preempted=30)
    story.steps(attempt=2, requeued=30, quota_reserved=60, admitted=60, scheduled=61)
    assert story.minutes() == [{"quota": 10, "capacity": 5}, {"quota": 30, "capacity": 1}]


def test_only_the_part_inside_the_period_is_divided() -> None:
    story = cluster().hold("n1/0").waits_for_quota(-90, "WaitingForQuota")
    story.steps(created=-90, quota_reserved=20, admitted=20, scheduled=20)
    assert story.minutes() == [{"quota": 20}]


def test_two_clusters_with_the_same_workload_uid_are_two() -> None:
    story = cluster().hold("n1/0").steps(created=0, quota_reserved=30, admitted=30, scheduled=30)
    story.stored["transition_history"] += [
        {**row, "cluster": "d"} for row in story.stored["transition_history"][:1]
    ]
    story.job(cluster="d")
    assert story.minutes() == [{"quota": 30}, {"unknown": 600}]


SHARED = (
    Story().node().hold(*ALL_EIGHT)
    .job("a", gpu_count=2).steps("a", created=0, quota_reserved=30, admitted=30, scheduled=40)
    .job("b", gpu_count=4, tenant_id="team-b").steps("b", created=0, quota_reserved=0, admitted=0)
)  # fmt: skip


def test_shares_of_occurrences_and_of_time() -> None:
    found = class_summary(SHARED.decomposed())
    shown = found.select(
        "wait_class", "occurrence_count", "occurrence_ratio", "waited_s", "time_ratio"
    )
    assert shown.rows() == [
        ("quota", 1, pytest.approx(1 / 3), 1_800.0, pytest.approx(30 / 640)),
        ("capacity", 2, pytest.approx(2 / 3), 36_600.0, pytest.approx(610 / 640)),
    ]
    assert found["waited_gpu_hours"].to_list() == pytest.approx([1.0, 2 / 6 + 40.0])
    assert found["never_scheduled_count"].to_list() == [0, 1]
    assert found["km_p50_wait_s"].to_list() == [1_800.0, 600.0]


@pytest.mark.parametrize(
    ("seconds", "count"),
    [
        pytest.param(9, 0, id="just too short to be an occurrence"),
        pytest.param(10, 1, id="exactly long enough"),
        pytest.param(11, 1, id="just past it"),
    ],
)
def test_what_controllers_need_to_act_is_no_occurrence(seconds: int, count: int) -> None:
    story = cluster().hold("n1/0").steps(created=0, quota_reserved=seconds / 60)
    story.steps(admitted=seconds / 60, scheduled=seconds / 60)
    assert class_summary(story.decomposed())["occurrence_count"].to_list() == [count]


def test_nothing_waited() -> None:
    found = Story().node().decomposed()
    assert class_summary(found).is_empty()
    assert class_shares_by(found, "tenant_id").is_empty()


def test_shares_by_team_add_up() -> None:
    found = class_shares_by(SHARED.decomposed(), "tenant_id")
    assert found["tenant_id"].to_list() == ["team-b", "team-a"]
    assert found.select(pl.sum_horizontal(SHARES)).to_series().to_list() == pytest.approx([1, 1])
    assert found["capacity_ratio"].to_list() == pytest.approx([1.0, 0.25])


def test_parts_are_the_whole_wait() -> None:
    rows = SHARED.decomposed().attempts
    assert (rows["wait_us"] == rows.select(pl.sum_horizontal(COLUMNS)).to_series()).all()
    assert (rows["wait_us"] == rows["ready_us"] - rows["created_us"]).all()


def test_an_instant_has_no_waits() -> None:
    assert SHARED.minutes(Period(NOON + HOUR, NOON + HOUR)) == [{}, {}]
