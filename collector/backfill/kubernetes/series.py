"""Reads an hour of kube-state-metrics: of each series its last value, which is all that matters.

Its instants are values (``kube_pod_created`` is a time in seconds), so an hour needs one sample of
each series. Source of names and labels: the documentation of kube-state-metrics 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from collector.backfill.answers import InstantValue
from collector.backfill.api import PrometheusApi, TooMuchError
from collector.backfill.selectors import duration, selector
from steward.period import Period

PRESENCE: Final = "kube_pod_info"
"""The series every pod has for as long as it exists."""
_MANY_FLAGS: Final = frozenset(
    {
        "kube_pod_status_phase",
        "kube_pod_status_reason",
        "kube_pod_container_status_terminated_reason",
    }
)
"""One series for each pod and word; only those that are 1 are asked for. A word that was true and
is not any more does no harm: an end is never taken back."""
_FLAGS: Final = frozenset({"kube_job_complete", "kube_node_spec_unschedulable"}) | _MANY_FLAGS
"""Only those that are 1 say something."""
NAMES: Final = frozenset(
    {
        PRESENCE,
        "kube_pod_created",
        "kube_pod_start_time",
        "kube_pod_completion_time",
        "kube_pod_deletion_timestamp",
        "kube_pod_status_scheduled_time",
        "kube_pod_status_ready_time",
        "kube_pod_owner",
        "kube_pod_labels",
        "kube_pod_container_resource_requests",
        "kube_pod_container_state_started",
        "kube_pod_container_status_restarts_total",
        "kube_replicaset_created",
        "kube_replicaset_owner",
        "kube_job_created",
        "kube_job_owner",
        "kube_job_labels",
        "kube_job_spec_parallelism",
        "kube_job_spec_completions",
        "kube_job_status_completion_time",
        "kube_deployment_created",
        "kube_deployment_labels",
        "kube_statefulset_created",
        "kube_statefulset_labels",
        "kube_daemonset_created",
        "kube_daemonset_labels",
        "kube_cronjob_created",
        "kube_cronjob_labels",
        "kube_namespace_created",
        "kube_namespace_labels",
        "kube_node_info",
        "kube_node_created",
        "kube_node_labels",
        "kube_node_status_allocatable",
        "kube_node_status_capacity",
        "kube_node_spec_taint",
    }
    | _FLAGS
)
"""What is asked for, as far as the server has it."""
_MILLISECOND: Final = timedelta(milliseconds=1)
_LOOK: Final = timedelta(minutes=1)
"""How exactly it is found out when a pod was last there, or first had ended."""
_PHASE: Final = 'phase=~"Failed|Succeeded"'


@dataclass(frozen=True, slots=True)
class Value:
    """One series' last value of an hour."""

    labels: Mapping[str, str]
    number: float

    def text(self, label: str) -> str:
        """Return what kube-state-metrics said: a label that collided was renamed ``exported_…``."""
        found = self.labels.get(f"exported_{label}") or self.labels.get(label, "")
        return "" if found == "<none>" else found

    @property
    def at(self) -> datetime:
        """Return the value as the instant that it is."""
        return datetime.fromtimestamp(self.number, UTC)


@dataclass(slots=True, kw_only=True)
class KubeHour:
    """An hour of a cluster."""

    values: dict[str, list[Value]] = field(default_factory=dict)
    present: frozenset[str] | None = None
    """Pods that were there at its end, by uid; None where nobody watched then."""
    last_seen: dict[str, datetime] = field(default_factory=dict)
    """When pods that were gone at its end were last there, to the minute."""
    first_ended: dict[str, datetime] = field(default_factory=dict)
    """When pods that tell no time of their end were first seen ended, to the minute."""

    def of(self, name: str) -> list[Value]:
        """Return the values of a metric."""
        return self.values.get(name, [])


def read_hour(
    api: PrometheusApi, names: Iterable[str], hour: Period, *, matchers: str
) -> KubeHour | None:
    """Return an hour of a cluster; None where kube-state-metrics was not watched in it.

    Raises:
        TooMuchError: the server does not give one metric of all objects at once.
        SourceError: the server fails.
    """
    found = KubeHour()
    for name in sorted(NAMES.intersection(names)):
        found.values[name] = _latest(api, name, hour, matchers=matchers)
    if not found.of(PRESENCE):
        return None
    pods = selector([PRESENCE], matchers=matchers)
    at = hour.until_at - _MILLISECOND
    present = {Value(each.metric, 1.0).text("uid") for each in api.vector(pods, at=at)}
    found.present = frozenset(present) if present else None
    seen = {value.text("uid") for value in found.of(PRESENCE)}
    if present and seen - present:
        found.last_seen = _instants(api, f"max_over_time(timestamp({pods})", hour, is_latest=True)
    if _ends_without_time(found):
        ended = selector(["kube_pod_status_phase"], matchers=_also(_PHASE, matchers))
        inner = f"min_over_time(timestamp({ended} == 1)"
        found.first_ended = _instants(api, inner, hour, is_latest=False)
    return found


def _latest(api: PrometheusApi, name: str, hour: Period, *, matchers: str) -> list[Value]:
    """Return the last value of each series of a metric."""
    only = " == 1" if name in _MANY_FLAGS else ""

    def question(span: Period) -> str:
        asked = selector([name], matchers=matchers)
        return f"last_over_time({asked}[{duration(span.length)}]){only}"

    latest: dict[tuple[tuple[str, str], ...], Value] = {}
    for each in _in_parts(api, question, hour):
        latest[tuple(sorted(each.metric.items()))] = Value(each.metric, float(each.value[1]))
    values = [latest[key] for key in sorted(latest)]
    return [value for value in values if value.number == 1] if name in _FLAGS else values


def _instants(
    api: PrometheusApi, inner: str, hour: Period, *, is_latest: bool
) -> dict[str, datetime]:
    """Return an instant for each pod, to the minute.

    Args:
        api: the server.
        inner: the expression up to the range of its subquery.
        hour: the range.
        is_latest: whether the latest of several counts, or the earliest.
    """

    def question(span: Period) -> str:
        return f"{inner}[{duration(span.length)}:{duration(_LOOK)}])"

    pick = max if is_latest else min
    found: dict[str, datetime] = {}
    for each in _in_parts(api, question, hour):
        value = Value(each.metric, float(each.value[1]))
        uid = value.text("uid")
        found[uid] = pick(found.get(uid, value.at), value.at)
    return found


def _in_parts(
    api: PrometheusApi, question: Callable[[Period], str], span: Period
) -> Iterator[InstantValue]:
    """Yield a question's answers; by halves, the earlier first, where a span is too much."""
    try:
        answer = api.vector(question(span), at=span.until_at - _MILLISECOND)
    except TooMuchError:
        if span.length <= _LOOK:
            raise
        middle = span.from_at + timedelta(seconds=span.length // timedelta(seconds=2))
        yield from _in_parts(api, question, Period(span.from_at, middle))
        yield from _in_parts(api, question, Period(middle, span.until_at))
        return
    yield from answer


def _also(matcher: str, matchers: str) -> str:
    return f"{matcher},{matchers}" if matchers else matcher


def _ends_without_time(hour: KubeHour) -> bool:
    timed = {value.text("uid") for value in hour.of("kube_pod_completion_time")}
    return any(
        value.text("phase") in {"Failed", "Succeeded"} and value.text("uid") not in timed
        for value in hour.of("kube_pod_status_phase")
    )
