"""Faults seen in the field, each with its number: who holds a device when sources err."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.holdings import Holding
from tests.support.allocation_story import (
    DRA,
    GPU,
    LABEL,
    Held,
    Story,
    boards,
    holding,
    owner,
    shares_at,
    use,
)

GR_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""A measure that was seen copied to every pod."""


def replica(pod: str, number: int) -> Holding:
    return holding(pod, replica=number, resource="nvidia.com/gpu.shared")


def test_fault_13_time_slicing_labels_one_pod_and_both_hold() -> None:
    story = Story()
    story.poll(0, replica("a", 0), replica("b", 1))
    story.poll(1, holding("b", source=LABEL), source=LABEL)
    assert story.held() == [
        Held(pod="a", replica=0, from_s=0, share=0.5, mode="shared_equal"),
        Held(pod="b", replica=1, from_s=0, share=0.5, mode="shared_equal"),
    ]


def test_fault_14_copies_per_pod_are_three_holders_of_one_device(test_data: Path) -> None:
    text = (test_data / "exposition" / "14_dcgm_issue_snippets.prom").read_text()
    copies = [line for line in text.splitlines() if line.startswith(GR_ACTIVE)]
    pods = [line.partition('pod="')[2].partition('"')[0] for line in copies]
    story = Story()
    story.poll(0, *[holding(pod, source=LABEL) for pod in pods], source=LABEL)
    held = story.held()
    assert [each.pod for each in held] == ["gpu-workload-1", "gpu-workload-2", "gpu-workload-3"]
    assert {each.mode for each in held} == {"shared_equal"}
    assert shares_at(held, 1) == {(GPU, None): pytest.approx(1.0)}
    value = float(copies[0].split()[-1])
    assert sum(value * each.share for each in held) == pytest.approx(0.714)


def test_fault_16_processes_decide_where_a_label_names_the_idle_device() -> None:
    story = Story()
    story.owners.by_pod = {"mps-1": owner(pod_uid="u1"), "mps-2": owner(pod_uid="u2")}
    labels = holding("mps-1", "GPU-0", source=LABEL), holding("mps-2", "GPU-1", source=LABEL)
    busy = boards("GPU-0")
    story.poll(0, *labels, source=LABEL, busy=busy, uses=[use("u1", "GPU-0"), use("u2", "GPU-0")])
    assert story.held() == [
        Held(
            device_uuid="GPU-0",
            pod="mps-1",
            replica=0,
            from_s=0,
            share=0.5,
            mode="shared_equal",
            source="exporter_label",
        ),
        Held(
            device_uuid="GPU-0",
            pod="mps-2",
            replica=1,
            from_s=0,
            share=0.5,
            mode="shared_equal",
            source="exporter_label",
            conflict="exporter_label_device=GPU-1",
        ),
    ]


def test_fault_16_without_processes_the_conflict_is_flagged_against_the_kubelet() -> None:
    story = Story()
    story.poll(0, holding("mps-1", "GPU-0"))
    wrong = holding("mps-2", "GPU-0", source=LABEL), holding("mps-1", "GPU-1", source=LABEL)
    story.poll(1, *wrong, source=LABEL)
    assert story.held() == [
        Held(device_uuid="GPU-0", pod="mps-1", from_s=0, conflict="exporter_label=team-a/mps-2")
    ]


def test_fault_16_processes_elsewhere_are_flagged_and_do_not_move_what_the_kubelet_says() -> None:
    story = Story()
    story.owners.by_pod = {"a": owner(pod_uid="u1")}
    story.poll(0, holding("a", "GPU-1"), uses=[use("u1", "GPU-0")])
    assert story.held() == [
        Held(device_uuid="GPU-1", pod="a", from_s=0, conflict="process_device=GPU-0")
    ]


def test_fault_17_a_shared_resource_is_held_with_its_replica() -> None:
    story = Story()
    story.poll(0, holding("a", "GPU-x", replica=3, resource="nvidia.com/gpu.shared"))
    (row,) = story.record()
    assert (row["replica"], row["resource"], row["sharing_mode"], row["gpu_share_ratio"]) == (
        3,
        "nvidia.com/gpu.shared",
        "shared_equal",
        1.0,
    )


def test_fault_19_a_dead_pod_that_is_still_listed_held_until_it_finished() -> None:
    story = Story()
    story.polls(range(-300, 301, 15), holding())
    story.finish(0)
    assert story.held() == [Held(from_s=-300, until_s=0)]
    assert shares_at(story.held(), 299) == {}
    story.restart()
    story.polls(range(315, 601, 15), holding())
    assert story.held() == [Held(from_s=-300, until_s=0)]


def test_fault_20_a_device_busy_for_an_init_container_is_not_idle() -> None:
    story = Story()
    story.owners.by_pod["pod-1"] = owner(pod_uid="u1")
    story.polls(range(-300, 0, 15), busy=boards(GPU))
    story.polls((0, 15), holding(), busy=boards(GPU))
    assert story.held() == [
        Held(pod=None, from_s=-300, until_s=0, source="none", conflict="busy_without_holder"),
        Held(from_s=0),
    ]
    assert story.record()[0]["ownership_level"] == "unattributed"


def test_fault_20_one_quiet_poll_does_not_split_it_and_two_end_it() -> None:
    story = Story()
    story.polls((0, 15), busy=boards(GPU))
    story.poll(30, busy=frozenset())
    story.poll(45, busy=boards(GPU))
    story.polls((60, 75), busy=frozenset())
    assert story.held() == [
        Held(pod=None, from_s=0, until_s=60, source="none", conflict="busy_without_holder")
    ]


def test_fault_20_without_any_source_of_holders_nothing_is_said() -> None:
    story = Story()
    story.polls((0, 15), source=LABEL, busy=boards(GPU))
    assert story.held() == []


def test_fault_21_a_label_on_scrapes_one_three_and_five_is_one_interval() -> None:
    story = Story()
    for step in range(5):
        said = [holding(source=LABEL)] if step % 2 == 0 else []
        story.poll(15 * step, *said, source=LABEL, devices=boards(GPU))
    assert story.held() == [Held(from_s=0, source="exporter_label")]
    assert len(story.rows) == 1


def test_fault_23_a_free_device_that_vanishes_from_the_scrape_is_unobserved() -> None:
    story = Story()
    claimed = holding("a", "GPU-a", source=DRA, claim="team-a/gpu")
    story.poll(0, claimed, source=DRA, devices=boards("GPU-a", "GPU-b"))
    story.polls((1, 16), source=LABEL, devices=boards("GPU-a", "GPU-b"))
    story.polls((31, 46, 61), source=LABEL, devices=boards("GPU-a"))
    assert story.held() == [
        Held(device_uuid="GPU-a", pod="a", from_s=0, source="dra"),
        Held(device_uuid="GPU-b", pod=None, from_s=31, source="none", conflict="unobserved"),
    ]
    story.poll(76, source=LABEL, devices=boards("GPU-a", "GPU-b"))
    assert story.held()[-1].until_s == 76


PARENT = "GPU-4404041a-04cf-1ccf-9e70-f139a9b1e23c"
DYNAMIC = "gpu-0-mig-1g5gb-19-4"


CLAIM = {"container": None, "claim": "team-a/mig", "resource": None}


def test_fault_24_a_partition_that_is_placed_is_held_as_an_instance() -> None:
    story = Story()
    story.poll(
        0,
        holding("pod-1", PARENT, source=DRA, **CLAIM, instance_id=11),
        source=DRA,
        sm_shares={(PARENT, 11): 1 / 7},
    )
    assert story.held() == [
        Held(
            device_uuid=PARENT,
            instance_id=11,
            from_s=0,
            share=round(1 / 7, 9),
            mode="mig",
            source="dra",
        )
    ]


def test_fault_24_what_cannot_be_placed_is_unattributed_and_says_why() -> None:
    story = Story()
    story.owners.by_pod["pod-1"] = owner("vision")
    story.poll(0, holding("pod-1", PARENT, source=DRA, **CLAIM, unresolved=DYNAMIC), source=DRA)
    (row,) = story.record()
    assert row["device_uuid"] == PARENT
    assert row["conflict"] == f"unresolved={DYNAMIC}"
    assert (row["attribution_source"], row["ownership_level"]) == ("none", "unattributed")
    assert (row["pod"], row["claim"], row.get("tenant_id")) == ("pod-1", "team-a/mig", None)
    assert row["gpu_share_ratio"] == pytest.approx(1 / 7)
