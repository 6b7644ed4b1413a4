"""Intervals of one holder: when they start, go on, become unknown and end."""

from __future__ import annotations

import pytest

from collector.holdings import HoldingSource
from tests.support.allocation_story import (
    DRA,
    LABEL,
    VENDOR,
    Held,
    Story,
    at,
    boards,
    holding,
    owner,
)

LABELLED = holding(source=LABEL)


def test_a_holder_is_told_once_and_closed_when_the_kubelet_lists_it_no_more() -> None:
    story = Story()
    story.polls((0, 15, 30), holding())
    assert len(story.rows) == 1
    story.poll(45)
    assert story.held() == [Held(from_s=0, until_s=45)]


@pytest.mark.parametrize(
    ("poll_s", "until_s"),
    [
        pytest.param(44, 44, id="before a whole poll"),
        pytest.param(45, 45, id="exactly a poll later"),
        pytest.param(46, 45, id="a second late"),
    ],
)
def test_an_end_is_at_most_one_poll_after_the_last_sighting(poll_s: int, until_s: int) -> None:
    story = Story()
    story.polls((0, 15, 30), holding())
    story.poll(poll_s)
    assert story.held() == [Held(from_s=0, until_s=until_s)]


def test_the_next_holder_starts_where_it_is_seen() -> None:
    story = Story()
    story.polls((0, 15), holding())
    story.poll(30, holding("pod-2"))
    assert story.held() == [Held(from_s=0, until_s=30), Held(pod="pod-2", from_s=30)]


def test_a_repeated_poll_gives_no_row_and_only_its_time_to_remember() -> None:
    story = Story()
    held = (holding(),)
    story.poll(0, *held)
    before = dict(story.memory)
    assert story.poll(15, *held) == []
    assert [key for key in story.memory if before[key] != story.memory[key]] == [
        "allocation/seen/n1"
    ]


@pytest.mark.parametrize("source", [LABEL, VENDOR])
@pytest.mark.parametrize(
    ("missed", "conflict"),
    [
        pytest.param((15,), None, id="one missed"),
        pytest.param((15, 30), "unknown", id="two missed"),
        pytest.param((15, 30, 45), "unknown", id="three missed"),
    ],
)
def test_a_label_that_is_missed_is_not_a_release(
    source: HoldingSource, missed: tuple[int, ...], conflict: str | None
) -> None:
    story = Story()
    story.poll(0, holding(source=source), source=source)
    story.polls(missed, source=source)
    assert story.held() == [Held(from_s=0, source=source, conflict=conflict)]
    story.poll(60, holding(source=source), source=source)
    assert story.held() == [Held(from_s=0, source=source)]


@pytest.mark.parametrize(
    ("last_s", "until_s"),
    [
        pytest.param(885, None, id="within the limit"),
        pytest.param(900, None, id="exactly at the limit"),
        pytest.param(915, 15, id="past the limit"),
    ],
)
def test_a_label_that_stays_away_ends_a_poll_after_it_was_seen(
    last_s: int, until_s: int | None
) -> None:
    story = Story()
    story.poll(0, LABELLED, source=LABEL)
    story.polls(range(15, last_s + 1, 15), source=LABEL)
    (held,) = story.held()
    assert held.until_s == until_s


def test_a_label_that_stays_away_from_a_known_pod_stays_unknown_until_its_end_is_told() -> None:
    story = Story()
    story.owners.by_pod["pod-1"] = owner(pod_uid="u1")
    story.poll(0, LABELLED, source=LABEL)
    story.polls(range(15, 1800, 15), source=LABEL)
    assert story.held() == [Held(from_s=0, source=LABEL, conflict="unknown")]
    story.finish(1700, pod_uid="u1")
    (held,) = story.held()
    assert held.until_s == 1700


def test_another_label_ends_what_was_unknown() -> None:
    story = Story()
    story.poll(0, LABELLED, source=LABEL)
    story.polls((15, 30, 45), source=LABEL)
    story.poll(60, holding("pod-2", source=LABEL), source=LABEL)
    assert [(each.pod, each.from_s, each.until_s) for each in story.held()] == [
        ("pod-1", 0, 15),
        ("pod-2", 60, None),
    ]


@pytest.mark.parametrize(
    ("now_s", "conflict"),
    [
        pytest.param(37, None, id="within two and a half polls"),
        pytest.param(37.5, None, id="exactly two and a half polls"),
        pytest.param(38, "unknown", id="past two and a half polls"),
    ],
)
def test_a_silent_source_makes_its_holdings_unknown(now_s: float, conflict: str | None) -> None:
    story = Story()
    story.poll(0, holding())
    story.advance(now_s)
    assert story.held() == [Held(from_s=0, conflict=conflict)]


def test_a_holder_seen_before_and_after_a_silence_held_throughout() -> None:
    story = Story()
    story.poll(0, holding())
    story.advance(60)
    story.poll(3600, holding())
    assert story.held() == [Held(from_s=0)]


def test_after_a_silence_the_time_nobody_looked_is_unobserved_not_free() -> None:
    story = Story()
    story.poll(0, holding())
    story.advance(60)
    story.poll(600)
    assert story.held() == [
        Held(from_s=0, until_s=15, conflict="unknown"),
        Held(pod=None, from_s=15, until_s=600, source="none", conflict="unobserved"),
    ]


def test_what_was_silent_too_long_is_given_up_and_dark_until_somebody_looks() -> None:
    story = Story()
    story.poll(0, holding())
    story.advance(60)
    story.advance(901)
    dark = Held(pod=None, from_s=15, source="none", conflict="unobserved")
    assert story.held() == [Held(from_s=0, until_s=15, conflict="unknown"), dark]
    story.poll(1200, holding("pod-2"))
    assert story.held()[1:] == [
        Held(pod=None, from_s=15, until_s=1200, source="none", conflict="unobserved"),
        Held(pod="pod-2", from_s=1200),
    ]


def test_claims_are_watched_and_never_silent() -> None:
    story = Story()
    claimed = holding(source=DRA, claim="team-a/gpu")
    story.poll(0, claimed, source=DRA)
    story.advance(3600)
    assert story.held() == [Held(from_s=0, source=DRA)]
    story.poll(3601, source=DRA)
    assert story.held() == [Held(from_s=0, until_s=3601, source=DRA)]


@pytest.mark.parametrize(
    ("finished_s", "until_s"),
    [
        pytest.param(-5, None, id="before the start: never held"),
        pytest.param(7, 7, id="between polls"),
        pytest.param(31, 31, id="after the last poll"),
        pytest.param(500, 45, id="far in the future: a poll after the last instant known"),
    ],
)
def test_a_pod_ends_when_its_containers_finished(finished_s: float, until_s: float | None) -> None:
    story = Story()
    story.polls((0, 15, 30), holding())
    story.finish(finished_s)
    expected = [] if until_s is None else [Held(from_s=0, until_s=until_s)]
    assert story.held() == expected
    story.polls((45, 60), holding())
    assert story.held() == expected


def test_an_end_that_is_told_late_shortens_what_was_closed() -> None:
    story = Story()
    story.polls((0, 15, 30), holding())
    story.poll(45, holding("pod-2"))
    story.finish(20)
    assert story.held() == [Held(from_s=0, until_s=20), Held(pod="pod-2", from_s=45)]


def test_an_end_told_before_the_first_poll_keeps_the_listed_pod_out() -> None:
    story = Story()
    story.poll(0, node="n0")
    story.finish(5)
    story.poll(15, holding())
    assert story.held() == []


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    story = Story()
    story.owners.by_pod["pod-1"] = owner(pod_uid="u1")
    story.polls((0, 15), holding())
    story.finish(20, pod_uid="u1")
    story.poll(30, holding())
    story.owners.by_pod["pod-1"] = owner(pod_uid="u2")
    story.polls((45, 60), holding())
    assert [(row["pod_uid"], row["ended_at"]) for row in story.record()] == [
        ("u1", at(20)),
        ("u2", None),
    ]
    story.finish(20, pod_uid="u1")
    assert story.record()[-1]["ended_at"] is None


def test_a_pod_that_left_every_list_and_comes_back_without_a_uid_waits_for_word_of_it() -> None:
    story = Story()
    story.poll(0, holding())
    story.finish(5)
    story.poll(15)
    story.poll(30, holding())
    assert story.held() == [Held(from_s=0, until_s=5)]
    story.owners.by_pod["pod-1"] = owner(pod_uid="u2")
    story.finish(5, pod_uid="u1")
    story.poll(45, holding())
    assert story.held() == [Held(from_s=0, until_s=5), Held(from_s=30)]


def test_an_owner_known_later_corrects_the_row_and_does_not_split_it() -> None:
    story = Story()
    story.poll(0, holding())
    assert story.record()[0].get("tenant_id") is None
    story.owners.by_pod["pod-1"] = owner("vision", pod_uid="u1", queue="q", priority=5)
    story.poll(15, holding())
    story.owners.by_pod["pod-1"] = owner("speech", pod_uid="u1")
    story.poll(30, holding())
    (row,) = story.record()
    assert (row["tenant_id"], row["pod_uid"], row["started_at"], row["ended_at"]) == (
        "speech",
        "u1",
        at(0),
        None,
    )
    assert [each.get("tenant_id") for each in story.rows] == [None, "vision", "speech"]
    del story.owners.by_pod["pod-1"]
    story.poll(45)
    assert story.record()[0]["tenant_id"] == "speech"


def test_late_and_repeated_polls_are_left_out() -> None:
    story = Story()
    story.polls((0, 15, 30), holding())
    assert story.poll(15) == []
    assert story.poll(30) == []
    assert story.builder.late_poll_count == 2
    assert story.held() == [Held(from_s=0)]


def test_a_clock_that_was_set_back_is_believed_at_the_third_poll() -> None:
    story = Story()
    story.polls((3600, 3615), holding())
    story.polls((0, 15), holding())
    assert story.poll(30, holding("pod-2"))
    story.poll(45, holding("pod-2"))
    assert story.held() == [Held(from_s=3600, until_s=3615), Held(pod="pod-2", from_s=3615)]
    times = [row["observed_at"] for row in story.rows]
    assert times == sorted(times)


def test_a_node_that_left_closes_its_intervals_and_is_forgotten() -> None:
    story = Story()
    story.polls((0, 15), holding())
    story.keep(story.builder.node_removed("n1", removed_at=at(20)))
    assert story.held() == [Held(from_s=0, until_s=20)]
    assert story.memory == {}
    assert story.builder.node_removed("n1", removed_at=at(20)).rows == []


def test_a_poll_speaks_only_of_its_devices() -> None:
    story = Story()
    story.poll(0, holding(), holding("pod-2", "GPU-b"), devices=boards("GPU-a", "GPU-b"))
    story.polls((15, 30), holding(), devices=boards("GPU-a"))
    assert story.held() == [
        Held(from_s=0),
        Held(device_uuid="GPU-b", pod="pod-2", from_s=0, conflict="unknown"),
    ]


def test_holdings_of_another_node_are_left_out() -> None:
    story = Story()
    story.poll(0, holding(), node="n2")
    assert story.held() == []


def test_what_another_source_saw_during_a_silence_counts() -> None:
    story = Story()
    story.poll(0, holding())
    story.polls(range(1, 302, 15), LABELLED, source=LABEL)
    story.polls((316, 331), source=LABEL)
    story.poll(340)
    assert story.held() == [Held(from_s=0, until_s=316)]


def test_a_source_that_went_away_for_good_is_forgotten() -> None:
    story = Story()
    story.poll(0, LABELLED, source=LABEL)
    story.poll(1, holding())
    for second in range(16, 1000, 15):
        story.poll(second, holding())
        story.advance(second + 1)
    assert story.held() == [Held(from_s=0)]
    before = dict(story.memory)
    assert story.poll(1006, holding()) == []
    changed = [key for key in story.memory if before[key] != story.memory[key]]
    assert changed == ["allocation/seen/n1"]
    assert b"exporter_label" not in story.memory["allocation/seen/n1"]
