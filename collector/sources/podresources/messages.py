"""The parts of ``api.proto`` that say who holds which device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collector.sources.podresources.wire import fields, nested, text


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGrant:
    """Devices of one resource that a device plugin gave to a container."""

    resource: str
    device_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDevice:
    """One device of a ResourceClaim; the three names together are unique."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimGrant:
    """A ResourceClaim that a container uses."""

    namespace: str
    claim: str
    devices: tuple[ClaimedDevice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerGrants:
    """What one container was given; containers of init are not listed by the kubelet."""

    namespace: str
    pod: str
    container: str
    devices: tuple[DeviceGrant, ...]
    claims: tuple[ClaimGrant, ...]


def read_list(message: bytes) -> tuple[ContainerGrants, ...]:
    """Return the containers of a ``ListPodResourcesResponse``, in the kubelet's order.

    Raises:
        MessageError: these bytes are none.
    """
    return tuple(
        container
        for number, value in fields(message)
        if number == 1
        for container in _pod(nested(value))
    )


def read_allocatable(message: bytes) -> tuple[DeviceGrant, ...]:
    """Return the devices of an ``AllocatableResourcesResponse`` by resource.

    Raises:
        MessageError: these bytes are none.
    """
    return tuple(_devices(nested(value)) for number, value in fields(message) if number == 1)


def _pod(message: bytes) -> Iterator[ContainerGrants]:
    name, namespace, containers = "", "", list[bytes]()
    for number, value in fields(message):
        if number == 1:
            name = text(value)
        elif number == 2:
            namespace = text(value)
        elif number == 3:
            containers.append(nested(value))
    for container in containers:
        yield _container(container, namespace=namespace, pod=name)


def _container(message: bytes, *, namespace: str, pod: str) -> ContainerGrants:
    name, devices, claims = "", list[DeviceGrant](), list[ClaimGrant]()
    for number, value in fields(message):
        if number == 1:
            name = text(value)
        elif number == 2:
            devices.append(_devices(nested(value)))
        elif number == 5:
            claims.append(_claim(nested(value)))
    return ContainerGrants(
        namespace=namespace,
        pod=pod,
        container=name,
        devices=tuple(devices),
        claims=tuple(claims),
    )


def _devices(message: bytes) -> DeviceGrant:
    resource, device_ids = "", list[str]()
    for number, value in fields(message):
        if number == 1:
            resource = text(value)
        elif number == 2:
            device_ids.append(text(value))
    return DeviceGrant(resource=resource, device_ids=tuple(device_ids))


def _claim(message: bytes) -> ClaimGrant:
    claim, namespace, devices = "", "", list[ClaimedDevice]()
    for number, value in fields(message):
        if number == 2:
            claim = text(value)
        elif number == 3:
            namespace = text(value)
        elif number == 4:
            devices.append(_claimed_device(nested(value)))
    return ClaimGrant(namespace=namespace, claim=claim, devices=tuple(devices))


def _claimed_device(message: bytes) -> ClaimedDevice:
    names = {2: "", 3: "", 4: ""}
    for number, value in fields(message):
        if number in names:
            names[number] = text(value)
    return ClaimedDevice(driver=names[2], pool=names[3], device=names[4])
