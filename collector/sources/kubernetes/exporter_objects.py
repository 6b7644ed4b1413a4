"""Pods, Services' endpoints and slices with what finding exporters needs, and no more."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from collector.sources.kubernetes.resource import Resource

Item = TypeVar("Item")


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an object."""


class ExporterMetadata(_Part, frozen=True):
    """Who the object is."""

    name: str
    uid: str
    resource_version: str
    namespace: str | None = None
    annotations: dict[str, str] | None = None


class ContainerPort(_Part, frozen=True):
    """A port that a container declares."""

    container_port: int
    name: str | None = None


class ExporterContainer(_Part, frozen=True):
    """A container's ports."""

    ports: list[ContainerPort] | None = None


class ExporterPodSpec(_Part, frozen=True):
    """Where the pod stands and what it opens."""

    node_name: str | None = None
    containers: list[ExporterContainer] | None = None


class ExporterPodStatus(_Part, frozen=True):
    """Whether the pod can be reached."""

    phase: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)


class ExporterPod(_Part, frozen=True):
    """A pod that may be an exporter."""

    metadata: ExporterMetadata
    spec: ExporterPodSpec
    status: ExporterPodStatus | None = None


class ObjectReference(_Part, frozen=True):
    """What stands behind an address."""

    kind: str | None = None
    name: str | None = None


class NamedPort(_Part, frozen=True):
    """A port of a Service."""

    port: int | None = None
    name: str | None = None


class SliceEndpoint(_Part, frozen=True):
    """One endpoint of a slice."""

    addresses: list[str]
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointSlice(_Part, frozen=True):
    """Some endpoints of a Service."""

    metadata: ExporterMetadata
    endpoints: list[SliceEndpoint] | None = None
    ports: list[NamedPort] | None = None


class EndpointAddress(_Part, frozen=True):
    """One address of an Endpoints object."""

    ip: str
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointSubset(_Part, frozen=True):
    """Addresses that share ports."""

    addresses: list[EndpointAddress] | None = None
    not_ready_addresses: list[EndpointAddress] | None = None
    ports: list[NamedPort] | None = None


class Endpoints(_Part, frozen=True):
    """The endpoints of a Service, in the old form."""

    metadata: ExporterMetadata
    subsets: list[EndpointSubset] | None = None


def pods_of_exporters(*, label_selector: str, namespace: str | None) -> Resource:
    """Return the pods with these labels."""
    return Resource(
        group="",
        versions=("v1",),
        plural="pods",
        kind="Pod",
        is_namespaced=True,
        decode=ExporterPod,
        namespace=namespace,
        label_selector=label_selector or None,
    )


def slices_of_exporters(*, label_selector: str, namespace: str | None) -> Resource:
    """Return the EndpointSlices with these labels, which are their Services' and a few more."""
    return Resource(
        group="discovery.k8s.io",
        versions=("v1",),
        plural="endpointslices",
        kind="EndpointSlice",
        is_namespaced=True,
        decode=EndpointSlice,
        namespace=namespace,
        label_selector=label_selector or None,
    )


def endpoints_of_exporters(*, label_selector: str, namespace: str | None) -> Resource:
    """Return the Endpoints with these labels, which are their Services'."""
    return Resource(
        group="",
        versions=("v1",),
        plural="endpoints",
        kind="Endpoints",
        is_namespaced=True,
        decode=Endpoints,
        namespace=namespace,
        label_selector=label_selector or None,
    )
