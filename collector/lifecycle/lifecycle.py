"""The life of everything in a cluster: changes in, rows and memory out.

Until the first lists are complete, changes are held back: then owners are known before their pods,
and what happened while nobody watched is told in order of time, a portion at a time. Afterwards
each change is told as it comes. Time comes with the changes; nothing here reads a clock.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from collector.holdings import Holding
from collector.lifecycle.claims import Instances, NoInstances
from collector.lifecycle.meanings import Meanings
from collector.lifecycle.memory import Memory, RunEntry, ThingEntry
from collector.lifecycle.output import Ledger, Output
from collector.lifecycle.ownership_rules import OwnershipRules
from collector.lifecycle.pods import VANISHED
from collector.lifecycle.view import MetadataSource, NoMetadata, View
from collector.ownership import Owner, OwnershipLevel
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.objects import Pod
from collector.sources.kubernetes.resources import (
    EVENTS,
    KAI_POD_GROUPS,
    KUEUE_WORKLOADS,
    OWNERS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RESOURCES,
    VOLCANO_POD_GROUPS,
)

PATIENCE: Final = timedelta(seconds=30)
"""How long after the pods a list may stay out before what is known is told without it."""
PORTION: Final = 500
"""Held changes told at once: twenty thousand pods in one piece would need hundreds of MiB."""
_LAST: Final = (
    RESOURCE_SLICES,
    KUEUE_WORKLOADS,
    PODS,
    *OWNERS,
    VOLCANO_POD_GROUPS,
    KAI_POD_GROUPS,
    RESOURCE_CLAIMS,
    EVENTS,
)
_ORDER: Final = (*(each for each in RESOURCES if each not in _LAST), *_LAST)
"""In which the first lists are told: attempts before pods, pods before the ends of their owners."""
_RANKS: Final = {each.name: rank for rank, each in enumerate(_ORDER)}
_REQUIRED: Final = frozenset(each.name for each in RESOURCES if not each.is_optional)
_BY_NAME: Final = {each.name: each for each in RESOURCES}


@dataclass(frozen=True, slots=True)
class _Step:
    """Something to do, at the time at which its cause was observed."""

    at: datetime
    act: Callable[[], None]


class Lifecycle:
    """Turns changes of one cluster's objects into rows.

    Args:
        cluster: its name in the rows.
        rules: whose a workload is and what it is for.
        memory: what ``Output.remember`` said before a restart.
        source: answers for owners of kinds that are not followed.
        instances: answers which GPU instance a claimed partition is.
    """

    def __init__(
        self,
        *,
        cluster: str,
        rules: OwnershipRules | None = None,
        memory: Mapping[str, bytes] | None = None,
        source: MetadataSource | None = None,
        instances: Instances | None = None,
    ) -> None:
        """Begin where the memory ends."""
        self._memory = Memory(memory or {})
        self._remembered = _by_resource(self._memory)
        self._ledger = Ledger(cluster, self._memory)
        self._view = View()
        self._meanings = Meanings(
            self._ledger,
            view=self._view,
            rules=rules or OwnershipRules(),
            source=source or NoMetadata(),
            instances=instances or NoInstances(),
        )
        self._held: dict[tuple[str, str], Change] | None = {}
        self._due: deque[_Step] = deque()
        self._told_of: set[str] = set()
        self._synced: set[str] = set()
        self._checked: set[str] = set()
        self._pods_synced_at: datetime | None = None

    @property
    def is_settled(self) -> bool:
        """Return whether the first lists are told and owners can be asked for."""
        return self._held is None and not self._due

    @property
    def has_more(self) -> bool:
        """Return whether ``advance`` has something to tell at once."""
        return bool(self._due)

    def apply(self, change: Change) -> Output:
        """Return what a change is worth; to be stored before or together with the next one's.

        Call ``advance`` while ``has_more``: the first lists are told in portions.
        """
        self._view.take(change)
        self._plan(change)
        self._settle_if_complete(change.observed_at)
        return self._told()

    def advance(self, now: datetime) -> Output:
        """Return what is due without a change: portions of the first lists, also late ones."""
        self._settle_if_complete(now)
        return self._told()

    def owner_of(self, namespace: str | None, pod: str) -> Owner | None:
        """Return the owner of a pod; None where the cluster does not know the pod."""
        uid = None if namespace is None else self._meanings.pods.uid_of(namespace, pod)
        entry = None if uid is None else self._meanings.pods.entry(uid)
        if entry is None:
            return None
        return Owner(
            pod_uid=uid,
            workload_uid=entry.root_uid,
            tenant_id=entry.tenant_id,
            level=OwnershipLevel(entry.level),
            queue=entry.queue,
            workload_class=entry.workload_class,
            priority_class=entry.priority_class,
            priority=entry.priority,
        )

    def holdings(self) -> Mapping[str, tuple[Holding, ...]]:
        """Return who holds which device by claims, by node; empty before the lists are told."""
        return self._meanings.claims.holdings() if self.is_settled else {}

    def _plan(self, change: Change) -> None:
        """Hold a change back, or put it behind what is due."""
        name = change.resource.name
        if change.type is ChangeType.SYNCED:
            self._note_synced(change)
        elif self._held is not None:
            self._told_of.add(name)
            self._held[name, change.key.uid] = change
        else:
            self._do(change.observed_at, partial(self._meanings.tell, change))

    def _do(self, at: datetime, act: Callable[[], None]) -> None:
        self._due.append(_Step(at, act))

    def _told(self) -> Output:
        """Do a portion of what is due; return what it was worth."""
        for _ in range(min(PORTION, len(self._due))):
            step = self._due.popleft()
            self._ledger.observed_at = step.at
            step.act()
        return self._ledger.take()

    def boards(self) -> Mapping[str, frozenset[str]]:
        """Return the UUIDs of the boards that drivers offer by ResourceSlices, by node."""
        return self._meanings.claims.boards() if self.is_settled else {}

    def _note_synced(self, change: Change) -> None:
        name, at = change.resource.name, change.observed_at
        self._synced.add(name)
        if name == PODS.name and self._pods_synced_at is None:
            self._pods_synced_at = at
        if self._held is None:
            self._do(at, partial(self._check_vanished, name, replaced_at={}))
            if name == PODS.name:
                self._do(at, self._meanings.runs.prune_orphans)

    def _settle_if_complete(self, now: datetime) -> None:
        if self._held is None or self._pods_synced_at is None:
            return
        awaited = (_REQUIRED | self._told_of) - self._synced
        if awaited and now < self._pods_synced_at + PATIENCE:
            return
        held, self._held = self._held, None
        self._plan_held(sorted(held.values(), key=_place), now)

    def _plan_held(self, held: list[Change], now: datetime) -> None:
        """Plan to tell the first lists, and the ends of what is no longer in them."""
        pods = [each for each in held if each.resource.name == PODS.name]
        replaced_at: dict[str, datetime] = {}
        for change in held:
            if _rank(change) < _RANKS[PODS.name]:
                self._do(change.observed_at, partial(self._meanings.tell, change))
        self._do(now, lambda: replaced_at.update(self._expect(pods)))
        if PODS.name in self._synced:
            check = partial(self._check_vanished, PODS.name, replaced_at=replaced_at)
            self._do(now, check)
        for change in held:
            if _rank(change) >= _RANKS[PODS.name]:
                self._do(change.observed_at, partial(self._meanings.tell, change))
        for name in sorted(self._synced - {PODS.name}):
            self._do(now, partial(self._check_vanished, name, replaced_at={}))
        self._do(now, self._meanings.runs.prune_orphans)

    def _expect(self, pods: list[Change]) -> dict[str, datetime]:
        """Count pods as alive before any is told; return each run's first new pod's creation."""
        first: dict[str, datetime] = {}
        for change in pods:
            if change.type is ChangeType.DELETED or not isinstance(change.object, Pod):
                continue
            run_uid = self._meanings.pods.expect(change.object)
            created = change.object.metadata.creation_timestamp
            if run_uid is not None and created is not None:
                first[run_uid] = min(first.get(run_uid, created), created)
        return first

    def _check_vanished(self, name: str, *, replaced_at: Mapping[str, datetime]) -> None:
        """Close what the memory has of a kind and its first complete list has not."""
        if name in self._checked:
            return
        self._checked.add(name)
        if name == PODS.name:
            self._check_vanished_pods(replaced_at)
            return
        resource, uids = _BY_NAME.get(name), self._remembered.pop(name, ())
        for uid in sorted(uids):
            is_there = name != RESOURCE_SLICES.name and self._view.has(name, uid)
            if resource is not None and not is_there:
                self._meanings.end_unseen(resource, uid, reason=VANISHED)

    def _check_vanished_pods(self, replaced_at: Mapping[str, datetime]) -> None:
        pods = self._meanings.pods
        for uid in sorted(self._memory.keys("pod")):
            entry = pods.entry(uid)
            if entry is not None and not self._view.has(PODS.name, uid):
                pods.vanish(uid, at=replaced_at.get(entry.run_uid))


def _by_resource(memory: Memory) -> dict[str, set[str]]:
    """Return the identities of all objects but pods that were told before a restart, by kind."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for uid in memory.keys("thing"):
        thing = memory.get(f"thing/{uid}", ThingEntry)
        if thing is not None:
            found[thing.resource].add(uid)
    for uid in memory.keys("run"):
        run = memory.get(f"run/{uid}", RunEntry)
        if run is not None:
            found[run.resource].add(uid)
    return dict(found)


def _rank(change: Change) -> int:
    return _RANKS.get(change.resource.name, len(_RANKS))


def _place(change: Change) -> tuple[int, float, str]:
    """Return where a held change stands: by kind, then by age, then by identity."""
    metadata = getattr(change.object, "metadata", None)
    created = getattr(metadata, "creation_timestamp", None)
    return (
        _rank(change),
        created.timestamp() if isinstance(created, datetime) else 0.0,
        change.key.uid,
    )
