"""Calls of the Kubernetes API as they are made: how many, and how many gave no usable answer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from enforcer.gateway.port import Gateway, KubernetesObject, Target, Write
from steward.errors import ClusterError, ConflictError, DeniedError, FencedError, RefusedError

COUNTED_FOR: Final = timedelta(minutes=10)
"""So long a call counts towards the share that failed."""
_ANSWERS: Final = (ConflictError, DeniedError, FencedError, RefusedError)
"""The server, or the fence, said no: that is an answer."""

OnCall = Callable[[str, bool], None]


def _unseen(_name: str, _has_failed: bool) -> None:  # noqa: FBT001  # a callback's two words
    pass


class CountedGateway:
    """Another gateway, with its calls counted; safe for several threads.

    Args:
        inner: makes the calls.
        monotonic: seconds that only grow.
        on_call: told of each call, and whether it failed.
    """

    def __init__(
        self, inner: Gateway, *, monotonic: Callable[[], float], on_call: OnCall = _unseen
    ) -> None:
        """Count nothing yet."""
        self.inner = inner
        self._monotonic = monotonic
        self._on_call = on_call
        self._calls: deque[tuple[float, bool]] = deque()
        self._lock = threading.Lock()

    def error_ratio(self) -> float:
        """Return the share of calls of the last ten minutes that failed, 0 where none was made."""
        with self._lock:
            self._forget()
            failed = sum(has_failed for _at_s, has_failed in self._calls)
            return failed / len(self._calls) if self._calls else 0.0

    def read(self, target: Target) -> KubernetesObject | None:
        """Read through."""
        with self._counted("read"):
            return self.inner.read(target)

    def list(
        self, *, api_version: str, kind: str, namespace: str | None, labels: str = ""
    ) -> Sequence[KubernetesObject]:
        """List through."""
        with self._counted("list"):
            return self.inner.list(
                api_version=api_version, kind=kind, namespace=namespace, labels=labels
            )

    def rehearse(self, write: Write) -> None:
        """Rehearse through."""
        with self._counted("rehearse"):
            self.inner.rehearse(write)

    def write(self, write: Write) -> KubernetesObject:
        """Write through."""
        with self._counted("write"):
            return self.inner.write(write)

    def may(self, *, verb: str, api_version: str, kind: str, namespace: str | None) -> bool:
        """Ask through."""
        with self._counted("may"):
            return self.inner.may(
                verb=verb, api_version=api_version, kind=kind, namespace=namespace
            )

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        has_failed = False
        try:
            yield
        except ClusterError as error:
            has_failed = not isinstance(error, _ANSWERS)
            raise
        finally:
            with self._lock:
                self._calls.append((self._monotonic(), has_failed))
                self._forget()
            self._on_call(name, has_failed)

    def _forget(self) -> None:
        since_s = self._monotonic() - COUNTED_FOR.total_seconds()
        while self._calls and self._calls[0][0] < since_s:
            self._calls.popleft()
