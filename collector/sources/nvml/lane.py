"""A thread that does one job at a time, so that a job that never ends costs nobody else anything.

A call that hangs inside the driver cannot be interrupted from outside: its thread is left to it,
and the lane takes no other job until the call returns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from steward.errors import SourceError, StewardError

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a job gave: a value, or the failure that ended it."""

    value: T | None
    failure: StewardError | None


class Lane(Generic[T]):
    """One daemon thread; its jobs are asked for and collected by one other thread.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        """Start the thread; it waits for a job."""
        self._changed = threading.Condition()
        self._job: Callable[[], T] | None = None
        self._done: Done[T] | None = None
        self._is_closed = False
        self.busy_since_s: float | None = None
        """When the job under way was given, on the monotonic clock; None while there is none."""
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def give(self, job: Callable[[], T]) -> bool:
        """Begin a job; return False, and begin nothing, while the one before is under way."""
        with self._changed:
            if self.busy_since_s is not None:
                return False
            self._job, self._done = job, None
            self.busy_since_s = time.monotonic()
            self._changed.notify_all()
            return True

    def collect(self, *, until_s: float) -> Done[T] | None:
        """Return what the job gave, once; None if it is not done at that monotonic time."""
        with self._changed:
            while self._done is None and self.busy_since_s is not None:
                left_s = until_s - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    break
            done, self._done = self._done, None
            return done

    def close(self) -> None:
        """Let the thread end after the job under way."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            done = _result(job)
            with self._changed:
                self._done, self.busy_since_s = done, None
                self._changed.notify_all()

    def _next(self) -> Callable[[], T] | None:
        with self._changed:
            while self._job is None and not self._is_closed:
                self._changed.wait()
            job, self._job = self._job, None
            return job


def _result(job: Callable[[], T]) -> Done[T]:
    try:
        return Done(job(), None)
    except StewardError as error:
        return Done(None, error)
    except Exception as error:  # the thread's last door: it must outlive the job
        log.exception("a reading ended in an unexpected way")
        return Done(None, SourceError(f"unexpected: {error!r}", hint="report the traceback above"))
