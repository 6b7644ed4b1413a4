"""Exporters found in the cluster itself: pods, or the endpoints of Services, by their labels.

Fed with the same changes as everything else that is read from the API server; it asks nothing
itself. Each target knows its node and the exporter's own pod.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from collector.discovery import ScrapeTarget
from collector.discovery_labels import SourceState, labelled_target, merged_targets
from collector.sources.kubernetes.change import Change, ChangeType
from collector.sources.kubernetes.exporter_objects import (
    ContainerPort,
    EndpointAddress,
    Endpoints,
    EndpointSlice,
    ExporterPod,
    NamedPort,
    ObjectReference,
    SliceEndpoint,
    endpoints_of_exporters,
    pods_of_exporters,
    slices_of_exporters,
)
from collector.sources.kubernetes.objects import ENDED_PHASES
from collector.sources.kubernetes.resource import KubernetesObject, Resource
from steward.errors import UsageError

USUAL_PORT_NAME: Final = "metrics"
ANNOTATION_PREFIX: Final = "prometheus.io/"
"""``prometheus.io/port``, ``/path`` and ``/scheme`` of a pod count; a port that is set wins."""


class Role(StrEnum):
    """What kind of object stands for an exporter."""

    POD = "pod"
    ENDPOINTSLICE = "endpointslice"
    ENDPOINTS = "endpoints"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which exporters are wanted."""

    role: Role = Role.POD
    label_selector: str
    """As kubectl has it: ``app=nvidia-dcgm-exporter``; of endpoints, their Service's labels."""
    namespace: str | None = None
    """None searches all."""
    port: str | None = None
    """Number or name; None takes the port named ``metrics``, or else the first."""

    def __str__(self) -> str:
        """Return the words with which messages name it."""
        scope = f" in {self.namespace}" if self.namespace else ""
        return f"{self.role} {self.label_selector}{scope}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One address, and what the API server says of it."""

    host: str
    port: str | None
    node: str | None
    pod: str | None
    annotations: dict[str, str]


class ExporterTargets:
    """The exporters of the cluster as they come and go.

    ``apply`` belongs to the thread of the feed; the rest may be asked by any thread.

    Args:
        selections: which exporters are wanted.
    """

    def __init__(self, selections: Sequence[Selection]) -> None:
        """Know no exporter yet."""
        self._selections = {_resource(one): one for one in selections}
        self._targets: dict[Resource, dict[str, tuple[ScrapeTarget, ...]]] = {
            resource: {} for resource in self._selections
        }
        self._errors: dict[Resource, dict[str, str]] = {one: {} for one in self._selections}
        self._synced: set[Resource] = set()
        self._lock = threading.Lock()

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return what the feed has to follow for this."""
        return tuple(self._selections)

    def follows(self, resource: Resource) -> bool:
        """Return whether changes of this resource are for discovery, and for nothing else.

        Exporters' pods are followed beside all pods, under the same name and as other structs.
        """
        return resource in self._selections

    def apply(self, change: Change) -> None:
        """Take a change; one of another resource is passed over."""
        selection = self._selections.get(change.resource)
        if selection is None:
            return
        if change.type is ChangeType.SYNCED:
            self._synced.add(change.resource)
        elif change.type is ChangeType.DELETED or change.object is None:
            self._put(change, (), None)
        else:
            self._put(change, *_targets(change.object, selection))

    @property
    def is_synced(self) -> bool:
        """Return whether all exporters that there were at the start are known."""
        return len(self._synced) == len(self._selections)

    def look(self) -> tuple[ScrapeTarget, ...]:
        """Return the targets as they are now."""
        with self._lock:
            return merged_targets(
                targets for objects in self._targets.values() for targets in objects.values()
            )

    def states(self) -> tuple[SourceState, ...]:
        """Return how it goes with each selection."""
        with self._lock:
            return tuple(self._state(one) for one in self._selections)

    def _put(self, change: Change, targets: tuple[ScrapeTarget, ...], error: str | None) -> None:
        uid = change.key.uid
        with self._lock:
            self._targets[change.resource].pop(uid, None)
            self._errors[change.resource].pop(uid, None)
            if targets:
                self._targets[change.resource][uid] = targets
            if error is not None:
                self._errors[change.resource][uid] = error

    def _state(self, resource: Resource) -> SourceState:
        count = sum(map(len, self._targets[resource].values()))
        error = next(iter(self._errors[resource].values()), None)
        if error is None and not count and resource in self._synced:
            error = "nothing in the cluster matches"
        return SourceState(
            source=str(self._selections[resource]),
            target_count=count,
            error=error,
            hint=None if error is None else "check label selector, namespace and port",
        )


def _resource(selection: Selection) -> Resource:
    build = _RESOURCES[selection.role]
    return build(label_selector=selection.label_selector, namespace=selection.namespace)


_RESOURCES: Final[dict[Role, Callable[..., Resource]]] = {
    Role.POD: pods_of_exporters,
    Role.ENDPOINTSLICE: slices_of_exporters,
    Role.ENDPOINTS: endpoints_of_exporters,
}


def _targets(
    found: KubernetesObject, selection: Selection
) -> tuple[tuple[ScrapeTarget, ...], str | None]:
    """Return the targets that an object stands for, and why one of them cannot be scraped."""
    name = f"{found.metadata.namespace}/{found.metadata.name}"
    targets: list[ScrapeTarget] = []
    error = None
    for one in _addresses(found, selection):
        if one.port is None:
            wanted = f"port {selection.port}" if selection.port else "port"
            error = f"{name} declares no {wanted}"
            continue
        try:
            targets.append(_target(one))
        except UsageError as refusal:
            error = f"{name}: {refusal.message}"
    return tuple(targets), error


def _target(found: _Found) -> ScrapeTarget:
    host = f"[{found.host}]" if ":" in found.host else found.host
    noted = found.annotations
    labels = {
        "__scheme__": noted.get(f"{ANNOTATION_PREFIX}scheme") or "http",
        "__metrics_path__": noted.get(f"{ANNOTATION_PREFIX}path") or "/metrics",
        "node": found.node or "",
        "pod": found.pod or "",
    }
    return labelled_target(f"{host}:{found.port}", labels)


def _addresses(found: KubernetesObject, selection: Selection) -> Iterator[_Found]:
    if isinstance(found, ExporterPod):
        yield from _pod_addresses(found, selection)
    elif isinstance(found, EndpointSlice):
        port = _named_port(found.ports, selection)
        for endpoint in found.endpoints or ():
            yield from _slice_addresses(endpoint, port)
    elif isinstance(found, Endpoints):
        for subset in found.subsets or ():
            port = _named_port(subset.ports, selection)
            for address in (*(subset.addresses or ()), *(subset.not_ready_addresses or ())):
                yield _endpoint_address(address, port)


def _pod_addresses(pod: ExporterPod, selection: Selection) -> Iterator[_Found]:
    """Yield the pod's address while it has one and has not ended."""
    status = pod.status
    if status is None or not status.pod_ip or status.phase in ENDED_PHASES:
        return
    annotations = pod.metadata.annotations or {}
    yield _Found(
        host=status.pod_ip,
        port=_pod_port(pod, selection, annotations),
        node=pod.spec.node_name,
        pod=pod.metadata.name,
        annotations=annotations,
    )


def _slice_addresses(endpoint: SliceEndpoint, port: str | None) -> Iterator[_Found]:
    """Yield the endpoint's first address: all of one endpoint are the same server."""
    for address in endpoint.addresses[:1]:
        yield _Found(
            host=address,
            port=port,
            node=endpoint.node_name,
            pod=_pod_behind(endpoint.target_ref),
            annotations={},
        )


def _endpoint_address(address: EndpointAddress, port: str | None) -> _Found:
    return _Found(
        host=address.ip,
        port=port,
        node=address.node_name,
        pod=_pod_behind(address.target_ref),
        annotations={},
    )


def _pod_behind(reference: ObjectReference | None) -> str | None:
    is_pod = reference is not None and reference.kind == "Pod"
    return reference.name if reference is not None and is_pod else None


def _pod_port(pod: ExporterPod, selection: Selection, annotations: dict[str, str]) -> str | None:
    wanted = selection.port or annotations.get(f"{ANNOTATION_PREFIX}port")
    if wanted is not None and wanted.isdigit():
        return wanted
    declared: list[ContainerPort] = [
        port for container in pod.spec.containers or () for port in container.ports or ()
    ]
    return _chosen([(port.name, port.container_port) for port in declared], wanted)


def _named_port(ports: Sequence[NamedPort] | None, selection: Selection) -> str | None:
    wanted = selection.port
    if wanted is not None and wanted.isdigit():
        return wanted
    open_ports = [(port.name, port.port) for port in ports or () if port.port is not None]
    return _chosen(open_ports, wanted)


def _chosen(ports: Sequence[tuple[str | None, int]], wanted: str | None) -> str | None:
    """Return the port of the wanted name; without one, that named ``metrics`` or else the first."""
    named = next((str(port) for name, port in ports if name == (wanted or USUAL_PORT_NAME)), None)
    if named is not None or wanted is not None:
        return named
    return str(ports[0][1]) if ports else None
