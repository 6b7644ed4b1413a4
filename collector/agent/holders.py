"""From the kubelet's word to holders of this node's GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collector.agent.device_ids import DRA_DRIVER, DeviceIndex, Place
from collector.sources.podresources.messages import ContainerGrants

OWN_DOMAIN = "nvidia.com/"
"""Device ids of these resources must be GPUs of this node; other plugins name other things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """One container holding one device, instance or replica."""

    place: Place
    namespace: str
    pod: str
    container: str
    resource: str | None
    claim: str | None
    """``namespace/name`` of the claim; None where a device plugin gave the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Who holds what, and what could not be told."""

    allocations: tuple[Allocation, ...]
    unresolved: tuple[str, ...]
    """Device names that mean no GPU of this node, ascending, each once."""


def holders_of(containers: tuple[ContainerGrants, ...], *, index: DeviceIndex) -> Holders:
    """Return who holds which of this node's GPUs."""
    found: list[Allocation] = []
    unresolved: set[str] = set()
    for grants in containers:
        for name, place, resource, claim in _devices(grants, index):
            if place is None:
                unresolved.add(name)
                continue
            found.append(
                Allocation(
                    place=place,
                    namespace=grants.namespace,
                    pod=grants.pod,
                    container=grants.container,
                    resource=resource,
                    claim=claim,
                )
            )
    return Holders(allocations=tuple(dict.fromkeys(found)), unresolved=tuple(sorted(unresolved)))


def _devices(
    grants: ContainerGrants, index: DeviceIndex
) -> Iterator[tuple[str, Place | None, str | None, str | None]]:
    """Yield each device's name, place, resource and claim."""
    for grant in grants.devices:
        for device_id in grant.device_ids:
            place = index.plugin_device(device_id)
            if place is not None or grant.resource.startswith(OWN_DOMAIN):
                yield device_id, place, grant.resource, None
    for claim in grants.claims:
        for device in claim.devices:
            if device.driver == DRA_DRIVER:
                place = index.claimed_device(device.device)
                yield device.device, place, None, f"{claim.namespace}/{claim.claim}"
