"""What part of a GPU a MIG instance is, read from its profile's name.

The memory in a profile's name is not trusted (a 1g.12gb instance was seen named 1g.11gb): shares
follow from the number of compute slices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

_PROFILE: Final = re.compile(r"(?:\d+c\.)?(?P<slices>\d+)g\.\d+gb(?:[+-][\w.+-]+)?", re.IGNORECASE)
_SLICES: Final = 7
_MEMORY_SHARES: Final = MappingProxyType({1: 1 / 8, 2: 2 / 8, 3: 4 / 8, 4: 4 / 8, 7: 8 / 8})
_A30_SLICES: Final = 4
_A30_MEMORY_SHARES: Final = MappingProxyType({1: 1 / 4, 2: 2 / 4, 4: 4 / 4})


@dataclass(frozen=True, slots=True, kw_only=True)
class MigShare:
    """An instance's part of its GPU."""

    sm_ratio: float | None
    memory_ratio: float | None


UNKNOWN_SHARE: Final = MigShare(sm_ratio=None, memory_ratio=None)


def mig_share(profile: str | None, *, model: str | None) -> MigShare:
    """Return the share named by a profile such as ``2g.10gb``; unknown where it names none.

    Args:
        profile: as the exporter labels it.
        model: the board; an A30 has 4 slices, every other MIG board 7.
    """
    found = _PROFILE.fullmatch(profile or "")
    if found is None:
        return UNKNOWN_SHARE
    is_a30 = "A30" in re.split(r"[\s-]", model or "")
    slices, whole = int(found["slices"]), _A30_SLICES if is_a30 else _SLICES
    shares = _A30_MEMORY_SHARES if is_a30 else _MEMORY_SHARES
    if not 1 <= slices <= whole:
        return UNKNOWN_SHARE
    return MigShare(sm_ratio=slices / whole, memory_ratio=shares.get(slices))
