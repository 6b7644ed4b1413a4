"""What keeps each rung of a ladder from being due, and until when.

A rung is due once it is not done in this idle stretch and nothing holds it. What is foreseen
assumes that the workload stays idle, that every notice is delivered when it is due and that nothing
else changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from enforcer.decisions import TAKING_STEPS, Step
from enforcer.facts import Notice, Workload
from enforcer.policies import notices as told
from enforcer.policies.model import Rule, Rung
from enforcer.policies.reasons import Reason
from enforcer.policies.schedule import is_frozen, is_open, next_open

ACTING_STEPS: Final = TAKING_STEPS | {Step.LOWER_PRIORITY}
"""Steps that change an object: they need a delivered notice, the schedule and the run time."""
POD_KIND: Final = "Pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Something that keeps a rung from being due."""

    reason: Reason
    until_at: datetime | None
    """None: it does not end by waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """One rung as it stands now."""

    rung: Rung
    is_done: bool
    """Taken in this idle stretch, or a later rung was."""
    holds: tuple[Hold, ...]
    """What holds it now, most decisive first; empty: nothing does."""
    due_at: datetime | None
    """When it may be due; None: never, or not known."""

    @property
    def is_due(self) -> bool:
        """Tell whether it is to be taken now."""
        return not self.is_done and not self.holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One idle stretch of one workload under one rule, at ``now``."""

    workload: Workload
    rule: Rule
    now: datetime
    idle: timedelta
    """Observed idle time."""
    since_at: datetime | None
    notices: tuple[Notice, ...]
    """Delivered in this stretch, oldest first."""
    done_steps: frozenset[str]
    """Taken in this stretch and not undone."""
    restored_at: datetime | None


def outlooks(stretch: Stretch) -> tuple[Outlook, ...]:
    """Return the outlook of every rung, in the ladder's order."""
    ladder = stretch.rule.ladder
    warnings = told.warning_rungs(ladder, before=ladder[-1].after) if ladder else ()
    delivered = told.counted(stretch.notices, warnings)
    notices_done = {id(rung) for rung in warnings[: len(delivered)]}
    is_done = [
        id(rung) in notices_done
        or (rung.step is not Step.NOTIFY and rung.step in stretch.done_steps)
        for rung in ladder
    ]
    last_acted = max(
        (at for at, rung in enumerate(ladder) if is_done[at] and rung.step is not Step.NOTIFY),
        default=-1,
    )
    return tuple(
        _outlook(rung, stretch, is_done=is_done[at] or at < last_acted)
        for at, rung in enumerate(ladder)
    )


def _outlook(rung: Rung, stretch: Stretch, *, is_done: bool) -> Outlook:
    found = tuple(_holds(rung, stretch))
    ends = [hold.until_at for hold in found if hold.until_at is not None]
    is_endless = len(ends) < len(found)
    free_at = max(ends, default=stretch.now)
    if rung.step not in ACTING_STEPS:
        due_at = None if is_endless else free_at
        return Outlook(rung=rung, is_done=is_done, holds=found, due_at=due_at)
    due_at = None if is_endless else next_open(stretch.rule.schedule, free_at)
    holds = (*found, *_schedule_holds(stretch))
    return Outlook(rung=rung, is_done=is_done, holds=holds, due_at=due_at)


def _holds(rung: Rung, stretch: Stretch) -> Iterator[Hold]:
    """Yield what holds a rung now, but for the schedule."""
    if stretch.since_at is None:
        yield _until(Reason.STRETCH_UNKNOWN, None)
    yield from _restore_holds(stretch)
    if rung.step in ACTING_STEPS:
        yield from _kind_holds(rung.step, stretch.workload)
    if rung.after > stretch.idle:
        yield _until(Reason.NOT_YET, stretch.now + (rung.after - stretch.idle))
    if rung.step in ACTING_STEPS:
        yield from _run_holds(stretch)
        yield from _notice_holds(rung, stretch)
    elif rung.step is Step.NOTIFY and rung.after <= stretch.idle:
        yield from _spacing_holds(rung, stretch)


def _until(reason: Reason, until_at: datetime | None) -> Hold:
    return Hold(reason=reason, until_at=until_at)


def _restore_holds(stretch: Stretch) -> Iterator[Hold]:
    if stretch.restored_at is not None:
        until_at = stretch.restored_at + stretch.rule.restore_grace
        if until_at > stretch.now:
            yield _until(Reason.RESTORED_LATELY, until_at)


def _kind_holds(step: Step, workload: Workload) -> Iterator[Hold]:
    is_bare_pod = workload.kind == POD_KIND
    if is_bare_pod and step is Step.SUSPEND:
        yield _until(Reason.BARE_POD, None)
    if not is_bare_pod and step is Step.EVICT:
        yield _until(Reason.NOT_A_BARE_POD, None)


def _run_holds(stretch: Stretch) -> Iterator[Hold]:
    admitted_at = stretch.workload.admitted_at
    if admitted_at is None:
        yield _until(Reason.ADMISSION_UNKNOWN, None)
    elif admitted_at + stretch.rule.min_runtime > stretch.now:
        yield _until(Reason.RAN_TOO_SHORT, admitted_at + stretch.rule.min_runtime)


def _notice_holds(rung: Rung, stretch: Stretch) -> Iterator[Hold]:
    """Yield what its warnings still ask: delivered, old enough, and the promised time come."""
    rungs = told.warning_rungs(stretch.rule.ladder, before=rung.after)
    delivered = told.counted(stretch.notices, rungs)
    times = told.due_times(rungs, delivered, idle=stretch.idle, now=stretch.now)
    ripe_at = max(
        (at + told.age_needed(one, rung) for one, at in zip(rungs, times, strict=True)),
        default=None,
    )
    if len(delivered) < len(rungs) or not rungs:
        yield _until(Reason.NOTICE_MISSING, ripe_at)
    elif ripe_at is not None and ripe_at > stretch.now:
        yield _until(Reason.NOTICE_TOO_YOUNG, ripe_at)
    yield from _promise_holds(rung, stretch)


def _promise_holds(rung: Rung, stretch: Stretch) -> Iterator[Hold]:
    """A warning names when GPUs may be taken: the newest one is kept to."""
    if rung.step in TAKING_STEPS and stretch.notices:
        promised_at = stretch.notices[-1].act_at
        if promised_at > stretch.now:
            yield _until(Reason.PROMISED_LATER, promised_at)


def _spacing_holds(rung: Rung, stretch: Stretch) -> Iterator[Hold]:
    """A later notice keeps its distance from the one before, which comes first."""
    rungs = told.warning_rungs(stretch.rule.ladder, before=rung.after)
    delivered = told.counted(stretch.notices, rungs)
    due_at = told.due_times(rungs, delivered, idle=stretch.idle, now=stretch.now)[-1]
    if due_at > stretch.now:
        yield _until(Reason.NOT_YET, due_at)


def _schedule_holds(stretch: Stretch) -> Iterator[Hold]:
    schedule, now = stretch.rule.schedule, stretch.now
    if not is_open(schedule, now):
        reason = Reason.FREEZE_DAY if is_frozen(schedule, now) else Reason.OUTSIDE_HOURS
        yield _until(reason, next_open(schedule, now))
