"""Tells in the log what changed about the reading of a cluster, once for all kinds together."""

from __future__ import annotations

import logging
import threading
from typing import Final

from collector.sources.kubernetes.api_error import ApiError, ApiFault

log = logging.getLogger(__name__)

OF_ONE_KIND: Final = frozenset({ApiFault.FORBIDDEN, ApiFault.NOT_FOUND, ApiFault.UNREADABLE})
"""Faults that concern one kind of objects; all others concern the server."""
UNREMARKABLE: Final = frozenset({ApiFault.GONE, ApiFault.CLOSED})
"""Belong to the protocol, or to our own end."""


class Notices:
    """Who has which trouble now; a server that is away is told once, not once per kind."""

    def __init__(self) -> None:
        """Know of no trouble."""
        self._lock = threading.Lock()
        self._troubled: dict[str, ApiFault] = {}

    def failed(self, name: str, error: ApiError) -> None:
        """Note the failure of one kind, and tell it where it is news."""
        if error.fault in UNREMARKABLE:
            return
        with self._lock:
            before = self._troubled.get(name)
            is_shared = error.fault not in OF_ONE_KIND and error.fault in self._troubled.values()
            self._troubled[name] = error.fault
        if error.fault != before and not is_shared:
            log.warning("%s (%s; %s)", error.message, error.fault, error.hint)

    def succeeded(self, name: str) -> None:
        """Note that one kind is read, and tell it where it was not before."""
        with self._lock:
            before = self._troubled.pop(name, None)
            is_last = before not in self._troubled.values()
        if before in OF_ONE_KIND:
            log.info("%s can be read again (was %s)", name, before)
        elif before is not None and is_last:
            log.info("the API server answers again (was %s)", before)
