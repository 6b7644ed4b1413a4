"""What a taking step costs its owner."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from enforcer.facts import Workload
from steward.units import SECONDS_PER_HOUR

CHECKPOINT_ANNOTATION: Final = "steward/checkpoint-at"
"""In which a workload writes when its newest checkpoint was complete: RFC 3339, with a zone."""


def checkpoint_at(annotations: Mapping[str, str]) -> datetime | None:
    """Return when the newest checkpoint was written.

    None: none is told, or what is told is no instant with a zone.
    """
    try:
        at = datetime.fromisoformat(annotations.get(CHECKPOINT_ANNOTATION, ""))
    except ValueError:
        return None
    return None if at.tzinfo is None else at.astimezone(UTC)


def lost_gpu_hours(workload: Workload, now: datetime) -> float | None:
    """Return GPU-hours of work since the last checkpoint, else since it got its GPUs.

    Time in which it was observed idle is no work. None: neither instant is known.
    """
    instants = [at for at in (workload.checkpoint_at, workload.admitted_at) if at is not None]
    if not instants:
        return None
    evidence = workload.evidence
    idle_since_at = None if evidence is None else evidence.idle_since_at
    worked_until_at = now if idle_since_at is None else min(idle_since_at, now)
    worked_s = (worked_until_at - max(instants)).total_seconds()
    return workload.gpu_count * max(0.0, worked_s) / SECONDS_PER_HOUR
