"""Attempts: each waiting period of a workload and what it then held, as lifecycle transitions.

An attempt ends by eviction, preemption, suspension, or when its last pod ends; what comes after
is the next attempt, which begins to wait when it is queued again. Decisions lean on the server's
own times, so that the order in which kinds of objects are told does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from collector.lifecycle.chains import Chain
from collector.lifecycle.memory import RootEntry, RunEntry
from collector.lifecycle.output import SOURCE, Ledger
from collector.lifecycle.pod_facts import PREEMPTION, Incident

GATHER: Final = timedelta(seconds=60)
"""Pods created this long after the first of an attempt wait with it; later ones join it."""
ORPHAN_KEPT: Final = timedelta(days=7)
"""How long a run is remembered whose kind is not followed and whose pods are gone."""
KUEUE: Final = "kueue"
SUSPENSION: Final = "suspension"
POD: Final = "pod"


@dataclass(slots=True, kw_only=True)
class Run:
    """One run of a workload, in hand."""

    uid: str
    entry: RunEntry


class Runs:
    """Keeps the attempts of all workloads, and tells their transitions."""

    def __init__(self, ledger: Ledger) -> None:
        """Remember what the ledger's memory has."""
        self._ledger = ledger
        self._memory = ledger.memory

    @property
    def now(self) -> datetime:
        """Return when the change in hand was observed."""
        return self._ledger.now

    def get(self, uid: str) -> Run | None:
        """Return a run that is known."""
        entry = self._memory.get(f"run/{uid}", RunEntry)
        return None if entry is None else Run(uid=uid, entry=entry)

    def save(self, run: Run) -> None:
        """Remember a run."""
        self._memory.put(f"run/{run.uid}", run.entry)

    def root(self, uid: str) -> RootEntry:
        """Return what is known of a workload."""
        return self._memory.get(f"root/{uid}", RootEntry) or RootEntry()

    def save_root(self, uid: str, root: RootEntry) -> None:
        """Remember a workload."""
        self._memory.put(f"root/{uid}", root)

    def forget(self, run: Run) -> None:
        """Forget a run, and the workload it is."""
        self._memory.drop(f"run/{run.uid}")
        if run.uid == run.entry.root_uid:
            self._memory.drop(f"root/{run.uid}")

    def forget_root(self, uid: str) -> None:
        """Forget a workload that never ran itself, such as a schedule."""
        self._memory.drop(f"root/{uid}")

    def open(self, chain: Chain, *, at: datetime, is_created: bool = True) -> Run:
        """Return the run of a chain; tell its creation where it is new.

        Args:
            chain: from any of its objects up.
            at: when the object at hand was created, for a run whose own creation is not known.
            is_created: False leaves the telling of the beginning to the caller.
        """
        link = chain.run
        known = self.get(link.uid)
        if known is not None:
            return known
        root = self.root(chain.root.uid)
        root.last_attempt += 1
        self.save_root(chain.root.uid, root)
        metadata = link.metadata
        created = metadata.creation_timestamp if metadata is not None else None
        created = at if created is None else min(created, at)
        entry = RunEntry(
            resource=link.resource,
            root_uid=chain.root.uid,
            attempt=root.last_attempt,
            opened_at=created,
        )
        run = Run(uid=link.uid, entry=entry)
        if is_created:
            self.tell(run, "created", Incident(at=created, reason=link.kind, message=None))
        self.save(run)
        return run

    def skip_attempts(self, run: Run, count: int) -> None:
        """Count attempts that nobody saw."""
        root = self.root(run.entry.root_uid)
        root.last_attempt += count
        run.entry.attempt = root.last_attempt
        self.save_root(run.entry.root_uid, root)

    def tell(
        self, run: Run, transition: str, what: Incident, *, pod_uid: str | None = None
    ) -> None:
        """Add the transition of the run's current attempt."""
        self.tell_of_attempt(run, transition, what, attempt=run.entry.attempt, pod_uid=pod_uid)

    def tell_of_attempt(
        self,
        run: Run,
        transition: str,
        what: Incident,
        *,
        attempt: int,
        pod_uid: str | None = None,
    ) -> None:
        """Add a transition of any attempt."""
        self._ledger.add(
            "workload_transition",
            occurred_at=what.at,
            observed_at=self._ledger.now,
            workload_uid=run.entry.root_uid,
            pod_uid=pod_uid,
            attempt=attempt,
            transition=transition,
            reason=what.reason or None,
            message=what.message or None,
            source=SOURCE,
        )

    def end_attempt(
        self,
        run: Run,
        transition: str,
        what: Incident,
        *,
        by: str,
        pod_uid: str | None = None,
    ) -> None:
        """End the current attempt, if it is not over."""
        entry = run.entry
        if entry.over_at is not None or entry.is_finished:
            return
        entry.over_at, entry.over_by = what.at, by
        entry.lost_at, entry.lost_reason = None, None
        self.tell(run, transition, what, pod_uid=pod_uid)

    def next_attempt(self, run: Run, what: Incident) -> None:
        """Begin the next attempt: it waits from this instant."""
        entry = run.entry
        root = self.root(entry.root_uid)
        root.last_attempt += 1
        self.save_root(entry.root_uid, root)
        entry.attempt, entry.opened_at = root.last_attempt, what.at
        entry.over_at, entry.over_by, entry.is_finished = None, "", False
        entry.first_pod_at, entry.lost_at, entry.lost_reason = None, None, None
        entry.quota_at, entry.admitted_at = None, None
        self.tell(run, "requeued", what)

    def finish(self, run: Run, what: Incident) -> None:
        """Tell the end of the run itself, once."""
        entry = run.entry
        if entry.is_finished:
            return
        entry.is_finished = True
        if entry.over_at is None:
            entry.over_at, entry.over_by = what.at, POD
        self.tell(run, "finished", what)
        self.save(run)

    def suspend(self, run: Run, what: Incident) -> None:
        """Tell a suspension, unless Kueue decides or nothing ran yet."""
        if run.entry.is_queued or run.entry.first_pod_at is None:
            return
        self.end_attempt(run, "suspended", what, by=SUSPENSION)
        self.save(run)

    def resume(self, run: Run, what: Incident) -> None:
        """Tell the end of a suspension: a new attempt begins to wait."""
        if run.entry.over_by != SUSPENSION or run.entry.is_finished:
            return
        self.next_attempt(run, what)
        self.tell(run, "resumed", what)
        self.save(run)

    def join(self, run: Run, *, created_at: datetime, alive_count: int) -> int:
        """Return the attempt that a new pod waits with; 0 where the workload already runs.

        Args:
            run: the pod's.
            created_at: the pod's creation.
            alive_count: other pods of the run that have not ended.
        """
        entry = run.entry
        entry.orphaned_at = None
        if entry.over_at is not None:
            return self._join_after_end(
                run, over_at=entry.over_at, created_at=created_at, alive_count=alive_count
            )
        if entry.lost_at is not None and entry.lost_at <= created_at:
            return self._replace(run, created_at)
        first = entry.first_pod_at
        if first is None or created_at <= first + GATHER:
            entry.first_pod_at = created_at if first is None else min(first, created_at)
            self.save(run)
            return entry.attempt
        if alive_count == 0:
            return self._replace(run, created_at)
        return 0

    def _join_after_end(
        self, run: Run, *, over_at: datetime, created_at: datetime, alive_count: int
    ) -> int:
        entry = run.entry
        first = entry.first_pod_at
        is_early = created_at < over_at or entry.is_finished
        if is_early and (alive_count > 0 or entry.is_finished):
            belongs = created_at <= over_at and (first is None or created_at <= first + GATHER)
            return entry.attempt if belongs else 0
        if entry.over_by == POD:
            return self._replace(run, created_at)
        return self.root(entry.root_uid).last_attempt + 1

    def _replace(self, run: Run, created_at: datetime) -> int:
        """Begin the attempt of a pod that takes the place of one that ended."""
        entry = run.entry
        if entry.lost_at is not None:
            lost = Incident(at=entry.lost_at, reason=entry.lost_reason or "", message=None)
            self.end_attempt(run, "finished", lost, by=POD)
        self.next_attempt(run, Incident(at=created_at, reason="PodReplaced", message=None))
        entry.first_pod_at = created_at
        self.save(run)
        return entry.attempt

    def pod_disrupted(self, run: Run, pod_uid: str, what: Incident) -> None:
        """Tell that a pod was taken away: the attempt is over."""
        transition = "preempted" if what.reason == PREEMPTION else "evicted"
        self.end_attempt(run, transition, what, by=POD, pod_uid=pod_uid)
        self.save(run)

    def note_loss(self, run: Run, what: Incident) -> None:
        """Note a pod that failed, or a job's last one that ended: what replaces it begins anew."""
        entry = run.entry
        if entry.over_at is None and entry.lost_at is None:
            entry.lost_at, entry.lost_reason = what.at, what.reason
            self.save(run)

    def last_pod_ended(self, run: Run, pod_uid: str, what: Incident) -> None:
        """Tell that nothing of the run is left: the attempt holds nothing any more."""
        self.end_attempt(run, "finished", what, by=POD, pod_uid=pod_uid)
        self.save(run)

    def prune_orphans(self) -> None:
        """Forget runs of kinds that are not followed long after their last pod."""
        for uid in self._memory.keys("run"):
            run = self.get(uid)
            orphaned = None if run is None else run.entry.orphaned_at
            is_old = orphaned is not None and orphaned + ORPHAN_KEPT <= self._ledger.now
            if run is not None and is_old:
                self.forget(run)
