"""A cluster's known past as kube-state-metrics told it: a Job that fails once, pods, a server.

Names and labels of the series are those of kube-state-metrics 2; times are minutes after ``START``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.support.backfill_history import START

STEP = timedelta(minutes=1)
LENGTH_MINUTES = 180


def minute(number: float) -> datetime:
    """Return the instant so many minutes after the start."""
    return START + timedelta(minutes=number)


@dataclass(frozen=True, kw_only=True)
class PastPod:
    """A pod's life in minutes after the start; None has not happened."""

    name: str
    created: float
    scheduled: float | None = None
    started: float | None = None
    finished: float | None = None
    gone: float = LENGTH_MINUTES
    """When the API server no longer had it."""
    phase_at_end: str = "Succeeded"
    owner: tuple[str, str] | None = None
    node: str = "plain-node"
    gpus: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    has_completion_time: bool = True

    @property
    def uid(self) -> str:
        """Return the pod's uid."""
        return f"uid-{self.name}"


PODS = (
    PastPod(
        name="fit-1",
        created=5,
        scheduled=12,
        started=13,
        finished=40,
        gone=70,
        phase_at_end="Failed",
        owner=("Job", "fit"),
        labels={"label_team": "vision"},
    ),
    PastPod(
        name="fit-2",
        created=41,
        scheduled=65,
        started=66,
        finished=125,
        owner=("Job", "fit"),
        labels={"label_team": "vision"},
    ),
    PastPod(
        name="serve-abc-1",
        created=-30,
        scheduled=-29,
        started=-28,
        owner=("ReplicaSet", "serve-abc"),
    ),
    PastPod(name="lonely", created=20, scheduled=21, started=22, gone=75),
    PastPod(name="waiting", created=100, node=""),
    PastPod(
        name="evicted",
        created=61,
        scheduled=62,
        finished=90.5,
        phase_at_end="Failed",
        has_completion_time=False,
    ),
)


def cluster_lines(pods: tuple[PastPod, ...] = PODS) -> list[str]:
    """Return the series of the cluster in the OpenMetrics text format."""
    families: dict[str, list[str]] = {}
    for number in range(LENGTH_MINUTES):
        at = minute(number)
        for name, labels, value in _moment(pods, number):
            pairs = ",".join(f'{key}="{text}"' for key, text in sorted(labels.items()))
            families.setdefault(name, []).append(f"{name}{{{pairs}}} {value} {at.timestamp():.0f}")
    lines: list[str] = []
    for name, family in sorted(families.items()):
        lines += [f"# TYPE {name} gauge", *family]
    return lines


def _moment(pods: tuple[PastPod, ...], now: int) -> Iterator[tuple[str, dict[str, str], float]]:
    own = {"instance": "10.0.9.9:8080", "job": "kube-state-metrics"}
    for pod in pods:
        if pod.created <= now < pod.gone:
            for name, labels, value in _pod(pod, now):
                yield (
                    name,
                    {**labels, **own, "namespace": "lab", "pod": pod.name, "uid": pod.uid},
                    value,
                )
    for kind, name, created in (
        ("job", "fit", 4),
        ("replicaset", "serve-abc", -40),
        ("deployment", "serve", -50),
    ):
        label = "job_name" if kind == "job" else kind
        if created <= now:
            place = {**own, "namespace": "lab", label: name}
            yield f"kube_{kind}_created", place, minute(created).timestamp()
    owner = {"owner_kind": "Deployment", "owner_name": "serve", "owner_is_controller": "true"}
    yield (
        "kube_replicaset_owner",
        {**own, "namespace": "lab", "replicaset": "serve-abc", **owner},
        1,
    )
    if now >= 125:
        place = {**own, "namespace": "lab", "job_name": "fit"}
        yield "kube_job_status_completion_time", place, minute(125).timestamp()
        yield "kube_job_complete", {**place, "condition": "true"}, 1
    node = {**own, "node": "plain-node"}
    yield "kube_node_info", node, 1
    yield "kube_node_labels", {**node, "label_nvidia_com_gpu_product": "NVIDIA-A100-SXM4-40GB"}, 1
    yield (
        "kube_node_status_allocatable",
        {**node, "resource": "nvidia_com_gpu", "unit": "integer"},
        4,
    )
    yield "kube_node_status_capacity", {**node, "resource": "nvidia_com_gpu", "unit": "integer"}, 4
    yield "kube_node_spec_unschedulable", node, 1 if 70 <= now < 130 else 0


def _pod(pod: PastPod, now: int) -> Iterator[tuple[str, dict[str, str], float]]:
    is_bound = pod.scheduled is not None and pod.scheduled <= now
    is_running = pod.started is not None and pod.started <= now
    is_over = pod.finished is not None and pod.finished <= now
    phase = pod.phase_at_end if is_over else "Running" if is_running else "Pending"
    kind, name = pod.owner or ("", "")
    yield (
        "kube_pod_info",
        {"node": pod.node if is_bound else "", "created_by_kind": kind, "priority_class": "high"},
        1,
    )
    yield "kube_pod_created", {}, minute(pod.created).timestamp()
    for each in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
        yield "kube_pod_status_phase", {"phase": each}, 1 if each == phase else 0
    yield (
        "kube_pod_owner",
        {"owner_kind": kind, "owner_name": name, "owner_is_controller": "true"},
        1,
    )
    if pod.labels:
        yield "kube_pod_labels", dict(pod.labels), 1
    wanted = {"container": "main", "resource": "nvidia_com_gpu", "unit": "integer"}
    yield "kube_pod_container_resource_requests", wanted, pod.gpus
    if is_bound and pod.scheduled is not None:
        yield "kube_pod_status_scheduled_time", {}, minute(pod.scheduled).timestamp()
    if is_running and pod.started is not None:
        yield (
            "kube_pod_container_state_started",
            {"container": "main"},
            minute(pod.started).timestamp(),
        )
        if not is_over:
            yield "kube_pod_status_ready_time", {}, minute(pod.started + 1).timestamp()
    if is_over and pod.finished is not None and pod.has_completion_time:
        yield "kube_pod_completion_time", {}, minute(pod.finished).timestamp()
    if pod.name == "evicted" and is_over:
        yield "kube_pod_status_reason", {"reason": "Evicted"}, 1
