"""What makes pods: jobs that begin, are suspended, go on and end, and gangs that are let in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from collector.lifecycle.admission import open_queued, tell_admission
from collector.lifecycle.chains import Chain, Chains
from collector.lifecycle.conditions import Bearer, find, find_true, tell_changes
from collector.lifecycle.kinds import JOB_NAMES
from collector.lifecycle.output import Ledger
from collector.lifecycle.pod_facts import Incident
from collector.lifecycle.queues import KUEUE_LABEL
from collector.lifecycle.runs import Run, Runs
from collector.lifecycle.things import Things
from collector.lifecycle.workloads import Workloads
from collector.sources.kubernetes.objects import Condition, Metadata
from collector.sources.kubernetes.objects_workloads import (
    KueueWorkload,
    Maker,
    MakerStatus,
    PodGroup,
    StateOfVolcanoJob,
)
from collector.sources.kubernetes.resource import Resource
from collector.sources.kubernetes.resources import (
    KUEUE_WORKLOADS,
    VOLCANO_POD_GROUPS,
)

END_CONDITIONS: Final = ("Failed", "Complete", "Completed", "Succeeded")
END_PHASES: Final = frozenset(
    {"Succeeded", "Failed", "Error", "Completed", "Aborted", "Terminated"}
)
END_RAY_STATUSES: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
LET_IN_PHASES: Final = frozenset({"Inqueue", "Running"})
"""Phases of a Volcano gang whose queue has room for it."""


class Makers:
    """Tells the objects through which pods are made, and those that stand for them in a queue."""

    def __init__(
        self, ledger: Ledger, *, things: Things, chains: Chains, runs: Runs, workloads: Workloads
    ) -> None:
        """Begin with what is remembered."""
        self._ledger = ledger
        self._things = things
        self._chains = chains
        self._runs = runs
        self._workloads = workloads

    def see(self, resource: Resource, maker: Maker) -> None:
        """Tell what is new about an object that makes pods."""
        chain = self._chains.of(resource.name, resource.kind, maker.metadata)
        run = self._runs.get(chain.run.uid)
        if resource.name in JOB_NAMES:
            self._tell_conditions(resource, maker.metadata, _conditions(maker.status))
            run = self._see_job(chain, maker)
        if run is not None:
            self._workloads.tell_for_owner(chain)

    def see_queued(self, workload: KueueWorkload) -> None:
        """Tell what is new about a Kueue Workload."""
        status = workload.status
        chain = self._chains.of(KUEUE_WORKLOADS.name, KUEUE_WORKLOADS.kind, workload.metadata)
        conditions = status.conditions if status is not None else None
        self._tell_conditions(KUEUE_WORKLOADS, workload.metadata, conditions)
        is_whole = len(chain.links) < 2 or chain.links[1].uid == chain.run.uid
        run = open_queued(self._runs, chain, workload)
        if is_whole:
            self._workloads.note_queued(chain.root.uid, workload.metadata.uid)
        tell_admission(self._runs, run, workload, is_whole=is_whole)
        self._workloads.tell_for_owner(chain)

    def see_gang(self, resource: Resource, gang: PodGroup) -> None:
        """Tell what is new about a gang; Volcano lets it in when its queue has room."""
        status = gang.status
        self._tell_conditions(
            resource, gang.metadata, status.conditions if status is not None else None
        )
        chain = self._chains.of(resource.name, resource.kind, gang.metadata)
        run = self._runs.get(chain.run.uid)
        is_let_in = status is not None and status.phase in LET_IN_PHASES
        if resource is not VOLCANO_POD_GROUPS or run is None or not is_let_in:
            return
        if run.entry.quota_at is None and run.entry.over_at is None:
            run.entry.quota_at = self._observed_at()
            reason = status.phase if status is not None and status.phase else ""
            self._runs.tell(
                run, "quota_reserved", Incident(at=run.entry.quota_at, reason=reason, message=None)
            )
            self._runs.save(run)

    def end(
        self, uid: str, *, reason: str, metadata: Metadata | None, is_free: Callable[[str], bool]
    ) -> None:
        """Tell that an object is gone, and with it the run that it was.

        Args:
            uid: the object's.
            reason: why the run ended, where nothing told its end before.
            metadata: the object's last; None where nobody saw it go.
            is_free: says whether no pod of a run is left.
        """
        self._things.forget(uid)
        run = self._runs.get(uid)
        if run is None:
            self._runs.forget_root(uid)
            return
        at, asked = self._observed_at(), metadata.deletion_timestamp if metadata else None
        moment = at if asked is None else min(at, asked)
        self._runs.finish(run, Incident(at=moment, reason=reason, message=None))
        if is_free(uid):
            self._runs.forget(run)

    def _see_job(self, chain: Chain, maker: Maker) -> Run:
        created = maker.metadata.creation_timestamp
        run = self._runs.open(chain, at=self._observed_at() if created is None else created)
        if KUEUE_LABEL in (maker.metadata.labels or {}) and not run.entry.is_queued:
            run.entry.is_queued = True
            self._runs.save(run)
        if chain.run.uid != maker.metadata.uid:
            return run
        self._tell_suspension(run, maker)
        ended = self._end_of(maker)
        if ended is not None:
            self._runs.finish(run, ended)
        return run

    def _tell_suspension(self, run: Run, maker: Maker) -> None:
        suspended = find(_conditions(maker.status), "Suspended")
        at = suspended.last_transition_time if suspended is not None else None
        reason = (suspended.reason if suspended is not None else None) or "Suspended"
        moment = self._observed_at() if at is None else at
        if _is_suspended(maker):
            self._runs.suspend(run, Incident(at=moment, reason=reason, message=None))
        else:
            self._runs.resume(run, Incident(at=moment, reason="Resumed", message=None))

    def _end_of(self, maker: Maker) -> Incident | None:
        """Return how a job ended; None while it goes on."""
        status = maker.status
        if status is None:
            return None
        for kind in END_CONDITIONS:
            ended = find_true(status.conditions, kind)
            if ended is not None:
                return Incident(
                    at=ended.last_transition_time or self._end_time(status),
                    reason=ended.reason or _end_word(status) or kind,
                    message=ended.message,
                )
        word = _end_word(status)
        if word is None:
            return None
        return Incident(at=self._end_time(status), reason=word, message=status.message)

    def _end_time(self, status: MakerStatus) -> datetime:
        state = status.state
        times = (
            status.completion_time,
            status.finished_at,
            status.end_time,
            state.last_transition_time if isinstance(state, StateOfVolcanoJob) else None,
        )
        return next((at for at in times if at is not None), self._observed_at())

    def _tell_conditions(
        self, resource: Resource, metadata: Metadata, conditions: tuple[Condition, ...] | None
    ) -> None:
        entry = self._things.entry(resource, metadata)
        bearer = Bearer(
            kind=resource.kind, namespace=metadata.namespace, name=metadata.name, uid=metadata.uid
        )
        entry.marks = tell_changes(self._ledger, bearer, conditions=conditions, marks=entry.marks)
        self._things.save(metadata.uid, entry)

    def _observed_at(self) -> datetime:
        return self._ledger.now.replace(microsecond=0)


def _conditions(status: MakerStatus | None) -> tuple[Condition, ...] | None:
    return None if status is None else status.conditions


def _is_suspended(maker: Maker) -> bool:
    spec = maker.spec
    if spec is None:
        return False
    policy = spec.run_policy.suspend if spec.run_policy is not None else None
    return bool(spec.suspend or policy)


def _end_word(status: MakerStatus) -> str | None:
    """Return the word for the end in statuses without conditions."""
    if status.job_status in END_RAY_STATUSES:
        return status.job_status
    state = status.state
    phase = state.phase if isinstance(state, StateOfVolcanoJob) else status.phase
    return phase if phase in END_PHASES else None
