"""The named query of allocations: a change of a known owner takes effect when it is first told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

import polars as pl
import pytest

from tests.support.allocation_store import AllocationStore, allocation_store
from tests.support.allocation_story import Story, at, holding, owner
from tests.support.analytics_frames import HOUR, MINUTE, NOON

HELD: Mapping[str, object] = {
    "cluster": "c",
    "node": "n1",
    "device_uuid": "GPU-a",
    "started_at": NOON,
    "namespace": "ns",
    "pod": "p",
    "container": "main",
    "workload_uid": "w1",
    "gpu_share_ratio": 1.0,
    "sharing_mode": "exclusive",
    "attribution_source": "podresources",
}
A: Mapping[str, object] = {"tenant_id": "a", "ownership_level": "pod"}
B: Mapping[str, object] = {"tenant_id": "b", "ownership_level": "pod"}
NOBODYS: Mapping[str, object] = {"ownership_level": "unattributed"}
UNKNOWN: Mapping[str, object] = {"workload_uid": None}
Told = tuple[float, Mapping[str, object]]
Piece = tuple[float, float | None, str | None]


@pytest.fixture
def store() -> Iterator[AllocationStore]:
    with allocation_store() as opened:
        yield opened


def tell(store: AllocationStore, *told: Told) -> None:
    """Store what each minute after noon tells of one allocation."""
    store.add([{**HELD, "observed_at": NOON + minute * MINUTE, **facts} for minute, facts in told])


def ask(store: AllocationStore) -> pl.DataFrame:
    """Return who held what in the hour from noon."""
    return store.ask(NOON, NOON + HOUR)


def pieces(found: pl.DataFrame, name: str = "tenant_id") -> list[Piece]:
    """Return from which to which minute after noon whose the allocation was."""
    return [
        (
            (row["started_at"] - NOON) / MINUTE,
            None if row["ended_at"] is None else (row["ended_at"] - NOON) / MINUTE,
            row[name],
        )
        for row in found.iter_rows(named=True)
    ]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([(0, A)], [(0, None, "a")], id="told once"),
        pytest.param([(0, A), (10, A), (20, A)], [(0, None, "a")], id="told again"),
        pytest.param([(0, A), (10, B)], [(0, 10, "a"), (10, None, "b")], id="changed"),
        pytest.param(
            [(0, A), (10, B), (20, B), (30, A)],
            [(0, 10, "a"), (10, 30, "b"), (30, None, "a")],
            id="changed and changed back",
        ),
        pytest.param([(0, UNKNOWN), (10, A)], [(0, None, "a")], id="known later: from the start"),
        pytest.param(
            [(0, NOBODYS), (10, A), (20, B)],
            [(0, 20, "a"), (20, None, "b")],
            id="attributed later: from the start",
        ),
        pytest.param(
            [(0, A), (10, NOBODYS), (20, B)],
            [(0, 10, "a"), (10, 20, None), (20, None, "b")],
            id="nobody's in between",
        ),
        pytest.param(
            [(0, A), (10, NOBODYS), (20, A)],
            [(0, 10, "a"), (10, 20, None), (20, None, "a")],
            id="nobody's and the same again",
        ),
        pytest.param(
            [(0, {"tenant_id": "a"}), (10, NOBODYS)],
            [(0, 10, "a"), (10, None, None)],
            id="nobody's, where no level was told before",
        ),
        pytest.param([(0, A), (10, UNKNOWN)], [(0, None, "a")], id="silence is no change"),
        pytest.param(
            [(0, A), (10, {**B, "ended_at": NOON + 30 * MINUTE})],
            [(0, 10, "a"), (10, 30, "b")],
            id="it ends",
        ),
        pytest.param(
            [(0, A), (10, {**B, "ended_at": NOON + 10 * MINUTE})],
            [(0, 10, "a")],
            id="told as it ended",
        ),
        pytest.param(
            [(0, A), (10, {**B, "ended_at": NOON + 5 * MINUTE})],
            [(0, 5, "a")],
            id="told after it ended",
        ),
        pytest.param(
            [(0, A), (10, {**A, "ended_at": NOON + 5 * MINUTE, "gpu_share_ratio": 0.5})],
            [(0, 5, "a")],
            id="another end or share is a correction",
        ),
        pytest.param([(-5, A), (-1, B)], [(0, None, "b")], id="told before the allocation began"),
    ],
)
def test_whose_an_allocation_was(
    store: AllocationStore, told: list[Told], expected: list[Piece]
) -> None:
    tell(store, *told)
    assert pieces(ask(store)) == expected


@pytest.mark.parametrize("name", ["workload_class", "queue", "priority_class"])
def test_a_change_of_what_else_is_told_of_the_owner_splits_too(
    store: AllocationStore, name: str
) -> None:
    tell(store, (0, A), (5, {**A, name: "x"}), (10, {**A, name: "y"}))
    assert pieces(ask(store), name) == [(0, 10, "x"), (10, None, "y")]


def test_parts_have_the_share_that_was_told_last_of_the_whole(
    store: AllocationStore,
) -> None:
    measured = {"gpu_share_ratio": 0.25, "sharing_mode": "shared_measured"}
    tell(store, (0, A), (10, B), (20, {**B, **measured}))
    found = ask(store).select("tenant_id", "gpu_share_ratio", "sharing_mode")
    assert found.rows() == [("a", 0.25, "shared_measured"), ("b", 0.25, "shared_measured")]


@pytest.mark.parametrize(
    ("from_minute", "until_minute", "expected"),
    [
        pytest.param(0, 10, ["a"], id="until the change"),
        pytest.param(9, 11, ["a", "b"], id="around it"),
        pytest.param(10, 20, ["b"], id="from the change on"),
    ],
)
def test_only_the_parts_that_touch_the_period_are_told(
    store: AllocationStore, from_minute: int, until_minute: int, expected: list[str]
) -> None:
    tell(store, (0, A), (10, B))
    found = store.ask(NOON + from_minute * MINUTE, NOON + until_minute * MINUTE)
    assert found["tenant_id"].to_list() == expected


def test_two_allocations_are_split_apart(store: AllocationStore) -> None:
    tell(store, (0, A), (10, B))
    tell(store, (0, {**A, "pod": "q"}), (5, {**B, "pod": "q", "ended_at": NOON + HOUR}))
    assert sorted(pieces(ask(store)), key=lambda piece: piece[0]) == [
        (0, 10, "a"),
        (0, 5, "a"),
        (5, 60, "b"),
        (10, None, "b"),
    ]


def test_a_relabel_that_the_collector_sees_splits_the_time(
    store: AllocationStore,
) -> None:
    """A pod of nobody known at first, then of vision from its start, then of speech."""
    story = Story()
    story.poll(0, holding())
    story.owners.by_pod["pod-1"] = owner("vision", pod_uid="u1", queue="q1")
    story.polls((15, 30), holding())
    story.owners.by_pod["pod-1"] = owner("speech", pod_uid="u1", queue="q2")
    story.polls((45, 60), holding())
    story.finish(70, pod_uid="u1")
    store.add(story.rows)
    found = store.ask(at(0), at(0) + timedelta(hours=1))
    assert found.select("started_at", "ended_at", "tenant_id", "queue").rows() == [
        (at(0), at(45), "vision", "q1"),
        (at(45), at(70), "speech", "q2"),
    ]
