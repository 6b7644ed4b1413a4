"""Follows a real cluster with feed and lifecycle, keeping rows and memory as the spool would."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from collector.lifecycle import Lifecycle, Output
from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.change import Change
from collector.sources.kubernetes.credentials import Origin
from collector.sources.kubernetes.feed import KubernetesFeed
from collector.sources.kubernetes.owner_metadata import OwnerMetadata
from collector.sources.kubernetes.pace import Pace
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import RESOURCES
from steward.clock import SystemClock

PATIENCE_S = 60.0
QUICK = Pace(backoff_first_s=0.1, backoff_max_s=1.0, survey_s=0.5)
Rows = list[tuple[str, Mapping[str, object]]]


@dataclass(slots=True)
class Follower:
    """Rows and memory of one cluster, over several lives of the collector."""

    kubeconfig: Path
    rows: Rows = field(default_factory=list)
    memory: dict[str, bytes] = field(default_factory=dict)
    news: threading.Condition = field(default_factory=threading.Condition)
    lifecycle: Lifecycle | None = None

    @contextmanager
    def following(self, resources: Sequence[Resource] = RESOURCES) -> Iterator[None]:
        """Follow the cluster for the length of the block: one life of the collector."""
        origin = Origin(kubeconfig=self.kubeconfig)
        feed = KubernetesFeed(ApiAccess(origin), resources, clock=SystemClock(), pace=QUICK)
        asking = ApiAccess(origin)
        lifecycle = Lifecycle(cluster="test", memory=self.memory, source=OwnerMetadata(asking))
        self.lifecycle = lifecycle
        stop = threading.Event()

        def take(change: Change) -> None:
            self._keep(lifecycle.apply(change))
            while lifecycle.has_more:
                self._keep(lifecycle.advance(change.observed_at))

        thread = threading.Thread(target=feed.run, args=(stop, take), name="lifecycle")
        thread.start()
        try:
            self.wait_for(lambda: lifecycle.is_settled, what="the first lists")
            yield
        finally:
            stop.set()
            thread.join(timeout=PATIENCE_S)
            asking.close()
            assert not thread.is_alive(), "the feed did not end"

    def _keep(self, output: Output) -> None:
        with self.news:
            self.rows.extend(output.rows)
            for key, entry in output.remember.items():
                if entry is None:
                    self.memory.pop(key, None)
                else:
                    self.memory[key] = entry
            self.news.notify_all()

    def wait_for(self, is_there: Callable[[], bool], *, what: str) -> None:
        """Wait until it is so; fail with the transitions told instead."""
        with self.news:
            if not self.news.wait_for(is_there, timeout=PATIENCE_S):
                told = [row for table, row in self.rows if table == "workload_transition"]
                raise AssertionError(f"{what} did not come; told: {told[-40:]}")

    def table(self, name: str, *columns: str, **where: object) -> list[tuple[object, ...]]:
        """Return the rows of a table with these values, as tuples of these columns."""
        with self.news:
            rows = list(self.rows)
        return [
            tuple(row.get(column) for column in columns)
            for table, row in rows
            if table == name and all(row.get(key) == value for key, value in where.items())
        ]

    def transitions(self, workload_uid: str) -> list[tuple[object, object]]:
        """Return attempt and transition of a workload in the order told."""
        return [
            (attempt, transition)
            for attempt, transition in self.table(
                "workload_transition", "attempt", "transition", workload_uid=workload_uid
            )
        ]

    def wait_for_transition(self, workload_uid: str, attempt: int, transition: str) -> datetime:
        """Return when it happened, once it is told."""
        wanted = (attempt, transition)
        self.wait_for(lambda: wanted in self._told(workload_uid), what=f"{wanted}")
        ((at,),) = self.table(
            "workload_transition",
            "occurred_at",
            workload_uid=workload_uid,
            attempt=attempt,
            transition=transition,
        )[-1:]
        assert isinstance(at, datetime)
        return at

    def _told(self, workload_uid: str) -> set[tuple[object, object]]:
        return {
            (row["attempt"], row["transition"])
            for table, row in self.rows
            if table == "workload_transition" and row["workload_uid"] == workload_uid
        }
