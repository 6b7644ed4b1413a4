"""Everything that happens to the wanted kinds of objects, as one stream of changes in order.

One thread follows each kind that the server has; one more asks now and then which those are. All
changes meet in one bounded queue and are handed on by the thread that runs the feed, so that who
takes them needs no locks, and slowness there slows the reading instead of filling memory.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Final

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.health import ResourceHealth
from collector.sources.kubernetes.notices import Notices
from collector.sources.kubernetes.pace import Backoff, Pace
from collector.sources.kubernetes.reflector import Reflector, Shared
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.served import Served, survey
from steward.clock import Clock

QUEUE_LENGTH: Final = 5_000
"""Changes that may wait; who makes more of them waits too."""
WAKE_S: Final = 0.2
"""How often the feed looks whether it should end."""
ABSENT_SURVEYS: Final = 2
"""Surveys in a row that must miss a kind before its objects are told to be gone.

An API server that just started may not yet know all its kinds.
"""
END_PATIENCE_S: Final = 10.0


class KubernetesFeed:
    """One cluster, followed.

    Args:
        access: the API server; this feed closes it at its end, so it serves one feed.
        resources: the kinds to follow; those that the server lacks are skipped until it has them.
        clock: dates what is observed.
        pace: sizes and times.
    """

    def __init__(
        self,
        access: ApiAccess,
        resources: Iterable[Resource],
        *,
        clock: Clock,
        pace: Pace | None = None,
    ) -> None:
        """Prepare one reflector per kind; nothing is asked yet."""
        self._access = access
        self._pace = pace or Pace()
        self._stop = threading.Event()
        self._changes: queue.Queue[Change] = queue.Queue(QUEUE_LENGTH)
        self._shared = Shared(
            access=access,
            tell=self._enqueue,
            clock=clock,
            pace=self._pace,
            notices=Notices(),
            lists=threading.Semaphore(self._pace.lists_at_once),
        )
        self._reflectors = [Reflector(one, self._shared) for one in dict.fromkeys(resources)]
        self._running: dict[Resource, Future[None] | None] = dict.fromkeys(
            one.resource for one in self._reflectors
        )
        self._absences: dict[Resource, int] = {}
        self._told: set[Resource] = set()

    def health(self) -> tuple[ResourceHealth, ...]:
        """Return how the reading of each kind goes, in the order of the resources."""
        return tuple(reflector.health() for reflector in self._reflectors)

    @property
    def is_synced(self) -> bool:
        """Return whether a complete list of every kind that can be read was handed on."""
        return all(self._is_told(one.resource, one.health()) for one in self._reflectors)

    def _is_told(self, resource: Resource, health: ResourceHealth) -> bool:
        is_readable = health.is_served and health.is_permitted is not False
        return resource in self._told if is_readable else health.is_served is not None

    def run(self, stop: threading.Event, on_change: Callable[[Change], None]) -> None:
        """Hand on every change, one at a time, until ``stop`` is set.

        Nothing that the API server does ends this; see ``health``. A failure of ``on_change`` does.

        Args:
            stop: ends it, at once.
            on_change: takes each change in order; called by this thread only.
        """
        threads = ThreadPoolExecutor(
            max_workers=len(self._reflectors) + 1, thread_name_prefix="kubernetes"
        )
        survey = threads.submit(self._survey_often, threads)
        try:
            while not stop.is_set():
                self._hand_on(stop, on_change)
                _raise_failure([survey, *self._started()])
        finally:
            self._end(threads, survey)

    def _hand_on(self, stop: threading.Event, on_change: Callable[[Change], None]) -> None:
        """Hand on what there is, until nothing comes for a moment."""
        for _ in range(QUEUE_LENGTH):
            try:
                change = self._changes.get(timeout=WAKE_S)
            except queue.Empty:
                return
            if stop.is_set():
                return
            on_change(change)
            if change.type is ChangeType.SYNCED:
                self._told.add(change.resource)

    def _started(self) -> list[Future[None]]:
        return [future for future in self._running.values() if future is not None]

    def _enqueue(self, change: Change) -> None:
        """Wait for room; what comes after the end is dropped, the next start lists it again."""
        while not self._stop.is_set():
            try:
                self._changes.put(change, timeout=WAKE_S)
            except queue.Full:
                continue
            return

    def _end(self, threads: ThreadPoolExecutor, survey: Future[None]) -> None:
        self._stop.set()
        self._access.close()
        _, late = wait([survey, *self._started()], timeout=END_PATIENCE_S)
        threads.shutdown(wait=not late, cancel_futures=True)

    def _survey_often(self, threads: ThreadPoolExecutor) -> None:
        """Ask again and again what the server has; start a thread for each kind that it has."""
        backoff = Backoff(first_s=self._pace.backoff_first_s, max_s=self._pace.backoff_max_s)
        while not self._stop.is_set():
            served = self._served()
            for reflector in self._reflectors:
                self._follow(reflector, served[reflector.resource], threads)
            if any(isinstance(one, ApiError) for one in served.values()):
                self._stop.wait(backoff.next_s())
            else:
                backoff.reset()
                self._stop.wait(self._pace.survey_s)

    def _served(self) -> dict[Resource, Served]:
        """Return what the server has; where it does not say so, why, for every kind."""
        resources = tuple(self._running)
        try:
            return survey(self._access, resources, answer_s=self._pace.answer_s)
        except ApiError as error:
            return dict.fromkeys(resources, error)

    def _is_idle(self, resource: Resource) -> bool:
        running = self._running[resource]
        return running is None or running.done()

    def _follow(self, reflector: Reflector, served: Served, threads: ThreadPoolExecutor) -> None:
        """Begin to follow a kind that is there, or end one that is there no longer."""
        resource = reflector.resource
        if not self._is_idle(resource) or self._stop.is_set():
            return
        if isinstance(served, ApiError):
            reflector.note_error(served)
        elif served is None:
            self._note_absence(reflector)
        else:
            self._absences.pop(resource, None)
            self._running[resource] = threads.submit(reflector.run, served, self._stop)

    def _note_absence(self, reflector: Reflector) -> None:
        resource = reflector.resource
        reflector.note_absence()
        self._absences[resource] = self._absences.get(resource, 0) + 1
        if self._absences[resource] == ABSENT_SURVEYS and self._running[resource] is not None:
            reflector.forget()


def _raise_failure(futures: Sequence[Future[None]]) -> None:
    """Let a fault of our own end the feed instead of one thread unseen."""
    for future in futures:
        if future.done() and not future.cancelled():
            future.result()
