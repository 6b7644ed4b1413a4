"""Which GPU or MIG instance a device plugin's or a claim's device name means.

Device plugins name a GPU by UUID, a share of one by UUID and replica, an instance by its own UUID,
or all of them by the minor number. The driver for dynamic resource allocation names them by minor
number and, for an instance, its place on the GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from collector.device_names import claimed_name
from collector.sources.nvml.records import Device, Placement

DRA_DRIVER: Final = "gpu.nvidia.com"
_GPU: Final = re.compile(r"(?P<uuid>GPU-[0-9a-fA-F-]{36})(?:::(?P<replica>\d{1,9}))?")
_MIG: Final = re.compile(r"(?P<uuid>MIG-[0-9a-fA-F-]{36})(?:::(?P<replica>\d{1,9}))?")
_OLD_MIG: Final = re.compile(
    r"MIG-(?P<uuid>GPU-[0-9a-fA-F-]{36})/(?P<gi>\d{1,3})/\d{1,3}(?:::(?P<replica>\d{1,9}))?"
)
_MINOR: Final = re.compile(
    r"nvidia(?P<minor>\d{1,3})(?:/gi(?P<gi>\d{1,3}))?(?:/vgpu(?P<replica>\d{1,9}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One device, instance or replica."""

    uuid: str
    instance_id: int | None = None
    replica: int | None = None


@dataclass(slots=True)
class DeviceIndex:
    """This node's GPUs by every name they have."""

    _by_minor: dict[int, str] = field(default_factory=dict)
    _by_mig_uuid: dict[str, Place] = field(default_factory=dict)
    _by_placement: dict[tuple[str, Placement], Place] = field(default_factory=dict)

    @classmethod
    def of(cls, devices: Iterable[Device]) -> DeviceIndex:
        """Return the index of these GPUs."""
        index = cls()
        for device in devices:
            if device.identity is not None:
                index._add(device, uuid=device.identity.uuid, minor=device.identity.minor)
        return index

    def _add(self, device: Device, *, uuid: str, minor: int | None) -> None:
        if minor is not None:
            self._by_minor[minor] = uuid
        for instance in device.instances:
            place = Place(uuid=uuid, instance_id=instance.instance_id)
            for mig_uuid in instance.uuids:
                self._by_mig_uuid[mig_uuid] = place
            if instance.placement is not None:
                self._by_placement[uuid, instance.placement] = place

    def plugin_device(self, device_id: str) -> Place | None:
        """Return what a device plugin's id means; None where it names no GPU of this node."""
        if found := _GPU.fullmatch(device_id):
            return Place(uuid=found["uuid"], replica=_number(found["replica"]))
        if found := _MIG.fullmatch(device_id):
            place = self._by_mig_uuid.get(found["uuid"])
            return place and Place(
                uuid=place.uuid,
                instance_id=place.instance_id,
                replica=_number(found["replica"]),
            )
        if found := _OLD_MIG.fullmatch(device_id):
            return _place(found, uuid=found["uuid"])
        if found := _MINOR.fullmatch(device_id):
            return _place(found, uuid=self._by_minor.get(int(found["minor"])))
        return None

    def claimed_device(self, name: str) -> Place | None:
        """Return what a claim's device name means; None where its place is not known here."""
        named = claimed_name(name)
        uuid = None if named is None else self._by_minor.get(named.minor)
        if named is None or uuid is None:
            return None
        if named.profile_id is None or named.placement_start is None:
            return Place(uuid=uuid)
        placement = Placement(profile_id=named.profile_id, start=named.placement_start)
        return self._by_placement.get((uuid, placement))


def _place(found: re.Match[str], *, uuid: str | None) -> Place | None:
    if uuid is None:
        return None
    return Place(uuid=uuid, instance_id=_number(found["gi"]), replica=_number(found["replica"]))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
