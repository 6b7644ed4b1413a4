"""Lengths of time as people write them in a policy: ``90s``, ``15m``, ``6h``, ``2h30m``, ``7d``."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

DURATION_PATTERN: Final = "^(?=[0-9])([0-9]{1,5}d)?([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?$"
"""Whole days, hours, minutes and seconds, largest first; ECMA and Python read it alike."""
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_PARTS: Final = re.compile(DURATION_PATTERN)


def duration_from(text: str) -> timedelta | None:
    """Return the length that a text writes; None: it writes none."""
    found = _PARTS.fullmatch(text)
    if found is None:
        return None
    parts = zip(found.groups(), _UNITS, strict=True)
    return timedelta(seconds=sum(int(part[:-1]) * size for part, (_, size) in parts if part))


def duration_text(length: timedelta) -> str:
    """Return a length of whole seconds as ``duration_from`` reads it."""
    rest = int(length.total_seconds())
    words: list[str] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        words += [f"{count}{unit}"] if count else []
    return "".join(words) or "0s"
