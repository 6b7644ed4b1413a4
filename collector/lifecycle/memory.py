"""What was told before, kept for each object, so that nothing is told twice.

Entries are bytes from the start: they are what the spool stores in the same transaction as the
rows, and twenty thousand of them take a few megabytes. A key's first part is its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from collector.remembered import unreadable

_encode = msgspec.msgpack.Encoder().encode


class Entry(msgspec.Struct, array_like=True, gc=False):
    """One remembered thing; new fields go to the end and have defaults."""


class Mark(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """A condition as it was last told."""

    status: str
    changed_s: int | None
    """Unix seconds of the server's ``lastTransitionTime``."""
    words_crc: int
    """Of reason and message."""


Marks = dict[str, Mark]
"""By condition type."""


class PodEntry(Entry):
    """A pod: whose it is and what was told of it."""

    namespace: str
    name: str
    created_at: datetime
    run_uid: str
    root_uid: str
    attempt: int
    """The attempt whose waiting the pod belongs to; 0 where it came to a running workload."""
    told: tuple[str, ...] = ()
    """Transitions told."""
    is_over: bool = False
    started_at: datetime | None = None
    ready_at: datetime | None = None
    finished_at: datetime | None = None
    marks: Marks = {}
    row_crc: int = 0
    tenant_id: str | None = None
    level: str = "unattributed"
    queue: str | None = None
    workload_class: str | None = None
    priority_class: str | None = None
    priority: int | None = None


class RunEntry(Entry):
    """One run of a workload: its attempts, each a waiting period and what it held."""

    resource: str
    """Name of the kind in the list of followed kinds; empty where it is not followed."""
    root_uid: str
    attempt: int = 1
    opened_at: datetime | None = None
    """When the current attempt began to wait."""
    over_at: datetime | None = None
    """When the current attempt ended; None while it goes on."""
    over_by: str = ""
    """Who ended it and thus begins the next one: ``kueue``, ``suspension`` or ``pod``."""
    is_finished: bool = False
    first_pod_at: datetime | None = None
    """When the first pod of the attempt was created."""
    lost_at: datetime | None = None
    """When a pod of the attempt failed that was not replaced yet."""
    lost_reason: str | None = None
    is_queued: bool = False
    """Whether Kueue decides when it runs."""
    quota_at: datetime | None = None
    admitted_at: datetime | None = None
    evicted_at: datetime | None = None
    orphaned_at: datetime | None = None
    """Since when a run of a kind that is not followed has no pods."""


class RootEntry(Entry):
    """A workload: the number of its last attempt, and what its pods say of it."""

    last_attempt: int = 0
    row_crc: int = 0
    asked_attempt: int = 0
    """The attempt whose pods are added up in what follows."""
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    gpu_count: int | None = None
    gpu_milli: int | None = None
    models: tuple[str, ...] = ()
    qos_class: str | None = None
    labels: dict[str, str] = {}
    """Labels of its pods that the ownership rules read."""
    queue: str | None = None
    priority_class: str | None = None
    priority: int | None = None


class ThingEntry(Entry):
    """Any other object: what was last told of it."""

    resource: str
    name: str
    namespace: str | None = None
    row_crc: int = 0
    marks: Marks = {}
    parts: tuple[str, ...] = ()
    """Names of its parts that were told, such as flavors of a queue."""


T = TypeVar("T", bound=Entry)


class Memory:
    """All entries, and which of them changed since they were last taken."""

    def __init__(self, stored: Mapping[str, bytes]) -> None:
        """Begin with what was stored before a restart."""
        self._entries = dict(stored)
        self._changes: dict[str, bytes | None] = {}

    def get(self, key: str, kind: type[T]) -> T | None:
        """Return an entry, or None where nothing is remembered.

        Raises:
            InputError: what was stored is not an entry of this kind.
        """
        stored = self._entries.get(key)
        if stored is None:
            return None
        try:
            return msgspec.msgpack.decode(stored, type=kind)
        except msgspec.DecodeError as error:
            raise unreadable(key, error) from error

    def put(self, key: str, entry: Entry) -> None:
        """Remember an entry; nothing happens where it is known in just this form."""
        encoded = _encode(entry)
        if self._entries.get(key) != encoded:
            self._entries[key] = encoded
            self._changes[key] = encoded

    def drop(self, key: str) -> None:
        """Forget an entry."""
        if self._entries.pop(key, None) is not None:
            self._changes[key] = None

    def keys(self, kind: str) -> Iterator[str]:
        """Yield what follows the kind in the keys of all its entries."""
        prefix = f"{kind}/"
        return (key.removeprefix(prefix) for key in list(self._entries) if key.startswith(prefix))

    def take_changes(self) -> dict[str, bytes | None]:
        """Return what is to be stored (None: forgotten) since this was last asked."""
        changes, self._changes = self._changes, {}
        return changes
