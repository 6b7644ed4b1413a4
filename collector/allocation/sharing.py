"""How a device is split over its holders: modes, shares and the numbers of shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from collector.allocation.polls import is_same_holder
from collector.allocation.resolve import Part
from collector.allocation.state import Interval
from collector.device_names import claimed_name, resource_profile
from collector.holdings import DeviceKey
from collector.normalize.mig import mig_share

SHARE_UNKNOWN: Final = "share_unknown"
"""The size of the MIG instance is not known: it counts as the smallest there is."""
_SMALLEST_INSTANCE_RATIO: Final = 1 / 7


class SharingMode(StrEnum):
    """How a device is handed out."""

    EXCLUSIVE = "exclusive"
    MIG = "mig"
    SHARED_EQUAL = "shared_equal"
    SHARED_MEASURED = "shared_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A share as it is to be from now on."""

    part: Part
    replica: int | None
    share_ratio: float
    sharing_mode: SharingMode
    conflicts: tuple[str, ...]


def wanted(
    device: DeviceKey,
    parts: Sequence[Part],
    *,
    before: Sequence[Interval],
    sm_shares: Mapping[DeviceKey, float],
) -> list[Wanted]:
    """Return the shares of a device: each holder the same part, however many shares it has.

    Args:
        device: a board or a MIG instance.
        parts: who holds it.
        before: its open intervals; a share keeps the number it has.
        sm_shares: sizes of instances, where known.
    """
    if not parts:
        return []
    whole, words = _device_share(device, parts[0], sm_shares=sm_shares)
    holders = [part.holder for part in parts]
    holder_count = len(set(holders))
    is_single = len(parts) == 1
    replicas = [parts[0].replica] if is_single else _numbers(parts, before=before)
    mode = _mode(device, is_shared=holder_count > 1 or replicas[0] is not None)
    return [
        Wanted(
            part=part,
            replica=replica,
            share_ratio=whole / holder_count / holders.count(part.holder),
            sharing_mode=mode,
            conflicts=(*part.conflicts, *words),
        )
        for part, replica in zip(parts, replicas, strict=True)
    ]


def _mode(device: DeviceKey, *, is_shared: bool) -> SharingMode:
    if is_shared:
        return SharingMode.SHARED_EQUAL
    return SharingMode.EXCLUSIVE if device[1] is None else SharingMode.MIG


def _device_share(
    device: DeviceKey, part: Part, *, sm_shares: Mapping[DeviceKey, float]
) -> tuple[float, tuple[str, ...]]:
    """Return the part of the board that the device is, and what is to be said of it."""
    asked = mig_share(_asked_profile(part), model=None).sm_ratio
    if device[1] is None:
        return (1.0 if part.unresolved is None or asked is None else asked), ()
    known = sm_shares.get(device, asked)
    return (known, ()) if known is not None else (_SMALLEST_INSTANCE_RATIO, (SHARE_UNKNOWN,))


def _asked_profile(part: Part) -> str | None:
    """Return the MIG profile that a resource, or a claim's device that was not found, names."""
    named = None if part.unresolved is None else claimed_name(part.unresolved)
    return resource_profile(part.resource) if named is None else named.profile


def _numbers(parts: Sequence[Part], *, before: Sequence[Interval]) -> list[int]:
    """Return each share's number: the source's own, that of its open interval, or a free one."""
    given: dict[int, int] = {}
    for wishes in ([part.replica for part in parts], [_kept(part, before) for part in parts]):
        for index, number in enumerate(wishes):
            if index not in given and number is not None and number not in given.values():
                given[index] = number
    free = iter(number for number in range(2 * len(parts)) if number not in given.values())
    return [given[index] if index in given else next(free) for index in range(len(parts))]


def _kept(part: Part, before: Sequence[Interval]) -> int | None:
    """Return the number of the holder's open interval."""
    numbers = (
        each.replica
        for each in before
        if each.replica is not None and is_same_holder(each.holder, part.holder)
    )
    return next(numbers, None)
