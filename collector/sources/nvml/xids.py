"""XID errors, as the driver reports them: counted from the start of the agent.

One thread waits for events of all GPUs. An XID may never come this way (79, a GPU that fell off the
bus, often does not): a lost GPU is noticed by its readings.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

import pynvml

from collector.sources.nvml.calls import call
from collector.sources.nvml.processes import NO_INSTANCE
from collector.sources.nvml.records import XidCount
from steward.errors import SourceError

log = logging.getLogger(__name__)

WAIT_MS: Final = 1_000
"""How long one wait in the driver lasts: so soon the thread notices that it shall do otherwise."""
IDLE_S: Final = 0.1
"""Between two looks for a first GPU to watch."""
PAUSE_S: Final = 5.0
"""Between two tries after an error."""


class XidWatch:
    """Counts XIDs in a thread of its own."""

    def __init__(self) -> None:
        """Start the thread; it does nothing before ``watch``."""
        self._counts: Counter[tuple[str, int | None, int]] = Counter()
        self._last: dict[tuple[str, int | None], int] = {}
        self._watched: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._wanted: frozenset[int] = frozenset()
        self._is_wanted = False
        self._orders = 0
        self._is_closed = False
        self._level = logging.WARNING
        self._ordered = threading.Event()
        self._idle = threading.Event()
        threading.Thread(target=self._run, name="xids", daemon=True).start()

    def watch(self) -> None:
        """Begin anew: the driver was started."""
        self._order(is_wanted=True)

    def add(self, index: int) -> None:
        """Watch this GPU too: one that answers, since any other would hang the watch."""
        if index not in self._wanted:
            self._wanted |= {index}

    def leave(self) -> None:
        """Leave the driver alone, as soon as the wait under way ends."""
        self._order(is_wanted=False)

    def close(self) -> bool:
        """End the thread; return whether it has left the driver."""
        self._is_closed = True
        self.leave()
        return self._idle.wait(2 * WAIT_MS / 1_000)

    def counts(self) -> tuple[XidCount, ...]:
        """Return every count, in a stable order."""
        with self._lock:
            items = list(self._counts.items())
        ordered = sorted(items, key=lambda item: (item[0][0], item[0][1] or 0, item[0][2]))
        return tuple(
            XidCount(uuid=uuid, instance_id=instance_id, xid=xid, count=count)
            for (uuid, instance_id, xid), count in ordered
        )

    def last(self) -> dict[tuple[str, int | None], int]:
        """Return the last XID by GPU and instance."""
        with self._lock:
            return dict(self._last)

    @property
    def is_idle(self) -> bool:
        """Return whether the thread is outside of the driver."""
        return self._idle.is_set()

    @property
    def watched(self) -> frozenset[str]:
        """Return the GPUs whose XIDs are reported."""
        return self._watched

    def _run(self) -> None:
        while not self._is_closed:
            self._idle.set()
            self._ordered.wait()
            self._ordered.clear()
            self._idle.clear()
            order = self._orders
            try:
                self._follow(order)
            except SourceError as error:
                log.log(self._level, "XIDs cannot be watched: %s", error)
                self._level, self._watched = logging.DEBUG, frozenset()
                if not self._ordered.wait(PAUSE_S):
                    self._ordered.set()
        self._idle.set()

    def _order(self, *, is_wanted: bool) -> None:
        self._wanted, self._is_wanted = frozenset(), is_wanted
        self._orders += 1
        self._ordered.set()

    def _follow(self, order: int) -> None:
        """Count events until another order comes."""
        if not self._is_wanted:
            return
        events = call(pynvml.nvmlEventSetCreate)
        seen: set[int] = set()
        uuids: dict[int | None, str] = {}
        try:
            while order == self._orders:
                for index in sorted(self._wanted - seen):
                    seen.add(index)
                    self._register(index, events=events, uuids=uuids)
                self._wait(events, uuids=uuids)
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(events)

    def _register(
        self, index: int, *, events: pynvml.c_nvmlEventSet_t, uuids: dict[int | None, str]
    ) -> None:
        """Add the GPU's UUID by the address of its handle, if it reports XIDs."""
        xids = pynvml.nvmlEventTypeXidCriticalError
        try:
            handle = call(pynvml.nvmlDeviceGetHandleByIndex, index)
            uuid = call(pynvml.nvmlDeviceGetUUID, handle)
            call(pynvml.nvmlDeviceRegisterEvents, handle, xids, events)
        except SourceError as error:
            log.info("GPU %d reports no XIDs: %s", index, error)
            return
        uuids[_address(handle)] = uuid
        self._watched, self._level = frozenset(uuids.values()), logging.WARNING

    def _wait(self, events: pynvml.c_nvmlEventSet_t, *, uuids: Mapping[int | None, str]) -> None:
        """Wait for one event, and count it."""
        if not uuids:
            self._ordered.wait(IDLE_S)
            return
        try:
            event = pynvml.nvmlEventSetWait_v2(events, WAIT_MS)
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_TIMEOUT:
                return
            raise SourceError(
                f"nvmlEventSetWait: {error}", hint="the agent registers again"
            ) from error
        uuid = uuids.get(_address(event.device))
        if uuid is None or event.eventType != pynvml.nvmlEventTypeXidCriticalError:
            return
        told = event.gpuInstanceId
        instance_id = None if told == NO_INSTANCE else told
        log.warning("XID %d on %s", event.eventData, uuid, extra={"instance_id": instance_id})
        with self._lock:
            self._counts[uuid, instance_id, event.eventData] += 1
            self._last[uuid, instance_id] = event.eventData


def _address(handle: pynvml.c_nvmlDevice_t) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
