"""Pods: their rows, their conditions, and what they do to the workload they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from collector.lifecycle import pod_facts
from collector.lifecycle.chains import Chain, Chains
from collector.lifecycle.claimed import with_claims
from collector.lifecycle.conditions import Bearer, tell_changes, words_crc
from collector.lifecycle.kinds import FOLLOWED_NAMES, JOB_NAMES, POD_GROUPS
from collector.lifecycle.labels import kept_labels
from collector.lifecycle.memory import PodEntry
from collector.lifecycle.output import Ledger
from collector.lifecycle.pod_facts import Incident
from collector.lifecycle.requests import Request, request_of
from collector.lifecycle.runs import Runs
from collector.lifecycle.view import View
from collector.lifecycle.workloads import Workloads
from collector.sources.kubernetes.objects import ENDED_PHASES, Pod
from collector.sources.kubernetes.resources import PODS

VANISHED: Final = "vanished_unobserved"
"""Reason for what ended while nobody watched."""
DELETED: Final = "PodDeleted"


class Pods:
    """Tells pods."""

    def __init__(
        self, ledger: Ledger, *, view: View, chains: Chains, runs: Runs, workloads: Workloads
    ) -> None:
        """Find out which pods were alive when the memory was written."""
        self._ledger = ledger
        self._memory = ledger.memory
        self._view = view
        self._chains = chains
        self._runs = runs
        self._workloads = workloads
        self._alive: dict[str, set[str]] = {}
        self._uids: dict[tuple[str, str], str] = {}
        for uid in self._memory.keys("pod"):
            entry = self.entry(uid)
            if entry is not None:
                self._uids[entry.namespace, entry.name] = uid
                if not entry.is_over:
                    self._alive.setdefault(entry.run_uid, set()).add(uid)

    def entry(self, uid: str) -> PodEntry | None:
        """Return what is remembered of a pod."""
        return self._memory.get(f"pod/{uid}", PodEntry)

    def uid_of(self, namespace: str, name: str) -> str | None:
        """Return the pod that has, or last had, this name."""
        return self._uids.get((namespace, name))

    def alive_count(self, run_uid: str) -> int:
        """Return how many pods of a run have not ended."""
        return len(self._alive.get(run_uid, ()))

    def chain(self, pod: Pod) -> Chain:
        """Return the pod's owners."""
        return self._chains.of(PODS.name, PODS.kind, pod.metadata)

    def expect(self, pod: Pod) -> str | None:
        """Count a pod that is about to be told as alive; return its run where it is new."""
        uid, known = pod.metadata.uid, self.entry(pod.metadata.uid)
        run_uid = known.run_uid if known is not None else self.chain(pod).run.uid
        if pod.status.phase not in ENDED_PHASES and (known is None or not known.is_over):
            self._alive.setdefault(run_uid, set()).add(uid)
        return run_uid if known is None else None

    def see(self, pod: Pod) -> None:
        """Tell what is new about a pod."""
        uid = pod.metadata.uid
        entry = self.entry(uid) or self._meet(pod)
        request = self._request(pod)
        bearer = Bearer(kind=PODS.kind, namespace=entry.namespace, name=entry.name, uid=uid)
        entry.marks = tell_changes(
            self._ledger, bearer, conditions=pod.status.conditions, marks=entry.marks
        )
        self._tell_progress(pod, entry)
        chain = self.chain(pod)
        if chain.root.uid == entry.root_uid:
            self._workloads.own(pod, entry, chain)
            siblings = self._siblings(pod, entry)
            self._workloads.tell_for_pod(
                pod, entry, request=request, chain=chain, siblings=siblings
            )
        if not entry.is_over:
            self._tell_trouble(pod, entry)
        self._tell_row(pod, entry, request, reason=pod.status.reason, deleted_at=None)
        self._memory.put(f"pod/{uid}", entry)

    def end(self, pod: Pod) -> None:
        """Tell that a pod is gone."""
        uid = pod.metadata.uid
        if self.entry(uid) is None:
            self.see(pod)
        entry = self.entry(uid)
        if entry is None:
            return
        at = pod_facts.end(pod)
        ended = (
            at if at is not None else Incident(at=self._gone_at(pod), reason=DELETED, message=None)
        )
        if not entry.is_over:
            self._tell_end(uid, entry, ended)
        request = self._request(pod)
        self._tell_row(pod, entry, request, reason=ended.reason, deleted_at=self._ledger.now)
        self._forget(uid, entry)

    def vanish(self, uid: str, *, at: datetime | None) -> None:
        """Close a pod that is gone since the memory was written.

        Args:
            uid: the pod's.
            at: when its place was taken; None where nothing took it.
        """
        entry = self.entry(uid)
        if entry is None:
            return
        moment = _floor(self._ledger.now if at is None else at)
        if not entry.is_over:
            what = Incident(at=moment, reason=VANISHED, message=None)
            self._tell_end(uid, entry, what)
            self._note_if_replaced(entry, what)
        self._ledger.add_observed(
            "pod",
            pod_uid=uid,
            namespace=entry.namespace,
            pod=entry.name,
            workload_uid=entry.root_uid,
            phase="Unknown",
            reason=VANISHED,
            created_at=entry.created_at,
            started_at=entry.started_at,
            ready_at=entry.ready_at,
            finished_at=entry.finished_at,
            deleted_at=self._ledger.now,
        )
        self._forget(uid, entry)

    def _request(self, pod: Pod) -> Request:
        return with_claims(request_of(pod.spec, pod.metadata.annotations), pod, self._view)

    def _siblings(self, pod: Pod, entry: PodEntry) -> Iterator[Pod]:
        """Yield the pods of a run that have not ended, the one at hand in any case."""
        yield pod
        for uid in self._alive.get(entry.run_uid, ()):
            found = self._view.get(PODS, uid, Pod)
            if found is not None and uid != pod.metadata.uid:
                yield found

    def _note_if_replaced(self, entry: PodEntry, what: Incident) -> None:
        """Let the next attempt begin where only pods are left that nobody had seen before."""
        run, others = self._runs.get(entry.run_uid), self._alive.get(entry.run_uid)
        if run is not None and others and all(self.entry(uid) is None for uid in others):
            self._runs.note_loss(run, what)

    def _meet(self, pod: Pod) -> PodEntry:
        """Return a new pod's entry, after it joined its workload."""
        metadata, chain = pod.metadata, self.chain(pod)
        created = self._created_at(pod)
        run = self._runs.open(chain, at=created)
        alive = self._alive.setdefault(run.uid, set())
        alive.discard(metadata.uid)
        attempt = self._runs.join(run, created_at=created, alive_count=len(alive))
        alive.add(metadata.uid)
        namespace = metadata.namespace or ""
        self._uids[namespace, metadata.name] = metadata.uid
        return PodEntry(
            namespace=namespace,
            name=metadata.name,
            created_at=created,
            run_uid=run.uid,
            root_uid=run.entry.root_uid,
            attempt=attempt,
        )

    def _tell_progress(self, pod: Pod, entry: PodEntry) -> None:
        """Tell when the pod was bound, ran and was ready, each once."""
        entry.started_at = _earliest(entry.started_at, pod_facts.started_at(pod))
        entry.ready_at = _earliest(entry.ready_at, pod_facts.ready_at(pod))
        progress: Mapping[str, datetime | None] = {
            "scheduled": pod_facts.scheduled_at(pod),
            "started": entry.started_at,
            "ready": entry.ready_at,
        }
        run = self._runs.get(entry.run_uid) if entry.attempt else None
        for transition, at in progress.items():
            if at is None or run is None or transition in entry.told:
                continue
            entry.told = (*entry.told, transition)
            node = pod.spec.node_name if transition == "scheduled" else None
            self._runs.tell_of_attempt(
                run,
                transition,
                Incident(at=at, reason="", message=node),
                attempt=entry.attempt,
                pod_uid=pod.metadata.uid,
            )

    def _tell_trouble(self, pod: Pod, entry: PodEntry) -> None:
        """Tell a disruption and the end of the pod's containers."""
        uid, run = pod.metadata.uid, self._runs.get(entry.run_uid)
        disrupted = pod_facts.disruption(pod)
        if disrupted is not None and run is not None and "disrupted" not in entry.told:
            entry.told = (*entry.told, "disrupted")
            self._runs.pod_disrupted(run, uid, disrupted)
        ended = pod_facts.end(pod)
        if ended is None:
            return
        if pod.status.phase == "Failed" and disrupted is None and run is not None:
            self._runs.note_loss(run, ended)
        self._tell_end(uid, entry, ended)

    def _tell_end(self, uid: str, entry: PodEntry, what: Incident) -> None:
        """Close a pod, and its run's attempt where nothing else of it is left."""
        entry.is_over, entry.finished_at = True, what.at
        self._ledger.end_pod(
            namespace=entry.namespace, pod=entry.name, pod_uid=uid, finished_at=what.at
        )
        alive = self._alive.get(entry.run_uid, set())
        alive.discard(uid)
        run = self._runs.get(entry.run_uid)
        if run is None or alive:
            return
        self._alive.pop(entry.run_uid, None)
        if run.entry.resource == PODS.name:
            self._runs.finish(run, what)
        elif run.entry.resource in JOB_NAMES or run.entry.resource == POD_GROUPS:
            self._runs.note_loss(run, what)
        else:
            self._runs.last_pod_ended(run, uid, what)

    def _tell_row(
        self,
        pod: Pod,
        entry: PodEntry,
        request: Request,
        *,
        reason: str | None,
        deleted_at: datetime | None,
    ) -> None:
        row: dict[str, object] = {
            "pod_uid": pod.metadata.uid,
            "namespace": entry.namespace,
            "pod": entry.name,
            "node": pod.spec.node_name or None,
            "workload_uid": entry.root_uid,
            "phase": pod.status.phase or "Unknown",
            "reason": reason or _waiting_reason(pod),
            "created_at": entry.created_at,
            "scheduled_at": pod_facts.scheduled_at(pod),
            "started_at": entry.started_at,
            "ready_at": entry.ready_at,
            "finished_at": entry.finished_at,
            "deleted_at": deleted_at,
            "gpu_count": request.gpu_count,
            "gpu_resource": request.resource,
            "restart_count": pod_facts.restart_count(pod),
            "scheduler": pod.spec.scheduler_name,
            "labels_json": kept_labels(pod.metadata.labels),
        }
        crc = words_crc(*row.values())
        if crc != entry.row_crc:
            entry.row_crc = crc
            self._ledger.add_observed("pod", **row)

    def _forget(self, uid: str, entry: PodEntry) -> None:
        """Forget a pod, and a run of which nothing exists any more."""
        self._memory.drop(f"pod/{uid}")
        if self._uids.get((entry.namespace, entry.name)) == uid:
            del self._uids[entry.namespace, entry.name]
        run = self._runs.get(entry.run_uid)
        if run is None or self.alive_count(run.uid):
            return
        if run.entry.resource not in FOLLOWED_NAMES:
            run.entry.orphaned_at = self._ledger.now
            self._runs.save(run)
        elif run.uid == uid or not self._workloads.exists(run):
            self._runs.forget(run)

    def _created_at(self, pod: Pod) -> datetime:
        created = pod.metadata.creation_timestamp
        return _floor(self._ledger.now) if created is None else created

    def _gone_at(self, pod: Pod) -> datetime:
        """Return when a pod that told no end was gone: at the latest when that was observed."""
        now, asked = _floor(self._ledger.now), pod.metadata.deletion_timestamp
        return now if asked is None else min(now, asked)


def _earliest(first: datetime | None, second: datetime | None) -> datetime | None:
    known = [each for each in (first, second) if each is not None]
    return min(known, default=None)


def _floor(at: datetime) -> datetime:
    """Return the instant as a server would write it: in whole seconds."""
    return at.replace(microsecond=0)


def _waiting_reason(pod: Pod) -> str | None:
    """Return why a container does not run yet, if the kubelet says so."""
    for status in pod.status.container_statuses or ():
        if status.state is not None and status.state.waiting is not None:
            return status.state.waiting.reason
    return None
