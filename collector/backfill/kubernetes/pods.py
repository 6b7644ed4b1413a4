"""Pods of the past, in the shape the API server has them in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from collector.backfill.kubernetes.names import resource_name, true_labels
from collector.backfill.kubernetes.series import PRESENCE, KubeHour, Value
from collector.sources.kubernetes.objects import (
    ENDED_PHASES,
    Condition,
    Container,
    ContainerState,
    ContainerStatus,
    Metadata,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    StateRunning,
    StateTerminated,
)

_PHASES: Final = ("Succeeded", "Failed", "Running", "Pending", "Unknown")
"""In this order: of two kube-state-metrics, one stale, the one that saw the end is right."""
_TIMES: Final = (
    "kube_pod_created",
    "kube_pod_start_time",
    "kube_pod_completion_time",
    "kube_pod_deletion_timestamp",
    "kube_pod_status_scheduled_time",
    "kube_pod_status_ready_time",
)


def owner_uid(kind: str, namespace: str, name: str) -> str:
    """Return what stands for the uid of an owner, which kube-state-metrics does not tell."""
    return f"past/{kind}/{namespace}/{name}"


@dataclass(slots=True)
class _Facts:
    """What the series say of one pod."""

    namespace: str = ""
    name: str = ""
    node: str = ""
    priority_class: str = ""
    phase: str = ""
    reason: str = ""
    owner: OwnerReference | None = None
    labels: dict[str, str] = field(default_factory=dict)
    times: dict[str, datetime] = field(default_factory=dict)
    requests: dict[str, dict[str, float]] = field(default_factory=dict)
    starts: dict[str, datetime] = field(default_factory=dict)
    endings: dict[str, str] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)


def pods_of(hour: KubeHour, *, known_labels: Iterable[str]) -> dict[str, Pod]:
    """Return the pods of an hour by uid, each as it was last."""
    facts: dict[str, _Facts] = {}
    for value in hour.of(PRESENCE):
        uid = value.text("uid")
        if uid:
            one = facts.setdefault(uid, _Facts())
            one.namespace, one.name = value.text("namespace"), value.text("pod")
            one.node = value.text("node") or one.node
            one.priority_class = value.text("priority_class") or one.priority_class
    _take_times(hour, facts)
    _take_state(hour, facts)
    _take_containers(hour, facts)
    for one, value in _told(hour, "kube_pod_labels", facts):
        one.labels = true_labels(value.labels, known=known_labels)
    return {
        uid: _pod(uid, each, first_ended=hour.first_ended.get(uid))
        for uid, each in sorted(facts.items())
    }


def _told(hour: KubeHour, name: str, facts: dict[str, _Facts]) -> Iterator[tuple[_Facts, Value]]:
    """Yield what a metric says of pods that are known."""
    for value in hour.of(name):
        one = facts.get(value.text("uid"))
        if one is not None:
            yield one, value


def _take_times(hour: KubeHour, facts: dict[str, _Facts]) -> None:
    for name in _TIMES:
        for one, value in _told(hour, name, facts):
            one.times[name] = max(value.at, one.times.get(name, value.at))


def _take_state(hour: KubeHour, facts: dict[str, _Facts]) -> None:
    for one, value in _told(hour, "kube_pod_status_phase", facts):
        phase = value.text("phase")
        if phase in _PHASES:
            one.phase = min(one.phase or phase, phase, key=_PHASES.index)
    for one, value in _told(hour, "kube_pod_status_reason", facts):
        one.reason = value.text("reason")
    for one, value in _told(hour, "kube_pod_owner", facts):
        if value.text("owner_kind"):
            one.owner = owner_reference(value, one.namespace)


def _take_containers(hour: KubeHour, facts: dict[str, _Facts]) -> None:
    """Take what is told container by container."""
    for one, value in _told(hour, "kube_pod_container_resource_requests", facts):
        wanted = one.requests.setdefault(value.text("container"), {})
        wanted[resource_name(value.text("resource"))] = value.number
    for one, value in _told(hour, "kube_pod_container_state_started", facts):
        one.starts[value.text("container")] = value.at
    for one, value in _told(hour, "kube_pod_container_status_terminated_reason", facts):
        one.endings[value.text("container")] = value.text("reason")
    for one, value in _told(hour, "kube_pod_container_status_restarts_total", facts):
        one.restarts[value.text("container")] = round(value.number)


def owner_reference(value: Value, namespace: str) -> OwnerReference:
    """Return the owner that a ``…_owner`` series names."""
    kind, name = value.text("owner_kind"), value.text("owner_name")
    return OwnerReference(
        kind=kind, name=name, uid=owner_uid(kind, namespace, name), controller=True
    )


def _pod(uid: str, one: _Facts, *, first_ended: datetime | None) -> Pod:
    names = sorted({*one.requests, *one.starts, *one.restarts})
    return Pod(
        metadata=Metadata(
            name=one.name,
            namespace=one.namespace,
            uid=uid,
            creation_timestamp=one.times.get("kube_pod_created"),
            deletion_timestamp=one.times.get("kube_pod_deletion_timestamp"),
            labels=one.labels or None,
            owner_references=None if one.owner is None else (one.owner,),
        ),
        spec=PodSpec(
            node_name=one.node or None,
            priority_class_name=one.priority_class or None,
            containers=tuple(
                Container(
                    name=name,
                    resources=ResourceRequirements(requests=dict(one.requests.get(name, {}))),
                )
                for name in names
            ),
        ),
        status=PodStatus(
            phase=one.phase or None,
            reason=one.reason or None,
            start_time=one.times.get("kube_pod_start_time"),
            conditions=_conditions(one, first_ended=first_ended),
            container_statuses=tuple(_status(name, one) for name in names if name in one.starts),
        ),
    )


def _conditions(one: _Facts, *, first_ended: datetime | None) -> tuple[Condition, ...]:
    """Return the conditions whose times are known; of an end that tells none, when it was seen."""
    conditions: list[Condition] = []
    bound, ready = (
        one.times.get(f"kube_pod_status_{name}_time") for name in ("scheduled", "ready")
    )
    if bound is not None:
        conditions.append(Condition(type="PodScheduled", status="True", last_transition_time=bound))
    is_over = one.phase in ENDED_PHASES
    if is_over and "kube_pod_completion_time" not in one.times and first_ended is not None:
        ended = Condition(type="Ready", status="False", last_transition_time=first_ended)
        conditions.append(ended)
    elif ready is not None and not is_over:
        conditions.append(Condition(type="Ready", status="True", last_transition_time=ready))
    return tuple(conditions)


def _status(name: str, one: _Facts) -> ContainerStatus:
    """Return a container's state: its end is told with that of the pod's last container."""
    started_at, completed_at = one.starts[name], one.times.get("kube_pod_completion_time")
    if one.phase in ENDED_PHASES and completed_at is not None:
        state = ContainerState(
            terminated=StateTerminated(
                reason=one.endings.get(name),
                exit_code=0 if one.phase == "Succeeded" else None,
                started_at=started_at,
                finished_at=completed_at,
            )
        )
    else:
        state = ContainerState(running=StateRunning(started_at=started_at))
    return ContainerStatus(name=name, restart_count=one.restarts.get(name, 0), state=state)
