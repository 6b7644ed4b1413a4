"""The scheduler: event by event, who gets quota, who is placed, who is moved aside, who waits."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from collector.sources.simulated.capacity import Capacity
from collector.sources.simulated.faults import FaultPlan
from collector.sources.simulated.fleet import Fleet
from collector.sources.simulated.history import (
    Complaint,
    History,
    PodPlacement,
    QuotaReading,
    Run,
    Transition,
)
from collector.sources.simulated.preemption import cheapest_victims
from collector.sources.simulated.quota import QuotaLedger
from collector.sources.simulated.requests import INFERENCE, PRIORITIES, Request
from steward.units import SECONDS_PER_HOUR

SNAPSHOT_EVERY_S: Final = SECONDS_PER_HOUR
_COMPLAIN_EVERY_S: Final = 2 * SECONDS_PER_HOUR
_KEPT_WORK_RATIO: Final = 0.8
"""The part of an interrupted attempt's work that its last checkpoint keeps."""
_SHORTEST_REST_S: Final = 120

Failure = tuple[str, str]
"""Reason and message of why a request cannot start now."""


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting:
    """One request in the queue."""

    request: Request
    attempt: int
    remaining_s: int
    model: str | None = None
    """The flavour whose quota is reserved; None: no quota yet."""
    complained_s: int | None = None
    complaint_count: int = 0

    @property
    def order(self) -> tuple[int, int, int]:
        """Return the place in the queue: by priority, then first come first served."""
        return (-self.request.priority, self.request.created_s, self.request.index)

    @property
    def shape(self) -> tuple[object, ...]:
        """Return what decides whether it can start: equal shapes fail together."""
        each = self.request
        size = (each.pod_count, each.slots_per_pod, each.cpu_milli, each.memory_bytes)
        return (each.tenant, self.model, each.models, each.resource, each.priority, size)


def schedule(
    fleet: Fleet, requests: Iterable[Request], faults: FaultPlan, *, duration_s: int
) -> History:
    """Return what happens to the requests on this fleet until the end of the simulation."""
    return _Scheduler(fleet, duration_s=duration_s).run(requests, faults)


def startup_s(request: Request, attempt: int) -> int:
    """Return the seconds from being scheduled to the first container's start: 5 to 89."""
    return 5 + (request.index * 2_654_435_761 + attempt * 40_503) % 85


def readiness_s(request: Request) -> int:
    """Return the seconds from start to ready: services load their weights first."""
    spread = (request.index * 40_503) % 180
    return 60 + spread if request.workload_class == INFERENCE else 2 + spread // 10


class _Scheduler:
    def __init__(self, fleet: Fleet, *, duration_s: int) -> None:
        self._fleet = fleet
        self._duration_s = duration_s
        self._capacity = Capacity(fleet)
        self._quota = QuotaLedger(fleet)
        self._history = History()
        self._queue: list[Waiting] = []
        self._fresh: list[Waiting] = []
        self._running: list[Run] = []
        self._has_freed = False
        self._numbers = count()
        self._events: list[tuple[int, int, Callable[[int, Any], None], Any]] = []

    def run(self, requests: Iterable[Request], faults: FaultPlan) -> History:
        for request in requests:
            self._plan(request.created_s, self._submit, request)
        self._plan_faults(faults)
        for at_s in range(0, self._duration_s, SNAPSHOT_EVERY_S):
            self._plan(at_s, self._read_quota, None)
        heapify(self._events)
        while self._events:
            at_s = self._events[0][0]
            while self._events and self._events[0][0] == at_s:
                _, _, handle, subject = heappop(self._events)
                handle(at_s, subject)
            self._dispatch(at_s)
        for run in self._running:
            self._tell_start(run, until_s=self._duration_s)
        self._history.sort()
        return self._history

    def _plan(self, at_s: int, handle: Callable[[int, Any], None], subject: object) -> None:
        if at_s < self._duration_s:
            heappush(self._events, (at_s, next(self._numbers), handle, subject))

    def _plan_faults(self, faults: FaultPlan) -> None:
        for span in faults.lost_devices:
            self._plan(span.from_s, self._lose, span.index)
            if span.until_s is not None:
                self._plan(span.until_s, self._recover, span.index)
        for span in faults.cordoned_nodes:
            self._plan(span.from_s, self._cordon, span.index)
            if span.until_s is not None:
                self._plan(span.until_s, self._uncordon, span.index)

    # what happens ---------------------------------------------------------------------------

    def _submit(self, at_s: int, request: Request) -> None:
        waiting = Waiting(request=request, attempt=1, remaining_s=request.runtime_s)
        self._tell(at_s, waiting, "created")
        self._enqueue(waiting)
        self._plan(at_s + request.patience_s, self._give_up, waiting)

    def _enqueue(self, waiting: Waiting) -> None:
        insort(self._queue, waiting, key=lambda each: each.order)
        self._fresh.append(waiting)

    def _give_up(self, at_s: int, waiting: Waiting) -> None:
        if waiting not in self._queue:
            return
        self._queue.remove(waiting)
        if waiting.model is not None:
            self._quota.release(waiting.request, waiting.model)
            self._has_freed = True
        why = ("Cancelled", "deleted by its owner before it was scheduled")
        self._tell(at_s, waiting, "finished", why=why)

    def _finish(self, at_s: int, run: Run) -> None:
        if run.ended_s is None:
            self._end(at_s, run)
            self._tell(at_s, run, "finished", why=(run.request.outcome, ""))

    def _lose(self, at_s: int, device_index: int) -> None:
        self._capacity.lose(device_index)
        device = self._fleet.devices[device_index]
        for run in [each for each in self._running if self._holds(each, device_index)]:
            self._interrupt(
                at_s, run, transition="evicted", why=("NodeFailures", f"GPU {device.uuid} is lost")
            )

    def _recover(self, _at_s: int, device_index: int) -> None:
        self._capacity.recover(device_index)
        self._has_freed = True

    def _cordon(self, _at_s: int, node_index: int) -> None:
        self._capacity.nodes[node_index].is_schedulable = False

    def _uncordon(self, _at_s: int, node_index: int) -> None:
        self._capacity.nodes[node_index].is_schedulable = True
        self._has_freed = True

    def _read_quota(self, at_s: int, _subject: None) -> None:
        for tenant, model in self._quota.owners():
            self._history.quota_readings.append(
                QuotaReading(
                    at_s=at_s,
                    tenant=tenant,
                    model=model,
                    guaranteed_gpu_count=self._quota.guaranteed(tenant, model),
                    limit_gpu_count=self._quota.limit(tenant, model),
                    used_gpu_count=self._quota.used(tenant, model),
                    pending_count=sum(
                        each.request.tenant == tenant
                        and (each.model or each.request.models[0]) == model
                        for each in self._queue
                    ),
                )
            )

    # who starts -----------------------------------------------------------------------------

    def _dispatch(self, at_s: int) -> None:
        """Try the whole queue when something became free, else only what is new."""
        candidates = list(self._queue) if self._has_freed else self._fresh
        self._has_freed, self._fresh = False, []
        failures: dict[tuple[object, ...], Failure] = {}
        for waiting in sorted(candidates, key=lambda each: each.order):
            shape = waiting.shape
            failure = failures.get(shape) or self._try(at_s, waiting)
            if failure is not None:
                failures[shape] = failure
                self._complain(at_s, waiting, failure)

    def _try(self, at_s: int, waiting: Waiting) -> Failure | None:
        """Start the request; or reserve quota for it if there is some, and say what is missing."""
        request = waiting.request
        models = request.models if waiting.model is None else (waiting.model,)
        for model in models:
            if waiting.model is not None or self._quota.has_room(request, model):
                pods = self._capacity.placement(request, model)
                if pods is not None:
                    self._start(at_s, waiting, model=model, pods=pods)
                    return None
        if request.priority == PRIORITIES["production"] and self._make_room(at_s, waiting, models):
            return None
        return self._reserve_or_explain(at_s, waiting, models)

    def _reserve_or_explain(self, at_s: int, waiting: Waiting, models: tuple[str, ...]) -> Failure:
        request = waiting.request
        if waiting.model is None:
            model = next((each for each in models if self._quota.has_room(request, each)), None)
            if model is None:
                return ("Pending", self._quota.shortage(request))
            self._reserve(at_s, waiting, model)
        return ("FailedScheduling", self._capacity.explain(request, waiting.model or models[0]))

    def _make_room(self, at_s: int, waiting: Waiting, models: tuple[str, ...]) -> bool:
        """Preempt lower priorities on one node for a request of one pod; tell whether it worked."""
        request = waiting.request
        for model in models:
            victims = cheapest_victims(
                request, model, nodes=self._capacity.nodes, running=self._running
            )
            freed = sum(run.request.quota_gpu_count for run in victims)
            is_covered = waiting.model is not None or self._quota.has_room(
                request, model, freed_gpu_count=freed
            )
            if not victims or not is_covered:
                continue
            for run in victims:
                cause = f"to accommodate workload {request.tenant}/{request.name}"
                self._interrupt(
                    at_s, run, transition="preempted", why=("InCohortReclamation", cause)
                )
            pods = self._capacity.placement(request, model)
            if pods is not None:
                self._start(at_s, waiting, model=model, pods=pods)
                return True
        return False

    def _reserve(self, at_s: int, waiting: Waiting, model: str) -> None:
        self._quota.reserve(waiting.request, model)
        waiting.model = model
        self._tell(at_s, waiting, "quota_reserved", why=("QuotaReserved", ""))
        self._tell(at_s, waiting, "admitted", why=("Admitted", ""))

    def _start(
        self, at_s: int, waiting: Waiting, *, model: str, pods: tuple[PodPlacement, ...]
    ) -> None:
        request = waiting.request
        if waiting.model is None:
            self._reserve(at_s, waiting, model)
        self._queue.remove(waiting)
        self._capacity.take(request, pods)
        started_s = at_s + startup_s(request, waiting.attempt)
        run = Run(
            request=request,
            attempt=waiting.attempt,
            model=model,
            pods=pods,
            scheduled_s=at_s,
            started_s=started_s,
            remaining_s=waiting.remaining_s,
        )
        self._running.append(run)
        self._history.runs.append(run)
        self._tell(at_s, waiting, "scheduled")
        self._plan(started_s + waiting.remaining_s, self._finish, run)

    # who stops ------------------------------------------------------------------------------

    def _interrupt(self, at_s: int, run: Run, *, transition: str, why: Failure) -> None:
        self._end(at_s, run)
        self._tell(at_s, run, transition, why=why)
        kept_s = int(_KEPT_WORK_RATIO * max(0, at_s - run.started_s))
        waiting = Waiting(
            request=run.request,
            attempt=run.attempt + 1,
            remaining_s=max(_SHORTEST_REST_S, run.remaining_s - kept_s),
        )
        self._tell(at_s, waiting, "requeued", why=("Requeued", ""))
        self._enqueue(waiting)

    def _end(self, at_s: int, run: Run) -> None:
        run.ended_s = at_s
        self._running.remove(run)
        self._capacity.release(run)
        self._quota.release(run.request, run.model)
        self._has_freed = True
        self._tell_start(run, until_s=at_s)

    def _holds(self, run: Run, device_index: int) -> bool:
        return any(
            self._fleet.slots[slot_index].device.index == device_index
            for pod in run.pods
            for slot_index in pod.slot_indices
        )

    # what is told ---------------------------------------------------------------------------

    def _tell(
        self, at_s: int, who: Run | Waiting, transition: str, *, why: Failure | None = None
    ) -> None:
        reason, message = why or (None, None)
        self._history.transitions.append(
            Transition(
                at_s=at_s,
                request=who.request,
                attempt=who.attempt,
                transition=transition,
                reason=reason,
                message=message or None,
            )
        )

    def _tell_start(self, run: Run, *, until_s: int) -> None:
        ready_s = run.started_s + readiness_s(run.request)
        for at_s, transition in ((run.started_s, "started"), (ready_s, "ready")):
            if at_s < until_s:
                self._tell(at_s, run, transition)

    def _complain(self, at_s: int, waiting: Waiting, failure: Failure) -> None:
        """Record a failure at once, and again only after a while: the cluster aggregates too."""
        waiting.complaint_count += 1
        last_s = waiting.complained_s
        if last_s is not None and at_s - last_s < _COMPLAIN_EVERY_S:
            return
        waiting.complained_s = at_s
        self._history.complaints.append(
            Complaint(
                at_s=at_s,
                request=waiting.request,
                attempt=waiting.attempt,
                reason=failure[0],
                message=failure[1],
                occurrence_count=waiting.complaint_count,
            )
        )
