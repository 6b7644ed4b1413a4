"""One number of a vendor becomes a cell in base units, or the reason why it is none."""

from __future__ import annotations

from dataclasses import dataclass

from collector.normalize.absence import Absence
from collector.normalize.sentinels import absence_of
from collector.normalize.units import UNSETTLED_RATIO, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A value in base units; None with the reason."""

    cell: float | int | None
    absence: Absence | None = None
    is_clamped: bool = False


def converted(value: float, *, unit: Unit) -> Converted:
    """Return the value in base units, clamped where it is a little past its range."""
    reason = absence_of(value, unit=unit)
    if reason is not None:
        return Converted(cell=None, absence=reason)
    is_clamped = unit.clamp_at is not None and value > unit.clamp_at
    if is_clamped and unit is UNSETTLED_RATIO:
        return Converted(cell=None, absence=Absence.AMBIGUOUS_UNIT)
    kept = unit.clamp_at if is_clamped and unit.clamp_at is not None else value
    cell: float = kept * unit.multiplier / unit.divisor
    return Converted(cell=round(cell) if unit.is_integer else cell, is_clamped=is_clamped)
