"""What a pod's status says: when it was bound, ran, was ready, was disturbed, ended, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from collector.lifecycle.conditions import find, find_true
from collector.sources.kubernetes.objects import ENDED_PHASES, Pod, StateTerminated

PREEMPTION: Final = "PreemptionByScheduler"
DISRUPTED_REASONS: Final = frozenset(
    {"Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting"}
)
"""Reasons of failed pods that the node, not the pod, is to blame for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that happened to a pod."""

    at: datetime
    reason: str
    message: str | None


def scheduled_at(pod: Pod) -> datetime | None:
    """Return when the scheduler bound the pod; None while it is not bound."""
    bound = find_true(pod.status.conditions, "PodScheduled")
    if bound is not None:
        return bound.last_transition_time
    return pod.status.start_time if pod.spec.node_name else None


def started_at(pod: Pod) -> datetime | None:
    """Return the earliest start of a container that the status still tells."""
    starts = [each for each in _starts(pod) if each is not None]
    return min(starts, default=None)


def ready_at(pod: Pod) -> datetime | None:
    """Return when the pod became ready; None while it is not."""
    ready = find_true(pod.status.conditions, "Ready")
    return None if ready is None else ready.last_transition_time


def restart_count(pod: Pod) -> int | None:
    """Return how often its containers restarted in place; None before they exist."""
    statuses = pod.status.container_statuses
    return sum(each.restart_count for each in statuses) if statuses else None


def disruption(pod: Pod) -> Incident | None:
    """Return who took the pod away before its time, if anybody did."""
    target = find_true(pod.status.conditions, "DisruptionTarget")
    if target is not None and target.last_transition_time is not None:
        return Incident(
            at=target.last_transition_time,
            reason=target.reason or "DisruptionTarget",
            message=target.message,
        )
    ended = end(pod)
    if ended is not None and pod.status.reason in DISRUPTED_REASONS:
        return ended
    return None


def end(pod: Pod) -> Incident | None:
    """Return how the pod ended; None while it runs or where no time is known."""
    if pod.status.phase not in ENDED_PHASES:
        return None
    finished = [each for each in _terminations(pod) if each.finished_at is not None]
    at = max((each.finished_at for each in finished if each.finished_at), default=None)
    at = at if at is not None else _end_without_containers(pod)
    if at is None:
        return None
    worst = next((each for each in finished if each.exit_code != 0), None) or next(
        iter(finished), None
    )
    reason = pod.status.reason or (worst.reason if worst is not None else None)
    return Incident(at=at, reason=reason or str(pod.status.phase), message=_end_message(pod, worst))


def _end_message(pod: Pod, worst: StateTerminated | None) -> str | None:
    if pod.status.message:
        return pod.status.message
    if worst is None or not worst.exit_code:
        return None
    return worst.message or f"exit code {worst.exit_code}"


def _end_without_containers(pod: Pod) -> datetime | None:
    """Return the server's best word on the end of a pod whose containers never ran."""
    for kind in ("DisruptionTarget", "Ready", "ContainersReady", "PodScheduled"):
        found = find(pod.status.conditions, kind)
        if found is not None and found.last_transition_time is not None:
            return found.last_transition_time
    return pod.metadata.deletion_timestamp or pod.status.start_time


def _starts(pod: Pod) -> Iterator[datetime | None]:
    for status in pod.status.container_statuses or ():
        for state in (status.state, status.last_state):
            if state is None:
                continue
            if state.running is not None:
                yield state.running.started_at
            if state.terminated is not None:
                yield state.terminated.started_at


def _terminations(pod: Pod) -> Iterator[StateTerminated]:
    for status in pod.status.container_statuses or ():
        if status.state is not None and status.state.terminated is not None:
            yield status.state.terminated
