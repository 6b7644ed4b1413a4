"""Runs a feed in a thread, keeps its changes, and waits for what should come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.feed import KubernetesFeed
from collector.sources.kubernetes.health import ResourceHealth
from collector.sources.kubernetes.pace import Pace
from collector.sources.kubernetes.resource import Resource
from steward.clock import Clock, FixedClock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
PATIENCE_S = 20.0

QUICK = Pace(
    page_size=2,
    watch_s=60,
    silence_s=5,
    connect_s=2,
    answer_s=5,
    backoff_first_s=0.01,
    backoff_max_s=0.05,
    survey_s=0.05,
)
"""For scripted servers: nothing is waited for that need not be."""


class ThingMetadata(msgspec.Struct, rename="camel"):
    """Who a thing is."""

    name: str
    uid: str
    resource_version: str
    namespace: str | None = None


class ThingSpec(msgspec.Struct):
    """What a thing is like."""

    size: int


class Thing(msgspec.Struct):
    """A small object for tests of the transport."""

    metadata: ThingMetadata
    spec: ThingSpec


THINGS = Resource(
    group="",
    versions=("v1",),
    plural="things",
    kind="Thing",
    is_namespaced=True,
    decode=Thing,
)
THINGS_PATH = "/api/v1/things"


@dataclass(slots=True)
class FeedRun:
    """A feed that runs; ``changes`` grows."""

    feed: KubernetesFeed
    changes: list[Change] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)

    def take(self, change: Change) -> None:
        """Keep a change and wake who waits."""
        with self.news:
            self.changes.append(change)
            self.news.notify_all()

    def wait_for(self, is_there: Callable[[], bool], *, what: str = "the change") -> None:
        """Wait until it is so; fail with what was seen instead."""
        with self.news:
            for _ in range(round(PATIENCE_S / 0.02)):
                if is_there():
                    return
                self.news.wait(0.02)
        raise AssertionError(f"{what} did not come; health: {self.feed.health()}; {self.told()}")

    def told(self, resource: Resource | None = None) -> list[str]:
        """Return what was told, short: ``ADDED a/x@3``, ``SYNCED``."""
        with self.news:
            changes = list(self.changes)
        return [short(one) for one in changes if resource in {None, one.resource}]

    def wait_for_told(self, *expected: str) -> None:
        """Wait until exactly this was told, in this order."""
        self.wait_for(lambda: self.told() == list(expected), what=f"{expected}")

    def health(self, resource: Resource) -> ResourceHealth:
        """Return how it goes with one kind."""
        return next(one for one in self.feed.health() if one.name == resource.title)


def short(change: Change) -> str:
    """Return a change as one word or three."""
    if change.object is None:
        return change.type.value
    place = f"{change.key.namespace}/" if change.key.namespace else ""
    return f"{change.type} {place}{change.key.name}@{change.object.metadata.resource_version}"


def counted(changes: Sequence[Change]) -> dict[tuple[str, str, ChangeType], int]:
    """Return how often each version of each object was told as each type."""
    counts: dict[tuple[str, str, ChangeType], int] = {}
    for change in changes:
        if change.object is not None:
            version = change.object.metadata.resource_version
            key = (change.key.uid, version, change.type)
            counts[key] = counts.get(key, 0) + 1
    return counts


@contextmanager
def running_feed(
    kubeconfig: Path | None,
    *resources: Resource,
    pace: Pace = QUICK,
    clock: Clock | None = None,
) -> Iterator[FeedRun]:
    """Follow the resources for the length of the block; without a file as the pod's account."""
    access = ApiAccess(Origin(kubeconfig=kubeconfig), connect_s=pace.connect_s)
    feed = KubernetesFeed(access, resources, clock=clock or FixedClock(NOON), pace=pace)
    run = FeedRun(feed)
    stop = threading.Event()
    thread = threading.Thread(target=feed.run, args=(stop, run.take), name="feed")
    thread.start()
    try:
        yield run
    finally:
        stop.set()
        thread.join(timeout=PATIENCE_S)
        assert not thread.is_alive(), "the feed did not end"
