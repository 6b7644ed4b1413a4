"""Why a measure has no value, and why a value that is kept is not to be trusted fully."""

from __future__ import annotations

from enum import StrEnum


class Absence(StrEnum):
    """Why a metric that the source named has no usable value."""

    NOT_SUPPORTED = "not_supported"
    """The device does not offer it."""
    BLANK = "blank"
    """Nothing was read: no value yet, not found, or the reading failed."""
    OUT_OF_RANGE = "out_of_range"
    """A number, but not one that this measure can have."""
    AMBIGUOUS_UNIT = "ambiguous_unit"
    """A number that means two things, and nothing else in the text tells which."""
    NO_PERMISSION = "no_permission"
    """The source may not read it."""
    LOST = "lost"
    """The device does not answer any more."""
    TIMEOUT = "timeout"
    """The driver did not answer in time."""


class Doubt(StrEnum):
    """Why a value that is kept deserves less trust; told beside the absences."""

    CLAMPED = "clamped"
    """It lay past the end of its range and was taken as that end."""
    LOW_TRUST = "low_trust"
    """A known flaw of this source makes such values: see the exporter's traps."""
