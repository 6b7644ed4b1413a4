"""Numbers and words that mean "no value", and which kind of no value they mean."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Final

from collector.normalize.absence import Absence
from collector.normalize.units import Unit

__all__ = ["Absence", "absence_of", "meaning"]

_INT32_BLANK: Final = 0x7FFF_FFF0
_INT64_BLANK: Final = 0x7FFF_FFFF_FFFF_FFF0
_FP64_BLANK: Final = 140_737_488_355_328
_KINDS: Final = (Absence.BLANK, Absence.BLANK, Absence.NOT_SUPPORTED, Absence.NO_PERMISSION)
"""DCGM counts up from each blank: blank, not found, not supported, not permissioned."""
_INT64_COLLAPSED: Final = 2**63 - 4096
"""As 64-bit floats the four INT64 sentinels are one number."""


def _sentinels(blank: int) -> dict[float, Absence]:
    return {blank + offset: kind for offset, kind in enumerate(_KINDS)}


_NARROW: Final = MappingProxyType(_sentinels(_INT32_BLANK))
_WIDE: Final = MappingProxyType(_sentinels(_INT64_BLANK) | _sentinels(_FP64_BLANK))
_WORDS: Final = frozenset(
    {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"}
)


def absence_of(value: float, *, unit: Unit) -> Absence | None:
    """Return why a number in the vendor's unit is no reading, or None where it is one.

    Every narrow unit ends below the 32-bit blanks, so within its span no number is a sentinel.
    """
    if unit.lowest <= value <= unit.highest:
        return None
    if math.isnan(value):
        return Absence.BLANK
    known = (
        dict(unit.sentinels).get(value)
        or _WIDE.get(value)
        or (None if unit.may_exceed_int32 else _NARROW.get(value))
    )
    if known is not None:
        return known
    is_collapsed = _INT64_COLLAPSED <= value <= 2**63 + 4096
    return Absence.BLANK if is_collapsed else Absence.OUT_OF_RANGE


def meaning(label_value: str | None) -> str | None:
    """Return a label's value, or None where it says nothing: absent, empty or a DCGM blank."""
    return None if not label_value or label_value in _WORDS else label_value
