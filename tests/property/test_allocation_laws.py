"""Laws of allocation intervals, whatever sources say and in whatever order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.holdings import Holding, HoldingSource
from tests.support.allocation_story import (
    KUBELET,
    LABEL,
    Held,
    Story,
    boards,
    holding,
    owner,
    shares_at,
    use,
)

PODS = ("a", "b", "c")
DEVICES = ("GPU-a", "GPU-b")
PLACES: tuple[tuple[str, int | None, int | None], ...] = (
    ("GPU-a", None, None),
    ("GPU-b", None, 0),
    ("GPU-b", None, 1),
    ("GPU-b", None, None),
    ("GPU-c", 7, None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happens; ``kind`` is a poll, an end, a pause, an owner or a restart."""

    kind: str
    after_s: int
    source: HoldingSource
    holdings: tuple[Holding, ...]
    busy: frozenset[str] | None
    is_partial: bool
    pod: str

    def play(self, story: Story, second: int) -> None:
        """Let it happen."""
        if self.kind == "finish":
            story.finish(second - 7, self.pod, pod_uid=f"u-{self.pod}")
        elif self.kind == "advance":
            story.advance(second)
        elif self.kind == "owner":
            story.owners.by_pod[self.pod] = owner(f"t{second}", pod_uid=f"u-{self.pod}")
        else:
            self._poll(story, second)

    def _poll(self, story: Story, second: int) -> None:
        devices = boards("GPU-a") if self.is_partial else None
        busy = None if self.busy is None else boards(*self.busy)
        uses = None if self.busy is None else [use("u-a", each, 0.5) for each in sorted(self.busy)]
        given: dict[str, object] = {"devices": devices, "busy": busy, "uses": uses}
        said = [replace(each, source=self.source) for each in self.holdings]
        story.poll(second, *said, source=self.source, **given)  # type: ignore[arg-type]  # named parts of a poll


def _holding(place: tuple[str, int | None, int | None], pod: str) -> Holding:
    uuid, instance_id, replica = place
    return holding(pod, uuid, instance_id=instance_id, replica=replica)


HOLDING = st.builds(_holding, st.sampled_from(PLACES), st.sampled_from(PODS))
STEP = st.builds(
    Step,
    kind=st.sampled_from(("poll", "poll", "poll", "finish", "advance", "owner")),
    after_s=st.sampled_from((0, 3, 15, 15, 15, 30, 90, 1200, -20)),
    source=st.sampled_from(HoldingSource),
    holdings=st.lists(HOLDING, max_size=4).map(tuple),
    busy=st.none() | st.frozensets(st.sampled_from(DEVICES)),
    is_partial=st.booleans(),
    pod=st.sampled_from(PODS),
)
STEPS = st.lists(STEP, min_size=1, max_size=14)


def played(
    steps: Sequence[Step],
    *,
    before_each: Callable[[Story, int], None] = lambda _story, _index: None,
) -> Story:
    """Return the story after all steps."""
    story, second = Story(), 0
    for index, step in enumerate(steps):
        before_each(story, index)
        second += step.after_s
        step.play(story, second)
    return story


@given(STEPS)
def test_intervals_of_a_share_never_overlap_and_shares_never_exceed_the_device(
    steps: list[Step],
) -> None:
    held = played(steps).held()
    by_share: dict[tuple[object, ...], list[Held]] = {}
    for each in held:
        key = (each.device_uuid, each.instance_id, each.replica)
        by_share.setdefault(key, []).append(each)
        assert each.until_s is None or each.until_s > each.from_s
    for intervals in by_share.values():
        for first, second in pairwise(sorted(intervals, key=lambda each: each.from_s)):
            assert first.until_s is not None
            assert first.until_s <= second.from_s
    for each in held:
        for total in shares_at(held, each.from_s).values():
            assert total <= 1 + 1e-6


@given(STEPS, st.data())
def test_the_order_of_holdings_within_a_poll_does_not_matter(
    steps: list[Step], data: st.DataObject
) -> None:
    shuffled = [
        replace(step, holdings=tuple(data.draw(st.permutations(step.holdings)))) for step in steps
    ]
    assert played(shuffled).rows == played(steps).rows


@given(STEPS, st.sets(st.integers(0, 13)))
def test_a_restart_with_what_was_remembered_is_no_restart(
    steps: list[Step], restarts: set[int]
) -> None:
    def restart(story: Story, index: int) -> None:
        if index in restarts:
            story.restart()

    assert played(steps, before_each=restart).rows == played(steps).rows


@given(STEPS)
def test_every_row_of_an_interval_is_later_than_the_one_before(steps: list[Step]) -> None:
    rows = played(steps).rows
    keys = [
        (row["device_uuid"], row["instance_id"], row["replica"], row["pod"], row["started_at"])
        for row in rows
    ]
    ordered = sorted(zip(keys, range(len(rows)), strict=True), key=str)
    for _, group in groupby(ordered, key=lambda pair: pair[0]):
        times = [rows[index]["observed_at"] for index in sorted(index for _, index in group)]
        assert times == sorted(set(times))


LABELS = st.lists(
    st.tuples(st.sampled_from(DEVICES), st.sampled_from(PODS)), max_size=3, unique_by=lambda p: p[0]
)


@given(LABELS, st.integers(3, 12), st.data())
def test_labels_that_flicker_are_labels_that_do_not(
    labels: list[tuple[str, str]], poll_count: int, data: st.DataObject
) -> None:
    said = [holding(pod, uuid, source=LABEL) for uuid, pod in labels]

    def story(is_missing: list[set[int]]) -> Story:
        told = Story()
        for index in range(poll_count):
            shown = [each for each, gone in zip(said, is_missing, strict=True) if index not in gone]
            told.poll(15 * index, *shown, source=LABEL)
        return told

    gaps = [
        {
            index
            for index in data.draw(st.sets(st.integers(1, poll_count - 2)))
            if index % 2 == parity
        }
        for parity in data.draw(st.lists(st.integers(0, 1), min_size=len(said), max_size=len(said)))
    ]
    assert story(gaps).held() == story([set() for _ in said]).held()


SCHEDULE = st.lists(
    st.tuples(st.sampled_from((None, *PODS)), st.sampled_from((None, *PODS))),
    min_size=1,
    max_size=15,
)


def plain_runs(schedule: list[tuple[str | None, ...]]) -> list[Held]:
    """The definition, one device at a time: runs of polls with the same holder."""
    found: list[Held] = []
    for position, uuid in enumerate(DEVICES):
        holders = [polled[position] for polled in schedule]
        second = 0
        for pod, run in groupby(holders):
            length = len(list(run))
            end = 15 * (second + length)
            if pod is not None:
                until = end if second + length < len(schedule) else None
                found.append(Held(device_uuid=uuid, pod=pod, from_s=15 * second, until_s=until))
            second += length
    return found


def _listed(polled: tuple[str | None, ...], source: HoldingSource) -> list[Holding]:
    return [
        holding(pod, uuid, source=source)
        for uuid, pod in zip(DEVICES, polled, strict=True)
        if pod is not None
    ]


@given(SCHEDULE)
def test_complete_polls_give_runs_of_the_same_holder(
    schedule: list[tuple[str | None, ...]],
) -> None:
    story = Story()
    for index, polled in enumerate(schedule):
        story.poll(15 * index, *_listed(polled, KUBELET))
    assert story.held() == plain_runs(schedule)


@given(SCHEDULE)
@settings(max_examples=50)
def test_two_sources_that_agree_are_one(schedule: list[tuple[str | None, ...]]) -> None:
    story = Story()
    for index, polled in enumerate(schedule):
        story.poll(15 * index, *_listed(polled, KUBELET))
        story.poll(15 * index + 1, *_listed(polled, LABEL), source=LABEL)
    assert [replace(each, conflict=None) for each in story.held()] == plain_runs(schedule)


@given(SCHEDULE, st.data())
@settings(max_examples=50)
def test_owners_that_become_known_split_no_time(
    schedule: list[tuple[str | None, ...]], data: st.DataObject
) -> None:
    story = Story()
    for index, polled in enumerate(schedule):
        pod = data.draw(st.sampled_from(PODS))
        story.owners.by_pod[pod] = owner(f"t{index}", pod_uid=f"u-{pod}")
        story.poll(15 * index, *_listed(polled, KUBELET))
    assert story.held() == plain_runs(schedule)
