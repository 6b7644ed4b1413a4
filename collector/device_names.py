"""What the names say by which device plugins and NVIDIA's driver for claims hand devices out.

A resource names the profile of a MIG instance: ``nvidia.com/mig-1g.10gb.me``. The driver for
dynamic resource allocation names a board ``gpu-<minor>``, and a partition made on demand
``gpu-<minor>-mig-<profile>-<profile id>-<first memory slice>``, the profile without its dot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RESOURCE: Final = re.compile(
    r"nvidia\.com/mig-(?P<size>(?:\d+c\.)?\d+g\.\d+gb)(?P<kind>(?:[.-][a-z]+)*?)(?:\.shared)?"
)
_BOARD: Final = re.compile(r"gpu-(?P<minor>\d{1,4})")
_PARTITION: Final = re.compile(
    r"gpu-(?P<minor>\d{1,4})-mig-(?P<compute>(?:\d+c)?)(?P<slices>\d+g)(?P<memory>\d+gb)"
    r"(?P<kind>(?:-[a-z0-9-]+?)?)-(?P<profile_id>\d{1,4})-(?P<start>\d{1,3})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedName:
    """What the name of a claimed device says; the last three are None for a whole board."""

    minor: int
    """Minor number of the board's device file, which is not its NVML index."""
    profile: str | None
    """As NVIDIA writes it, such as ``1g.5gb`` or ``1g.10gb+me``."""
    profile_id: int | None
    placement_start: int | None
    """First memory slice."""


def resource_profile(resource: str | None) -> str | None:
    """Return the MIG profile that a resource name asks for, such as ``1g.10gb+me``."""
    found = _RESOURCE.fullmatch(resource or "")
    return None if found is None else found["size"] + re.sub(r"^\.", "+", found["kind"])


def claimed_name(name: str) -> ClaimedName | None:
    """Return what a claimed device's name says; None where it has neither of the two forms."""
    if board := _BOARD.fullmatch(name):
        return ClaimedName(
            minor=int(board["minor"]), profile=None, profile_id=None, placement_start=None
        )
    if part := _PARTITION.fullmatch(name):
        return ClaimedName(
            minor=int(part["minor"]),
            profile=_dotted(part),
            profile_id=int(part["profile_id"]),
            placement_start=int(part["start"]),
        )
    return None


def _dotted(part: re.Match[str]) -> str:
    compute = f"{part['compute']}." if part["compute"] else ""
    return f"{compute}{part['slices']}.{part['memory']}{part['kind'].replace('-', '+', 1)}"
