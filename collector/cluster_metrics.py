"""How the reading of a watched cluster goes, kind by kind, as metrics; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

if TYPE_CHECKING:  # needs the extra ``kubernetes``
    from collector.sources.kubernetes.health import ResourceHealth

PREFIX: Final = "steward_collect_kind"
_Read = Callable[["ResourceHealth"], "float | None"]
_GAUGES: Final[dict[str, tuple[str, _Read]]] = {
    "synced": (
        "1 once a complete list of this kind was read.",
        lambda one: int(one.is_synced),
    ),
    "objects": (
        "Objects of this kind that are known.",
        lambda one: one.object_count,
    ),
    "last_list_timestamp_seconds": (
        "When this kind was last listed.",
        lambda one: one.last_list_at.timestamp() if one.last_list_at is not None else None,
    ),
    "last_event_timestamp_seconds": (
        "When a watch of this kind last said something.",
        lambda one: one.last_event_at.timestamp() if one.last_event_at is not None else None,
    ),
}
_COUNTERS: Final[dict[str, tuple[str, _Read]]] = {
    "lists": ("Complete lists of this kind.", lambda one: one.list_count),
    "watches": ("Watches of this kind that were opened.", lambda one: one.watch_count),
    "undecodable": (
        "Objects left out since they are not of the expected shape.",
        lambda one: one.undecodable_count,
    ),
    "errors": ("Failures in reading this kind.", lambda one: one.error_count),
}


def cluster_metrics(health: Sequence[ResourceHealth]) -> Iterator[Metric]:
    """Yield the metrics of the kinds that the server has, or of which it has not said so yet."""
    there = [one for one in health if one.is_served is not False]
    for name, (text, read) in _GAUGES.items():
        gauge = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["kind"])
        for kind, value in _values(there, read):
            gauge.add_metric([kind], value)
        yield gauge
    for name, (text, read) in _COUNTERS.items():
        counter = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=["kind"])
        for kind, value in _values(there, read):
            counter.add_metric([kind], value)
        yield counter
    faults = GaugeMetricFamily(
        f"{PREFIX}_fault", "What is wrong now with reading this kind; 1.", labels=["kind", "fault"]
    )
    for one in there:
        if one.fault is not None:
            faults.add_metric([one.name, one.fault], 1)
    yield faults


def _values(health: Sequence[ResourceHealth], read: _Read) -> Iterator[tuple[str, float]]:
    for one in health:
        value = read(one)
        if value is not None:
            yield one.name, value
