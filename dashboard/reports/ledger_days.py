"""Which builds are stored, and whether a day is the sum of the newest builds of its hours."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from dashboard.reports.arrow import frame
from dashboard.reports.hours import hours_of
from dashboard.reports.ledger_readings import ends
from steward.period import Period
from steward.ports import Reader

DIGEST_LENGTH: Final = 16
"""Hexadecimal digits: 64 bits tell all builds apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBuild:
    """The newest stored build of one hour or day."""

    build_id: str
    built_at: datetime
    build_count: int
    """Builds stored so far, this one included."""


def newest_builds(reader: Reader, period: Period, grain: str) -> dict[datetime, StoredBuild]:
    """Return the newest build of each hour or day (the grain) that begins in the period."""
    rows = frame(reader.query("ledger_built", {**ends(period), "grain": grain}))
    return {
        row["starts_at"].astimezone(UTC): StoredBuild(
            build_id=row["build_id"], built_at=row["built_at"], build_count=row["build_count"]
        )
        for row in rows.iter_rows(named=True)
    }


def day_build_id(day_at: datetime, hours: Mapping[datetime, StoredBuild]) -> str | None:
    """Return the id of the day's build that sums these builds of its hours; None: some lack one.

    A day whose newest build has another id is out of date: one of its hours was built again.
    """
    wanted = hours_of(day_at)
    if any(at not in hours for at in wanted):
        return None
    return f"{day_at:%Y%m%d}.{digest([hours[at].build_id for at in wanted])}"


def digest(texts: Sequence[str]) -> str:
    """Return a short name for these texts in this order."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:DIGEST_LENGTH]
