"""Devices with several holders: replicas, claims, labels in turn, measured use, MIG."""

from __future__ import annotations

import pytest

from collector.allocation.polls import DeviceUse
from collector.holdings import Holding
from tests.support.allocation_story import (
    DRA,
    GPU,
    LABEL,
    VENDOR,
    Held,
    Story,
    at,
    boards,
    holding,
    owner,
    use,
)

EQUAL = "shared_equal"


def replica(pod: str, number: int) -> Holding:
    return holding(pod, replica=number, resource="nvidia.com/gpu.shared")


def test_replicas_are_split_equally_and_again_when_their_number_changes() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("b", 1))
    story.poll(15, replica("a", 0), replica("b", 1), replica("c", 2))
    story.poll(30, replica("a", 0), replica("c", 2))
    story.poll(45, replica("c", 2))

    def held(pod: str, number: int, from_s: int, until_s: int | None, share: float) -> Held:
        return Held(
            pod=pod,
            replica=number,
            from_s=from_s,
            until_s=until_s,
            share=round(share, 9),
            mode=EQUAL,
        )

    assert story.held() == [
        held("a", 0, 0, 15, 1 / 2),
        held("b", 1, 0, 15, 1 / 2),
        held("a", 0, 15, 30, 1 / 3),
        held("b", 1, 15, 30, 1 / 3),
        held("c", 2, 15, 30, 1 / 3),
        held("a", 0, 30, 45, 1 / 2),
        held("c", 2, 30, 45, 1 / 2),
        held("c", 2, 45, None, 1),
    ]


def test_one_holder_of_two_replicas_is_one_holder() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("a", 1), replica("b", 2))
    assert [(each.pod, each.share) for each in story.held()] == [
        ("a", 0.25),
        ("a", 0.25),
        ("b", 0.5),
    ]


def test_a_replica_given_to_another_pod_does_not_touch_its_neighbour() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("b", 1))
    story.poll(15, replica("a", 0), replica("c", 1))
    assert [(each.pod, each.from_s, each.until_s) for each in story.held()] == [
        ("a", 0, None),
        ("b", 0, 15),
        ("c", 15, None),
    ]


def test_two_replicas_may_change_places() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("b", 1))
    story.poll(15, replica("a", 1), replica("b", 0))
    assert [(each.pod, each.replica, each.from_s, each.until_s) for each in story.held()] == [
        ("a", 0, 0, 15),
        ("b", 1, 0, 15),
        ("a", 1, 15, None),
        ("b", 0, 15, None),
    ]


def test_a_claim_shared_by_pods_is_split_and_numbered_here() -> None:
    story = Story()
    first, second = (holding(pod, source=DRA, claim="team-a/gpu") for pod in ("a", "b"))
    story.poll(0, first, source=DRA)
    story.poll(20, second, first, source=DRA)
    story.poll(50, second, source=DRA)
    assert story.held() == [
        Held(pod="a", from_s=0, until_s=20, source="dra"),
        Held(pod="a", replica=0, from_s=20, until_s=50, share=0.5, mode=EQUAL, source="dra"),
        Held(pod="b", replica=1, from_s=20, until_s=50, share=0.5, mode=EQUAL, source="dra"),
        Held(pod="b", from_s=50, source="dra"),
    ]
    assert {row["claim"] for row in story.record()} == {"team-a/gpu"}


def test_an_admin_claim_consumes_nothing() -> None:
    story = Story()
    story.poll(
        0,
        holding("a", source=DRA),
        holding("monitor", source=DRA, is_admin_access=True),
        source=DRA,
    )
    assert story.held() == [Held(pod="a", from_s=0, source="dra")]


def test_the_end_of_one_of_several_splits_at_that_end() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("b", 1))
    story.finish(10, "b")
    assert [(each.pod, each.from_s, each.until_s, each.share) for each in story.held()] == [
        ("a", 0, 10, 0.5),
        ("b", 0, 10, 0.5),
        ("a", 10, None, 1.0),
    ]


def test_an_end_before_the_last_split_corrects_it_in_place() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("b", 1))
    story.poll(15, replica("a", 0), replica("b", 1), replica("c", 2))
    story.finish(10, "b")
    assert [(each.pod, each.from_s, each.until_s, each.share) for each in story.held()] == [
        ("a", 0, 15, 0.5),
        ("b", 0, 10, 0.5),
        ("a", 15, None, 0.5),
        ("c", 15, None, 0.5),
    ]


def test_labels_that_take_turns_name_several_holders() -> None:
    story = Story()
    one, two = holding("a", source=LABEL), holding("b", source=LABEL)
    for step in range(8):
        story.poll(15 * step, one if step % 2 == 0 else two, source=LABEL)
    last = [each for each in story.held() if each.until_s is None]
    assert [(each.pod, each.share, each.mode) for each in last] == [
        ("a", 0.5, EQUAL),
        ("b", 0.5, EQUAL),
    ]
    assert all(each.until_s is None or each.until_s <= 45 for each in story.held())


def test_a_label_that_passes_on_is_a_change_of_holder() -> None:
    story = Story()
    story.polls((0, 15), holding("a", source=LABEL), source=LABEL)
    story.polls((30, 45, 60, 75), holding("b", source=LABEL), source=LABEL)
    assert [(each.pod, each.from_s, each.until_s, each.share) for each in story.held()] == [
        ("a", 0, 30, 1.0),
        ("b", 30, None, 1.0),
    ]


SHARES = {(GPU, 7): 1 / 7, (GPU, 3): 2 / 7}


@pytest.mark.parametrize(
    ("instance_id", "resource", "share", "conflict"),
    [
        pytest.param(3, None, 2 / 7, None, id="from the device's facts"),
        pytest.param(9, "nvidia.com/mig-3g.20gb", 3 / 7, None, id="from the resource's name"),
        pytest.param(9, "nvidia.com/mig-1g.10gb.me", 1 / 7, None, id="a profile with a suffix"),
        pytest.param(9, "nvidia.com/gpu", 1 / 7, "share_unknown", id="not known"),
    ],
)
def test_a_mig_instance_has_its_share_of_the_board(
    instance_id: int, resource: str | None, share: float, conflict: str | None
) -> None:
    story = Story()
    story.poll(0, holding(instance_id=instance_id, resource=resource), sm_shares=SHARES)
    assert story.held() == [
        Held(
            instance_id=instance_id,
            from_s=0,
            share=round(share, 9),
            mode="mig",
            conflict=conflict,
        )
    ]


def test_a_shared_instance_splits_its_own_share() -> None:
    story = Story()
    pods = [holding(pod, instance_id=3, replica=number) for number, pod in enumerate("ab")]
    story.poll(0, *pods, sm_shares=SHARES)
    assert [(each.share, each.mode) for each in story.held()] == [(round(1 / 7, 9), EQUAL)] * 2


def measured_story(*ratios: tuple[float | None, float | None]) -> Story:
    """Return a device shared by two pods, whose use was measured in each poll."""
    story = Story()
    story.owners.by_pod = {"a": owner(pod_uid="u-a"), "b": owner(pod_uid="u-b")}
    for step, (first, second) in enumerate(ratios):
        story.poll(
            15 * step,
            replica("a", 0),
            replica("b", 1),
            uses=[use("u-a", core_ratio=first), use("u-b", core_ratio=second)],
        )
    story.poll(15 * len(ratios))
    return story


@pytest.mark.parametrize(
    ("ratios", "shares", "mode"),
    [
        pytest.param([(0.6, 0.2)], (0.75, 0.25), "shared_measured", id="in proportion"),
        pytest.param([(0.6, 0.0)], (1.0, 0.0), "shared_measured", id="zero is measured"),
        pytest.param([(0.0, 0.0)], (0.5, 0.5), "shared_measured", id="nobody used it"),
        pytest.param([(0.6, None)], (0.5, 0.5), EQUAL, id="one is not measured"),
        pytest.param([(None, None)], (0.5, 0.5), EQUAL, id="none is measured"),
        pytest.param(
            [(0.6, 0.2), (0.1, 0.3)], (0.5, 0.5), "shared_measured", id="the mean of the polls"
        ),
        pytest.param([(0.6, 0.0), (None, 0.3)], (1.0, 0.0), "shared_measured", id="zero and null"),
    ],
)
def test_measured_use_splits_a_shared_device(
    ratios: list[tuple[float | None, float | None]], shares: tuple[float, float], mode: str
) -> None:
    story = measured_story(*ratios)
    held = story.held()
    assert [each.share for each in held] == pytest.approx(shares)
    assert [each.mode for each in held] == [mode, mode]


def test_a_measured_split_is_told_while_it_lasts() -> None:
    story = measured_story(*[(0.9, 0.1)] * 40)
    told = [row for row in story.rows if row["ended_at"] is None]
    assert [(row["pod"], row["observed_at"]) for row in told] == [
        ("a", at(0)),
        ("b", at(0)),
        ("a", at(300)),
        ("b", at(300)),
    ]


def test_a_monitor_measures_by_container() -> None:
    story = Story()
    pods = [holding(pod, source=VENDOR) for pod in "ab"]
    uses = [
        DeviceUse(
            device_uuid=GPU,
            instance_id=None,
            namespace="team-a",
            pod=pod,
            container="main",
            core_ratio=ratio,
        )
        for pod, ratio in (("a", 0.1), ("b", 0.3))
    ]
    story.poll(0, *pods, source=VENDOR, uses=uses)
    story.finish(10, "a")
    story.finish(10, "b")
    assert [(each.pod, each.share, each.mode) for each in story.held()] == [
        ("a", 0.25, "shared_measured"),
        ("b", 0.75, "shared_measured"),
    ]


def test_an_unshared_device_listed_for_two_pods_belongs_to_the_newer() -> None:
    story = Story()
    story.polls((0, 15), holding("a"))
    story.polls((30, 45), holding("a"), holding("b"))
    assert story.held() == [
        Held(pod="a", from_s=0, until_s=30),
        Held(pod="b", from_s=30, conflict="stale_holder=team-a/a"),
    ]


def test_an_unshared_device_listed_for_two_pods_from_the_first_is_split_and_said_so() -> None:
    story = Story()
    story.poll(0, holding("a"), holding("b"))
    assert [(each.share, each.conflict) for each in story.held()] == [
        (0.5, "several_holders"),
        (0.5, "several_holders"),
    ]


def test_a_reservation_is_indirect_and_charged_to_nobody() -> None:
    story = Story()
    story.owners.by_pod["runai-reservation-gpu-1"] = owner("runai-reservation")
    story.poll(0, holding("runai-reservation-gpu-1", namespace="runai-reservation"))
    (row,) = story.record()
    assert row["conflict"] == "indirect"
    assert (row["ownership_level"], row.get("tenant_id")) == ("unattributed", None)


def test_a_reservation_gives_way_to_the_pods_it_reserves_for() -> None:
    story = Story()
    reserved = holding("runai-reservation-gpu-1", namespace="runai-reservation")
    story.poll(0, reserved)
    real = [holding(pod, source=VENDOR) for pod in "ab"]
    story.poll(5, *real, source=VENDOR)
    assert [(each.pod, each.share, each.source) for each in story.held()[1:]] == [
        ("a", 0.5, "vendor"),
        ("b", 0.5, "vendor"),
    ]


def test_containers_of_one_pod_share_what_the_pod_holds() -> None:
    story = Story()
    story.poll(0, holding(container="main"), holding(container="sidecar"), devices=boards(GPU))
    assert [each.share for each in story.held()] == [0.5, 0.5]


def test_a_claim_that_names_no_container_agrees_with_the_kubelet() -> None:
    story = Story()
    claimed = holding("a", source=DRA, claim="team-a/gpu", container=None)
    story.poll(0, claimed, source=DRA)
    story.polls((1, 16, 31), holding("a", claim="team-a/gpu"))
    story.advance(90)
    story.poll(91, claimed, source=DRA)
    assert story.held() == [Held(pod="a", from_s=0)]
    story.poll(92, source=DRA)
    story.poll(95)
    assert story.held() == [Held(pod="a", from_s=0, until_s=92)]
