"""Which delivered notices count for a rung, and from when on they let it act.

The k-th notice of an idle stretch stands for the k-th notifying rung of the ladder. Copies of one
notice by other channels come within the time between two rungs and are not counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from enforcer.decisions import Step
from enforcer.facts import Notice
from enforcer.policies.model import Rung


def of_stretch(
    notices: Iterable[Notice],
    rule: str,
    *,
    since_at: datetime,
    now: datetime,
) -> tuple[Notice, ...]:
    """Return the notices of a rule that were delivered within a stretch until now, oldest first.

    A notice that spoke of no idle stretch, or of one that began later, is not of this one.
    """
    found = (
        notice
        for notice in notices
        if notice.rule == rule
        and since_at <= notice.delivered_at <= now
        and notice.idle_since_at is not None
        and notice.idle_since_at <= notice.delivered_at
    )
    return tuple(sorted(found, key=lambda notice: (notice.delivered_at, notice.act_at)))


def warning_rungs(ladder: Sequence[Rung], *, before: timedelta) -> tuple[Rung, ...]:
    """Return the notifying rungs that come no later than ``before``, in order."""
    return tuple(rung for rung in ladder if rung.step is Step.NOTIFY and rung.after <= before)


def counted(notices: Sequence[Notice], rungs: Sequence[Rung]) -> tuple[datetime, ...]:
    """Return when the notice of each rung was delivered, as far as they were.

    Args:
        notices: of one stretch, oldest first.
        rungs: notifying ones, in order.
    """
    found: list[datetime] = []
    for notice in notices:
        if len(found) == len(rungs):
            break
        if not found or notice.delivered_at >= found[-1] + spacing(rungs, len(found)):
            found.append(notice.delivered_at)
    return tuple(found)


def spacing(rungs: Sequence[Rung], number: int) -> timedelta:
    """Return how long after the notice before it the notice of this rung (from 0) is due."""
    return rungs[number].after - rungs[number - 1].after if number else timedelta()


def age_needed(rung: Rung, taking: Rung) -> timedelta:
    """Return how old the notice of a rung must be before a later rung acts."""
    return min(taking.lead, taking.after - rung.after)


def due_times(
    rungs: Sequence[Rung], delivered: Sequence[datetime], *, idle: timedelta, now: datetime
) -> tuple[datetime, ...]:
    """Return when each notice was delivered, or may be if the workload stays idle from now on."""
    times = list(delivered)
    for number in range(len(delivered), len(rungs)):
        idle_at = now + (rungs[number].after - idle)
        after_last = times[-1] + spacing(rungs, number) if times else now
        times.append(max(now, idle_at, after_last))
    return tuple(times)
