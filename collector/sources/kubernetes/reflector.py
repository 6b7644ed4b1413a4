"""Follows one kind of objects: lists them, watches them, and survives what servers do.

Every difference is told once, in order. What breaks a watch (a dropped connection, a restarted API
server, half a line) costs a new connection from the last known version; a version that is too old
(410), or repeated trouble, costs a new list, which is compared with what is known.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from collector.sources.kubernetes.access import ApiAccess
from collector.sources.kubernetes.api_error import ApiError, ApiFault, Question, error_of
from collector.sources.kubernetes.change import Change, ChangeType, ObjectKey
from collector.sources.kubernetes.health import ResourceHealth
from collector.sources.kubernetes.notices import Notices
from collector.sources.kubernetes.pace import RELIST_AFTER_FAILURES, Backoff, Pace
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from collector.sources.kubernetes.store import Difference, ObjectStore
from collector.sources.kubernetes.wire_faults import wire_error
from collector.sources.kubernetes.wire_objects import (
    BOOKMARK,
    DELETED,
    ErrorEvent,
    Event,
    ObjectDecoder,
    Page,
)
from steward.clock import Clock

NO_KEY: Final = ObjectKey(namespace=None, name="", uid="")
SHORT_WATCH_S: Final = 1.0
"""A watch that the server ends sooner is followed by a pause, so that no loop spins."""

Tell = Callable[[Change], None]
"""Takes one change; may wait until there is room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the reflectors of one cluster share."""

    access: ApiAccess
    tell: Tell
    clock: Clock
    pace: Pace
    notices: Notices
    lists: threading.Semaphore
    """A place in it is needed to list."""


class Reflector:
    """One kind of objects, followed until it ends.

    Args:
        resource: what to follow.
        shared: the API server, who takes the changes, and how patient to be.
    """

    def __init__(self, resource: Resource, shared: Shared) -> None:
        """Know nothing yet."""
        self.resource = resource
        self._shared = shared
        self._decoder = ObjectDecoder(resource)
        self._store = ObjectStore()
        self._backoff = Backoff(
            first_s=shared.pace.backoff_first_s, max_s=shared.pace.backoff_max_s
        )
        self._from_version: str | None = None
        self._health = ResourceHealth(name=resource.title, is_optional=resource.is_optional)

    def health(self) -> ResourceHealth:
        """Return a copy of how it goes."""
        return replace(self._health, object_count=len(self._store))

    def note_absence(self) -> None:
        """Note that the server does not have this kind."""
        self._health.is_served, self._health.version = False, None
        if self._health.forget_error():
            self._shared.notices.succeeded(self.resource.title)

    def note_error(self, error: ApiError) -> None:
        """Note a failure, and tell it where it is news."""
        self._health.note_error(error)
        self._shared.notices.failed(self.resource.title, error)

    def run(self, version: str, stop: threading.Event) -> None:
        """List and watch until ``stop`` is set, or until the server no longer has this kind."""
        self._health.is_served, self._health.version = True, version
        while not stop.is_set():
            try:
                self._follow(version, stop)
            except ApiError as error:
                if self._is_over(error):
                    return
                stop.wait(self._pause_s(error))

    def forget(self) -> None:
        """Tell the end of every object: the server no longer has this kind."""
        self._emit(self._store.clear())
        self._emit_synced()
        self._from_version = None

    def _follow(self, version: str, stop: threading.Event) -> None:
        if self._from_version is None:
            with self._shared.lists:
                self._from_version = self._list(version, stop)
        while not stop.is_set():
            self._watch(version, stop)

    def _list(self, version: str, stop: threading.Event) -> str | None:
        """Read all pages; return the version to watch from, None where it was interrupted."""
        self._store.begin_list()
        token = ""
        while not stop.is_set():
            page = self._page(version, token)
            self._take_page(page)
            token = page.continue_token
            if not token:
                self._end_list()
                return page.resource_version
        return None

    def _page(self, version: str, token: str) -> Page:
        limit = ("limit", str(self._shared.pace.page_size))
        query = (limit, ("continue", token)) if token else (limit,)
        question = self.resource.question("list", version, query)
        body = self._shared.access.get(question, answer_s=self._shared.pace.answer_s)
        try:
            return self._decoder.page(body)
        except msgspec.DecodeError as error:
            raise self._unreadable(question, error) from error

    def _take_page(self, page: Page) -> None:
        self._store.keep(strange.metadata for strange in page.undecodable)
        self._health.undecodable_count += len(page.undecodable)
        for found in page.objects:
            self._emit(self._store.put(found))

    def _end_list(self) -> None:
        self._emit(self._store.end_list())
        self._health.list_count += 1
        self._health.last_list_at = self._shared.clock.now()
        self._health.is_synced = True
        self._note_success()
        self._emit_synced()

    def _watch(self, version: str, stop: threading.Event) -> None:
        """Follow one watch to its end: the server's, or a long silence.

        Raises:
            ApiError: it did not begin, broke, or ended too soon.
        """
        began_s = time.monotonic()
        question = self._watch_question(version)
        with self._shared.access.lines(question, silence_s=self._shared.pace.silence_s) as lines:
            self._health.watch_count += 1
            self._note_success()
            is_silent = self._take_lines(lines, question)
        is_short = time.monotonic() - began_s < SHORT_WATCH_S
        if is_short and not is_silent and not stop.is_set():
            raise self._error(ApiFault.BROKEN, question, "the watch ended at once")
        self._backoff.reset()

    def _take_lines(self, lines: Iterable[bytes], question: Question) -> bool:
        """Take all events; return whether they ended since nothing came for long."""
        try:
            for line in lines:
                self._take_line(line, question)
        except ApiError as error:
            if error.fault is not ApiFault.TIMEOUT:
                raise
            self._health.silent_count += 1
            return True
        return False

    def _take_line(self, line: bytes, question: Question) -> None:
        try:
            event = self._decoder.event(line)
        except msgspec.DecodeError as error:
            raise self._unreadable(question, error) from error
        if isinstance(event, ErrorEvent):
            raise error_of(event.status, question, server=self._shared.access.server)
        self._take_event(event)
        self._from_version = event.bare.metadata.resource_version or self._from_version
        self._health.last_event_at = self._shared.clock.now()
        self._backoff.reset()

    def _take_event(self, event: Event) -> None:
        metadata = event.bare.metadata
        if event.type == DELETED:
            self._emit(self._store.remove(metadata, event.object))
        elif event.object is not None:
            self._emit(self._store.put(event.object))
        elif event.type != BOOKMARK:
            self._store.keep([metadata])
            self._health.undecodable_count += 1

    def _watch_question(self, version: str) -> Question:
        pace = self._shared.pace
        watch_s = pace.watch_s * random.uniform(1.0, 1.5)  # noqa: S311 - spreads load, hides nothing
        query = (
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(max(1, round(watch_s)))),
            ("resourceVersion", self._from_version or ""),
        )
        return self.resource.question("watch", version, query)

    def _is_over(self, error: ApiError) -> bool:
        """Return whether there is no use in trying again."""
        if error.fault is ApiFault.NOT_FOUND:
            self.note_absence()
        return error.fault in {ApiFault.NOT_FOUND, ApiFault.CLOSED}

    def _pause_s(self, error: ApiError) -> float:
        """Note a failure; return how long to wait before going on.

        That a server is not ready yet belongs to its start; that it stays so is a failure.
        """
        failures_before = self._backoff.failures_in_a_row
        pause_s = max(self._backoff.next_s(), error.retry_after_s or 0.0)
        if not error.is_passing or self._backoff.failures_in_a_row >= RELIST_AFTER_FAILURES:
            self.note_error(error)
        if error.fault is ApiFault.GONE:
            self._from_version = None
            return pause_s if failures_before else 0.0
        is_repeated = self._backoff.failures_in_a_row % RELIST_AFTER_FAILURES == 0
        if is_repeated and error.fault is not ApiFault.FORBIDDEN:
            self._from_version = None
        return pause_s

    def _note_success(self) -> None:
        self._health.is_permitted = True
        if self._health.forget_error():
            self._shared.notices.succeeded(self.resource.title)

    def _emit(self, differences: Iterable[Difference]) -> None:
        for difference in differences:
            metadata = difference.object.metadata
            key = ObjectKey(
                namespace=metadata.namespace or None, name=metadata.name, uid=metadata.uid
            )
            self._tell(difference.type, key, difference.object)

    def _emit_synced(self) -> None:
        self._tell(ChangeType.SYNCED, NO_KEY, None)

    def _tell(self, kind: ChangeType, key: ObjectKey, found: KubernetesObject | None) -> None:
        change = Change(
            resource=self.resource,
            type=kind,
            key=key,
            object=found,
            observed_at=self._shared.clock.now(),
        )
        self._shared.tell(change)

    def _unreadable(self, question: Question, error: msgspec.DecodeError) -> ApiError:
        return self._error(ApiFault.UNREADABLE, question, f"the answer cannot be read: {error}")

    def _error(self, fault: ApiFault, question: Question, what: str) -> ApiError:
        return wire_error(fault, question, what, server=self._shared.access.server)
