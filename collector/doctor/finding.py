"""One thing the doctor found, in words for a person and a code for a program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from steward.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, SECONDS_PER_MINUTE

_UNITS: Final = ((SECONDS_PER_DAY, "days"), (SECONDS_PER_HOUR, "h"), (SECONDS_PER_MINUTE, "min"))
_TOLD_UNITS: Final = 2
"""From so many of a unit on it is used: 119 s, then 2 min."""


class Severity(StrEnum):
    """How much a finding costs."""

    FAULT = "fault"
    """Nothing is read or kept there."""
    GAP = "gap"
    """Something that reports need cannot be seen."""
    NOTE = "note"
    """Worth knowing; no number suffers."""
    FINE = "fine"
    """Looked at, and as it should be."""


SEVERITIES = tuple(Severity)
"""From the worst to the best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found about one subject."""

    code: str
    """A ``Code``, or the ``Reason`` of a scrape that failed: stable, for programs."""
    severity: Severity
    subject: str
    """The target, cluster, node or file it concerns."""
    message: str
    remedy: str | None
    """The next step; None where nothing is to be done."""


def fault(code: str, subject: str, *, message: str, remedy: str) -> Finding:
    """Return a finding because of which nothing is read or kept."""
    return Finding(
        code=code, severity=Severity.FAULT, subject=subject, message=message, remedy=remedy
    )


def gap(code: str, subject: str, *, message: str, remedy: str) -> Finding:
    """Return a finding because of which reports lack something."""
    return Finding(
        code=code, severity=Severity.GAP, subject=subject, message=message, remedy=remedy
    )


def note(code: str, subject: str, *, message: str, remedy: str | None = None) -> Finding:
    """Return a finding that is worth knowing."""
    return Finding(
        code=code, severity=Severity.NOTE, subject=subject, message=message, remedy=remedy
    )


def fine(code: str, subject: str, *, message: str) -> Finding:
    """Return a finding that tells what is as it should be."""
    return Finding(code=code, severity=Severity.FINE, subject=subject, message=message, remedy=None)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings from the worst to the best, then by code and subject."""
    return sorted(findings, key=lambda one: (SEVERITIES.index(one.severity), one.code, one.subject))


def named(names: Iterable[str], *, most: int = 5) -> str:
    """Return names for a sentence: ascending, the first few, and how many more there are."""
    known = sorted(set(names))
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 device``, ``2 devices``."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"


def share(count: int, total: int, noun: str) -> str:
    """Return a part of a whole with its noun: ``1 of 4 targets``."""
    return f"{count:,} of {total:,} {noun}s"


def lasting(duration_s: float) -> str:
    """Return a length of time in its largest fitting unit: ``90 s``, ``58 min``, ``838 days``."""
    for unit_s, word in _UNITS:
        if duration_s >= _TOLD_UNITS * unit_s:
            return f"{int(duration_s // unit_s):,} {word}"
    return f"{duration_s:.0f} s"
