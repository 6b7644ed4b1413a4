"""What DRA drivers offer: which physical GPU, or which part of one, a device name stands for.

Attributes are those of NVIDIA's driver; partitions that it makes on demand have no identity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from collector.device_names import ClaimedName, claimed_name
from collector.sources.kubernetes.objects import Quantity
from collector.sources.kubernetes.objects_cluster import (
    DeviceAttribute,
    DeviceCapacity,
    ResourceSlice,
    SliceDevice,
)

_ACCELERATOR: Final = re.compile(r"gpu|npu", re.IGNORECASE)
NO_DEVICE: Final = "device_not_in_slices"
NO_UUID: Final = "device_without_uuid"
NO_PARENT: Final = "mig_parent_unknown"
NO_INSTANCE: Final = "mig_instance_unknown"

Place = tuple[str, str, str]
"""Driver, pool and name of a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One device of a slice."""

    node: str | None
    device: SliceDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which piece of hardware a device name stands for; None is not known."""

    node: str | None
    device_uuid: str | None
    """Of the board, or of the partition where the driver tells it."""
    parent_uuid: str | None
    """Of the board a partition is cut from; None for a whole board."""
    mig_profile: str | None
    placement_start: int | None
    """First memory slice of the partition."""
    reason: str | None
    """Why the hardware is not known."""


def is_accelerator_driver(driver: str) -> bool:
    """Return whether a driver hands out accelerators (and not network cards, say)."""
    return _ACCELERATOR.search(driver) is not None


def offers(slices: Iterable[ResourceSlice]) -> dict[Place, Offer]:
    """Return every device on offer, of the newest generation of each pool."""
    listed = [each for each in slices if is_accelerator_driver(each.spec.driver)]
    newest: dict[tuple[str, str], int] = {}
    for each in listed:
        pool = (each.spec.driver, each.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), each.spec.pool.generation)
    return {
        (each.spec.driver, each.spec.pool.name, device.name): Offer(
            node=each.spec.node_name, device=device
        )
        for each in listed
        if each.spec.pool.generation == newest[each.spec.driver, each.spec.pool.name]
        for device in each.spec.devices or ()
    }


def identity(place: Place, known: Mapping[Place, Offer]) -> Identity:
    """Return what a device's name stands for."""
    offer, by_name = known.get(place), _partition_name(place)
    attributes = attributes_of(offer.device) if offer is not None else {}
    profile = _text(attributes, "profile") or (by_name and by_name.profile)
    if profile or _text(attributes, "type") == "mig" or by_name is not None:
        return _partition(place, known, profile or None)
    uuid = _text(attributes, "uuid")
    reason = NO_DEVICE if offer is None else NO_UUID
    return Identity(
        node=offer.node if offer is not None else None,
        device_uuid=uuid,
        parent_uuid=None,
        mig_profile=None,
        placement_start=None,
        reason=None if uuid is not None else reason,
    )


def _partition(place: Place, known: Mapping[Place, Offer], profile: str | None) -> Identity:
    offer, by_name = known.get(place), _partition_name(place)
    attributes = attributes_of(offer.device) if offer is not None else {}
    board = _board(place, known, by_name.minor) if by_name is not None else None
    parent = _text(attributes, "parentUUID")
    if parent is None and board is not None:
        parent = _text(attributes_of(board.device), "uuid")
    start = by_name.placement_start if by_name is not None else _placement(attributes)
    nodes = (each.node for each in (offer, board) if each is not None)
    return Identity(
        node=next(nodes, None),
        device_uuid=_text(attributes, "uuid"),
        parent_uuid=parent,
        mig_profile=profile,
        placement_start=start,
        reason=NO_PARENT if parent is None else None,
    )


def _partition_name(place: Place) -> ClaimedName | None:
    """Return what the name of a partition says; None for any other name."""
    named = claimed_name(place[2])
    return None if named is None or named.profile is None else named


def _board(place: Place, known: Mapping[Place, Offer], minor: int) -> Offer | None:
    """Return the whole board with this minor number in the same pool."""
    named = known.get((place[0], place[1], f"gpu-{minor}"))
    if named is not None:
        return named
    for (driver, pool, _), offer in known.items():
        attributes = attributes_of(offer.device)
        is_board = _text(attributes, "type") == "gpu"
        if (driver, pool) == place[:2] and is_board and _whole(attributes, "minor") == minor:
            return offer
    return None


def boards(known: Mapping[Place, Offer]) -> Iterator[tuple[Place, Offer, str]]:
    """Yield every whole board with its UUID."""
    for place, offer in known.items():
        found = identity(place, known)
        if found.parent_uuid is None and found.mig_profile is None and found.device_uuid:
            yield place, offer, found.device_uuid


def attributes_of(device: SliceDevice) -> Mapping[str, DeviceAttribute]:
    """Return the attributes by name without the driver's domain."""
    found = device.basic.attributes if device.basic is not None else device.attributes
    return {name.rpartition("/")[2]: each for name, each in (found or {}).items()}


def memory_of(device: SliceDevice) -> Quantity | None:
    """Return how much memory the device has, as the driver writes it."""
    found = device.basic.capacity if device.basic is not None else device.capacity
    capacity = {name.rpartition("/")[2]: each for name, each in (found or {}).items()}
    memory = capacity.get("memory")
    return memory.value if isinstance(memory, DeviceCapacity) else memory


def text_of(device: SliceDevice, name: str) -> str | None:
    """Return an attribute's text or version."""
    return _text(attributes_of(device), name)


def whole_of(device: SliceDevice, name: str) -> int | None:
    """Return an attribute's number."""
    return _whole(attributes_of(device), name)


def _text(attributes: Mapping[str, DeviceAttribute], name: str) -> str | None:
    found = attributes.get(name)
    return None if found is None else found.text or found.version


def _whole(attributes: Mapping[str, DeviceAttribute], name: str) -> int | None:
    found = attributes.get(name)
    return None if found is None else found.whole


def _placement(attributes: Mapping[str, DeviceAttribute]) -> int | None:
    return _whole(attributes, "placementStart")
